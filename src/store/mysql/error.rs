//! What the server's and the driver's errors mean.

use sqlx::mysql::MySqlDatabaseError;

use crate::store::error::EngineError;

/// During which step an error came: only a COMMIT can leave the outcome open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Connecting, and making the session ready.
    Connect,
    /// The first trip of an act: if the connection is gone, the act can be sent anew on another one, since all that this one
    /// may have done is rolled back.
    First,
    /// Anything else before COMMIT: rolled back, so not applied.
    Statement,
    /// COMMIT itself.
    Commit,
}

/// The class of `error`. Its text names number and SQLSTATE alone, since the server's messages may show what somebody stored.
pub(super) fn classify(error: &sqlx::Error, step: Step) -> EngineError {
    if let sqlx::Error::Database(answer) = error {
        return match answer.try_downcast_ref::<MySqlDatabaseError>() {
            Some(answer) => of_answer(answer.number(), answer.code().unwrap_or("?"), step),
            None => EngineError::Bug("an error of another database".into()),
        };
    }
    let what = match error {
        sqlx::Error::Io(io) => format!("connection lost: {}", io.kind()),
        sqlx::Error::Tls(_) => "connection lost: TLS".into(),
        sqlx::Error::Configuration(_) if step == Step::Connect => {
            return EngineError::Unfit("the database URL names something unusable".into());
        }
        sqlx::Error::ColumnDecode { index, .. } => {
            return EngineError::Bug(format!("column {index} cannot be decoded"));
        }
        sqlx::Error::Encode(_) => return EngineError::Bug("an argument cannot be encoded".into()),
        _ => "the driver lost track of the connection".into(),
    };
    match step {
        Step::Connect | Step::Statement => EngineError::Unavailable(what),
        Step::First => EngineError::NotSent(what),
        Step::Commit => EngineError::Unknown(what),
    }
}

fn of_answer(number: u16, state: &str, step: Step) -> EngineError {
    let shown = format!("error {number} ({state})");
    if step == Step::Commit {
        return of_commit(number, shown);
    }
    match number {
        // Lock wait, deadlock, a row changed meanwhile, NOWAIT; the table's definition changed under a prepared statement, which
        // never ran.
        1205 | 1213 | 1020 | 3058 | 3572 | 1615 | 1412 => EngineError::Conflict(shown),
        // Killed, and the three limits on a statement's time.
        1317 | 1969 | 3024 | 1907 => EngineError::TimedOut(shown),
        // Killed or timed out while idle; a prepared statement that a pooler lost.
        1927 | 3169 | 4031 | 1243 if step == Step::First => EngineError::NotSent(shown),
        1290 | 1792 | 1836 => EngineError::Unavailable(format!("the database is read-only ({shown})")),
        // No such table, column, routine or database.
        1146 | 1054 | 1305 | 1049 if step != Step::Connect => EngineError::Unfit(format!(
            "the database's schema is not the one that this version needs ({shown}): run 'leasehold migrate up'"
        )),
        1049 => EngineError::Unfit(format!("the server has no database of the name in the URL ({shown})")),
        1044 | 1045 | 1142 | 1143 | 1227 | 1370 | 1698 => {
            EngineError::Unfit(format!("the database user may not do what the broker needs ({shown})"))
        }
        1665 => EngineError::Unfit(format!(
            "the server writes statements to its binary log, which READ COMMITTED cannot do ({shown}): set \
             binlog_format to ROW or MIXED"
        )),
        // Disk or table full, out of memory or connections, shutting down, trouble with files, prepared statements or the
        // connection.
        1021
        | 1026
        | 1030
        | 1037
        | 1038
        | 1040
        | 1041
        | 1053
        | 1077..=1081
        | 1114
        | 1129
        | 1130
        | 1152..=1161
        | 1184
        | 1203
        | 1226
        | 1243
        | 1461
        | 1927
        | 3
        | 9
        | 14
        | 28
        | 3100
        | 3169
        | 4031 => EngineError::Unavailable(shown),
        // Syntax, parameters, and states that no act brings about.
        1052 | 1064 | 1065 | 1149 | 1210 | 1295 | 1399 | 1568 => EngineError::Bug(shown),
        _ if step == Step::Connect => EngineError::Unavailable(shown),
        _ => EngineError::Refused(shown),
    }
}

/// COMMIT answers with an error: what says that the transaction was rolled back or still stands is certain, nothing else.
fn of_commit(number: u16, shown: String) -> EngineError {
    match number {
        1213 | 1205 | 3101 => EngineError::Conflict(shown),
        1290 | 1792 | 1836 => EngineError::Unavailable(format!("the database is read-only ({shown})")),
        _ => EngineError::Unknown(shown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost() -> sqlx::Error {
        sqlx::Error::Io(std::io::ErrorKind::ConnectionReset.into())
    }

    #[test]
    fn a_lost_connection_leaves_the_outcome_open_only_at_commit() {
        assert!(matches!(classify(&lost(), Step::First), EngineError::NotSent(_)));
        assert!(matches!(classify(&lost(), Step::Statement), EngineError::Unavailable(_)));
        assert!(matches!(classify(&lost(), Step::Commit), EngineError::Unknown(_)));
    }

    #[test]
    fn each_fault_has_its_class() {
        let class = |number| of_answer(number, "HY000", Step::Statement).class();
        for (number, expected) in [
            (1213, "conflict"),
            (1205, "conflict"),
            (1317, "timed_out"),
            (1969, "timed_out"),
            (1290, "unavailable"),
            (1114, "unavailable"),
            (1021, "unavailable"),
            (1040, "unavailable"),
            (1461, "unavailable"),
            (1146, "unfit"),
            (1142, "unfit"),
            (1665, "unfit"),
            (1062, "refused"),
            (4025, "refused"),
            (1644, "refused"),
            (1064, "bug"),
        ] {
            assert_eq!(class(number), expected, "{number}");
        }
    }

    #[test]
    fn an_error_at_commit_is_unknown_unless_it_says_that_nothing_stands() {
        assert_eq!(of_answer(1213, "40001", Step::Commit).class(), "conflict");
        assert_eq!(of_answer(1290, "HY000", Step::Commit).class(), "unavailable");
        for number in [1053, 1180, 1030, 1317, 1927, 1969] {
            assert_eq!(of_answer(number, "HY000", Step::Commit).class(), "unknown", "{number}");
        }
    }
}
