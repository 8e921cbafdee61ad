//! What was claimed and not sent goes back at once, without an attempt.

use std::time::Duration;

use leasehold::{dispatch::StreamSpec, model::NackAction};

use super::broker::{Broker, deliveries, jobs, spec};

#[tokio::test]
async fn jobs_in_front_of_a_reader_that_is_gone_reach_a_healthy_one_at_their_first_attempt() {
    let broker = Broker::start().await;
    broker.enqueue(jobs("orders", 10)).await;
    let deaf = broker.open(spec(&["orders"], 10));
    // All ten are claimed for the deaf one: nothing else makes its credit go.
    while broker.dispatch.streams().outstanding < 10 {
        tokio::task::yield_now().await;
    }
    drop(deaf);
    let mut healthy = broker.open(spec(&["orders"], 10));
    let sent = healthy.at_least(10).await;
    assert_eq!(sent.len(), 10);
    assert!(sent.iter().all(|job| job.job.attempt == 1));
    assert!(sent.iter().all(|job| job.job.lease_number == 2), "leased before, but never sent");
}

#[tokio::test]
async fn three_hundred_streams_that_vanish_swallow_nothing() {
    const JOBS: usize = 300;
    let broker = Broker::start().await;
    let mut alive = broker.open(spec(&["orders"], 1_000));
    let feed = async {
        for (number, job) in jobs("orders", JOBS).into_iter().enumerate() {
            let vanishing = broker.open(spec(&["orders"], 3));
            broker.enqueue(vec![job]).await;
            if number % 3 == 0 {
                tokio::task::yield_now().await;
            }
            drop(vanishing);
        }
    };
    let (sent, ()) = futures_util::future::join(alive.at_least(JOBS), feed).await;
    let counts = deliveries(&sent);
    assert_eq!((sent.len(), counts.len()), (JOBS, JOBS));
    assert!(sent.iter().all(|job| job.job.attempt == 1), "an attempt was charged for a job that was never sent");
    drop(alive);
    while broker.dispatch.streams().streams > 0 {
        tokio::task::yield_now().await;
    }
    let counts = broker.dispatch.streams();
    assert_eq!((counts.outstanding, counts.reserved), (0, 0));
}

#[tokio::test]
async fn a_reader_that_never_reads_keeps_jobs_for_half_a_lease_at_most() {
    let broker = Broker::start().await;
    broker.enqueue(jobs("orders", 4)).await;
    let _deaf = broker.open(StreamSpec { lease_duration: Some(Duration::from_secs(1)), ..spec(&["orders"], 4) });
    while broker.dispatch.streams().outstanding < 4 {
        tokio::task::yield_now().await;
    }
    let mut healthy = broker.open(spec(&["orders"], 4));
    let sent = healthy.at_least(4).await;
    assert!(sent.iter().all(|job| job.job.attempt == 1), "they went back unsent and did not expire");
    let released = broker.nack(&sent[0], NackAction::Release, Duration::ZERO).await;
    assert!(!released.dead);
    assert_eq!(healthy.jobs().await[0].job.attempt, 1);
}
