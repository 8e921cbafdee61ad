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
    /// The broker refused what was sent as malformed or over a limit.
    Invalid,
    /// There is no such queue, job or lease.
    NotFound,
    /// Something that is needed, such as the database or the broker, cannot be reached.
    Unavailable,
    /// A bug of the broker.
    Bug,
    /// Refused as things stand: a repeated call is refused as well until something else changes.
    Refused,
    /// Refused for the moment: the same call may succeed later.
    TryLater,
    /// No answer came: it may have happened.
    Unknown,
    /// Not allowed for who calls.
    Forbidden,
    /// A signal ended it before its end; stderr says what was done by then.
    Interrupted,
}

/// Every way to end: its number and what it means. 64 and up as in sysexits.h.
pub(super) const ALL: [(Exit, u8, &str); 12] = [
    (Exit::Ok, 0, "all is well"),
    (Exit::Failure, 1, "failure"),
    (Exit::BadConfiguration, 64, "bad command line or configuration, or nobody there to confirm"),
    (Exit::Invalid, 65, "the broker refused a field or a lease token as malformed or over its limit"),
    (Exit::NotFound, 66, "no such queue or job"),
    (
        Exit::Unavailable,
        69,
        "something needed, such as the database or the broker, cannot be reached or answers that it is not available",
    ),
    (Exit::Bug, 70, "a bug of the broker"),
    (
        Exit::Refused,
        73,
        "refused as things stand, such as a lost lease, a reused key, a queue that is disabled or not empty",
    ),
    (Exit::TryLater, 75, "refused for the moment, such as a full queue: try again later"),
    (Exit::Unknown, 76, "no answer came, so it may have happened"),
    (Exit::Forbidden, 77, "not allowed"),
    (Exit::Interrupted, 130, "a signal ended it early; what was done by then is said"),
];

/// For `--help`.
pub(super) const HELP: &str = "Exit codes: 0 all is well, 1 failure, 64 bad command line or configuration, 65 refused as \
malformed, 66 no such queue or job, 69 something needed cannot be reached, 70 a bug of the broker, 73 refused as things stand, \
75 refused for the moment, 76 no answer came, 77 not allowed, 130 ended early by a signal";

impl Exit {
    /// Its number.
    pub(super) fn code(self) -> u8 {
        ALL.iter().find(|(exit, ..)| *exit == self).map_or(1, |(_, code, _)| *code)
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_end_has_a_number_of_its_own_that_help_names() {
        for (n, (exit, code, _)) in ALL.iter().enumerate() {
            assert_eq!(exit.code(), *code);
            assert!(ALL[..n].iter().all(|(_, other, _)| other < code), "{exit:?}");
            assert!(HELP.contains(&format!("{code} ")), "{exit:?}");
        }
    }
}
