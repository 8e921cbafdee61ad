//! Producers: they enqueue as fast as answers come.

use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use tokio::task::JoinSet;

use super::{
    BenchError,
    clients::{Client, Clients},
    figures::Times,
    shape::{Shape, index},
    stamp::Stamp,
    tally::Tally,
};
use crate::v1::{EnqueueRequest, NewJob};

/// What jobs look like.
#[derive(Debug)]
pub(super) struct Jobs {
    pub(super) shape: Shape,
    /// Names of the queues.
    pub(super) queues: Vec<String>,
    /// When the measurement began.
    pub(super) began: Instant,
    pub(super) tally: Arc<Tally>,
}

impl Jobs {
    /// Job number `number`, sent at `sent` from the beginning of the measurement.
    pub(super) fn job(&self, number: u64, sent: Duration) -> NewJob {
        let Shape { payload_bytes, ordering_keys, priorities, .. } = self.shape;
        let queues = self.queues.len().max(1) as u64;
        let stamp = Stamp { run: self.tally.run, number, sent };
        NewJob {
            queue: self.queues.get(index(number % queues)).cloned().unwrap_or_default(),
            payload: stamp.payload(payload_bytes).into(),
            ordering_key: if ordering_keys > 0 {
                format!("key-{}", number / queues % ordering_keys)
            } else {
                String::new()
            },
            priority: (priorities > 1).then(|| i32::try_from(number % u64::from(priorities)).unwrap_or_default()),
            ..NewJob::default()
        }
    }

    /// Enqueues these in one call.
    pub(super) async fn enqueue(&self, client: &Client, numbers: Range<u64>, sent: Duration) -> Result<(), BenchError> {
        let jobs: Vec<NewJob> = numbers.map(|number| self.job(number, sent)).collect();
        self.send(client, jobs).await
    }

    /// Enqueues jobs, and counts them as stored.
    pub(super) async fn send(&self, client: &Client, jobs: Vec<NewJob>) -> Result<(), BenchError> {
        let count = jobs.len();
        let answer = client.queue().enqueue(client.call(EnqueueRequest { jobs })).await?.into_inner();
        if answer.jobs.len() != count || answer.jobs.iter().any(|job| job.duplicate || job.job_id.is_empty()) {
            return Err(BenchError::Other(format!(
                "an Enqueue of {count} jobs was answered with {}",
                answer.jobs.len()
            )));
        }
        self.tally.store(count as u64);
        Ok(())
    }
}

/// Enqueues all `numbers`; answers how long calls took, and when the last one was answered.
pub(super) async fn enqueue_all(
    clients: &Clients,
    jobs: &Arc<Jobs>,
    numbers: Range<u64>,
) -> Result<(Times, Instant), BenchError> {
    let (next, mut producers) = (Arc::new(AtomicU64::new(numbers.start)), JoinSet::new());
    for n in 0..jobs.shape.producers.max(1) {
        let (client, jobs, next, end) = (clients.client(n), Arc::clone(jobs), Arc::clone(&next), numbers.end);
        producers.spawn(async move {
            let mut times = Times::default();
            loop {
                let first = next.fetch_add(jobs.shape.batch, Relaxed);
                if first >= end {
                    return Ok::<_, BenchError>(times);
                }
                let asked = Instant::now();
                let numbers = first..end.min(first + jobs.shape.batch);
                jobs.enqueue(&client, numbers, asked.duration_since(jobs.began)).await?;
                times.record(asked.elapsed());
            }
        });
    }
    let mut all = Times::default();
    while let Some(ended) = producers.join_next().await {
        all.add(&ended.map_err(|error| BenchError::Other(error.to_string()))??);
    }
    Ok((all, Instant::now()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{super::shape::tests::shape, *};

    fn jobs(shape: Shape) -> Jobs {
        let queues = (0..shape.queues).map(|n| format!("q{n}")).collect();
        Jobs { shape, queues, began: Instant::now(), tally: Arc::new(Tally::new(0)) }
    }

    #[test]
    fn jobs_are_spread_over_queues_keys_and_priorities() {
        let jobs = jobs(Shape { queues: 3, ordering_keys: 4, priorities: 10, ..shape() });
        let made: Vec<NewJob> = (0..1_000).map(|number| jobs.job(number, Duration::ZERO)).collect();
        let pairs: BTreeSet<_> = made.iter().map(|job| (&job.queue, &job.ordering_key)).collect();
        assert_eq!(pairs.len(), 12);
        let priorities: BTreeSet<_> = made.iter().map(|job| job.priority).collect();
        assert_eq!(priorities, (0..10).map(Some).collect());
    }

    #[test]
    fn jobs_have_no_key_and_no_priority_unless_asked_for() {
        let job = jobs(shape()).job(7, Duration::ZERO);
        assert_eq!((job.ordering_key.as_str(), job.priority, job.payload.len()), ("", None, 100));
    }
}
