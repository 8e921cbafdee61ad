//! The embedded engine, on a file of its own.

use std::time::Duration;

use async_trait::async_trait;
use leasehold::{
    model::{JobId, Timestamp},
    store::{
        engine::Engine,
        sqlite::{SqliteEngine, SqliteOptions},
    },
};
use sqlx::{
    AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _, Row as _, SqliteConnection,
    sqlite::SqliteConnectOptions,
};
use tempfile::TempDir;
use tokio::sync::Mutex;

use super::database::{Database, Hold, migrate};

const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) struct Sqlite {
    engine: SqliteEngine,
    raw: Mutex<SqliteConnection>,
    /// Removed when the case is over.
    _directory: TempDir,
}

pub(crate) async fn open() -> Sqlite {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("jobs.db");
    // A broker has one writer; cases have several, and SQLite lets them wait in no order.
    let patient = SqliteOptions { busy_timeout: PATIENCE, ..SqliteOptions::new(&path) };
    let engine = SqliteEngine::open(patient).await.expect("an engine");
    migrate(&engine).await;
    let raw = SqliteConnectOptions::new()
        .filename(&path)
        .busy_timeout(PATIENCE)
        .connect()
        .await
        .expect("a connection past the engine");
    Sqlite { engine, raw: Mutex::new(raw), _directory: directory }
}

impl Sqlite {
    pub(crate) async fn close(self) {
        self.raw.into_inner().close().await.expect("closed");
    }

    async fn row(&self, sql: &str) -> sqlx::sqlite::SqliteRow {
        let mut raw = self.raw.lock().await;
        raw.fetch_one(sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))).await.expect("an answer")
    }
}

#[async_trait]
impl Database for Sqlite {
    fn engine(&self) -> &dyn Engine {
        &self.engine
    }

    async fn execute(&self, sql: &str) {
        let mut raw = self.raw.lock().await;
        raw.execute(sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))).await.expect("the case's own SQL");
    }

    async fn number(&self, sql: &str) -> i64 {
        self.row(sql).await.get(0)
    }

    async fn text(&self, sql: &str) -> Option<String> {
        self.row(sql).await.get(0)
    }

    fn instant(&self, at: Timestamp) -> String {
        at.0.to_string()
    }

    async fn start_ids_at(&self, id: i64) {
        self.execute(&format!(
            "delete from sqlite_sequence where name = 'job'; insert into sqlite_sequence values ('job', {})",
            id - 1
        ))
        .await;
    }

    async fn refuse_payload(&self, payload: &'static str) {
        self.execute(&format!(
            "create trigger team_rule before insert on job when new.payload = cast('{payload}' as blob)
             begin select raise(abort, 'not this one'); end"
        ))
        .await;
    }

    async fn hold(&self, _job: JobId) -> Hold {
        unreachable!("only for engines with row locks")
    }

    async fn hold_dead(&self, _job: JobId) -> Hold {
        unreachable!("only for engines with row locks")
    }

    async fn release(&self, _hold: Hold) {
        unreachable!("only for engines with row locks")
    }
}
