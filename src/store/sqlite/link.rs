//! The connection as such, and the schema.

use async_trait::async_trait;
use sqlx::{AssertSqlSafe, Executor as _, SqliteConnection};

use super::{
    error::{Step, classify},
    session::{SqliteSession, column, narrow},
};
use crate::{
    model::{Caller, Timestamp},
    store::{
        comment::Comments,
        engine::{AppliedMigration, LaneRole, Linking, Migration, Wake},
        error::EngineError,
    },
};

/// Lowest number first.
pub(super) const MIGRATIONS: [Migration; 7] = [
    migration(1, "schema", include_str!("../../../migrations/sqlite/0001_schema.sql")),
    migration(2, "functions", include_str!("../../../migrations/sqlite/0002_functions.sql")),
    migration(3, "sql_api", include_str!("../../../migrations/sqlite/0003_sql_api.sql")),
    migration(4, "queue_administration", include_str!("../../../migrations/sqlite/0004_queue_administration.sql")),
    migration(5, "job_administration", include_str!("../../../migrations/sqlite/0005_job_administration.sql")),
    migration(6, "caller_budget", include_str!("../../../migrations/sqlite/0006_caller_budget.sql")),
    migration(7, "reservations", include_str!("../../../migrations/sqlite/0007_reservations.sql")),
];

const fn migration(number: i32, name: &'static str, sql: &'static str) -> Migration {
    Migration { number, name, sql }
}

/// One statement each: a text of several would name its caller once.
const SETTINGS: [&str; 6] = [
    "pragma journal_mode = wal",
    "pragma synchronous = full",
    "pragma wal_autocheckpoint = 1000", // pages: 4 MB
    "pragma journal_size_limit = 4194304",
    "pragma cache_size = -16384", // 16 MiB
    "pragma temp_store = memory",
];

/// Makes a new connection ready for `role`.
pub(super) async fn prepare(
    connection: &mut SqliteConnection,
    comments: &Comments,
    caller: &Caller,
    role: LaneRole,
) -> Result<(), EngineError> {
    for setting in SETTINGS {
        execute(connection, comments, caller, setting).await?;
    }
    let mode = connection
        .fetch_one(sqlx::raw_sql(AssertSqlSafe(comments.text(caller, "pragma journal_mode"))))
        .await
        .map_err(|error| classify(&error, Step::Connect))?;
    let mode: String = column(&mode, "journal_mode")?;
    if mode != "wal" {
        return Err(EngineError::Unfit(format!(
            "the file system gives SQLite no write-ahead log (journal mode {mode}); put the data directory on a local disk"
        )));
    }
    if role == LaneRole::Read {
        execute(connection, comments, caller, "pragma query_only = on").await?;
    }
    Ok(())
}

async fn execute(
    connection: &mut SqliteConnection,
    comments: &Comments,
    caller: &Caller,
    sql: &'static str,
) -> Result<(), EngineError> {
    match connection.execute(sqlx::raw_sql(AssertSqlSafe(comments.text(caller, sql)))).await {
        Ok(_) => Ok(()),
        Err(error) => Err(classify(&error, Step::Connect)),
    }
}

/// The last instant written to the file; the beginning where it has no schema yet.
pub(super) async fn last_instant(
    connection: &mut SqliteConnection,
    comments: &Comments,
    caller: &Caller,
) -> Result<Timestamp, EngineError> {
    let text = |sql| sqlx::raw_sql(AssertSqlSafe(comments.text(caller, sql)));
    let failed = |error| classify(&error, Step::Connect);
    let schema = connection.fetch_optional(text(include_str!("sql/has_schema.sql"))).await.map_err(failed)?;
    if schema.is_none() {
        return Ok(Timestamp::BEGINNING);
    }
    let row = connection.fetch_one(text(include_str!("sql/read_clock.sql"))).await.map_err(failed)?;
    Ok(Timestamp(column(&row, "last_at")?))
}

#[async_trait]
impl Linking for SqliteSession {
    async fn version(&mut self, caller: &Caller) -> Result<String, EngineError> {
        let rows = self.read(self.statement(caller, include_str!("sql/version.sql"))).await?;
        rows.first().map_or_else(|| Err(EngineError::Bug("no version".to_owned())), |row| column(row, "version"))
    }

    async fn ping(&mut self, caller: &Caller) -> Result<(), EngineError> {
        self.read(self.statement(caller, include_str!("sql/ping.sql"))).await?;
        // Only an idle lane is pinged, so this is the moment to give the log's space back.
        self.empty_log(caller).await
    }

    async fn notify(&mut self, _caller: &Caller, _wakes: &[Wake]) -> Result<(), EngineError> {
        Ok(()) // nobody else is there
    }

    async fn migrations(&mut self, caller: &Caller) -> Result<Vec<AppliedMigration>, EngineError> {
        if self.read(self.statement(caller, include_str!("sql/has_schema.sql"))).await?.is_empty() {
            return Ok(Vec::new());
        }
        let rows = self.read(self.statement(caller, include_str!("sql/migrations.sql"))).await?;
        rows.iter()
            .map(|row| Ok(AppliedMigration { number: narrow(row, "number")?, name: column(row, "name")? }))
            .collect()
    }

    async fn migrate_one(&mut self, caller: &Caller) -> Result<Option<AppliedMigration>, EngineError> {
        let now = self.begin(caller).await?;
        let applied = self.apply_next(caller, now).await;
        self.end(caller, now, applied).await
    }
}

impl SqliteSession {
    async fn apply_next(&mut self, caller: &Caller, now: Timestamp) -> Result<Option<AppliedMigration>, EngineError> {
        let applied = self.migrations(caller).await?;
        let is_missing = |known: &&Migration| applied.iter().all(|has| has.number != known.number);
        let Some(next) = MIGRATIONS.iter().find(is_missing) else {
            return Ok(None);
        };
        self.run(caller, next.sql, Step::Statement).await?;
        self.has_changed();
        let record = self.statement(caller, include_str!("sql/record_migration.sql"));
        self.change(record.bind(next.number).bind(next.name).bind(now.0)).await?;
        Ok(Some(AppliedMigration { number: next.number, name: next.name.to_owned() }))
    }
}
