//! Ending and moving leases.
//!
//! Each act first finds which of its leases hold, with what it must know of their jobs, then writes by job id. The write
//! lock is held all the while, so what was found stays true.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    time::Duration,
};

use async_trait::async_trait;
use sqlx::sqlite::SqliteRow;

use super::session::{SqliteSession, column, lease_hex, list, narrow, place};
use crate::{
    model::{Backoff, Caller, JobId, NackAction, QueueId, Timestamp},
    store::{
        engine::{
            AckedRow, ExtendRow, ExtendedRow, Held, LeaseRef, LeaseState, LockWait, NackRow, NackedRow, Settling,
        },
        error::EngineError,
    },
};

#[async_trait]
impl Settling for SqliteSession {
    async fn ack(
        &mut self,
        caller: &Caller,
        leases: &[LeaseRef],
        _wait: LockWait,
    ) -> Result<Vec<AckedRow>, EngineError> {
        let now = self.begin(caller).await?;
        let acked = self.ack_held(caller, leases, now).await;
        self.end(caller, now, acked).await
    }

    async fn nack(
        &mut self,
        caller: &Caller,
        items: &[NackRow],
        _wait: LockWait,
    ) -> Result<Vec<NackedRow>, EngineError> {
        let now = self.begin(caller).await?;
        let nacked = self.nack_held(caller, items, now).await;
        self.end(caller, now, nacked).await
    }

    async fn extend(&mut self, caller: &Caller, items: &[ExtendRow]) -> Result<Vec<ExtendedRow>, EngineError> {
        let now = self.begin(caller).await?;
        let extended = self.extend_held(caller, items, now).await;
        self.end(caller, now, extended).await
    }

    async fn inspect(&mut self, caller: &Caller, leases: &[LeaseRef]) -> Result<Vec<LeaseState>, EngineError> {
        let lost = LeaseState { holds: false, remaining: Duration::ZERO, cancel_requested: false };
        let mut states = vec![lost; leases.len()];
        let now = self.shared.clock.now();
        for found in self.find_held(caller, leases).await? {
            states[found.n] =
                LeaseState { holds: true, remaining: found.until.since(now), cancel_requested: found.cancel_requested };
        }
        Ok(states)
    }
}

/// A lease that holds, and its job.
pub(super) struct HeldLease {
    /// Its place among those asked for.
    pub(super) n: usize,
    pub(super) job: JobId,
    queue: QueueId,
    ordering_key: Option<String>,
    attempt: u32,
    max_attempts: u32,
    until: Timestamp,
    /// Microseconds.
    granted_for: i64,
    cancel_requested: bool,
    backoff: Backoff,
}

/// The ordering key of a job that is gone from it.
pub(super) type FreedKey = (QueueId, String);

/// How a job goes on living after a lease: its id, when it is ready, whether the attempt counts, and the error to keep:
/// none for the one that it has, an empty one for nothing.
pub(super) type Return<'a> = (i64, i64, bool, Option<&'a str>);

/// A job to be buried, with the error to keep, as in [`Return`].
pub(super) type Burial<'a> = (i64, Option<&'a str>);

impl SqliteSession {
    async fn ack_held(
        &mut self,
        caller: &Caller,
        leases: &[LeaseRef],
        now: Timestamp,
    ) -> Result<Vec<AckedRow>, EngineError> {
        let held = self.held(caller, leases).await?;
        let jobs: Vec<i64> = held.iter().map(|lease| lease.job.0).collect();
        self.remove(caller, &jobs).await?;
        let freed: Vec<FreedKey> = held.iter().filter_map(HeldLease::key).collect();
        let readied = self.advance(caller, &freed, now).await?;

        let mut answers: Vec<AckedRow> = self
            .missed(caller, leases, &held)
            .await?
            .into_iter()
            .map(|held| AckedRow { held, readied: None })
            .collect();
        for lease in held {
            let next = lease.key().filter(|key| readied.contains(key));
            answers[lease.n] = AckedRow { held: Held::Ok, readied: next.map(|(queue, _)| queue) };
        }
        Ok(answers)
    }

    async fn nack_held(
        &mut self,
        caller: &Caller,
        items: &[NackRow],
        now: Timestamp,
    ) -> Result<Vec<NackedRow>, EngineError> {
        let leases: Vec<LeaseRef> = items.iter().map(|item| item.lease).collect();
        let held = self.held(caller, &leases).await?;
        let mut returns: Vec<Return> = Vec::new();
        let mut burials: Vec<Burial> = Vec::new();
        let mut freed = Vec::new();
        let mut ready = HashMap::new();
        for lease in &held {
            let item = &items[lease.n];
            if lease.dies(item.action) {
                burials.push((lease.job.0, Some(&item.error)));
                freed.extend(lease.key());
                continue;
            }
            let counted = item.action == NackAction::Retry;
            let delay = match item.delay {
                Some(delay) => delay,
                None if counted => lease.backoff.delay(lease.attempt, item.jitter),
                None => Duration::ZERO,
            };
            let ready_at = now.plus(delay);
            // A release is no failure: it takes nothing away from what the last one said.
            let error = (counted || !item.error.is_empty()).then_some(item.error.as_str());
            returns.push((lease.job.0, ready_at.0, counted, error));
            ready.insert(lease.n, ready_at);
        }
        self.return_jobs(caller, &returns).await?;
        self.bury(caller, &burials, now).await?;
        let readied = self.advance(caller, &freed, now).await?;

        let missed = self.missed(caller, &leases, &held).await?;
        let mut answers: Vec<NackedRow> = missed
            .into_iter()
            .map(|held| NackedRow { held, dead: false, ready_at: None, ready_in: None, readied: None })
            .collect();
        for lease in held {
            let ready_at = ready.get(&lease.n).copied();
            let next = lease.key().filter(|key| readied.contains(key)).map(|(queue, _)| queue);
            answers[lease.n] = NackedRow {
                held: Held::Ok,
                dead: ready_at.is_none(),
                ready_at,
                ready_in: ready_at.map(|at| at.since(now)),
                readied: ready_at.map(|_| lease.queue).or(next),
            };
        }
        Ok(answers)
    }

    async fn extend_held(
        &mut self,
        caller: &Caller,
        items: &[ExtendRow],
        now: Timestamp,
    ) -> Result<Vec<ExtendedRow>, EngineError> {
        let leases: Vec<LeaseRef> = items.iter().map(|item| item.lease).collect();
        let held = self.find_held(caller, &leases).await?;
        // A lease that comes twice ends at the later of its two ends, as if asked for one after the other.
        let mut ends: HashMap<JobId, Timestamp> = HashMap::new();
        for lease in &held {
            let asked =
                items[lease.n].duration.map_or(Timestamp(now.0.saturating_add(lease.granted_for)), |d| now.plus(d));
            let end = ends.entry(lease.job).or_insert(lease.until);
            *end = asked.max(*end);
        }
        if !ends.is_empty() {
            let ends: Vec<(i64, i64)> = ends.iter().map(|(job, end)| (job.0, end.0)).collect();
            let update = self.statement(caller, include_str!("sql/extend.sql")).bind(list(&ends)?);
            self.change(update).await?;
        }
        let mut answers: Vec<ExtendedRow> = self
            .missed(caller, &leases, &held)
            .await?
            .into_iter()
            .map(|held| ExtendedRow { held, expires_at: None, remaining: Duration::ZERO, cancel_requested: false })
            .collect();
        for lease in held {
            let end = ends[&lease.job];
            answers[lease.n] = ExtendedRow {
                held: Held::Ok,
                expires_at: Some(end),
                remaining: end.since(now),
                cancel_requested: lease.cancel_requested,
            };
        }
        Ok(answers)
    }

    /// Those leases that hold. One that is asked for twice is found once, where it comes first: the act on it ends it.
    pub(super) async fn held(&mut self, caller: &Caller, leases: &[LeaseRef]) -> Result<Vec<HeldLease>, EngineError> {
        let mut held = self.find_held(caller, leases).await?;
        held.sort_unstable_by_key(|lease| lease.n);
        let mut seen = HashSet::new();
        held.retain(|lease| seen.insert(lease.job));
        Ok(held)
    }

    async fn find_held(&mut self, caller: &Caller, leases: &[LeaseRef]) -> Result<Vec<HeldLease>, EngineError> {
        let refs: Vec<(i64, String)> = leases.iter().map(|lease| (lease.job.0, lease_hex(lease.lease))).collect();
        let find = self.statement(caller, include_str!("sql/held.sql")).bind(list(&refs)?);
        self.read(find).await?.iter().map(|row| HeldLease::from_row(row, leases.len())).collect()
    }

    /// What to answer about jobs whose leases do not hold (and, to no effect, about the others): lost where the job lives
    /// under another lease, waits or is dead, gone where there is none.
    async fn missed(
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

    /// Takes the leases off jobs that live on.
    pub(super) async fn return_jobs(&mut self, caller: &Caller, returns: &[Return<'_>]) -> Result<(), EngineError> {
        if !returns.is_empty() {
            let update = self.statement(caller, include_str!("sql/return.sql")).bind(list(returns)?);
            self.change(update).await?;
        }
        Ok(())
    }

    /// Moves jobs to the dead ones.
    pub(super) async fn bury(
        &mut self,
        caller: &Caller,
        burials: &[Burial<'_>],
        now: Timestamp,
    ) -> Result<(), EngineError> {
        if burials.is_empty() {
            return Ok(());
        }
        let copy = self.statement(caller, include_str!("sql/bury.sql")).bind(list(burials)?).bind(now.0);
        let copied = self.change(copy).await?;
        let jobs: Vec<i64> = burials.iter().map(|(job, _)| *job).collect();
        let removed = self.remove(caller, &jobs).await?;
        if copied == removed {
            Ok(())
        } else {
            Err(EngineError::Bug(format!("{copied} jobs died and {removed} were removed")))
        }
    }

    async fn remove(&mut self, caller: &Caller, jobs: &[i64]) -> Result<u64, EngineError> {
        if jobs.is_empty() {
            return Ok(0);
        }
        let delete = self.statement(caller, include_str!("sql/remove.sql")).bind(list(jobs)?);
        self.change(delete).await
    }

    /// Makes the next job of each freed key ready. Says which keys had one.
    pub(super) async fn advance(
        &mut self,
        caller: &Caller,
        freed: &[FreedKey],
        now: Timestamp,
    ) -> Result<BTreeSet<FreedKey>, EngineError> {
        if freed.is_empty() {
            return Ok(BTreeSet::new());
        }
        let keys: Vec<(i32, &str)> = freed.iter().map(|(queue, key)| (queue.0, key.as_str())).collect();
        let update = self.statement(caller, include_str!("sql/advance.sql")).bind(list(&keys)?).bind(now.0);
        let rows = self.change_returning(update).await?;
        rows.iter().map(|row| Ok((QueueId(narrow(row, "queue_id")?), column(row, "ordering_key")?))).collect()
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
        })
    }

    fn key(&self) -> Option<FreedKey> {
        self.ordering_key.clone().map(|key| (self.queue, key))
    }

    fn dies(&self, action: NackAction) -> bool {
        match action {
            NackAction::Reject => true,
            NackAction::Retry => self.attempt >= self.max_attempts,
            NackAction::Release => false,
        }
    }
}
