//! The connection as such, and the schema behind it.

use async_trait::async_trait;

use super::{
    error, listener,
    migration::MIGRATIONS,
    session::{Args, PgSession},
    value::get,
};
use crate::{
    model::Caller,
    store::{
        engine::{AppliedMigration, Linking, Migration, Wake},
        error::EngineError,
    },
};

const VERSION: &str = include_str!("sql/version.sql");
const PING: &str = include_str!("sql/ping.sql");
const NOTIFY: &str = include_str!("sql/notify.sql");
const HAS_SCHEMA: &str = include_str!("sql/has_schema.sql");
const APPLIED: &str = include_str!("sql/migrations.sql");
const NOTE_MIGRATION: &str = include_str!("sql/note_migration.sql");
const ONE_AT_A_TIME: &str = include_str!("sql/one_at_a_time.sql");
const MIGRATION_PATIENCE: &str = include_str!("sql/migration_patience.sql");

#[async_trait]
impl Linking for PgSession {
    async fn version(&mut self, caller: &Caller) -> Result<String, EngineError> {
        let row = self.row(caller, VERSION, Args::new()).await?;
        get(&row, "version", "version")
    }

    async fn ping(&mut self, caller: &Caller) -> Result<(), EngineError> {
        let row = self.row(caller, PING, Args::new()).await?;
        if get(&row, "ping", "read_only")? {
            return Err(EngineError::Unavailable("the database is read-only".into()));
        }
        Ok(())
    }

    async fn notify(&mut self, caller: &Caller, wakes: &[Wake]) -> Result<(), EngineError> {
        let (channels, payloads): (Vec<String>, Vec<String>) =
            wakes.iter().flat_map(|wake| listener::encode(&self.schema, wake)).unzip();
        if channels.is_empty() {
            return Ok(());
        }
        self.rows(caller, NOTIFY, Args::new().with(channels).with(payloads)).await.map(drop)
    }

    async fn migrations(&mut self, caller: &Caller) -> Result<Vec<AppliedMigration>, EngineError> {
        let row = self.row(caller, HAS_SCHEMA, Args::new()).await?;
        if !get::<bool>(&row, "has_schema", "present")? {
            return Ok(Vec::new());
        }
        let rows = self.rows(caller, APPLIED, Args::new()).await?;
        rows.iter()
            .map(|row| {
                let number = get(row, "schema_migration", "number")?;
                Ok(AppliedMigration { number, name: get(row, "schema_migration", "name")? })
            })
            .collect()
    }

    async fn migrate_one(&mut self, caller: &Caller) -> Result<Option<AppliedMigration>, EngineError> {
        self.run_text(caller, "begin").await.map_err(error::before_commit)?;
        match self.next_migration(caller).await {
            Ok(applied) => {
                self.run_text(caller, "commit").await?;
                Ok(applied)
            }
            Err(why) => {
                let why = error::before_commit(why);
                if !why.poisons_connection() {
                    self.run_text(caller, "rollback").await.map_err(error::before_commit)?;
                }
                Err(why)
            }
        }
    }
}

impl PgSession {
    /// Inside of a transaction that its caller ends.
    async fn next_migration(&mut self, caller: &Caller) -> Result<Option<AppliedMigration>, EngineError> {
        self.rows(caller, ONE_AT_A_TIME, Args::new().with(self.schema.migration_lock())).await?;
        let applied = self.migrations(caller).await?;
        let last = applied.last().map_or(0, |migration| migration.number);
        let Some(Migration { number, name, sql }) = MIGRATIONS.iter().find(|migration| migration.number > last) else {
            return Ok(None);
        };
        self.rows(caller, MIGRATION_PATIENCE, Args::new()).await?;
        self.run_text(caller, sql).await?;
        self.rows(caller, NOTE_MIGRATION, Args::new().with(*number).with(*name)).await?;
        Ok(Some(AppliedMigration { number: *number, name: (*name).to_owned() }))
    }
}
