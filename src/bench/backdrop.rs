//! Jobs that are there all the time and that nobody should get.

use std::{sync::Arc, time::Duration};

use super::{BenchError, clients::Clients, producers::Jobs, shape::index, stamp::BACKDROP};
use crate::v1::{NewJob, new_job::Start};

/// When scheduled jobs are due: long after any measurement.
const LATER: Duration = Duration::from_secs(30 * 24 * 3_600);
/// Jobs that wait behind one key.
const BEHIND: u64 = 100;
/// Jobs of one Enqueue.
const BATCH: u64 = 1_000;

/// Enqueues them. The head of each key that others wait for is a scheduled job.
pub(super) async fn fill(clients: &Clients, jobs: &Arc<Jobs>) -> Result<(), BenchError> {
    let scheduled = (0..jobs.shape.scheduled).map(|number| later(jobs, number, String::new()));
    send(clients, jobs, scheduled).await?;
    let keys = jobs.shape.blocked.div_ceil(BEHIND);
    let key = |number: u64| format!("held-{number}");
    send(clients, jobs, (0..keys).map(|number| later(jobs, number, key(number)))).await?;
    // each key's queue is that of its head
    let blocked = (0..jobs.shape.blocked).map(|number| {
        let head = number % keys;
        NewJob { start: None, ..later(jobs, head, key(head)) }
    });
    send(clients, jobs, blocked).await
}

fn later(jobs: &Jobs, number: u64, ordering_key: String) -> NewJob {
    let queues = jobs.queues.len().max(1) as u64;
    let due = prost_types::Duration { seconds: i64::try_from(LATER.as_secs()).unwrap_or(i64::MAX), nanos: 0 };
    NewJob {
        queue: jobs.queues.get(index(number % queues)).cloned().unwrap_or_default(),
        ordering_key,
        start: Some(Start::Delay(due)),
        ..jobs.job(BACKDROP, Duration::ZERO)
    }
}

async fn send(clients: &Clients, jobs: &Arc<Jobs>, made: impl Iterator<Item = NewJob>) -> Result<(), BenchError> {
    let client = clients.client(0);
    let mut made = made.peekable();
    while made.peek().is_some() {
        jobs.send(&client, made.by_ref().take(index(BATCH)).collect()).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::{
        super::{
            shape::{Shape, tests::shape},
            stamp::Stamp,
            tally::Tally,
        },
        *,
    };

    #[test]
    fn a_job_of_the_backdrop_that_comes_nevertheless_is_strange() {
        let shape = Shape { scheduled: 1, ordering_keys: 3, priorities: 3, ..shape() };
        let size = shape.payload_bytes;
        let jobs = Jobs { shape, queues: vec!["q".into()], began: Instant::now(), tally: Arc::new(Tally::new(10)) };
        let job = later(&jobs, 0, String::new());
        assert!(job.start.is_some() && job.ordering_key.is_empty());
        let stamp = Stamp::read(&job.payload, size).expect("one of ours");
        jobs.tally.deliver(stamp.number);
        assert_eq!(jobs.tally.strange(), 1);
    }
}
