//! Streams while the database is away, and claims whose answer is lost.

use std::time::Duration;

use leasehold::dispatch::{Dispatch, DispatchOptions, Frame};

use super::broker::{Broker, Consumer, call, jobs, lease_of, spec};
use crate::lanes::{
    proxy::Mode,
    stage::{Stage, one_lane, until},
};

/// Reads until a heartbeat says this of claims.
async fn hear(consumer: &mut Consumer, failing: bool) {
    loop {
        match consumer.frame().await {
            Some(Ok(Frame::Heartbeat { claims_failing, .. })) if claims_failing == failing => return,
            Some(Ok(_)) => {}
            end => panic!("the stream ended with {end:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_stays_open_through_an_outage_and_says_that_claims_fail() {
    let stage = Stage::postgres_behind_a_proxy().await;
    let fast = DispatchOptions { heartbeat_interval: Duration::from_millis(200), ..DispatchOptions::default() };
    let broker = Broker::on(&stage, fast).await;
    let mut consumer = broker.open(spec(&["orders"], 5));
    for _ in 0..2 {
        hear(&mut consumer, false).await;
        stage.proxy().set(Mode::Refuse);
        stage.proxy().cut();
        hear(&mut consumer, true).await;
        stage.proxy().set(Mode::Pass);
        hear(&mut consumer, false).await;
        broker.enqueue(jobs("orders", 1)).await;
        let sent = consumer.jobs().await;
        assert_eq!(sent.len(), 1);
        broker.ack(&sent).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_claim_leased_whose_answer_was_lost_comes_without_an_attempt() {
    let stage = Stage::postgres_behind_a_proxy().await;
    // One lane and nothing else on it, so that the claim is what the proxy loses the answer of.
    // It has prepared the claim before, and does not ask whether it lives: it would not hear the answers.
    let mut one = one_lane();
    one.lanes.fresh_for = Duration::from_hours(1);
    let store = stage.store(one).await;
    let options = DispatchOptions { look_interval: Duration::from_hours(1), ..DispatchOptions::default() };
    let dispatch = Dispatch::start(store.clone(), options, "test".to_owned());
    let mut consumer = Consumer::new(dispatch.open(spec(&["orders"], 5)).expect("a stream"));
    let first = store.enqueue(&call(), jobs("orders", 1)).await.expect("stored");
    dispatch.ready(&[(first[0].queue, None)]);
    let sent = consumer.jobs().await;
    store.ack(&call(), vec![lease_of(&sent[0].token)]).await.expect("an answer");
    dispatch.settled(&[sent[0].token]);
    let mut sql = stage.sql().await;
    store.enqueue(&call(), jobs("orders", 5)).await.expect("stored");

    stage.proxy().set(Mode::LoseAnswers);
    dispatch.ready(&[(first[0].queue, None)]);
    until("the claim has leased", async || {
        sql.number("select count(*) from job where lease_id is not null").await == 5
    })
    .await;
    stage.proxy().set(Mode::Pass);
    stage.proxy().cut();
    let sent = consumer.at_least(5).await;
    assert_eq!(sent.len(), 5);
    assert!(sent.iter().all(|job| job.job.attempt == 1), "the lost claim counted as an attempt");
    assert!(sent.iter().all(|job| job.job.lease_number == 2), "the lost claim had leased them");
}
