//! `leasehold completions`.

use clap::{Arg, ArgMatches, Command, value_parser};
use clap_complete::Shell;

use super::Exit;

/// The command.
pub(super) fn command() -> Command {
    Command::new("completions").about("Print a shell's completions of this program's commands").arg(
        Arg::new("shell").value_name("SHELL").required(true).value_parser(value_parser!(Shell)).help("Which shell"),
    )
}

/// Runs it.
pub(super) fn run(matches: &ArgMatches) -> Exit {
    let Some(shell) = matches.get_one::<Shell>("shell") else { return Exit::BadConfiguration };
    let mut text = Vec::new();
    clap_complete::generate(*shell, &mut super::command(), "leasehold", &mut text);
    super::print(&String::from_utf8_lossy(&text))
}
