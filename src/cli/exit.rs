//! How the program ends.

use std::{fmt::Display, io::Write as _, process::ExitCode};

/// The documented ways to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// All is well.
    Ok,
    /// It failed; stderr says why.
    Failure,
    /// The command line or the configuration is wrong; nothing was begun.
    BadConfiguration,
    /// Something that is needed, such as the database, cannot be reached.
    Unavailable,
}

/// For `--help`.
pub(super) const HELP: &str = "Exit codes: 0 all is well, 1 failure, 64 bad command line or configuration, 69 something needed \
cannot be reached";

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        // 64 and 69 as in sysexits.h
        Self::from(match exit {
            Exit::Ok => 0,
            Exit::Failure => 1,
            Exit::BadConfiguration => 64,
            Exit::Unavailable => 69,
        })
    }
}

/// Writes a note to stderr.
pub(super) fn note(text: &impl Display) {
    // where notes cannot be written there is nobody to tell
    drop(writeln!(std::io::stderr().lock(), "{text}"));
}

/// Says why it failed.
pub(super) fn fail(why: &impl Display) -> Exit {
    note(&format_args!("leasehold: {why}"));
    Exit::Failure
}
