//! How streams end.

use std::time::{Duration, Instant};

use leasehold::{
    dispatch::{DispatchOptions, DrainReason, Frame, StreamSpec},
    model::Reason,
};
use tokio_util::sync::CancellationToken;

use super::broker::{Broker, Consumer, jobs, spec, within};

/// Reads to the end: why it drained, and how it ended.
async fn end(consumer: &mut Consumer) -> (Option<DrainReason>, Option<Reason>) {
    let mut drained = None;
    loop {
        match consumer.frame().await {
            Some(Ok(Frame::Drain(reason))) => drained = Some(reason),
            Some(Ok(_)) => {}
            Some(Err(failure)) => return (drained, Some(failure.reason)),
            None => return (drained, None),
        }
    }
}

#[tokio::test]
async fn a_drain_ends_every_stream_and_leaves_nothing_leased_that_was_not_sent() {
    let broker = Broker::start().await;
    broker.enqueue(jobs("orders", 30)).await;
    let mut reader = broker.open(spec(&["orders"], 10));
    let sent = reader.at_least(10).await;
    let mut deaf = broker.open(spec(&["orders"], 10));
    while broker.dispatch.streams().outstanding < 20 {
        tokio::task::yield_now().await;
    }
    let ends = async {
        let ends = (end(&mut reader).await, end(&mut deaf).await);
        drop((reader, deaf));
        ends
    };
    let (ends, ()) = within(futures_util::future::join(ends, broker.dispatch.drain())).await;
    assert_eq!(ends, ((Some(DrainReason::Shutdown), None), (Some(DrainReason::Shutdown), None)));
    let refused = broker.dispatch.open(spec(&["orders"], 1)).map(drop).expect_err("refused");
    assert_eq!(refused.reason, Reason::Draining);
    let leases = sent.iter().map(|job| super::broker::lease_of(&job.token)).collect();
    let states = broker.store.inspect(leases).await.expect("an answer");
    assert!(states.iter().all(|state| state.holds), "what was sent is still leased");
}

#[tokio::test]
async fn a_drain_does_not_wait_for_a_reader_that_never_reads() {
    let options = DispatchOptions { drain_limit: Duration::from_millis(200), ..DispatchOptions::default() };
    let broker = Broker::with(options).await;
    let _deaf = broker.open(spec(&["orders"], 10));
    within(broker.dispatch.drain()).await;
}

#[tokio::test]
async fn a_stream_that_stops_when_empty_takes_everything_first() {
    let broker = Broker::start().await;
    broker.enqueue(jobs("orders", 100)).await;
    let mut asked = spec(&["orders", "nowhere"], 7);
    asked.stop_when_empty = true;
    let mut consumer = broker.open(asked);
    let mut got = 0;
    loop {
        match consumer.frame().await {
            Some(Ok(Frame::Jobs(sent))) => {
                got += sent.len();
                broker.ack(&sent).await;
            }
            Some(Ok(_)) => {}
            Some(Err(failure)) => panic!("{failure}"),
            None => break,
        }
    }
    assert_eq!(got, 100);
}

#[tokio::test]
async fn an_old_connection_and_an_old_stream_say_drain_and_end() {
    let broker = Broker::start().await;
    let closing = CancellationToken::new();
    let mut consumer = broker.open(StreamSpec { connection_closing: closing.clone(), ..spec(&["orders"], 1) });
    assert!(matches!(consumer.frame().await, Some(Ok(Frame::Opened { .. }))));
    closing.cancel();
    assert_eq!(end(&mut consumer).await, (Some(DrainReason::Age), None));

    let young = DispatchOptions { stream_age: Duration::from_millis(300), ..DispatchOptions::default() };
    let broker = Broker::with(young).await;
    let mut consumer = broker.open(spec(&["orders"], 1));
    assert_eq!(end(&mut consumer).await, (Some(DrainReason::Age), None));
}

#[tokio::test]
async fn a_deadline_is_told_as_one() {
    let broker = Broker::start().await;
    let deadline = Instant::now() + Duration::from_millis(200);
    let mut consumer = broker.open(StreamSpec { deadline: Some(deadline), ..spec(&["orders"], 1) });
    assert_eq!(end(&mut consumer).await, (None, Some(Reason::Deadline)));
    assert!(Instant::now() >= deadline);
}

#[tokio::test]
async fn a_quiet_stream_hears_heartbeats() {
    let fast = DispatchOptions { heartbeat_interval: Duration::from_millis(100), ..DispatchOptions::default() };
    let broker = Broker::with(fast).await;
    let mut consumer = broker.open(spec(&["orders"], 1));
    let mut heard = 0;
    while heard < 3 {
        if let Some(Ok(Frame::Heartbeat { in_flight, claims_failing, .. })) = consumer.frame().await {
            assert_eq!((in_flight, claims_failing), (0, false));
            heard += 1;
        }
    }
}
