//! What every measurement stands on: a private database server, a broker process, clients, and a way to show figures.

#![allow(clippy::print_stdout, reason = "whoever started it wants to know how it ended")]
#![allow(dead_code, reason = "each measurement uses the part that it needs")]

pub(crate) mod broker;
pub(crate) mod clients;
pub(crate) mod figures;
pub(crate) mod mariadb;
pub(crate) mod postgres;
pub(crate) mod server;
pub(crate) mod statements;
pub(crate) mod status;

#[allow(unused_imports, reason = "each measurement uses the part that it needs")]
pub(crate) use leasehold::bench::process;

use std::{
    error::Error,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Arg, ArgAction, ArgMatches, Command, builder::PossibleValuesParser, value_parser};

/// What can go wrong ends the measurement; the text is all that anybody needs.
pub(crate) type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// What a measurement was asked for. Numbers have names and defaults, switches are off unless named.
pub(crate) struct Options {
    matches: ArgMatches,
}

impl Options {
    /// Reads the command line; `--help` and mistakes end the process.
    pub(crate) fn parse(about: &'static str, numbers: &[(&'static str, &'static str, &'static str)]) -> Self {
        Self::parse_on(&["postgres"], about, numbers)
    }

    /// The same for a measurement that can be made on each of these engines; the first is the default.
    pub(crate) fn parse_on(
        engines: &[&'static str],
        about: &'static str,
        numbers: &[(&'static str, &'static str, &'static str)],
    ) -> Self {
        let bindir = Arg::new("bindir").long("bindir").value_name("DIR").value_parser(value_parser!(PathBuf));
        let bindir =
            bindir.help("Directory of the database server's programs [default: where pg_config or Debian has it]");
        let broker = Arg::new("broker").long("broker").value_name("FILE").value_parser(value_parser!(PathBuf));
        let broker = broker.help("Another broker than the one just built, to compare the two");
        let other = Arg::new("other").long("other").value_name("FILE").value_parser(value_parser!(PathBuf));
        let other = other.help("A second broker, to be measured beside the first, where the measurement has two");
        let engine = Arg::new("engine").long("engine").value_name("NAME").default_value(engines[0]);
        let engine = engine.value_parser(PossibleValuesParser::new(engines.to_vec())).hide(engines.len() == 1);
        let engine = engine.help("Which database server it is measured on");
        // cargo bench passes it; cargo test --all-targets does not.
        let bench = Arg::new("bench").long("bench").action(ArgAction::SetTrue).hide(true);
        let number = |&(name, default, help)| {
            Arg::new(name).long(name).value_name("N").value_parser(value_parser!(u64)).default_value(default).help(help)
        };
        let command = Command::new("cargo bench")
            .about(about)
            .args([bindir, broker, other, engine, bench])
            .args(numbers.iter().map(number));
        Self { matches: command.get_matches() }
    }

    /// A number that [`Options::parse`] was told of.
    pub(crate) fn number(&self, name: &str) -> u64 {
        self.matches.get_one(name).copied().unwrap_or_default()
    }

    /// Whether it is to be measured on MariaDB.
    pub(crate) fn is_mariadb(&self) -> bool {
        self.matches.get_one::<String>("engine").is_some_and(|engine| engine == "mariadb")
    }

    /// Directory of the server's programs, where it was said.
    pub(crate) fn bindir(&self) -> Option<&Path> {
        self.matches.get_one::<PathBuf>("bindir").map(PathBuf::as_path)
    }

    /// The broker to be measured.
    pub(crate) fn broker(&self) -> &Path {
        self.matches.get_one::<PathBuf>("broker").map_or(Path::new(env!("CARGO_BIN_EXE_leasehold")), PathBuf::as_path)
    }

    /// The broker to be measured beside it, where one was said.
    pub(crate) fn other(&self) -> Option<&Path> {
        self.matches.get_one::<PathBuf>("other").map(PathBuf::as_path)
    }

    /// Runs a measurement to its end, or to Ctrl-C: either way the servers are stopped and their directory is removed.
    /// Started by anything but `cargo bench` (`cargo test --all-targets` does that), nothing is measured.
    pub(crate) fn run(&self, measurement: impl Future<Output = Outcome<()>>) -> ExitCode {
        if !self.matches.get_flag("bench") {
            println!("this is a measurement: run it with cargo bench");
            return ExitCode::SUCCESS;
        }
        let ended = tokio::runtime::Runtime::new().map_err(Into::into).and_then(|runtime| {
            runtime.block_on(async {
                tokio::select! {
                    ended = measurement => ended,
                    _ = tokio::signal::ctrl_c() => Err("interrupted".into()),
                }
            })
        });
        match ended {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                println!("the measurement failed: {error}");
                ExitCode::FAILURE
            }
        }
    }
}
