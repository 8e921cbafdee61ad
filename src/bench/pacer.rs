//! Jobs at a fixed rate, whatever becomes of the ones before them.

use std::{
    ops::Range,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{
    task::JoinSet,
    time::{MissedTickBehavior, interval_at},
};

use super::{BenchError, clients::Clients, producers::Jobs};

/// Enqueue calls under way at most. A broker that is so far behind is not measured at this rate any more, and it shows: jobs
/// count from when they were to be sent.
const CALLS: usize = 10_000;

/// Sends `numbers` at `rate` jobs a second; answers when the last call was answered.
pub(super) async fn send_at(
    clients: &Clients,
    jobs: &Arc<Jobs>,
    numbers: Range<u64>,
    rate: u32,
) -> Result<Instant, BenchError> {
    let batch = jobs.shape.batch;
    let between = Duration::from_secs(1).mul_f64(to_f64(batch) / f64::from(rate.max(1)));
    let first = Instant::now() + between;
    let mut ticks = interval_at(first.into(), between);
    // one that was late is made up for: the rate is that of a clock
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let (mut calls, mut start, mut n) = (JoinSet::new(), numbers.start, 0);
    while start < numbers.end {
        let due = ticks.tick().await.into_std();
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

type Ended = Result<Result<(), BenchError>, tokio::task::JoinError>;

fn answered(ended: Option<Ended>) -> Result<(), BenchError> {
    ended.map_or(Ok(()), |ended| ended.map_err(|error| BenchError::Other(error.to_string()))?)
}

#[allow(clippy::cast_precision_loss, reason = "at most the jobs of one call")]
fn to_f64(number: u64) -> f64 {
    number as f64
}
