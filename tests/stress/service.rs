//! A service that uses the queue by SQL, in transactions of its own.

use leasehold::store::engine::ClaimedJob;
use sqlx::{Connection, Executor, Row, error::DatabaseError};

use super::{
    history::Label,
    scene::{QUEUE, Scene},
};
use crate::lanes::stage::{Sql, token};

/// A session of the service; a new one where the last was cut.
pub(super) struct Service<'a> {
    scene: &'a Scene,
    session: Option<Sql>,
}

impl<'a> Service<'a> {
    pub(super) fn new(scene: &'a Scene) -> Self {
        Self { scene, session: None }
    }

    pub(super) async fn begin(&mut self) -> sqlx::Result<()> {
        if self.session.is_none() {
            self.session = Some(self.scene.stage.sql().await);
        }
        self.run("begin").await
    }

    /// One attempt: an error means that the session was cut, and what it did not commit is gone.
    pub(super) async fn run(&mut self, statement: &'static str) -> sqlx::Result<()> {
        let statement = sqlx::raw_sql(statement);
        let done = match self.session.as_mut().ok_or(sqlx::Error::WorkerCrashed)? {
            Sql::Postgres(session) => session.execute(statement).await.map(drop),
            Sql::MariaDb(session) => session.execute(statement).await.map(drop),
            Sql::Sqlite(session) => session.execute(statement).await.map(drop),
        };
        self.keep_if(done).await
    }

    pub(super) async fn enqueue(&mut self, label: Label, key: &str) -> sqlx::Result<()> {
        let payload = label.to_string().into_bytes();
        let called = match self.session.as_mut().ok_or(sqlx::Error::WorkerCrashed)? {
            Sql::Postgres(session) => {
                let call =
                    "select leasehold.enqueue(queue => $1, payload => $2, ordering_key => $3, max_attempts => 1000)";
                session.execute(sqlx::query(call).bind(QUEUE).bind(payload).bind(key)).await.map(drop)
            }
            Sql::MariaDb(session) => {
                let call = "call leasehold_enqueue(?, ?, json_object('ordering_key', ?, 'max_attempts', 1000), @job)";
                session.execute(sqlx::query(call).bind(QUEUE).bind(payload).bind(key)).await.map(drop)
            }
            Sql::Sqlite(_) => panic!("an embedded database has no services"),
        };
        self.keep_if(called).await
    }

    /// Whether the lease held.
    pub(super) async fn ack(&mut self, job: &ClaimedJob) -> sqlx::Result<bool> {
        let acked = match self.session.as_mut().ok_or(sqlx::Error::WorkerCrashed)? {
            Sql::Postgres(session) => {
                let called = session.fetch_one(sqlx::query("select leasehold.ack($1)").bind(token(job))).await;
                called.and_then(|row| row.try_get(0))
            }
            Sql::MariaDb(session) => {
                match session.execute(sqlx::query("call leasehold_ack(?, @acked)").bind(token(job))).await {
                    Ok(_) => {
                        let row = session.fetch_one("select cast(@acked as signed)").await;
                        row.and_then(|row| row.try_get::<i64, _>(0)).map(|acked| acked == 1)
                    }
                    Err(error) => Err(error),
                }
            }
            Sql::Sqlite(_) => panic!("an embedded database has no services"),
        };
        self.keep_if(acked).await
    }

    async fn keep_if<T>(&mut self, done: sqlx::Result<T>) -> sqlx::Result<T> {
        if let Err(error) = &done {
            // Only a cut session explains an error here; these are what the databases say to one that they cut.
            let code = error.as_database_error().and_then(DatabaseError::code);
            let cut = error.as_database_error().is_none() || matches!(code.as_deref(), Some("57P01" | "70100"));
            assert!(cut, "a service's statement failed: {error}");
            if let Some(session) = self.session.take() {
                close(session).await;
            }
        }
        done
    }
}

/// Nobody waits for a goodbye from what is cut already.
async fn close(session: Sql) {
    drop(match session {
        Sql::Postgres(session) => session.close().await,
        Sql::MariaDb(session) => session.close().await,
        Sql::Sqlite(session) => session.close().await,
    });
}
