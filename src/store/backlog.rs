//! Bounds on what may wait in a queue.
//!
//! A bound is checked against a count from the database that is at most a second old, plus what this replica admitted since.
//! It can be passed by what other replicas admit within that second; it is a brake, not an invariant.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use tokio::{sync::Mutex as AsyncMutex, time::timeout_at};

use super::{
    Call, Store,
    engine::{Backlog, JobRow, QueueRow},
    statement::Statement,
};
use crate::model::{Caller, Failure, QueueId, Reason};

/// Counting takes at most this part of the time.
const COUNTING_SHARE: u32 = 20;

/// Counts of the bounded queues, each behind a lock of its own: a queue that takes long to count keeps no other waiting.
#[derive(Default)]
pub(super) struct Backlogs {
    counts: Mutex<HashMap<QueueId, Slot>>,
}

type Slot = Arc<AsyncMutex<Option<Count>>>;

#[derive(Debug, Clone, Copy)]
struct Count {
    backlog: Backlog,
    fresh_until: Instant,
}

/// Whether the queue has a bound.
pub(super) fn is_bounded(queue: &QueueRow) -> bool {
    queue.settings.max_backlog_jobs.is_some() || queue.settings.max_backlog_bytes.is_some()
}

/// Jobs and payload bytes that `rows` add to each queue.
pub(super) fn additions(rows: &[JobRow]) -> Vec<(QueueId, u64, u64)> {
    let mut sums: Vec<(QueueId, u64, u64)> = Vec::new();
    for row in rows {
        let bytes = row.job.payload.len() as u64;
        match sums.iter_mut().find(|(queue, ..)| *queue == row.queue) {
            Some((_, jobs, sum)) => {
                *jobs += 1;
                *sum += bytes;
            }
            None => sums.push((row.queue, 1, bytes)),
        }
    }
    sums
}

impl Backlogs {
    fn slot(&self, queue: QueueId) -> Slot {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(counts.entry(queue).or_default())
    }

    /// The queue is gone.
    pub(super) fn forget(&self, queue: QueueId) {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).remove(&queue);
    }

    /// Admits the addition or answers `QUEUE_FULL`. One asker counts, the others wait for its count.
    pub(super) async fn admit(
        &self,
        store: &Store,
        call: &Call,
        queue: &QueueRow,
        jobs: u64,
        bytes: u64,
    ) -> Result<(), Failure> {
        let slot = self.slot(queue.id);
        // As long as a request waits for a lane: in an outage they would else fail one after the other.
        let give_up = call.deadline.min(Instant::now() + store.inner.options.acquire_timeout);
        let mut counted = timeout_at(give_up.into(), slot.lock()).await.map_err(|_| store.not_in_time(call))?;
        let mut count = match counted.filter(|count| Instant::now() < count.fresh_until) {
            Some(count) => count,
            None => measure(store, call, queue).await?,
        };
        let next = Backlog { jobs: count.backlog.jobs + jobs, bytes: count.backlog.bytes + bytes };
        let over = |bound: Option<u64>, value: u64| bound.is_some_and(|bound| value > bound);
        let full =
            over(queue.settings.max_backlog_jobs, next.jobs) || over(queue.settings.max_backlog_bytes, next.bytes);
        if !full {
            count.backlog = next;
        }
        *counted = Some(count);
        if full {
            let message =
                format!("queue '{}' holds as much as it may; try again when its workers have caught up", queue.name);
            return Err(Failure::not_applied(Reason::QueueFull, message).about(queue.name.as_str()));
        }
        Ok(())
    }
}

async fn measure(store: &Store, call: &Call, queue: &QueueRow) -> Result<Count, Failure> {
    let caller = Caller::broker("backlog");
    let counting = Call { caller: caller.clone(), deadline: call.deadline };
    let (id, most) = (queue.id, queue.settings.max_backlog_jobs.map_or(u64::MAX, |bound| bound.saturating_add(1)));
    let started = Instant::now();
    let backlog = store
        .single(&counting, Statement::reading("measure_backlog"), move |session| {
            Box::pin(async move { session.measure_backlog(&caller, id, most).await })
        })
        .await?;
    let fresh_for = Duration::from_secs(1).max(started.elapsed() * COUNTING_SHARE);
    Ok(Count { backlog, fresh_until: Instant::now() + fresh_for })
}
