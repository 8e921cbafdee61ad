//! Changing what becomes of jobs, at an operator's wish.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;

use super::{
    dead::{dead_places, passes},
    held::{HeldLease, LockedJob},
    keys::OrderingKey,
    maintain::Ended,
    session::MysqlSession,
    value::{Maybe, column, list, moment, name, narrow},
};
use crate::{
    model::{Caller, JobId, QueueId, StreamId, Timestamp},
    store::{
        engine::{Cancelled, CancelledJobs, DeadJobs, DeadPlace, RedriveStep, Redriven, RunNow, Steering},
        error::EngineError,
    },
};

#[async_trait]
impl Steering for MysqlSession {
    async fn cancel(&mut self, caller: &Caller, jobs: &[JobId]) -> Result<CancelledJobs, EngineError> {
        self.begin(caller).await?;
        let cancelled = self.cancel_all(caller, jobs).await;
        self.end(caller, cancelled).await
    }

    async fn run_now(&mut self, caller: &Caller, job: JobId) -> Result<RunNow, EngineError> {
        let now = self.begin(caller).await?;
        let run = self.make_due(caller, job, now).await;
        self.end(caller, run).await
    }

    async fn redrive(&mut self, caller: &Caller, step: &RedriveStep) -> Result<Redriven, EngineError> {
        let now = self.begin(caller).await?;
        let redriven = self.redrive_step(caller, step, now).await;
        self.end(caller, redriven).await
    }
}

impl MysqlSession {
    /// Keys before jobs, other than where leases end: those acts come upon one job of a key at a time, this one may hold the
    /// next one of a key as it waits for another's row. Jobs are not waited for, so nothing waits in a circle.
    async fn cancel_all(&mut self, caller: &Caller, jobs: &[JobId]) -> Result<CancelledJobs, EngineError> {
        let ids: BTreeSet<i64> = jobs.iter().map(|job| job.0).collect();
        let find = self.statement(caller, include_str!("sql/find_keys.sql")).bind(list(&ids)?);
        let mut keys: BTreeSet<OrderingKey> = BTreeSet::new();
        for row in self.read(find).await? {
            let queue = QueueId(narrow(&row, "queue_id")?);
            keys.extend(name(&row, "ordering_key")?.map(|key| (queue, key)));
        }
        if !keys.is_empty() {
            self.take_keys(caller, &keys, 0).await?;
        }
        let locked = self.lock_jobs(caller, &ids).await?;
        self.take_turns(caller, &locked).await?;
        self.take_places(caller, &locked).await?;
        // What is leased now stays so: a claim that was under way has ended, and whoever settles waits for the job.
        let leased: BTreeMap<i64, HeldLease> =
            self.leases_of(caller, &locked).await?.into_values().map(|lease| (lease.job.0, lease)).collect();
        self.request_cancel(caller, &leased).await?;
        let gone: Vec<i64> = locked.keys().copied().filter(|job| !leased.contains_key(job)).collect();
        self.remove_jobs(caller, &gone).await?;

        let unlocked: Vec<i64> = ids.iter().copied().filter(|job| !locked.contains_key(job)).collect();
        let busy = self.existing(caller, &unlocked).await?;
        let answers = jobs.iter().map(|JobId(job)| match (leased.get(job), locked.contains_key(job)) {
            (Some(lease), _) => Cancelled::Requested(lease.stream.map(StreamId::from_bits)),
            (None, true) => Cancelled::Removed,
            (None, false) if busy.contains(job) => Cancelled::Busy,
            (None, false) => Cancelled::Gone,
        });
        let answers = answers.collect();
        // Keys that were taken and that nothing was removed from are looked at as well: their rows may be new.
        let readied: BTreeSet<QueueId> =
            self.advance(caller, keys).await?.into_iter().map(|(queue, _)| queue).collect();
        Ok(CancelledJobs { jobs: answers, readied: readied.into_iter().collect() })
    }

    async fn request_cancel(&mut self, caller: &Caller, leased: &BTreeMap<i64, HeldLease>) -> Result<(), EngineError> {
        if leased.is_empty() {
            return Ok(());
        }
        let jobs: Vec<i64> = leased.keys().copied().collect();
        let request = self.statement(caller, include_str!("sql/request_cancel.sql")).bind(list(&jobs)?);
        self.change(request).await?;
        let told: Vec<(i64, i64, u32)> = leased
            .iter()
            .filter_map(|(job, lease)| lease.stream.map(|stream| (stream, *job, StreamId::from_bits(stream).replica.0)))
            .collect();
        let note = self.statement(caller, include_str!("sql/note_cancellations.sql")).bind(list(&told)?);
        self.change(note).await.map(drop)
    }

    /// Those of the jobs that are there.
    async fn existing(&mut self, caller: &Caller, jobs: &[i64]) -> Result<BTreeSet<i64>, EngineError> {
        if jobs.is_empty() {
            return Ok(BTreeSet::new());
        }
        let asked: Vec<(usize, i64)> = jobs.iter().copied().enumerate().collect();
        let find = self.statement(caller, include_str!("sql/misses.sql")).bind(list(&asked)?);
        let mut there = BTreeSet::new();
        for row in self.read(find).await? {
            there.extend(column::<Option<i64>>(&row, "live")?);
        }
        Ok(there)
    }

    async fn make_due(&mut self, caller: &Caller, job: JobId, now: Timestamp) -> Result<RunNow, EngineError> {
        let locked = self.lock_jobs(caller, &BTreeSet::from([job.0])).await?;
        let Some(held) = locked.get(&job.0) else {
            let there = !self.existing(caller, &[job.0]).await?.is_empty();
            return Ok(if there { RunNow::Busy } else { RunNow::Gone });
        };
        let due = self.statement(caller, include_str!("sql/make_due.sql")).bind(now.0);
        if held.ready_at > now
            && let Some((_, turn)) = self.take_turns(caller, &locked).await?.first()
        {
            let (queue, tier, _, id) = held.place();
            let row = [(id, queue, tier, now.0, turn.attempt, turn.lease_number)];
            let ready = self.statement(caller, include_str!("sql/make_ready.sql")).bind(list(&row)?);
            self.change(ready).await?;
            self.change(due.bind(now.0).bind(job.0)).await?;
            return Ok(RunNow::Readied(held.queue));
        }
        if self.is_waiting_for_its_key(caller, held).await? {
            self.change(due.bind(now.0).bind(job.0)).await?;
            return Ok(RunNow::Blocked);
        }
        Ok(RunNow::Unchanged)
    }

    /// Neither leased nor among the ready ones: behind its key, or not adopted yet.
    async fn is_waiting_for_its_key(&mut self, caller: &Caller, job: &LockedJob) -> Result<bool, EngineError> {
        let lock = self.statement(caller, include_str!("sql/lock_ready.sql")).bind(list(&[job.place()])?);
        if !self.read(lock).await?.is_empty() {
            return Ok(false);
        }
        let locked = BTreeMap::from([(job.id, job.clone())]);
        Ok(self.leases_of(caller, &locked).await?.is_empty())
    }

    async fn redrive_step(
        &mut self,
        caller: &Caller,
        step: &RedriveStep,
        now: Timestamp,
    ) -> Result<Redriven, EngineError> {
        let (ids, until, next) = match &step.which {
            DeadJobs::Ids(jobs) => {
                let ids: Vec<i64> = jobs.iter().take(step.limit).map(|job| job.0).collect();
                let open = self.statement(caller, include_str!("sql/open_dead.sql")).bind(list(&ids)?);
                let found = self.read(open).await?;
                (found.iter().map(|row| column(row, "id")).collect::<Result<Vec<i64>, _>>()?, now, None)
            }
            which @ DeadJobs::OfQueue { until, .. } => {
                let until = until.unwrap_or(now);
                let (ids, next) = self.find_dead(caller, which, until, step.limit).await?;
                (ids, until, next)
            }
        };
        let (jobs, readied) = self.revive(caller, &ids, now).await?;
        Ok(Redriven { jobs, readied, until, next })
    }

    /// Those that pass, at most so many, and the place behind which to go on.
    async fn find_dead(
        &mut self,
        caller: &Caller,
        which: &DeadJobs,
        until: Timestamp,
        limit: usize,
    ) -> Result<(Vec<i64>, Option<DeadPlace>), EngineError> {
        let DeadJobs::OfQueue { queue, filter, after, rows, .. } = which else {
            return Ok((Vec::new(), None));
        };
        let open = self.statement(caller, include_str!("sql/open_queue.sql")).bind(queue.0);
        if self.read(open).await?.is_empty() {
            return Err(EngineError::QueueClosed);
        }
        let walk = self.walk_dead_up(caller, *queue, filter, (*after, until), *rows);
        let walked = self.read(walk).await?;
        let places = dead_places(&walked)?;
        let mut picked = Vec::new();
        for (row, place) in walked.iter().zip(&places) {
            if passes(row, filter)? {
                picked.push(place.job.0);
                if picked.len() == limit {
                    return Ok((picked, Some(*place)));
                }
            }
        }
        let next = if walked.len() >= *rows { places.last().copied() } else { None };
        Ok((picked, next))
    }

    /// Makes dead jobs live again that nobody holds; those with ordering keys stand behind all that are there. Which, and in
    /// which queues one became ready.
    async fn revive(
        &mut self,
        caller: &Caller,
        jobs: &[i64],
        now: Timestamp,
    ) -> Result<(Vec<JobId>, Vec<QueueId>), EngineError> {
        let locked = self.lock_ended(caller, Ended::Dead, jobs).await?;
        if locked.is_empty() {
            return Ok((Vec::new(), Vec::new()));
        }
        let read = self.statement(caller, include_str!("sql/read_dead.sql")).bind(list(&locked)?);
        let mut keyed = Vec::new();
        let mut plain = Vec::new();
        let mut order = Vec::new();
        let mut readied = BTreeSet::new();
        let mut keys: BTreeSet<OrderingKey> = BTreeSet::new();
        for row in self.read(read).await? {
            let (id, queue): (i64, _) = (column(&row, "id")?, QueueId(narrow(&row, "queue_id")?));
            order.push((moment(&row, "dead_at")?, id));
            if let Some(key) = name(&row, "ordering_key")? {
                keyed.push(id);
                keys.insert((queue, key));
            } else {
                plain.push(id);
                readied.insert(queue);
            }
        }
        let places: Vec<(i64, i64)> = keyed.iter().copied().zip(self.draw_ids(caller, keyed.len()).await?).collect();
        let all: Vec<(i64, Maybe<i64>)> = places
            .iter()
            .map(|(job, place)| (*job, Maybe(Some(*place))))
            .chain(plain.iter().map(|job| (*job, Maybe(None))))
            .collect();
        let live = self.statement(caller, include_str!("sql/revive.sql")).bind(now.0).bind(list(&all)?);
        self.change(live).await?;
        if !plain.is_empty() {
            let ready = self.statement(caller, include_str!("sql/revive_ready.sql")).bind(now.0).bind(list(&plain)?);
            self.change(ready).await?;
        }
        if !places.is_empty() {
            let block = self.statement(caller, include_str!("sql/revive_blocked.sql")).bind(list(&places)?);
            self.change(block).await?;
        }
        self.remove_locked(caller, Ended::Dead, &locked).await?;
        readied.extend(self.advance(caller, keys).await?.into_iter().map(|(queue, _)| queue));
        Ok((order.into_iter().map(|(_, id)| JobId(id)).collect(), readied.into_iter().collect()))
    }
}
