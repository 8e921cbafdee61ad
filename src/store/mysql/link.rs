//! The connection as such, and the schema behind it.

use async_trait::async_trait;

use super::{
    error::Step,
    migration::{MIGRATIONS, statements},
    session::{MysqlSession, is_one, only, whole_seconds},
    value::{column, narrow},
};
use crate::{
    model::Caller,
    store::{
        engine::{AppliedMigration, Linking, Migration, Wake},
        error::EngineError,
    },
};

#[async_trait]
impl Linking for MysqlSession {
    async fn version(&mut self, caller: &Caller) -> Result<String, EngineError> {
        let rows = self.run(caller, &[include_str!("sql/version.sql")], Step::First).await?;
        column(&only(rows)?, "version")
    }

    async fn ping(&mut self, caller: &Caller) -> Result<(), EngineError> {
        let rows = self.run(caller, &[include_str!("sql/ping.sql")], Step::First).await?;
        if column::<i64>(&only(rows)?, "read_only")? != 0 {
            return Err(EngineError::Unavailable("the database is read-only".into()));
        }
        Ok(())
    }

    async fn notify(&mut self, _caller: &Caller, _wakes: &[Wake]) -> Result<(), EngineError> {
        Ok(()) // nobody could hear it
    }

    async fn migrations(&mut self, caller: &Caller) -> Result<Vec<AppliedMigration>, EngineError> {
        if self.run(caller, &[include_str!("sql/has_schema.sql")], Step::First).await?.is_empty() {
            return Ok(Vec::new());
        }
        let rows = self.run(caller, &[include_str!("sql/migrations.sql")], Step::First).await?;
        rows.iter()
            .map(|row| Ok(AppliedMigration { number: narrow(row, "number")?, name: column(row, "name")? }))
            .collect()
    }

    /// The server commits changes of the schema one by one, so a migration is steps that can be done again, under a lock by
    /// name, and then a note that it was applied.
    async fn migrate_one(&mut self, caller: &Caller) -> Result<Option<AppliedMigration>, EngineError> {
        let wait = i64::try_from(whole_seconds(self.shared.statement_timeout)).unwrap_or(i64::MAX);
        let lock = self.statement(caller, include_str!("sql/lock_schema.sql")).bind(wait);
        if !is_one(self.read_alone(lock, caller).await?, "mine")? {
            return Err(EngineError::Conflict("another process migrates the schema".into()));
        }
        let applied = self.apply_next(caller).await;
        let unlocked = self.run(caller, &[include_str!("sql/unlock_schema.sql")], Step::Statement).await;
        let applied = applied?;
        unlocked.map(|_| applied)
    }
}

impl MysqlSession {
    async fn apply_next(&mut self, caller: &Caller) -> Result<Option<AppliedMigration>, EngineError> {
        let applied = self.migrations(caller).await?;
        let is_missing = |known: &&Migration| applied.iter().all(|has| has.number != known.number);
        let Some(next) = MIGRATIONS.iter().find(is_missing) else {
            return Ok(None);
        };
        for statement in statements(next.sql) {
            self.run(caller, &[statement], Step::Statement).await?;
        }
        let record = self.statement(caller, include_str!("sql/record_migration.sql"));
        self.change(record.bind(next.number).bind(next.name)).await?;
        Ok(Some(AppliedMigration { number: next.number, name: next.name.to_owned() }))
    }
}
