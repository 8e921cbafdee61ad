//! A producer: enqueues at its process's pace and notes the ids that it got.

use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval};

use super::{
    client::{Client, timed_call},
    process::Process,
    tally::Tally,
};
use crate::v1::{EnqueueRequest, NewJob, new_job::Start};

/// Tries of one Enqueue before the producer gives up.
const TRIES: u32 = 10;

/// Enqueues until `until`.
pub(super) async fn run(
    process: Process,
    mut client: Client,
    tally: &Tally,
    until: Instant,
) -> Result<(), tonic::Status> {
    let mut pace = interval(process.pause);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut next = 1;
    while Instant::now() < until {
        pace.tick().await;
        let jobs = (next..next + process.batch).map(|number| job(&process, number)).collect();
        next += process.batch;
        tally.enqueued(enqueue(&process, &mut client, EnqueueRequest { jobs }).await?);
    }
    Ok(())
}

/// One Enqueue. Every job has an idempotency key, so repeating a call that failed stores nothing twice, whatever its outcome.
async fn enqueue(process: &Process, client: &mut Client, body: EnqueueRequest) -> Result<Vec<String>, tonic::Status> {
    let mut tried = 1;
    loop {
        match client.enqueue(timed_call(process, body.clone())).await {
            Ok(answer) => return Ok(answer.into_inner().jobs.into_iter().map(|job| job.job_id).collect()),
            Err(status) if tried == TRIES => return Err(status),
            Err(_) => tried += 1,
        }
        tokio::time::sleep(Duration::from_millis(200) * tried).await;
    }
}

fn job(process: &Process, number: u64) -> NewJob {
    let due = process.due_in(number).and_then(|due| prost_types::Duration::try_from(due).ok());
    NewJob {
        queue: process.queue_name(),
        payload: number.to_string().into(),
        content_type: "text/plain".to_owned(),
        priority: Some(process.priority),
        start: due.map(Start::Delay),
        idempotency_key: format!("{}-{number}", process.caller),
        ..NewJob::default()
    }
}
