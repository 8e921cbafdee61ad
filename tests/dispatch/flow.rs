//! From Enqueue to Ack.

use std::time::{Duration, Instant};

use leasehold::{
    dispatch::{DispatchOptions, Frame},
    model::{NackAction, Reason, Start},
    store::engine::Held,
};

use super::broker::{Broker, Consumer, deliveries, job, jobs, spec, within};

#[tokio::test]
async fn a_stream_is_opened_at_once_and_gets_what_is_enqueued() {
    let broker = Broker::start().await;
    let mut consumer = broker.open(spec(&["orders"], 10));
    assert!(matches!(consumer.frame().await, Some(Ok(Frame::Opened { .. }))));
    broker.enqueue(vec![job("orders", "first")]).await;
    let sent = consumer.jobs().await;
    assert_eq!((sent.len(), sent[0].job.payload.as_ref(), sent[0].job.attempt), (1, &b"first"[..], 1));
    assert!(sent[0].remaining <= Duration::from_secs(30) && sent[0].remaining > Duration::from_secs(15));
    assert_eq!(broker.ack(&sent).await[0].held, Held::Ok);
}

#[tokio::test]
async fn thousands_of_jobs_reach_many_streams_each_once() {
    const JOBS: usize = 3_000;
    let broker = Broker::start().await;
    let (mut consumers, mut all) = (Vec::new(), Vec::new());
    for _ in 0..10 {
        consumers.push(broker.open(spec(&["orders", "mails"], 20)));
    }
    let work = |mut consumer: Consumer| {
        let broker = &broker;
        async move {
            let mut got = Vec::new();
            while let Some(Ok(frame)) = consumer.frame().await {
                match frame {
                    Frame::Jobs(sent) => {
                        assert!(sent.len() <= 20, "more than its credit");
                        broker.ack(&sent).await;
                        got.extend(sent);
                    }
                    Frame::Drain(_) => break,
                    _ => {}
                }
            }
            got
        }
    };
    let works = futures_util::future::join_all(consumers.into_iter().map(work));
    let feed = async {
        for chunk in jobs("orders", JOBS).chunks(500) {
            broker.enqueue(chunk.to_vec()).await;
        }
        let empties = spec(&["orders", "mails"], 50);
        let mut last = broker.open(leasehold::dispatch::StreamSpec { stop_when_empty: true, ..empties });
        let mut got = Vec::new();
        while let Some(Ok(frame)) = last.frame().await {
            if let Frame::Jobs(sent) = frame {
                broker.ack(&sent).await;
                got.extend(sent);
            }
        }
        // What the others still have is acked by the time that they are drained.
        within(broker.dispatch.drain()).await;
        got
    };
    let (works, fed) = futures_util::future::join(works, feed).await;
    all.extend(works.into_iter().flatten());
    all.extend(fed);
    let counts = deliveries(&all);
    assert_eq!(counts.len(), JOBS);
    assert!(counts.values().all(|count| *count == 1));
}

#[tokio::test]
async fn a_settled_job_makes_room_for_the_next() {
    let broker = Broker::start().await;
    broker.enqueue(jobs("orders", 5)).await;
    let mut consumer = broker.open(spec(&["orders"], 1));
    for _ in 0..5 {
        let sent = consumer.jobs().await;
        assert_eq!(sent.len(), 1);
        broker.ack(&sent).await;
    }
}

#[tokio::test]
async fn a_retry_comes_back_after_its_delay() {
    let broker = Broker::start().await;
    broker.enqueue(jobs("orders", 1)).await;
    let mut consumer = broker.open(spec(&["orders"], 1));
    let first = consumer.jobs().await;
    let began = Instant::now();
    let nacked = broker.nack(&first[0], NackAction::Retry, Duration::from_millis(300)).await;
    assert_eq!(nacked.held, Held::Ok);
    let second = consumer.jobs().await;
    assert!(began.elapsed() >= Duration::from_millis(290), "early");
    assert_eq!((second[0].job.attempt, second[0].job.last_error.as_deref()), (2, Some("failed")));
    assert!(second[0].job.lease_number > first[0].job.lease_number);
}

#[tokio::test]
async fn a_scheduled_job_comes_when_it_is_due() {
    // Looking would find it too, so that is made rare.
    let rare = DispatchOptions { look_interval: Duration::from_secs(3_600), ..DispatchOptions::default() };
    let broker = Broker::with(rare).await;
    let mut consumer = broker.open(spec(&["orders"], 1));
    let mut later = job("orders", "later");
    later.start = Start::After(Duration::from_millis(400));
    let began = Instant::now();
    broker.enqueue(vec![later]).await;
    assert_eq!(consumer.jobs().await.len(), 1);
    assert!(began.elapsed() >= Duration::from_millis(390), "early");
}

#[tokio::test]
async fn a_job_enqueued_unheard_is_found_by_looking() {
    let broker = Broker::start().await;
    let mut consumer = broker.open(spec(&["orders"], 1));
    broker.store.enqueue(&super::broker::call(), jobs("orders", 1)).await.expect("stored");
    assert_eq!(consumer.jobs().await.len(), 1);
}

#[tokio::test]
async fn an_expired_lease_is_revoked_and_its_job_comes_again() {
    let broker = Broker::start().await;
    let mut asked = spec(&["orders"], 1);
    asked.lease_duration = Some(Duration::from_secs(1));
    let mut consumer = broker.open(asked);
    broker.enqueue(jobs("orders", 1)).await;
    let first = consumer.jobs().await;
    let revoked = loop {
        match consumer.frame().await {
            Some(Ok(Frame::Revoked(leases))) => break leases,
            Some(Ok(Frame::Jobs(_))) => panic!("the credit is used"),
            Some(Ok(_)) => {}
            end => panic!("ended with {end:?}"),
        }
    };
    assert_eq!(revoked[0].token, first[0].token);
    let second = consumer.jobs().await;
    assert_eq!(second[0].job.attempt, 2);
    assert_eq!(broker.ack(&first).await[0].held, Held::LeaseLost);
    assert_eq!(broker.ack(&second).await[0].held, Held::Ok);
}

#[tokio::test]
async fn streams_past_the_bound_are_refused_at_once() {
    let broker = Broker::with(DispatchOptions { max_streams: 2, ..DispatchOptions::default() }).await;
    let first = broker.open(spec(&["orders"], 1));
    let _second = broker.open(spec(&["orders"], 1));
    let refused = broker.dispatch.open(spec(&["orders"], 1)).map(drop).expect_err("refused");
    assert_eq!(refused.reason, Reason::StreamLimit);
    drop(first);
    assert!(broker.dispatch.open(spec(&["orders"], 1)).is_ok());
}
