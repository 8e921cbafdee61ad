//! Jobs at a fixed rate, whatever becomes of the ones before them.

use std::{
    ops::Range,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use tokio::{
    sync::mpsc,
    task::{JoinSet, spawn_blocking},
};

use super::{BenchError, clients::Clients, producers::Jobs};

/// Enqueue calls under way at most. A broker that is so far behind is not measured at this rate any more, and it shows: jobs
/// count from when they were to be sent.
const CALLS: usize = 10_000;

/// Moments that have come and for which nothing was sent yet, at most.
const MOMENTS: usize = 64;

/// Sends `numbers` at `rate` jobs a second; answers when the last call was answered.
pub(super) async fn send_at(
    clients: &Clients,
    jobs: &Arc<Jobs>,
    numbers: Range<u64>,
    rate: u32,
) -> Result<Instant, BenchError> {
    let batch = jobs.shape.batch;
    let between = Duration::from_secs(1).mul_f64(to_f64(batch) / f64::from(rate.max(1)));
    let mut moments = clock(Instant::now() + between, between);
    let (mut calls, mut start, mut n) = (JoinSet::new(), numbers.start, 0);
    while start < numbers.end {
        let Some(due) = moments.recv().await else { return Err(BenchError::Other("the clock stopped".to_owned())) };
        while calls.len() >= CALLS {
            answered(calls.join_next().await)?;
        }
        while let Some(ended) = calls.try_join_next() {
            answered(Some(ended))?;
        }
        let (client, jobs, part) = (clients.client(n), Arc::clone(jobs), start..numbers.end.min(start + batch));
        let sent = due.saturating_duration_since(jobs.began);
        calls.spawn(async move { jobs.enqueue(&client, part, sent).await });
        start += batch;
        n = n.wrapping_add(1);
    }
    while let Some(ended) = calls.join_next().await {
        answered(Some(ended))?;
    }
    Ok(Instant::now())
}

/// Says each moment from `first` on, `between` apart, when it has come, until nobody listens any more. One that was late is made
/// up for. A thread sleeps for it: the runtime's timers are as coarse as a millisecond, which is as long as a pick-up takes.
fn clock(first: Instant, between: Duration) -> mpsc::Receiver<Instant> {
    let (say, moments) = mpsc::channel(MOMENTS);
    drop(spawn_blocking(move || {
        let mut due = first;
        while !say.is_closed() {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            if say.blocking_send(due).is_err() {
                return;
            }
            due += between;
        }
    }));
    moments
}

type Ended = Result<Result<(), BenchError>, tokio::task::JoinError>;

fn answered(ended: Option<Ended>) -> Result<(), BenchError> {
    ended.map_or(Ok(()), |ended| ended.map_err(|error| BenchError::Other(error.to_string()))?)
}

#[allow(clippy::cast_precision_loss, reason = "at most the jobs of one call")]
fn to_f64(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_moment_is_said_after_it_has_come_and_none_is_left_out() {
        let (first, between) = (Instant::now(), Duration::from_micros(300));
        let mut moments = clock(first, between);
        for n in 0..200 {
            let due = moments.recv().await.expect("a moment");
            assert_eq!(due, first + between * n);
            assert!(due <= Instant::now());
        }
    }
}
