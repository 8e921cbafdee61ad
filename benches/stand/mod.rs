//! What every measurement stands on: a private database server, a broker process, clients, and a way to show figures.

#![allow(dead_code, reason = "each measurement uses the part that it needs")]

pub(crate) mod bare;
pub(crate) mod broker;
pub(crate) mod clients;
pub(crate) mod figures;
pub(crate) mod postgres;
pub(crate) mod process;
pub(crate) mod statements;

use std::{error::Error, path::PathBuf, process::ExitCode};

/// What can go wrong ends the measurement; the text is all that anybody needs.
pub(crate) type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Options that all measurements share.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct Common {
    /// Directory of the database server's programs, such as initdb; found by `pg_config` or in Debian's places where unset.
    #[arg(long, value_name = "DIR")]
    pub(crate) bindir: Option<PathBuf>,
    /// Passed by `cargo bench`.
    #[arg(long, hide = true)]
    bench: bool,
}

impl Common {
    /// Runs a measurement to its end, or to Ctrl-C: either way the servers are stopped and their directory is removed.
    /// Started by anything but `cargo bench` (`cargo test --all-targets` does that), nothing is measured.
    pub(crate) fn run(&self, measurement: impl Future<Output = Outcome<()>>) -> ExitCode {
        if !self.bench {
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
