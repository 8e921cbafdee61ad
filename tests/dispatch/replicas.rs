//! Two replicas on one PostgreSQL server: hints between them, and what holds without.

use std::time::Duration;

use leasehold::{
    dispatch::{DispatchOptions, StreamSpec},
    store::engine::{ExtendRow, Held},
};

use super::broker::{Broker, call, jobs, lease_of, spec};
use crate::lanes::stage::Stage;

/// So rarely that whatever happens within a test happened by a hint.
const NEVER: Duration = Duration::from_hours(1);

async fn two(options: DispatchOptions) -> (Stage, Broker, Broker) {
    let stage = Stage::postgres().await;
    let first = Broker::on(&stage, options.clone()).await;
    let second = Broker::on(&stage, options).await;
    (stage, first, second)
}

#[tokio::test]
async fn a_job_enqueued_on_one_replica_reaches_a_stream_of_another_by_a_hint() {
    let (_stage, first, second) = two(DispatchOptions { look_interval: NEVER, ..DispatchOptions::default() }).await;
    let mut consumer = second.open(spec(&["orders"], 1));
    for _ in 0..5 {
        first.enqueue(jobs("orders", 1)).await;
        let sent = consumer.jobs().await;
        assert_eq!(sent.len(), 1);
        second.ack(&sent).await;
    }
}

#[tokio::test]
async fn a_job_whose_hint_was_lost_is_found_by_looking() {
    let (_stage, first, second) = two(DispatchOptions::default()).await;
    let mut consumer = second.open(spec(&["orders"], 1));
    for _ in 0..2 {
        first.store.enqueue(&call(), jobs("orders", 1)).await.expect("stored");
        let sent = consumer.jobs().await;
        second.ack(&sent).await;
    }
}

#[tokio::test]
async fn credit_of_a_job_acked_through_another_replica_comes_back_by_a_hint() {
    let (_stage, first, second) =
        two(DispatchOptions { reconcile_interval: NEVER, ..DispatchOptions::default() }).await;
    first.enqueue(jobs("orders", 5)).await;
    let mut consumer = first.open(spec(&["orders"], 1));
    for _ in 0..5 {
        let sent = consumer.jobs().await;
        assert_eq!(second.ack(&sent).await[0].held, Held::Ok);
    }
}

#[tokio::test]
async fn credit_of_a_job_acked_unheard_comes_back_by_reading() {
    let (_stage, first, second) = two(DispatchOptions::default()).await;
    first.enqueue(jobs("orders", 3)).await;
    let mut consumer = first.open(spec(&["orders"], 1));
    for _ in 0..3 {
        let sent = consumer.jobs().await;
        second.store.ack(&call(), vec![lease_of(&sent[0].token)]).await.expect("an answer");
    }
}

#[tokio::test]
async fn a_lease_extended_through_another_replica_keeps_its_credit() {
    let (_stage, first, second) = two(DispatchOptions::default()).await;
    first.enqueue(jobs("orders", 2)).await;
    let asked = StreamSpec { lease_duration: Some(Duration::from_secs(1)), ..spec(&["orders"], 1) };
    let mut consumer = first.open(asked);
    let sent = consumer.jobs().await;
    let longer = ExtendRow { lease: lease_of(&sent[0].token), duration: Some(Duration::from_secs(60)) };
    assert_eq!(second.store.extend(&call(), vec![longer]).await.expect("an answer")[0].held, Held::Ok);
    // Another stream's lease of the same length runs out, is reaped and comes again, while this one keeps its credit.
    let mut other = second.open(StreamSpec { lease_duration: Some(Duration::from_secs(1)), ..spec(&["orders"], 1) });
    assert_eq!(other.jobs().await[0].job.attempt, 1);
    assert_eq!(other.jobs().await[0].job.attempt, 2);
    assert_eq!(first.dispatch.streams().outstanding, 1);
    assert_eq!(first.ack(&sent).await[0].held, Held::Ok);
}

#[tokio::test]
async fn jobs_of_a_replica_that_is_gone_come_back_through_another() {
    let (_stage, first, second) = two(DispatchOptions::default()).await;
    first.enqueue(jobs("orders", 3)).await;
    let mut consumer = first.open(StreamSpec { lease_duration: Some(Duration::from_secs(1)), ..spec(&["orders"], 3) });
    assert_eq!(consumer.at_least(3).await.len(), 3);
    drop((consumer, first));
    let mut heir = second.open(spec(&["orders"], 3));
    let sent = heir.at_least(3).await;
    assert!(sent.iter().all(|job| job.job.attempt == 2));
}
