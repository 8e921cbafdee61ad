//! Storing jobs.
//!
//! Keys are locked before anything is decided about them: idempotency keys first, then ordering keys, each in the order of
//! queue and key. What is new gets its id from the insert.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    keys::{KeyState, NEW, OrderingKey},
    record::tier,
    repeated::ENQUEUE_JOBS,
    session::{MysqlSession, only},
    value::{column, list, place},
};
use crate::{
    model::{Caller, JobId, Key, NewJob, QueueId, Start, Timestamp, time::micros},
    store::{
        engine::{EnqueuedRow, Enqueueing, JobRow, LockWait},
        error::EngineError,
        hex::hex,
    },
};
use async_trait::async_trait;

#[async_trait]
impl Enqueueing for MysqlSession {
    async fn enqueue(
        &mut self,
        caller: &Caller,
        jobs: &[JobRow],
        wait: LockWait,
    ) -> Result<Vec<EnqueuedRow>, EngineError> {
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        let now = self.begin_with(caller, wait).await?;
        let stored = self.store(caller, jobs, now).await;
        self.end(caller, stored).await
    }
}

/// What is known of an idempotency key once it is locked: the job, or nothing where the key is new.
type Known = Option<JobId>;

type KeyName = (QueueId, String);

impl MysqlSession {
    /// Stores the jobs in the open transaction.
    pub(super) async fn store(
        &mut self,
        caller: &Caller,
        jobs: &[JobRow],
        mut now: Timestamp,
    ) -> Result<Vec<EnqueuedRow>, EngineError> {
        let known = self.take_names(caller, jobs).await?;
        // The first mention of a new key is the job, all others are duplicates.
        let mut firsts = BTreeSet::new();
        let fresh: Vec<usize> = (0..jobs.len())
            .filter(|&index| match name_of(&jobs[index]) {
                Some(name) => known.get(&name).is_some_and(Option::is_none) && firsts.insert(name),
                None => true,
            })
            .collect();
        let keys: BTreeSet<OrderingKey> = fresh.iter().filter_map(|&index| key_of(&jobs[index])).collect();
        let mut states = BTreeMap::new();
        if !keys.is_empty() {
            self.place_strays(caller, &keys).await?;
            let taken = self.take_keys(caller, &keys, NEW).await?;
            // After the locks, so that a job that waited for its key does not become ready in the past.
            now = taken.iter().map(|state| state.now).fold(now, Timestamp::max);
            states = keys.into_iter().zip(taken).collect();
        }
        // Last, so that no time passes between this and the jobs, which whoever removes a queue looks for.
        self.see_that_queues_are_open(caller, jobs).await?;
        let ids = self.insert_jobs(caller, jobs, &fresh, now).await?;
        let mut answers = self.turns(caller, jobs, &ids, states, now).await?;
        self.name_jobs(caller, jobs, &known, &ids).await?;
        let mut named: BTreeMap<KeyName, JobId> =
            known.into_iter().filter_map(|(name, job)| job.map(|job| (name, job))).collect();
        named.extend(ids.iter().filter_map(|(&index, &id)| name_of(&jobs[index]).map(|name| (name, JobId(id)))));
        jobs.iter()
            .enumerate()
            .map(|(index, row)| {
                if let Some(answer) = answers.remove(&index) {
                    return Ok(answer);
                }
                let job = name_of(row).and_then(|name| named.get(&name).copied());
                let job = job.ok_or_else(|| EngineError::Bug("a duplicate of no job".into()))?;
                Ok(EnqueuedRow { job, duplicate: true, ready_in: None })
            })
            .collect()
    }

    async fn see_that_queues_are_open(&mut self, caller: &Caller, jobs: &[JobRow]) -> Result<(), EngineError> {
        let queues: BTreeSet<i32> = jobs.iter().map(|row| row.queue.0).collect();
        let look = self.statement(caller, include_str!("sql/open_queues.sql")).bind(list(&queues)?);
        let open: i64 = column(&only(self.read(look).await?)?, "open")?;
        if usize::try_from(open) == Ok(queues.len()) { Ok(()) } else { Err(EngineError::QueueClosed) }
    }

    /// Takes the batch's idempotency keys, waiting for others who do, and writes how often each came again.
    async fn take_names(&mut self, caller: &Caller, jobs: &[JobRow]) -> Result<BTreeMap<KeyName, Known>, EngineError> {
        let mut mentions: BTreeMap<KeyName, Vec<usize>> = BTreeMap::new();
        for (index, row) in jobs.iter().enumerate() {
            if let Some(name) = name_of(row) {
                mentions.entry(name).or_default().push(index);
            }
        }
        if mentions.is_empty() {
            return Ok(BTreeMap::new());
        }
        let rows: Vec<_> = mentions
            .iter()
            .map(|((queue, key), at)| {
                let content = hex(&jobs[at[0]].job.content_hash());
                (queue.0, hex(key.as_bytes()), content, at.len() - 1, micros(jobs[at[0]].idempotency_retention))
            })
            .collect();
        let take = self.statement(caller, include_str!("sql/remember.sql")).bind(list(&rows)?);
        self.change(take).await?;
        let places: Vec<_> = rows.iter().enumerate().map(|(n, row)| (n, row.0, &row.1)).collect();
        let read = self.statement(caller, include_str!("sql/known.sql")).bind(list(&places)?);
        let names: Vec<(KeyName, Vec<usize>)> = mentions.into_iter().collect();
        let mut known = BTreeMap::new();
        let mut reused: Option<usize> = None;
        for row in self.read(read).await? {
            let (name, at) = &names[place(&row, names.len())?];
            let content: Vec<u8> = column(&row, "content")?;
            let other = at.iter().copied().find(|&index| jobs[index].job.content_hash() != *content);
            reused = reused.into_iter().chain(other).min();
            let job: i64 = column(&row, "job_id")?;
            known.insert(name.clone(), (job != 0).then_some(JobId(job)));
        }
        match reused {
            Some(index) => Err(EngineError::KeyReused { index }),
            None if known.len() == names.len() => Ok(known),
            None => Err(EngineError::Bug("an idempotency key that was taken is not there".into())),
        }
    }

    /// Stores the jobs at these places; their ids by place, rising with it.
    async fn insert_jobs(
        &mut self,
        caller: &Caller,
        jobs: &[JobRow],
        places: &[usize],
        now: Timestamp,
    ) -> Result<BTreeMap<usize, i64>, EngineError> {
        let mut ids = BTreeMap::new();
        let mut rest = places;
        let limit = self.fitness.statement_bytes;
        while !rest.is_empty() {
            let fits = |size: usize| {
                rest.get(..size)
                    .is_some_and(|these| these.iter().map(|&index| jobs[index].job.weight()).sum::<usize>() <= limit)
            };
            let (size, sql) = ENQUEUE_JOBS.largest(fits);
            let (these, others) = rest.split_at(size);
            let mut insert = self.statement(caller, sql);
            for &index in these {
                let JobRow { job, queue, max_attempts, .. } = &jobs[index];
                insert = insert
                    .bind(queue.0)
                    .bind(job.priority.level())
                    .bind(*max_attempts)
                    .bind(now.0)
                    .bind(available_at(job, now).0)
                    .bind(available_at(job, now).max(now).0)
                    .bind(i64::try_from(job.payload.len()).unwrap_or(i64::MAX))
                    .bind(job.ordering_key.as_ref().map(|key| key.as_str().as_bytes().to_vec()))
                    .bind(job.idempotency_key.as_ref().map(|key| key.as_str().as_bytes().to_vec()))
                    .bind(caller.as_str().to_owned())
                    .bind(job.content_type.clone())
                    .bind(job.trace.as_ref().map(|trace| trace.traceparent.clone()))
                    .bind(job.trace.as_ref().map(|trace| trace.tracestate.clone()).filter(|state| !state.is_empty()))
                    .bind(headers(job)?)
                    .bind(job.payload.to_vec());
            }
            let first = self.insert(insert).await?;
            // Of rows whose number is known beforehand a statement's ids are consecutive, whatever the server's lock mode.
            ids.extend((0_i64..).zip(these).map(|(n, &index)| (index, first + n * self.fitness.id_step)));
            rest = others;
        }
        Ok(ids)
    }

    /// Numbers that no job has had and that are higher than all that jobs have: what a job stored now would get.
    pub(super) async fn draw_ids(&mut self, caller: &Caller, count: usize) -> Result<Vec<i64>, EngineError> {
        let mut ids: Vec<i64> = Vec::with_capacity(count);
        while ids.len() < count {
            let (size, sql) = ENQUEUE_JOBS.largest(|size| size <= count - ids.len());
            let mut insert = self.statement(caller, sql);
            for _ in 0..size {
                insert = insert.bind(0).bind(0).bind(0).bind(0_i64).bind(0_i64).bind(0_i64).bind(0);
                insert = insert.bind(None::<Vec<u8>>).bind(None::<Vec<u8>>).bind(None::<String>).bind("");
                insert = insert.bind(None::<String>).bind(None::<String>).bind(None::<String>).bind(Vec::new());
            }
            let first = self.insert(insert).await?;
            ids.extend((0_i64..).take(size).map(|n| first + n * self.fitness.id_step));
        }
        // The numbers stay used up; the rows were only there for them.
        self.remove_jobs(caller, &ids).await?;
        Ok(ids)
    }

    /// Makes the stored jobs ready, or blocks those that are not their keys' first. Their answers, by place.
    async fn turns(
        &mut self,
        caller: &Caller,
        jobs: &[JobRow],
        ids: &BTreeMap<usize, i64>,
        states: BTreeMap<OrderingKey, KeyState>,
        now: Timestamp,
    ) -> Result<BTreeMap<usize, EnqueuedRow>, EngineError> {
        let mut ready = Vec::new();
        let mut blocked = Vec::new();
        let mut heads: BTreeMap<OrderingKey, i64> = BTreeMap::new();
        let mut undecided = BTreeSet::new();
        let mut answers = BTreeMap::new();
        for (&index, &id) in ids {
            let JobRow { job, queue, .. } = &jobs[index];
            let key = key_of(&jobs[index]);
            let is_first = key.as_ref().is_none_or(|key| {
                let state = &states[key];
                if state.head <= 0 && state.next.is_some() {
                    undecided.insert(key.clone());
                    return false;
                }
                state.head == NEW && *heads.entry(key.clone()).or_insert(id) == id
            });
            let ready_at = available_at(job, now).max(now);
            if is_first {
                ready.push((id, queue.0, tier(job.priority), ready_at.0, 0, 0));
            } else if let Some(key) = &job.ordering_key {
                blocked.push((id, queue.0, hex(key.as_str().as_bytes())));
            }
            let ready_in = is_first.then(|| ready_at.since(now));
            answers.insert(index, EnqueuedRow { job: JobId(id), duplicate: false, ready_in });
        }
        if !ready.is_empty() {
            let make = self.statement(caller, include_str!("sql/make_ready.sql")).bind(list(&ready)?);
            self.change(make).await?;
        }
        if !blocked.is_empty() {
            let block = self.statement(caller, include_str!("sql/block.sql")).bind(list(&blocked)?);
            self.change(block).await?;
        }
        let heads: Vec<_> =
            heads.into_iter().map(|((queue, key), head)| (queue.0, hex(key.as_bytes()), head)).collect();
        self.set_heads(caller, &heads).await?;
        // Jobs of these keys were there already, left by services: the first of all is ready now, and it is not one of ours.
        self.advance(caller, undecided).await?;
        Ok(answers)
    }

    /// Writes the new jobs to their idempotency keys.
    async fn name_jobs(
        &mut self,
        caller: &Caller,
        jobs: &[JobRow],
        known: &BTreeMap<KeyName, Known>,
        ids: &BTreeMap<usize, i64>,
    ) -> Result<(), EngineError> {
        if known.is_empty() {
            return Ok(());
        }
        let rows: Vec<_> = ids
            .iter()
            .filter_map(|(&index, &id)| name_of(&jobs[index]).map(|(queue, key)| (queue.0, hex(key.as_bytes()), id)))
            .collect();
        if rows.is_empty() {
            return Ok(());
        }
        let name = self.statement(caller, include_str!("sql/name_jobs.sql")).bind(list(&rows)?);
        self.change(name).await.map(drop)
    }
}

fn name_of(row: &JobRow) -> Option<KeyName> {
    row.job.idempotency_key.as_ref().map(|key| (row.queue, key.as_str().to_owned()))
}

fn key_of(row: &JobRow) -> Option<OrderingKey> {
    row.job.ordering_key.as_ref().map(|key: &Key| (row.queue, key.as_str().to_owned()))
}

fn available_at(job: &NewJob, now: Timestamp) -> Timestamp {
    match job.start {
        Start::Now => now,
        Start::After(delay) => now.plus(delay),
        Start::At(instant) => instant,
    }
}

/// A JSON object; nothing where there are none, which most jobs have.
pub(super) fn headers(job: &NewJob) -> Result<Option<String>, EngineError> {
    if job.headers.is_empty() { Ok(None) } else { list(&job.headers).map(Some) }
}
