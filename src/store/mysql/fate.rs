//! What becomes of jobs: they live on, die or go. All of them are locked.

use super::{
    held::HeldLease,
    literal::{filled, literal},
    record::tier,
    session::MysqlSession,
    value::{Maybe, list},
};
use crate::{
    model::{Caller, Timestamp},
    store::error::EngineError,
};

const END_LEASES: &str = include_str!("sql/end_leases.sql");
const REMOVE_JOBS: &str = include_str!("sql/remove_jobs.sql");

/// Where a job stands among the ready ones: queue, tier, since when, its id.
pub(super) type Place = (i32, u8, i64, i64);

/// How a job goes on living after a lease.
#[expect(clippy::option_option, reason = "to keep an error and to keep none are both changes")]
pub(super) struct Return<'e> {
    job: i64,
    queue: i32,
    tier: u8,
    ready_at: Timestamp,
    attempt: u32,
    lease_number: i64,
    /// The error to keep in place of the one that it has; an inner absence keeps none.
    error: Option<Option<&'e str>>,
}

/// A job to be buried: its id, the error to keep, its attempt, its lease number.
pub(super) type Burial<'e> = (i64, Option<&'e str>, u32, i64);

impl<'e> Return<'e> {
    /// Ready at `ready_at`, the attempt counted.
    #[expect(clippy::option_option, reason = "as in the struct")]
    pub(super) fn of(held: &HeldLease, ready_at: Timestamp, error: Option<Option<&'e str>>) -> Self {
        Self {
            job: held.job.0,
            queue: held.queue.0,
            tier: tier(held.priority),
            ready_at,
            attempt: held.attempt,
            lease_number: held.lease_number,
            error,
        }
    }

    /// The same without the attempt.
    pub(super) fn uncounted(self) -> Self {
        Self { attempt: self.attempt.saturating_sub(1), ..self }
    }
}

impl MysqlSession {
    /// Takes the leases off jobs that live on.
    pub(super) async fn return_jobs(&mut self, caller: &Caller, returns: &[Return<'_>]) -> Result<(), EngineError> {
        if returns.is_empty() {
            return Ok(());
        }
        let jobs: Vec<i64> = returns.iter().map(|back| back.job).collect();
        self.end_leases(caller, &jobs).await?;
        let rows: Vec<_> = returns
            .iter()
            .map(|back| (back.job, back.queue, back.tier, back.ready_at.0, back.attempt, back.lease_number))
            .collect();
        let ready = self.statement(caller, include_str!("sql/make_ready.sql")).bind(list(&rows)?);
        self.change(ready).await?;
        let notes: Vec<_> = returns
            .iter()
            .map(|back| (back.job, back.ready_at.0, i32::from(back.error.is_none()), Maybe(back.error.flatten())))
            .collect();
        let note = self.statement(caller, include_str!("sql/return_jobs.sql")).bind(list(&notes)?);
        self.change(note).await.map(drop)
    }

    /// Copies jobs to the dead ones.
    pub(super) async fn bury(
        &mut self,
        caller: &Caller,
        burials: &[Burial<'_>],
        now: Timestamp,
    ) -> Result<(), EngineError> {
        if burials.is_empty() {
            return Ok(());
        }
        let rows: Vec<_> =
            burials.iter().map(|(job, error, attempt, number)| (job, Maybe(*error), attempt, number)).collect();
        let copy = self.statement(caller, include_str!("sql/bury.sql")).bind(now.0).bind(now.0).bind(list(&rows)?);
        let copied = self.change(copy).await?;
        as_many("jobs buried", copied, burials.len())
    }

    /// Removes leased jobs.
    pub(super) async fn remove(&mut self, caller: &Caller, jobs: &[i64]) -> Result<(), EngineError> {
        if jobs.is_empty() {
            return Ok(());
        }
        let list = literal(&list(jobs)?)?;
        let [end, remove] = [filled(END_LEASES, &[&list])?, filled(REMOVE_JOBS, &[&list])?];
        let [ended, removed] = self.answers(caller, [&end, &remove]).await?;
        as_many("leases ended", ended.changed, jobs.len())?;
        as_many("jobs removed", removed.changed, jobs.len())
    }

    async fn end_leases(&mut self, caller: &Caller, jobs: &[i64]) -> Result<(), EngineError> {
        let end = self.statement(caller, END_LEASES).bind(list(jobs)?);
        let ended = self.change(end).await?;
        as_many("leases ended", ended, jobs.len())
    }

    /// Removes jobs that are nowhere else any more.
    pub(super) async fn remove_jobs(&mut self, caller: &Caller, jobs: &[i64]) -> Result<(), EngineError> {
        if jobs.is_empty() {
            return Ok(());
        }
        let remove = self.statement(caller, REMOVE_JOBS).bind(list(jobs)?);
        let removed = self.change(remove).await?;
        as_many("jobs removed", removed, jobs.len())
    }

    /// Takes jobs from among the ready ones, whose places are locked; says how many.
    pub(super) async fn leave_ready(&mut self, caller: &Caller, places: &[Place]) -> Result<u64, EngineError> {
        if places.is_empty() {
            return Ok(0);
        }
        let leave = self.statement(caller, include_str!("sql/leave_ready.sql")).bind(list(places)?);
        self.change(leave).await
    }
}

fn as_many(what: &str, done: u64, asked: usize) -> Result<(), EngineError> {
    if done == asked as u64 { Ok(()) } else { Err(EngineError::Bug(format!("{what}: {done} of {asked}"))) }
}
