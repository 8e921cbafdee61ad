//! The command line. Data goes to stdout, notes to stderr.
//!
//! `serve`, `migrate`, `doctor`, `prove`, `bench`, `demo` and `config` work on this machine and the database. The commands in `remote` speak to a
//! broker through its public API: [`broker`] is how they reach it and how calls fail, [`output`] is how they print.

mod bench;
mod broker;
mod budget;
mod completions;
mod config;
mod consumers;
mod dead;
mod demo;
mod docs;
mod doctor;
mod enqueue;
mod exit;
mod flag;
mod holds;
mod job;
mod lease;
mod migrate;
mod options;
mod output;
mod pages;
mod ping;
mod prove;
mod queue;
mod remote;
mod serve;
mod settle;
mod signals;
mod steps;
mod stock;

use std::io::Write as _;

use clap::{ArgMatches, Command, FromArgMatches as _, Subcommand as _};

pub use self::exit::Exit;
use self::remote::Remote;

/// Runs the program with its arguments, the program's own name first, and says how it ends.
pub fn run(arguments: impl IntoIterator<Item = std::ffi::OsString>) -> Exit {
    match command().try_get_matches_from(arguments) {
        Ok(matches) => dispatch(&matches),
        Err(error) => {
            // where even the message cannot be written there is nobody to tell
            let written = error.print().is_ok();
            if error.use_stderr() || !written { Exit::BadConfiguration } else { Exit::Ok }
        }
    }
}

fn command() -> Command {
    let program = Command::new("leasehold")
        .about("A gRPC queue broker in front of the database that a team already runs")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .after_help(exit::HELP)
        .subcommand(serve::command())
        .subcommand(migrate::command())
        .subcommand(doctor::command())
        .subcommand(demo::command())
        .subcommand(config::command())
        .subcommand(prove::command())
        .subcommand(bench::command());
    Remote::augment_subcommands(program)
        .subcommand(completions::command())
        .subcommand(docs::command())
        .subcommand(Command::new("version").about("Say which version this is"))
}

fn dispatch(matches: &ArgMatches) -> Exit {
    match matches.subcommand() {
        Some(("serve", matches)) => serve::run(matches),
        Some(("migrate", matches)) => migrate::run(matches),
        Some(("doctor", matches)) => doctor::run(matches),
        Some(("demo", matches)) => demo::run(matches),
        Some(("config", matches)) => config::run(matches),
        Some(("prove", matches)) => prove::run(matches),
        Some(("bench", matches)) => bench::run(matches),
        Some(("version", _)) => print(&format!("leasehold {}\n", env!("CARGO_PKG_VERSION"))),
        Some(("completions", matches)) => completions::run(matches),
        Some(("docs", matches)) => docs::run(matches),
        _ => match Remote::from_arg_matches(matches) {
            Ok(remote) => remote.run(),
            Err(error) => {
                exit::note(&error);
                Exit::BadConfiguration
            }
        },
    }
}

/// Runs a command that waits for things.
fn run_to_end(command: impl Future<Output = Exit>) -> Exit {
    outcome_of(command).unwrap_or_else(|error| exit::fail(&error))
}

/// What something that waits for things comes to.
fn outcome_of<T>(waiting: impl Future<Output = T>) -> std::io::Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let outcome = runtime.block_on(waiting);
    // what still blocks a thread now, such as a look-up of a host's name, is not waited for
    runtime.shutdown_background();
    Ok(outcome)
}

/// Writes data to stdout. A reader that went away, as `head` does, has what it wanted.
fn print(text: &str) -> Exit {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => exit::fail(&error),
        _ => Exit::Ok,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn what_is_no_command_ends_as_bad_configuration() {
        for arguments in
            [vec!["leasehold"], vec!["leasehold", "srve"], vec!["leasehold", "config", "show", "--lane-count", "8"]]
        {
            assert_eq!(run(arguments.into_iter().map(Into::into)), Exit::BadConfiguration);
        }
    }
}
