//! Looking at the database's other users.

use std::time::Duration;

use async_trait::async_trait;
use sqlx::postgres::PgRow;

use super::{
    session::{Args, PgSession},
    value::{Moment, get, narrow},
};
use crate::{
    model::{Caller, Timestamp},
    store::{
        engine::{
            HolderKind, HolderRow, HorizonSeen, Observing, Quoting, SessionKind, SessionRow, SessionState,
            SessionsSeen, TableRow,
        },
        error::EngineError,
    },
};

const SESSIONS: &str = include_str!("sql/sessions.sql");
const HORIZON: &str = include_str!("sql/horizon.sql");
const TABLES: &str = include_str!("sql/tables.sql");

/// Characters of a statement that are looked at: four times what the server keeps by default.
const STATEMENT: i32 = 4_096;

/// What brokers' sessions call themselves, up to the replica's name.
const BROKER: &str = "leasehold/";

const QUOTING: Quoting = Quoting { backslashes: false, dollars: true, backticks: false, hashes: false, nesting: true };

#[async_trait]
impl Observing for PgSession {
    async fn sessions(&mut self, caller: &Caller, at_most: usize) -> Result<SessionsSeen, EngineError> {
        let arguments = Args::new().with(narrow::<i32, _>(at_most, "sessions", "at_most")?).with(STATEMENT);
        let rows = self.rows(caller, SESSIONS, arguments).await?;
        let first = rows.first().ok_or_else(|| EngineError::Bug("sessions: not even the own one".into()))?;
        let count = |column| narrow::<u32, _>(get::<i64>(first, "sessions", column)?, "sessions", column);
        let sessions: Vec<SessionRow> = rows.iter().map(session).collect::<Result<_, _>>()?;
        let total = count("total")?;
        Ok(SessionsSeen {
            at: get::<Moment>(first, "sessions", "at")?.0,
            left_out: total.saturating_sub(u32::try_from(sessions.len()).unwrap_or(u32::MAX)),
            connections: count("connections")?,
            elsewhere: count("elsewhere")?,
            max_connections: narrow(get::<i32>(first, "sessions", "max_connections")?, "sessions", "max_connections")?,
            quoting: QUOTING,
            alone: false,
            to_see_more: format!(
                "raise track_activity_query_size ({} now)",
                get::<&str>(first, "sessions", "statement_size")?
            ),
            blind_spots: blind_spots(first, &sessions)?,
            sessions,
        })
    }

    async fn horizon(&mut self, caller: &Caller, at_most: usize) -> Result<HorizonSeen, EngineError> {
        let arguments = Args::new().with(narrow::<i32, _>(at_most, "horizon", "at_most")?).with(STATEMENT);
        let rows = self.rows(caller, HORIZON, arguments).await?;
        let holders = rows.iter().map(holder).collect::<Result<Vec<_>, _>>()?;
        let hidden = rows.iter().map(|row| get::<bool>(row, "horizon", "hidden")).collect::<Result<Vec<_>, _>>()?;
        let blind_spots = match hidden.iter().filter(|hidden| **hidden).count() {
            0 => Vec::new(),
            hidden => vec![format!(
                "How long {hidden} of these sessions have been in their transactions, and for which caller, is hidden from \
                 the broker's role: grant it pg_read_all_stats."
            )],
        };
        Ok(HorizonSeen { holders, quoting: QUOTING, blind_spots })
    }

    async fn tables(&mut self, caller: &Caller) -> Result<Vec<TableRow>, EngineError> {
        let rows = self.rows(caller, TABLES, Args::new()).await?;
        rows.iter()
            .map(|row| {
                // Estimates: the server's arithmetic lets them fall below zero.
                let number = |column| Ok(u64::try_from(get::<i64>(row, "tables", column)?).unwrap_or(0));
                Ok(TableRow {
                    table: get(row, "tables", "table_name")?,
                    live_rows: number("live_rows")?,
                    dead_rows: number("dead_rows")?,
                    last_vacuum: get::<Option<Moment>>(row, "tables", "last_vacuum")?.map(|at| at.0),
                    bytes: number("bytes")?,
                })
            })
            .collect()
    }
}

fn session(row: &PgRow) -> Result<SessionRow, EngineError> {
    let at = get::<Moment>(row, "sessions", "at")?.0;
    let application_name = text(row, "sessions", "application_name")?;
    let hidden: bool = get(row, "sessions", "hidden")?;
    let state: Option<&str> = get(row, "sessions", "state")?;
    let kind: Option<&str> = get(row, "sessions", "backend_type")?;
    Ok(SessionRow {
        id: get::<i32>(row, "sessions", "pid")?.into(),
        kind: match kind {
            // Of hidden sessions only clients' are listed under a database.
            Some("client backend") | None => SessionKind::Client,
            Some("parallel worker") => SessionKind::ParallelWorker,
            Some("walsender") => SessionKind::Replication,
            Some("autovacuum worker") => SessionKind::Maintenance,
            Some(_) => SessionKind::Background,
        },
        leader: get::<Option<i32>>(row, "sessions", "leader_pid")?.map(i64::from),
        broker: get(row, "sessions", "of_own_role")? && application_name.starts_with(BROKER),
        observer: get(row, "sessions", "observer")?,
        state: match state {
            Some("active" | "fastpath function call") => SessionState::Active,
            Some("idle") => SessionState::Idle,
            Some("idle in transaction" | "idle in transaction (aborted)") => SessionState::IdleInTransaction,
            _ => SessionState::Hidden,
        },
        in_state: since(row, "sessions", "state_since", at)?.unwrap_or_default(),
        transaction_age: since(row, "sessions", "transaction_since", at)?,
        waiting: get(row, "sessions", "waiting")?,
        blocked_by: distinct(get::<Option<Vec<i32>>>(row, "sessions", "blocked_by")?.unwrap_or_default()),
        role: text(row, "sessions", "role")?,
        application_name,
        client_address: get(row, "sessions", "client_address")?,
        // What stands there instead is the server's.
        statement: if hidden { String::new() } else { text(row, "sessions", "statement")? },
        cut: !hidden && get::<Option<bool>>(row, "sessions", "cut")?.unwrap_or(false),
    })
}

fn holder(row: &PgRow) -> Result<HolderRow, EngineError> {
    let at = get::<Moment>(row, "horizon", "at")?.0;
    let application_name = text(row, "horizon", "application_name")?;
    let hidden: bool = get(row, "horizon", "hidden")?;
    let name = text(row, "horizon", "name")?;
    let (kind, advice) = match get::<&str>(row, "horizon", "kind")? {
        "session" => (
            HolderKind::Session,
            format!("end its transaction where it was begun; failing that, select pg_terminate_backend({name})"),
        ),
        "prepared" => (
            HolderKind::PreparedTransaction,
            "end it by COMMIT PREPARED or ROLLBACK PREPARED, as its coordinator decided".to_owned(),
        ),
        "slot" => (
            HolderKind::ReplicationSlot,
            "let its consumer catch up, or drop the slot by pg_drop_replication_slot where nobody needs it any more"
                .to_owned(),
        ),
        "standby" => (
            HolderKind::Standby,
            "end the long query on the standby, or set hot_standby_feedback = off there".to_owned(),
        ),
        _ => return Err(EngineError::Bug("horizon: a holder of an unknown kind".into())),
    };
    Ok(HolderRow {
        kind,
        transactions: u64::try_from(get::<i64>(row, "horizon", "transactions")?).unwrap_or(0),
        age: since(row, "horizon", "since", at)?,
        broker: get(row, "horizon", "of_own_role")? && application_name.starts_with(BROKER),
        statement: if hidden { String::new() } else { text(row, "horizon", "statement")? },
        cut: !hidden && get::<Option<bool>>(row, "horizon", "cut")?.unwrap_or(false),
        catalogs_only: get(row, "horizon", "catalogs_only")?,
        name,
        application_name,
        advice,
    })
}

fn blind_spots(first: &PgRow, sessions: &[SessionRow]) -> Result<Vec<String>, EngineError> {
    let mut found = Vec::new();
    let hidden = sessions.iter().filter(|session| session.state == SessionState::Hidden && is_client(session)).count();
    if !get::<bool>(first, "sessions", "tracked")? {
        found.push(
            "The server has track_activities off, so that no session shows what it does: switch it on.".to_owned(),
        );
    } else if hidden > 0 {
        found.push(format!(
            "What {hidden} sessions of other roles do is hidden from the broker's role: grant it pg_read_all_stats. They count \
             under their application names, and never as holding a connection."
        ));
    }
    Ok(found)
}

fn is_client(session: &SessionRow) -> bool {
    session.kind == SessionKind::Client
}

/// Other people's text, which the server may keep in no encoding at all.
fn text(row: &PgRow, act: &str, column: &str) -> Result<String, EngineError> {
    let bytes: Option<&[u8]> = get(row, act, column)?;
    Ok(String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned())
}

fn since(row: &PgRow, act: &str, column: &str, at: Timestamp) -> Result<Option<Duration>, EngineError> {
    Ok(get::<Option<Moment>>(row, act, column)?.map(|since| at.since(since.0)))
}

/// A group of sessions that work together is named once for each of them.
fn distinct(mut ids: Vec<i32>) -> Vec<i64> {
    ids.sort_unstable();
    ids.dedup();
    ids.into_iter().map(i64::from).collect()
}
