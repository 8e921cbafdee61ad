//! Jobs that wait unblocked, ready or scheduled, taken away by somebody other than a claim.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    held::LockedJob,
    session::MysqlSession,
    value::{column, count, list, moment, narrow},
};
use crate::{
    model::{Caller, Priority, QueueId, Timestamp},
    store::{error::EngineError, hex::hex},
};

/// A job that waits, as a plain read found it.
pub(super) struct Waiting {
    pub(super) job: i64,
    pub(super) ready_at: Timestamp,
    pub(super) enqueued_at: Timestamp,
}

/// What the ready table knows of a job beside its place.
pub(super) struct Turn {
    pub(super) attempt: u32,
    pub(super) lease_number: i64,
}

impl MysqlSession {
    /// Waiting jobs of all tiers behind a place, up to an instant, the oldest first.
    pub(super) async fn walk_waiting(
        &mut self,
        caller: &Caller,
        queue: QueueId,
        after: (Timestamp, i64),
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<Waiting>, EngineError> {
        let mut found = Vec::new();
        for tier in 0..Priority::LEVELS {
            let walk = self
                .statement(caller, include_str!("sql/walk_waiting.sql"))
                .bind(queue.0)
                .bind(count(tier))
                .bind(after.0.0)
                .bind(after.0.0)
                .bind(after.1)
                .bind(until.0)
                .bind(count(limit));
            for row in self.read(walk).await? {
                found.push(Waiting {
                    job: column(&row, "id")?,
                    ready_at: moment(&row, "ready_at")?,
                    enqueued_at: moment(&row, "enqueued_at")?,
                });
            }
        }
        found.sort_unstable_by_key(|waiting| (waiting.ready_at, waiting.job));
        found.truncate(limit);
        Ok(found)
    }

    /// Locks those of the jobs that nobody holds and that still wait, and takes them from among the ready ones.
    pub(super) async fn take_waiting(
        &mut self,
        caller: &Caller,
        jobs: &BTreeSet<i64>,
    ) -> Result<Vec<(LockedJob, Turn)>, EngineError> {
        let locked = self.lock_jobs(caller, jobs).await?;
        self.take_turns(caller, &locked).await
    }

    /// Takes those of the locked jobs that wait from among the ready ones, after claims that are under way.
    pub(super) async fn take_turns(
        &mut self,
        caller: &Caller,
        locked: &BTreeMap<i64, LockedJob>,
    ) -> Result<Vec<(LockedJob, Turn)>, EngineError> {
        if locked.is_empty() {
            return Ok(Vec::new());
        }
        let places: Vec<_> = locked.values().map(LockedJob::place).collect();
        let lock = self.statement(caller, include_str!("sql/lock_ready.sql")).bind(list(&places)?);
        let mut taken = Vec::new();
        for row in self.read(lock).await? {
            let job = locked.get(&column(&row, "id")?).cloned();
            let job = job.ok_or_else(|| EngineError::Bug("a ready job that was not asked for".into()))?;
            let turn = Turn { attempt: narrow(&row, "attempt")?, lease_number: column(&row, "lease_number")? };
            taken.push((job, turn));
        }
        let places: Vec<_> = taken.iter().map(|(job, _)| job.place()).collect();
        self.leave_ready(caller, &places).await?;
        Ok(taken)
    }

    /// Takes those of the locked jobs that are blocked out of the line of their keys; says which.
    pub(super) async fn take_places(
        &mut self,
        caller: &Caller,
        locked: &BTreeMap<i64, LockedJob>,
    ) -> Result<BTreeSet<i64>, EngineError> {
        let place = |job: &LockedJob| {
            let key = job.ordering_key.as_ref()?;
            Some((job.queue.0, hex(key.as_bytes()), job.position))
        };
        let places: Vec<_> = locked.values().filter_map(place).collect();
        if places.is_empty() {
            return Ok(BTreeSet::new());
        }
        let lock = self.statement(caller, include_str!("sql/lock_places.sql")).bind(list(&places)?);
        let taken: BTreeSet<i64> =
            self.read(lock).await?.iter().map(|row| column(row, "id")).collect::<Result<_, _>>()?;
        let places: Vec<_> = locked.values().filter(|job| taken.contains(&job.id)).filter_map(place).collect();
        self.leave_blocked(caller, &places).await?;
        Ok(taken)
    }
}
