//! A service that uses the queue by SQL, in transactions of its own.

use leasehold::store::engine::ClaimedJob;
use sqlx::{Connection, Executor, PgConnection, Row};

use super::{
    history::Label,
    scene::{QUEUE, Scene},
};
use crate::lanes::stage::token;

/// A session of the service; a new one where the last was cut.
pub(super) struct Service<'a> {
    scene: &'a Scene,
    session: Option<PgConnection>,
}

impl<'a> Service<'a> {
    pub(super) fn new(scene: &'a Scene) -> Self {
        Self { scene, session: None }
    }

    pub(super) async fn begin(&mut self) -> sqlx::Result<()> {
        if self.session.is_none() {
            self.session = Some(self.scene.stage.server().connect().await);
        }
        self.run("begin").await
    }

    /// One attempt: an error means that the session was cut, and what it did not commit is gone.
    pub(super) async fn run(&mut self, statement: &'static str) -> sqlx::Result<()> {
        let session = self.session.as_mut().ok_or(sqlx::Error::WorkerCrashed)?;
        let done = session.execute(sqlx::raw_sql(statement)).await;
        self.keep_if(done).await.map(drop)
    }

    pub(super) async fn enqueue(&mut self, label: Label, key: &str) -> sqlx::Result<()> {
        let session = self.session.as_mut().ok_or(sqlx::Error::WorkerCrashed)?;
        let call = sqlx::query(
            "select leasehold.enqueue(queue => $1, payload => $2, ordering_key => $3, max_attempts => 1000)",
        );
        let called = call.bind(QUEUE).bind(label.to_string().into_bytes()).bind(key).fetch_one(session).await;
        self.keep_if(called).await.map(drop)
    }

    /// Whether the lease held.
    pub(super) async fn ack(&mut self, job: &ClaimedJob) -> sqlx::Result<bool> {
        let session = self.session.as_mut().ok_or(sqlx::Error::WorkerCrashed)?;
        let called = sqlx::query("select leasehold.ack($1)").bind(token(job)).fetch_one(session).await;
        self.keep_if(called).await?.try_get(0)
    }

    async fn keep_if<T>(&mut self, done: sqlx::Result<T>) -> sqlx::Result<T> {
        if let Err(error) = &done {
            // Only a cut session explains an error here; 57P01 is what the database says to one that it cuts.
            let cut = error.as_database_error().is_none_or(|error| error.code().as_deref() == Some("57P01"));
            assert!(cut, "a service's statement failed: {error}");
            if let Some(session) = self.session.take() {
                drop(session.close().await);
            }
        }
        done
    }
}
