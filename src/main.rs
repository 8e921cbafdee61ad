//! The program `leasehold`.

use std::process::ExitCode;

fn main() -> ExitCode {
    leasehold::cli::run(std::env::args_os()).into()
}
