//! Which leases hold.

use std::{collections::HashSet, time::Duration};

use sqlx::sqlite::SqliteRow;

use super::{
    fate::FreedKey,
    session::{SqliteSession, column, list, narrow, place},
};
use crate::{
    model::{Backoff, Caller, JobId, NackAction, QueueId, Timestamp},
    store::{
        engine::{Held, LeaseRef},
        error::EngineError,
        hex::lease_hex,
    },
};

/// A lease that holds, and its job.
pub(super) struct HeldLease {
    /// Its place among those asked for.
    pub(super) n: usize,
    pub(super) job: JobId,
    pub(super) queue: QueueId,
    pub(super) ordering_key: Option<String>,
    pub(super) attempt: u32,
    pub(super) max_attempts: u32,
    pub(super) until: Timestamp,
    /// Microseconds.
    pub(super) granted_for: i64,
    pub(super) cancel_requested: bool,
    pub(super) backoff: Backoff,
    /// The queue keeps its acked jobs.
    pub(super) kept: bool,
}

impl SqliteSession {
    /// Those leases that hold. One that is asked for twice is found once, where it comes first: the act on it ends it.
    pub(super) async fn held(&mut self, caller: &Caller, leases: &[LeaseRef]) -> Result<Vec<HeldLease>, EngineError> {
        let mut held = self.find_held(caller, leases).await?;
        held.sort_unstable_by_key(|lease| lease.n);
        let mut seen = HashSet::new();
        held.retain(|lease| seen.insert(lease.job));
        Ok(held)
    }

    /// The same with every mention of a lease.
    pub(super) async fn find_held(
        &mut self,
        caller: &Caller,
        leases: &[LeaseRef],
    ) -> Result<Vec<HeldLease>, EngineError> {
        let refs: Vec<(i64, String)> = leases.iter().map(|lease| (lease.job.0, lease_hex(lease.lease))).collect();
        let find = self.statement(caller, include_str!("sql/held.sql")).bind(list(&refs)?);
        self.read(find).await?.iter().map(|row| HeldLease::from_row(row, leases.len())).collect()
    }

    /// What to answer about jobs whose leases do not hold (and, to no effect, about the others): lost where the job lives
    /// under another lease, waits or is dead, gone where there is none.
    pub(super) async fn missed(
        &mut self,
        caller: &Caller,
        leases: &[LeaseRef],
        held: &[HeldLease],
    ) -> Result<Vec<Held>, EngineError> {
        let mut answers = vec![Held::Gone; leases.len()];
        if held.len() == leases.len() {
            return Ok(answers);
        }
        let jobs: Vec<i64> = leases.iter().map(|lease| lease.job.0).collect();
        let find = self.statement(caller, include_str!("sql/known.sql")).bind(list(&jobs)?);
        for row in self.read(find).await? {
            answers[place(&row, jobs.len())?] = Held::LeaseLost;
        }
        Ok(answers)
    }
}

impl HeldLease {
    fn from_row(row: &SqliteRow, asked: usize) -> Result<Self, EngineError> {
        let duration = |name| Ok(Duration::from_micros(narrow(row, name)?));
        Ok(Self {
            n: place(row, asked)?,
            job: JobId(column(row, "id")?),
            queue: QueueId(narrow(row, "queue_id")?),
            ordering_key: column(row, "ordering_key")?,
            attempt: narrow(row, "attempt")?,
            max_attempts: narrow(row, "max_attempts")?,
            until: Timestamp(column(row, "lease_until")?),
            granted_for: column(row, "lease_duration")?,
            cancel_requested: column::<i64>(row, "cancel_requested")? != 0,
            backoff: Backoff { base: duration("backoff_base")?, cap: duration("backoff_cap")? },
            kept: column::<i64>(row, "kept")? != 0,
        })
    }

    pub(super) fn key(&self) -> Option<FreedKey> {
        self.ordering_key.clone().map(|key| (self.queue, key))
    }

    pub(super) fn dies(&self, action: NackAction) -> bool {
        match action {
            NackAction::Reject => true,
            NackAction::Retry => self.attempt >= self.max_attempts,
            NackAction::Release => false,
        }
    }
}
