//! What the server says about itself: a few statements on a connection of their own, each on its own feet, so that a part
//! that the role may not see hides no other.

mod objects;
mod requirements;

use std::{
    collections::HashMap,
    time::{Duration, SystemTime},
};

use async_trait::async_trait;
use sqlx::postgres::{PgConnectOptions, PgRow};

use super::{
    PostgresEngine,
    migration::MIGRATIONS,
    name,
    session::{Args, OLDEST_VERSION, PgSession},
    value::{Moment, get, narrow},
};
use crate::{
    model::{Caller, Timestamp},
    store::{
        blueprint::Blueprint,
        comment::renamed,
        engine::{
            AppliedMigration, Linking as _,
            examining::{
                ClockFacts, ConnectionFacts, Examining, Facts, RoleFacts, Seen, ServerFacts, SettingFact, Unseen,
            },
        },
        error::EngineError,
    },
};

const SERVER: &str = include_str!("sql/examine_server.sql");
const SETTINGS: &str = include_str!("sql/examine_settings.sql");
const STANDBYS: &str = include_str!("sql/examine_standbys.sql");
const ROLE: &str = include_str!("sql/examine_role.sql");
const RIGHTS: &str = include_str!("sql/examine_rights.sql");
const CONNECTIONS: &str = include_str!("sql/examine_connections.sql");

#[async_trait]
impl Examining for PostgresEngine {
    async fn examine(&self, caller: &Caller) -> Result<Facts, EngineError> {
        let (session, refused) = self.look_in().await?;
        Examination { engine: self, session, caller }.facts(refused).await
    }
}

impl PostgresEngine {
    /// Connects without the checks of a lane; where a pooler refuses what a session asks for, without asking. Says so then.
    async fn look_in(&self) -> Result<(PgSession, Option<String>), EngineError> {
        match PgSession::unchecked(self, &self.options).await {
            Ok(session) => Ok((session, None)),
            Err(EngineError::Unfit(why)) => Ok((PgSession::unchecked(self, &self.bare).await?, Some(why))),
            Err(error) => Err(error),
        }
    }
}

/// One look at the server.
struct Examination<'e> {
    engine: &'e PostgresEngine,
    session: PgSession,
    caller: &'e Caller,
}

impl Examination<'_> {
    async fn facts(mut self, refused: Option<String>) -> Result<Facts, EngineError> {
        let first = self.row(SERVER, Args::new()).await?;
        let applied = seen(self.session.migrations(self.caller).await)?;
        let made = Blueprint::of(MIGRATIONS.iter().filter(|known| match &applied {
            Ok(applied) => applied.iter().any(|has| has.number == known.number),
            Err(_) => true,
        }));
        let settings = self.settings().await;
        let settings = seen(settings)?;
        let role = self.role(&made).await;
        let role = seen(role)?;
        let connections = self.connections().await;
        let connections = seen(connections)?.map(Some);
        let snapshots = self.snapshots().await;
        let snapshots = seen(snapshots)?;
        let tables = self.tables(&made).await;
        let tables = seen(tables)?;
        let indexes = self.indexes(&made).await;
        let indexes = seen(indexes)?;

        // the same statement again: now it is prepared, and its answer is one round trip away
        let before = since_1970();
        let last = self.row(SERVER, Args::new()).await?;
        let after = since_1970();
        let evidence = evidence(&first, &last)?;
        Ok(Facts {
            server: self.server(&last)?,
            settings,
            pooler: refused.or(evidence),
            role: role.map(Some),
            connections,
            clock: clock(get::<Moment>(&last, "examine_server", "now")?.0, before, after),
            snapshots,
            known: MIGRATIONS.iter().map(AppliedMigration::from).collect(),
            applied,
            tables,
            indexes,
        })
    }

    async fn row(&mut self, statement: &'static str, arguments: Args) -> Result<PgRow, EngineError> {
        self.session.row(self.caller, statement, arguments).await
    }

    async fn rows(&mut self, statement: &'static str, arguments: Args) -> Result<Vec<PgRow>, EngineError> {
        self.session.rows(self.caller, statement, arguments).await
    }

    fn server(&self, row: &PgRow) -> Result<ServerFacts, EngineError> {
        let is = |column| get::<bool>(row, "examine_server", column);
        let text = |column| get::<String>(row, "examine_server", column);
        let read_only = if is("in_recovery")? {
            Some("it is a standby".to_owned())
        } else if is("read_only")? {
            Some("transactions are read-only by default".to_owned())
        } else {
            None
        };
        let place = format!(
            "{}, database {}, schema {}",
            address(&self.engine.options),
            text("database")?,
            self.engine.schema.as_str()
        );
        // Debian and others append their packaging's number
        let version = text("version")?;
        let version = version.split(' ').next().unwrap_or_default().to_owned();
        let new_enough = get::<i32>(row, "examine_server", "number")? >= OLDEST_VERSION;
        Ok(ServerFacts { product: "PostgreSQL", version, oldest: "14", new_enough, place, read_only })
    }

    async fn settings(&mut self) -> Result<Vec<SettingFact>, EngineError> {
        let rows = self.rows(SETTINGS, Args::new().with(requirements::NAMES.as_slice())).await?;
        let setting = |row| Ok((get(row, "examine_settings", "name")?, get(row, "examine_settings", "value")?));
        let values = rows.iter().map(setting).collect::<Result<HashMap<String, String>, EngineError>>()?;
        let standbys = match self.row(STANDBYS, Args::new()).await {
            Ok(row) => {
                let count = |column| get::<i64>(&row, "examine_standbys", column);
                count("connected")? + count("slots")? > 0
            }
            Err(EngineError::Unfit(_)) => false,
            Err(error) => return Err(error),
        };
        Ok(requirements::settings(&values, standbys))
    }

    async fn role(&mut self, made: &Blueprint) -> Result<RoleFacts, EngineError> {
        let row = self.row(ROLE, Args::new()).await?;
        let is = |column| get::<bool>(&row, "examine_role", column);
        let name: String = get(&row, "examine_role", "name")?;
        let mut powers = Vec::new();
        for (column, power) in [
            ("superuser", "is superuser"),
            ("creates_roles", "may create roles"),
            ("creates_databases", "may create databases"),
            ("replicates", "may replicate the server"),
            ("bypasses", "bypasses row security"),
        ] {
            if is(column)? {
                powers.push(power);
            }
        }
        let tables: Vec<&str> = made.tables.iter().map(|table| table.name.as_str()).collect();
        let rights = self.rows(RIGHTS, Args::new().with(tables)).await?;
        let lack = |row: &PgRow| {
            let privilege: String = get(row, "examine_rights", "privilege")?;
            let object: String = get(row, "examine_rights", "object")?;
            Ok(format!("grant {privilege} on {object} to {}", quoted(&name)))
        };
        let lacks = rights.iter().map(lack).collect::<Result<_, EngineError>>()?;
        Ok(RoleFacts { powers, shapes_tables: is("shapes_tables")?, lacks, name })
    }

    async fn connections(&mut self) -> Result<ConnectionFacts, EngineError> {
        let row = self.row(CONNECTIONS, Args::new()).await?;
        let count = |column| narrow(get::<i64>(&row, "examine_connections", column)?, "examine_connections", column);
        // -1 is the server's word for none
        let limit = |column, used| match get::<Option<i64>>(&row, "examine_connections", column)? {
            Some(limit) if limit >= 0 => Ok(Some((narrow(limit, "examine_connections", column)?, count(used)?))),
            _ => Ok::<_, EngineError>(None),
        };
        Ok(ConnectionFacts {
            allowed: count("allowed")?,
            reserved: count("reserved")?,
            in_use: count("in_use")?,
            ours: count("ours")?,
            role: limit("role_limit", "role_in_use")?,
            database: limit("database_limit", "database_in_use")?,
        })
    }
}

/// A part that the role may not see, or that was too slow, is no failure of the whole; a lost connection is.
fn seen<T>(part: Result<T, EngineError>) -> Result<Seen<T>, EngineError> {
    match part {
        Ok(part) => Ok(Ok(part)),
        Err(error @ (EngineError::Unknown(_) | EngineError::Unavailable(_) | EngineError::NotSent(_))) => Err(error),
        Err(error) => Ok(Err(Unseen(error.to_string()))),
    }
}

/// Signs of a pooler that gives a session's statements to whichever backend is free.
fn evidence(first: &PgRow, last: &PgRow) -> Result<Option<String>, EngineError> {
    let backend = |row| get::<i32>(row, "examine_server", "backend");
    if backend(first)? != backend(last)? {
        return Ok(Some("statements of one connection ran in two backends".into()));
    }
    let direct: bool = get(last, "examine_server", "direct")?;
    Ok((!direct).then(|| "what the session asked for at its start did not arrive".into()))
}

fn address(options: &PgConnectOptions) -> String {
    match options.get_socket() {
        Some(socket) => format!("{}", socket.display()),
        None => format!("{}:{}", options.get_host(), options.get_port()),
    }
}

fn quoted(role: &str) -> String {
    format!("\"{}\"", role.replace('"', "\"\""))
}

fn since_1970() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

fn clock(there: Timestamp, before: Duration, after: Duration) -> ClockFacts {
    let micros = |at: Duration| i64::try_from(at.as_micros()).unwrap_or(i64::MAX);
    let give_or_take = after.saturating_sub(before) / 2;
    ClockFacts { ahead: there.0.saturating_sub(micros(before + give_or_take)), give_or_take }
}

/// A statement as it is in this schema.
fn here(engine: &PostgresEngine, statement: &str) -> String {
    renamed(statement, name::WRITTEN, engine.schema.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clocks_difference_is_taken_from_the_middle_of_the_question() {
        let second = Duration::from_secs(1);
        let facts = clock(Timestamp(3_500_000), second, second * 2);
        assert_eq!(facts, ClockFacts { ahead: 2_000_000, give_or_take: Duration::from_millis(500) });
        assert_eq!(clock(Timestamp(0), second, second).ahead, -1_000_000);
    }

    #[test]
    fn roles_are_quoted() {
        assert_eq!(quoted("o\"k"), "\"o\"\"k\"");
    }

    #[test]
    fn tables_settings_and_indexes_are_read_from_the_migrations() {
        let made = Blueprint::of(&MIGRATIONS[..3]);
        let tables: Vec<&str> = made.tables.iter().map(|table| table.name.as_str()).collect();
        assert_eq!(
            tables,
            ["schema_migration", "queue", "job", "dead_job", "idempotency_key", "ordering_key", "arrival"]
        );
        let job = &made.tables[2].options;
        assert!(job.contains(&"fillfactor=70".to_owned()), "{job:?}");
        assert!(job.contains(&"toast.vacuum_truncate=off".to_owned()), "{job:?}");
        assert_eq!(job.len(), 11, "{job:?}");
        assert!(made.tables[0].options.is_empty());
        let indexes: Vec<&str> = made.indexes.iter().map(|index| index.name.as_str()).collect();
        assert_eq!(
            indexes,
            ["job_ready", "job_lease", "job_blocked", "dead_job_expires", "idempotency_key_expires", "arrival_named"]
        );
        assert_eq!(
            made.indexes[1].statement,
            "create index job_lease on leasehold.job (lease_until) where lease_id is not null"
        );
    }
}
