//! What a fixture offers to the cases: an empty, migrated database of one engine.

use std::any::Any;

use async_trait::async_trait;
use leasehold::{
    model::{Caller, JobId, Timestamp},
    store::engine::{Engine, LaneRole, Session},
};

/// Somebody's open transaction; what is in it is the fixture's affair.
pub(crate) type Hold = Box<dyn Any + Send>;

/// A database for one case.
#[async_trait]
pub(crate) trait Database: Send + Sync {
    /// The engine on it.
    fn engine(&self) -> &dyn Engine;

    /// Runs SQL that all engines understand, past the engine. What it names is in the search path.
    async fn execute(&self, sql: &str);

    /// The one number that `sql` answers.
    async fn number(&self, sql: &str) -> i64;

    /// The one text that `sql` answers.
    async fn text(&self, sql: &str) -> Option<String>;

    /// An instant as it stands in this engine's SQL.
    fn instant(&self, at: Timestamp) -> String;

    /// The next job's id is `id` or a little more.
    async fn start_ids_at(&self, id: i64);

    /// A rule of the team's own: the database refuses jobs with this payload.
    async fn refuse_payload(&self, payload: &'static str);

    /// Holds a job's row in a transaction of somebody else's. For engines with row locks.
    async fn hold(&self, job: JobId) -> Hold;

    /// The same of a dead job's row.
    async fn hold_dead(&self, job: JobId) -> Hold;

    /// Rolls that transaction back.
    async fn release(&self, hold: Hold);

    /// A session that takes all work.
    async fn session(&self) -> Box<dyn Session> {
        self.engine().connect(LaneRole::Any).await.expect("a session")
    }

    /// Lets all leases end, long ago.
    async fn expire_leases(&self) {
        let past = self.instant(Timestamp(1_000_000));
        self.execute(&format!("update job set lease_until = {past} where lease_id is not null")).await;
    }
}

/// The callers that cases run for.
pub(crate) fn caller() -> Caller {
    Caller::parse("contract").expect("a caller")
}

/// Applies all migrations.
pub(crate) async fn migrate(engine: &dyn Engine) {
    let mut session = engine.connect(LaneRole::Any).await.expect("a session");
    while session.migrate_one(&Caller::broker("migrate")).await.expect("a migration").is_some() {}
}
