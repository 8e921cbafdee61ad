//! Storing jobs.
//!
//! With the write lock held nobody else comes between a look and an insert, so idempotency keys and the heads of ordering
//! keys are looked up first and decided in Rust. Payloads travel as one byte string that the statement cuts up.

use std::collections::{BTreeSet, HashMap, HashSet, hash_map::Entry};

use async_trait::async_trait;
use serde::Serialize;

use super::session::{SqliteSession, column, list, narrow, place};
use crate::{
    model::{Caller, JobId, Key, NewJob, QueueId, Start, Timestamp},
    store::{
        engine::{EnqueuedRow, Enqueueing, JobRow, LockWait},
        error::EngineError,
        hex::hex,
    },
};

#[async_trait]
impl Enqueueing for SqliteSession {
    async fn enqueue(
        &mut self,
        caller: &Caller,
        jobs: &[JobRow],
        _wait: LockWait,
    ) -> Result<Vec<EnqueuedRow>, EngineError> {
        let now = self.begin(caller).await?;
        let stored = self.store(caller, jobs, now).await;
        self.end(caller, now, stored).await
    }
}

/// A row of the insert, in the order in which the statement names its parts.
#[derive(Serialize)]
struct NewRow<'a>(
    i64,             // id
    i32,             // queue
    u8,              // priority
    i64,             // available_at
    i64,             // ready_at
    Option<&'a str>, // ordering key
    bool,            // blocked
    u16,             // max_attempts
    Option<&'a str>, // idempotency key
    &'a str,         // content type
    Option<String>,  // headers
    Option<&'a str>, // traceparent
    Option<&'a str>, // tracestate
    usize,           // where its payload begins, counted from 1
    usize,           // and how long it is
);

/// An idempotency key and what it stands for.
struct Known {
    job: JobId,
    hash: [u8; 32],
    hits: u32,
    /// Where it was enqueued in this batch; absent where it was known before.
    here: Option<usize>,
}

type KeyName<'a> = (QueueId, &'a Key);

impl SqliteSession {
    /// Stores the jobs in the open transaction.
    pub(super) async fn store(
        &mut self,
        caller: &Caller,
        jobs: &[JobRow],
        now: Timestamp,
    ) -> Result<Vec<EnqueuedRow>, EngineError> {
        let mut last_id = self.last_id(caller, jobs).await?;
        let mut known = self.known_keys(caller, jobs, now).await?;
        let mut held = self.held_keys(caller, jobs).await?;

        let mut answers = Vec::with_capacity(jobs.len());
        let mut rows = Vec::with_capacity(jobs.len());
        let mut payloads = Vec::with_capacity(jobs.iter().map(|row| row.job.payload.len()).sum());
        for (index, JobRow { job, queue, max_attempts, .. }) in jobs.iter().enumerate() {
            let id = last_id.checked_add(1).ok_or_else(|| EngineError::Bug("no more ids".to_owned()))?;
            if let Some(key) = &job.idempotency_key {
                match known.entry((*queue, key)) {
                    Entry::Occupied(mut entry) => {
                        let entry = entry.get_mut();
                        if entry.hash != job.content_hash() {
                            return Err(EngineError::KeyReused { index });
                        }
                        entry.hits += 1;
                        answers.push(EnqueuedRow { job: entry.job, duplicate: true, ready_in: None });
                        continue;
                    }
                    Entry::Vacant(entry) => {
                        let hash = job.content_hash();
                        entry.insert(Known { job: JobId(id), hash, hits: 0, here: Some(index) });
                    }
                }
            }
            last_id = id;
            let blocked = job.ordering_key.as_ref().is_some_and(|key| !held.insert((*queue, key)));
            let available_at = match job.start {
                Start::Now => now,
                Start::After(delay) => now.plus(delay),
                Start::At(instant) => instant,
            };
            let ready_at = available_at.max(now);
            rows.push(NewRow(
                id,
                queue.0,
                job.priority.level(),
                available_at.0,
                ready_at.0,
                job.ordering_key.as_ref().map(Key::as_str),
                blocked,
                *max_attempts,
                job.idempotency_key.as_ref().map(Key::as_str),
                &job.content_type,
                headers(job)?,
                job.trace.as_ref().map(|trace| trace.traceparent.as_str()),
                job.trace.as_ref().map(|trace| trace.tracestate.as_str()),
                payloads.len() + 1,
                job.payload.len(),
            ));
            payloads.extend_from_slice(&job.payload);
            answers.push(EnqueuedRow {
                job: JobId(id),
                duplicate: false,
                ready_in: (!blocked).then(|| ready_at.since(now)),
            });
        }
        if !rows.is_empty() {
            let insert = self.statement(caller, include_str!("sql/enqueue_jobs.sql"));
            self.change(insert.bind(list(&rows)?).bind(payloads).bind(now.0).bind(caller.as_str().to_owned())).await?;
        }
        self.remember(caller, jobs, &known, now).await?;
        Ok(answers)
    }

    /// The highest id ever given to a job; an error where one of the batch's queues takes no jobs.
    async fn last_id(&mut self, caller: &Caller, jobs: &[JobRow]) -> Result<i64, EngineError> {
        let queues: BTreeSet<i32> = jobs.iter().map(|row| row.queue.0).collect();
        let look = self.statement(caller, include_str!("sql/enqueue_begin.sql")).bind(list(&queues)?);
        let rows = self.read(look).await?;
        let row = rows.first().ok_or_else(|| EngineError::Bug("no answer about the queues".to_owned()))?;
        if narrow::<usize>(row, "open")? < queues.len() {
            return Err(EngineError::QueueClosed);
        }
        Ok(column::<Option<i64>>(row, "last_id")?.unwrap_or(0))
    }

    /// The batch's idempotency keys that are known and not expired.
    async fn known_keys<'a>(
        &mut self,
        caller: &Caller,
        jobs: &'a [JobRow],
        now: Timestamp,
    ) -> Result<HashMap<KeyName<'a>, Known>, EngineError> {
        let keys: Vec<KeyName<'a>> =
            jobs.iter().filter_map(|row| row.job.idempotency_key.as_ref().map(|key| (row.queue, key))).collect();
        let mut known = HashMap::new();
        if keys.is_empty() {
            return Ok(known);
        }
        let names: Vec<(i32, &str)> = keys.iter().map(|(queue, key)| (queue.0, key.as_str())).collect();
        let look = self.statement(caller, include_str!("sql/enqueue_known.sql")).bind(list(&names)?).bind(now.0);
        for row in self.read(look).await? {
            let hash: Vec<u8> = column(&row, "content")?;
            let hash = hash.try_into().map_err(|_| EngineError::Bug("a content hash of another length".to_owned()))?;
            let job = JobId(column(&row, "job_id")?);
            known.insert(keys[place(&row, keys.len())?], Known { job, hash, hits: 0, here: None });
        }
        Ok(known)
    }

    /// The batch's ordering keys under which a job is stored.
    async fn held_keys<'a>(
        &mut self,
        caller: &Caller,
        jobs: &'a [JobRow],
    ) -> Result<HashSet<KeyName<'a>>, EngineError> {
        let keys: BTreeSet<KeyName<'a>> =
            jobs.iter().filter_map(|row| row.job.ordering_key.as_ref().map(|key| (row.queue, key))).collect();
        let keys: Vec<KeyName<'a>> = keys.into_iter().collect();
        if keys.is_empty() {
            return Ok(HashSet::new());
        }
        let names: Vec<(i32, &str)> = keys.iter().map(|(queue, key)| (queue.0, key.as_str())).collect();
        let look = self.statement(caller, include_str!("sql/enqueue_held.sql")).bind(list(&names)?);
        self.read(look).await?.iter().map(|row| Ok(keys[place(row, keys.len())?])).collect()
    }

    /// Writes the batch's new idempotency keys, and each duplicate to the hits of its key: an answer of "duplicate" is as
    /// durable as the first one.
    async fn remember(
        &mut self,
        caller: &Caller,
        jobs: &[JobRow],
        known: &HashMap<KeyName<'_>, Known>,
        now: Timestamp,
    ) -> Result<(), EngineError> {
        let mut new = Vec::new();
        let mut hit = Vec::new();
        for ((queue, key), known) in known {
            if let Some(index) = known.here {
                let content = hex(&known.hash);
                let expires_at = now.plus(jobs[index].idempotency_retention);
                new.push((queue.0, key.as_str(), known.job.0, content, known.hits, expires_at.0));
            } else if known.hits > 0 {
                hit.push((queue.0, key.as_str(), known.hits));
            }
        }
        if !new.is_empty() {
            let insert = self.statement(caller, include_str!("sql/enqueue_remember.sql"));
            self.change(insert.bind(list(&new)?)).await?;
        }
        if !hit.is_empty() {
            let update = self.statement(caller, include_str!("sql/enqueue_hits.sql"));
            self.change(update.bind(list(&hit)?)).await?;
        }
        Ok(())
    }
}

pub(super) fn headers(job: &NewJob) -> Result<Option<String>, EngineError> {
    if job.headers.is_empty() { Ok(None) } else { list(&job.headers).map(Some) }
}
