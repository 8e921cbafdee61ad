//! What the server says about itself: a few statements on a connection of their own, each on its own feet, so that a part
//! that the user may not see hides no other.

mod objects;
mod requirements;

use std::{
    collections::BTreeSet,
    time::{Duration, SystemTime},
};

use async_trait::async_trait;

use super::{
    MysqlEngine, PREFIX,
    error::Step,
    fitness::{Family, Found},
    migration::MIGRATIONS,
    session::MysqlSession,
    value::{column, name},
};
use crate::{
    model::{Caller, Timestamp},
    store::{
        engine::{
            AppliedMigration, Linking as _, Observing as _,
            examining::{
                ClockFacts, ConnectionFacts, Examining, Facts, RoleFacts, Seen, ServerFacts, SnapshotFacts,
                SnapshotHolder, Unseen,
            },
        },
        error::EngineError,
    },
};

/// Holders of old row versions that are shown at most.
const HOLDERS: usize = 10;

/// What a serving broker does with its tables.
const NEEDED: [&str; 4] = ["SELECT", "INSERT", "UPDATE", "DELETE"];

#[async_trait]
impl Examining for MysqlEngine {
    async fn examine(&self, caller: &Caller) -> Result<Facts, EngineError> {
        let (session, found) = MysqlSession::unchecked(&self.shared).await?;
        Examination { engine: self, session, found, caller }.facts().await
    }
}

/// One look at the server.
struct Examination<'e> {
    engine: &'e MysqlEngine,
    session: MysqlSession,
    found: Found,
    caller: &'e Caller,
}

impl Examination<'_> {
    async fn facts(mut self) -> Result<Facts, EngineError> {
        let settings = self.found_settings().await;
        let found = seen(settings)?;
        let replicas = self.status("Slaves_connected").await;
        let replicas = seen(replicas)?.unwrap_or(0) > 0;
        let settings = found.map(|found| requirements::settings(&found, replicas));
        let applied = self.session.migrations(self.caller).await;
        let applied = seen(applied)?;
        let role = self.role().await;
        let role = seen(role)?.map(Some);
        let connections = self.connections().await;
        let connections = seen(connections)?.map(Some);
        let snapshots = self.snapshots().await;
        let snapshots = seen(snapshots)?.and_then(|snapshots| snapshots);
        let made = objects::Made::by(MIGRATIONS.iter().filter(|known| match &applied {
            Ok(applied) => applied.iter().any(|has| has.number == known.number),
            Err(_) => true,
        }));
        let tables = self.tables(&made).await;
        let tables = seen(tables)?;
        let indexes = self.indexes(&made).await;
        let indexes = seen(indexes)?;
        let before = since_1970();
        let now = self.session.now(self.caller).await?;
        let after = since_1970();
        Ok(Facts {
            server: self.server(),
            settings,
            pooler: self.found.unlike_asked().then(|| "what the session asked for at its start did not arrive".into()),
            role,
            connections,
            clock: clock(now, before, after),
            snapshots,
            known: MIGRATIONS.iter().map(AppliedMigration::from).collect(),
            applied,
            tables,
            indexes,
        })
    }

    async fn found_settings(&mut self) -> Result<Found, EngineError> {
        let show = [include_str!("sql/examine_settings.sql")];
        Found::from_rows(&self.session.run(self.caller, &show, Step::First).await?)
    }

    /// A count that the server keeps.
    async fn status(&mut self, wanted: &str) -> Result<u64, EngineError> {
        let show = [include_str!("sql/examine_connections.sql")];
        let found = Found::from_rows(&self.session.run(self.caller, &show, Step::First).await?)?;
        Ok(found.number(&wanted.to_ascii_lowercase()))
    }

    fn server(&self) -> ServerFacts {
        let shared = &self.engine.shared;
        let family = self.found.family();
        let (product, oldest) = match family {
            Family::MariaDb => ("MariaDB", "10.6"),
            Family::MySql => ("MySQL", "8.0.11"),
        };
        let place = match shared.connect.get_socket() {
            Some(socket) => socket.display().to_string(),
            None => format!("{}:{}", shared.connect.get_host(), shared.connect.get_port()),
        };
        let database = shared.connect.get_database().unwrap_or_default();
        ServerFacts {
            product,
            version: self.found.get("version").to_owned(),
            oldest,
            new_enough: self.found.is_new_enough(),
            place: format!("{place}, database {database}, tables {}…", shared.prefix),
            read_only: self.found.is_read_only().then(|| "it is set read-only, as a replica is".to_owned()),
        }
    }

    async fn role(&mut self) -> Result<RoleFacts, EngineError> {
        let rows = self.session.run(self.caller, &[include_str!("sql/examine_role.sql")], Step::First).await?;
        let Some(first) = rows.first() else {
            return Err(EngineError::Unfit("the server does not say what this user may do".into()));
        };
        let (user, place) = (name(first, "name")?.unwrap_or_default(), name(first, "place")?.unwrap_or_default());
        let mut rights = BTreeSet::new();
        let mut powers = Vec::new();
        for row in &rows {
            let right = name(row, "privilege")?.unwrap_or_default();
            if column::<i64>(row, "everywhere")? != 0 {
                match right.as_str() {
                    "SUPER" => powers.push("may do everything (SUPER)"),
                    "CREATE USER" => powers.push("may create users"),
                    "SHUTDOWN" => powers.push("may shut the server down"),
                    "FILE" => powers.push("may read and write the server's files"),
                    _ => {}
                }
            }
            rights.insert(right);
        }
        let lacks = NEEDED.iter().filter(|needed| !rights.contains(**needed));
        let (account, host) = user.rsplit_once('@').unwrap_or((&user, "%"));
        let grant = |right: &&str| format!("grant {right} on `{place}`.* to '{account}'@'{host}'");
        Ok(RoleFacts {
            powers,
            shapes_tables: rights.contains("ALTER") && rights.contains("CREATE"),
            lacks: lacks.map(grant).collect(),
            name: user,
        })
    }

    async fn connections(&mut self) -> Result<ConnectionFacts, EngineError> {
        let in_use = self.status("Threads_connected").await?.saturating_sub(1);
        let found = self.found_settings().await?;
        let seen = self.session.sessions(self.caller, usize::MAX).await?;
        let ours = seen.sessions.iter().filter(|session| session.broker && !session.observer).count();
        let own = found.number("max_user_connections");
        Ok(ConnectionFacts {
            allowed: found.number("max_connections"),
            reserved: 0,
            in_use,
            ours: ours as u64,
            role: (own > 0).then_some((own, in_use.min(own))),
            database: None,
        })
    }

    async fn snapshots(&mut self) -> Result<Seen<SnapshotFacts>, EngineError> {
        let horizon = self.session.horizon(self.caller, HOLDERS).await?;
        if horizon.holders.is_empty()
            && let Some(blind) = horizon.blind_spots.iter().find(|blind| blind.contains("PROCESS."))
        {
            return Ok(Err(Unseen(blind.trim_end_matches('.').to_owned())));
        }
        let holders = horizon.holders.into_iter().map(|holder| SnapshotHolder {
            who: format!("session {}", holder.name),
            age: holder.age,
            transactions: holder.transactions,
            log_bytes: 0,
            release: holder.advice,
        });
        Ok(Ok(SnapshotFacts { holders: holders.collect(), hidden: 0 }))
    }

    /// A statement as it is with this prefix.
    fn here(&self, statement: &str) -> String {
        statement.replace(PREFIX, &self.engine.shared.prefix)
    }
}

/// A part that the user may not see, or that was too slow, is no failure of the whole; a lost connection is.
fn seen<T>(part: Result<T, EngineError>) -> Result<Seen<T>, EngineError> {
    match part {
        Ok(part) => Ok(Ok(part)),
        Err(error @ (EngineError::Unknown(_) | EngineError::Unavailable(_) | EngineError::NotSent(_))) => Err(error),
        Err(error) => Ok(Err(Unseen(error.to_string()))),
    }
}

fn since_1970() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

fn clock(there: Timestamp, before: Duration, after: Duration) -> ClockFacts {
    let micros = |at: Duration| i64::try_from(at.as_micros()).unwrap_or(i64::MAX);
    let give_or_take = after.saturating_sub(before) / 2;
    ClockFacts { ahead: there.0.saturating_sub(micros(before + give_or_take)), give_or_take }
}
