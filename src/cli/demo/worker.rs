//! A worker: leases, does what the job's fate says, settles.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::{
    client::{Client, call, timed_call},
    process::{Fate, Process},
    tally::Tally,
};
use crate::v1::{
    AckRequest, LeaseRequest, LeasedJob, NackAction, NackItem, NackRequest, SettleStatus, lease_response::Frame,
};

/// Short, so that a forgotten job is seen to come back.
const LEASE_SECONDS: i64 = 3;
/// Before a retry.
const RETRY_MILLIS: i32 = 200;
/// Before a stream is opened again.
const PAUSE: Duration = Duration::from_millis(200);

/// Works until `stop`. A stream that ends, for whatever reason, is opened again.
pub(super) async fn run(process: Process, name: String, client: Client, tally: &Tally, stop: CancellationToken) {
    while !stop.is_cancelled() {
        let stream = work(&process, &name, client.clone(), tally);
        if let Some(Err(status)) = stop.run_until_cancelled(stream).await {
            tracing::warn!(worker = name, code = ?status.code(), "a worker's call failed: {}", status.message());
            stop.run_until_cancelled(tokio::time::sleep(PAUSE)).await;
        }
    }
}

/// Works on one stream until it ends.
async fn work(process: &Process, name: &str, mut client: Client, tally: &Tally) -> Result<(), tonic::Status> {
    let request = LeaseRequest {
        queues: vec![process.queue_name()],
        consumer: name.to_owned(),
        max_in_flight: process.in_flight,
        lease_duration: Some(prost_types::Duration { seconds: LEASE_SECONDS, nanos: 0 }),
        ..LeaseRequest::default()
    };
    let mut frames = client.lease(call(process, request)).await?.into_inner();
    while let Some(answer) = frames.message().await? {
        match answer.frame {
            Some(Frame::Jobs(leased)) => settle(process, &mut client, leased.jobs, tally).await?,
            Some(Frame::Drain(_)) => return Ok(()),
            _ => {}
        }
    }
    Ok(())
}

/// Does the jobs of a frame and settles them together.
async fn settle(
    process: &Process,
    client: &mut Client,
    jobs: Vec<LeasedJob>,
    tally: &Tally,
) -> Result<(), tonic::Status> {
    tally.leased(jobs.len());
    let (mut done, mut failed) = (Vec::new(), Vec::new());
    for job in jobs {
        let number = std::str::from_utf8(&job.payload).ok().and_then(|text| text.parse().ok());
        match (number.map(|number| process.fate(number)), job.attempt) {
            (Some(Fate::Retried), 1) => failed.push((job, NackAction::Retry)),
            (Some(Fate::Rejected), _) => failed.push((job, NackAction::Reject)),
            (Some(Fate::Forgotten), 1) => {}
            (fate, _) => {
                if fate == Some(Fate::Forgotten) {
                    tally.expired();
                }
                done.push(job);
            }
        }
    }
    if !done.is_empty() {
        let lease_tokens = done.iter().map(|job| job.lease_token.clone()).collect();
        let answer = client.ack(timed_call(process, AckRequest { lease_tokens })).await?.into_inner();
        for (job, result) in done.into_iter().zip(answer.results) {
            if result.status() == SettleStatus::Ok {
                tally.acked(job.job_id);
            }
        }
    }
    if !failed.is_empty() {
        let items = failed.iter().map(|(job, action)| nack(job, *action)).collect();
        let answer = client.nack(timed_call(process, NackRequest { items })).await?.into_inner();
        for ((job, _), result) in failed.into_iter().zip(answer.results) {
            match (result.status(), result.dead) {
                (SettleStatus::Ok, true) => tally.dead(job.job_id),
                (SettleStatus::Ok, false) => tally.retried(),
                _ => {}
            }
        }
    }
    Ok(())
}

fn nack(job: &LeasedJob, action: NackAction) -> NackItem {
    let delay = prost_types::Duration { seconds: 0, nanos: RETRY_MILLIS * 1_000_000 };
    NackItem {
        lease_token: job.lease_token.clone(),
        action: action.into(),
        delay: (action == NackAction::Retry).then_some(delay),
        error: "the demonstration wanted it so".to_owned(),
    }
}
