//! What the server's and the driver's errors mean.

use sqlx::postgres::{PgDatabaseError, PgSeverity};

use crate::store::error::EngineError;

/// SQLSTATE of `leasehold.enqueue_keyed` for a key in use with other content; the detail is the job's index.
const KEY_REUSED: &str = "LH001";

/// SQLSTATE of `leasehold.enqueue_open` for a queue that takes no jobs.
const QUEUE_CLOSED: &str = "LH002";

/// An error of an act's one statement, which commits by itself.
///
/// An answer of severity ERROR is certain: the server rolled back. With FATAL and PANIC the session ended, perhaps after the
/// commit; with anything else nobody knows what the server did.
pub(super) fn of_statement(error: &sqlx::Error) -> EngineError {
    match error {
        sqlx::Error::Database(refused) => match refused.try_downcast_ref::<PgDatabaseError>() {
            Some(refused) => of_answer(refused),
            None => EngineError::Unknown("an error of another database".into()),
        },
        sqlx::Error::Io(io) => EngineError::Unknown(format!("connection lost: {}", io.kind())),
        sqlx::Error::Tls(_) => EngineError::Unknown("connection lost: TLS".into()),
        sqlx::Error::ColumnDecode { index, .. } => EngineError::Bug(format!("column {index} cannot be decoded")),
        sqlx::Error::Encode(_) => EngineError::Bug("an argument cannot be encoded".into()),
        _ => EngineError::Unknown("the driver lost track of the connection".into()),
    }
}

/// An error before COMMIT was sent in a transaction of several statements: what is unknown about a statement is certain
/// about the transaction.
pub(super) fn before_commit(error: EngineError) -> EngineError {
    match error {
        EngineError::Unknown(why) => EngineError::Unavailable(why),
        certain => certain,
    }
}

/// An error while connecting. Nothing was sent.
pub(super) fn of_connect(error: &sqlx::Error) -> EngineError {
    match error {
        sqlx::Error::Database(refused) => match code(&**refused) {
            // What a pooler says to a startup parameter that it does not pass on.
            code if code == "08P01" => EngineError::Unfit(format!(
                "connect: SQLSTATE {code}: a pooler in between refuses what sessions ask for at their start: connect past it, or \
                 let it ignore extra_float_digits and options, and set them for the role (docs/roles.sql has the statements)"
            )),
            code => EngineError::Unavailable(format!("connect: SQLSTATE {code}{}", connect_advice(&code))),
        },
        sqlx::Error::Io(io) => EngineError::Unavailable(format!("connect: {}", io.kind())),
        sqlx::Error::Tls(_) => EngineError::Unavailable("connect: TLS handshake failed".into()),
        sqlx::Error::Configuration(_) => EngineError::Unfit("the database URL names something unusable".into()),
        _ => EngineError::Unavailable("connect: no understandable answer".into()),
    }
}

/// What the reader can do, where the code says it.
fn connect_advice(code: &str) -> &'static str {
    match code {
        "28P01" => ": the server refuses the role's password: see database_url",
        "28000" => ": the server refuses the role, or this machine: see database_url and the server's pg_hba.conf",
        "3D000" => ": the server has no such database: create it, or see database_url",
        "42501" => ": the role may not connect to the database: grant connect on it to the role",
        "53300" => ": the server has no connection left: fewer lanes or replicas, or a higher max_connections",
        "57P03" => ": the server is starting up or shutting down",
        _ => "",
    }
}

fn code(refused: &dyn sqlx::error::DatabaseError) -> String {
    refused.code().map_or_else(|| "unknown".to_owned(), std::borrow::Cow::into_owned)
}

/// Messages and details stay out: they may show what somebody stored.
fn of_answer(refused: &PgDatabaseError) -> EngineError {
    let code = refused.code();
    let shown = match refused.constraint() {
        Some(constraint) => format!("SQLSTATE {code}, constraint {constraint}"),
        None => format!("SQLSTATE {code}"),
    };
    if matches!(refused.severity(), PgSeverity::Fatal | PgSeverity::Panic) {
        return EngineError::Unknown(shown);
    }
    match code {
        KEY_REUSED => match refused.detail().and_then(|index| index.parse().ok()) {
            Some(index) => EngineError::KeyReused { index },
            None => EngineError::Bug("a reused key without its index".into()),
        },
        QUEUE_CLOSED => EngineError::QueueClosed,
        // Serialization failure, deadlock, lock not had in time.
        "40001" | "40P01" | "55P03" => EngineError::Conflict(shown),
        "57014" => EngineError::TimedOut(shown),
        // A prepared statement that a pooler lost or had already, or whose plan a migration made void: it never ran.
        "26000" | "42P05" => EngineError::NotSent(shown),
        "0A000" if refused.routine() == Some("RevalidateCachedQuery") => EngineError::NotSent(shown),
        "42501" => EngineError::Unfit(format!("the database role lacks a right that the broker needs ({shown})")),
        // Table, function, column or schema missing.
        "42P01" | "42883" | "42703" | "3F000" => EngineError::Unfit(format!(
            "the database's schema is not the one that this version needs ({shown}): run 'leasehold migrate up'"
        )),
        "25006" => EngineError::Unavailable(format!("the database is read-only ({shown})")),
        _ => match code.get(..2) {
            // Out of resources, operator intervention, trouble with files, internal errors.
            Some("53" | "57" | "58" | "XX") => EngineError::Unavailable(shown),
            Some("08" | "25" | "2D") => EngineError::Bug(shown),
            _ => EngineError::Refused(shown),
        },
    }
}
