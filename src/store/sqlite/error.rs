//! SQLite's result codes in the classes that the facade acts on.

use sqlx::Error;

use crate::store::error::EngineError;

/// During which step an error came: only a failed commit can leave the outcome open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Opening the file and preparing the connection.
    Connect,
    /// Anything before COMMIT: rolled back, so not applied.
    Statement,
    /// COMMIT itself.
    Commit,
}

/// The class of `error`. Its text names the result code alone, since SQLite's own messages can quote a statement.
pub(super) fn classify(error: &Error, step: Step) -> EngineError {
    let Error::Database(database) = error else {
        return without_code(error, step);
    };
    let code: i32 = database.code().and_then(|code| code.parse().ok()).unwrap_or(0);
    let shown = format!("SQLite result code {code}");
    match code & 0xff {
        // BUSY, LOCKED. At COMMIT the transaction is still open and is rolled back.
        5 | 6 => EngineError::Conflict(shown),
        // ABORT, TOOBIG, CONSTRAINT, MISMATCH
        4 | 18 | 19 | 20 => EngineError::Refused(shown),
        // INTERRUPT
        9 => EngineError::TimedOut(shown),
        // An I/O error at COMMIT may have come after the commit record reached the log, where recovery would find it.
        10 if step == Step::Commit => EngineError::Unknown(shown),
        // PERM, NOMEM, READONLY, IOERR, FULL, CANTOPEN
        3 | 7 | 8 | 10 | 13 | 14 => EngineError::Unavailable(shown),
        // CORRUPT, NOTADB
        11 | 26 => EngineError::Unfit(format!("the database file is damaged or not a database ({shown})")),
        1 if database.message().starts_with("no such table") || database.message().starts_with("no such column") => {
            EngineError::Unfit("the database lacks our schema or a part of it: run `leasehold migrate up`".to_owned())
        }
        _ => EngineError::Bug(shown),
    }
}

fn without_code(error: &Error, step: Step) -> EngineError {
    match (error, step) {
        // The connection's thread is gone; its transaction ended with it, one way or the other.
        (Error::WorkerCrashed | Error::Io(_), Step::Commit) => {
            EngineError::Unknown("the connection's thread ended during the commit".to_owned())
        }
        (Error::WorkerCrashed, _) => EngineError::Unavailable("the connection's thread ended".to_owned()),
        (Error::Io(error), _) => {
            EngineError::Unavailable(format!("the database file cannot be used: {}", error.kind()))
        }
        (_, Step::Connect) => EngineError::Unavailable("the database file cannot be opened".to_owned()),
        // A value that cannot be read or bound. Their texts name columns and types, never values.
        (Error::ColumnDecode { index, .. }, _) => EngineError::Bug(format!("unreadable column {index}")),
        (Error::ColumnNotFound(name), _) => EngineError::Bug(format!("no column {name}")),
        (Error::ColumnIndexOutOfBounds { index, .. }, _) => EngineError::Bug(format!("no column {index}")),
        (Error::Encode(_), _) => EngineError::Bug("unwritable value".to_owned()),
        _ => EngineError::Bug("unexpected failure in the database driver".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ended_thread_leaves_the_outcome_open_only_at_commit() {
        assert!(matches!(classify(&Error::WorkerCrashed, Step::Commit), EngineError::Unknown(_)));
        assert!(matches!(classify(&Error::WorkerCrashed, Step::Statement), EngineError::Unavailable(_)));
    }
}
