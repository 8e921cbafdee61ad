//! How the broker ends.

use std::{task::Poll, time::Duration};

use leasehold::v1::{
    AckRequest, AckResponse, DrainReason, LeaseRequest, lease_response::Frame, queue_service_client::QueueServiceClient,
};
use rustix::process::Signal;

use super::broker::Broker;

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_drains_streams_and_ends_the_broker_with_0() {
    let mut broker = Broker::start(&[]);
    broker.wait_for("\"ready:");
    assert!(broker.get("/readyz").0.contains("200"));
    let mut client = QueueServiceClient::new(broker.channel().await);
    let request = LeaseRequest { queues: vec!["orders".into()], ..LeaseRequest::default() };
    let mut frames = client.lease(request).await.expect("a stream").into_inner();
    let opened = frames.message().await.expect("a frame").and_then(|answer| answer.frame);
    assert!(matches!(opened, Some(Frame::Opened(_))), "{opened:?}");

    broker.signal(Signal::TERM);
    let drain = frames.message().await.expect("a frame").and_then(|answer| answer.frame);
    assert!(matches!(drain, Some(Frame::Drain(drain)) if drain.reason() == DrainReason::Shutdown), "{drain:?}");
    assert!(frames.message().await.expect("the stream ends OK").is_none());
    let (code, took) = broker.end();
    assert_eq!(code, Some(0));
    assert!(took < Duration::from_secs(5), "{took:?}");
}

type Endless = tokio::task::JoinHandle<Result<tonic::Response<AckResponse>, tonic::Status>>;

/// A call whose request never ends, so that a polite drain waits for it. When this returns the broker has met it.
async fn endless_call(broker: &Broker) -> Endless {
    let channel = broker.channel().await;
    let (asked, was_asked) = tokio::sync::oneshot::channel();
    let mut asked = Some(asked);
    let never = futures_util::stream::poll_fn(move |_| {
        // the request's body is asked for once its head is on its way
        if let Some(asked) = asked.take() {
            asked.send(()).expect("we wait for it");
        }
        Poll::Pending::<Option<AckRequest>>
    });
    let mut client = tonic::client::Grpc::new(channel.clone());
    client.ready().await.expect("it is connected");
    let call = tokio::spawn(async move {
        let path = http::uri::PathAndQuery::from_static("/leasehold.v1.QueueService/Ack");
        let codec = tonic_prost::ProstCodec::<AckRequest, AckResponse>::default();
        client.client_streaming(tonic::Request::new(never), path, codec).await
    });
    was_asked.await.expect("the call has begun");
    // answered on the same connection, so the head before it was read as well
    let whole = AckRequest { lease_tokens: vec!["x".into()] };
    QueueServiceClient::new(channel).ack(whole).await.expect("an answer per token");
    call
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_ends_the_broker_within_a_second() {
    let mut broker = Broker::start(&[]);
    let call = endless_call(&broker).await;
    broker.signal(Signal::TERM);
    broker.wait_for("\"draining\"");
    assert!(broker.get("/readyz").1.contains("draining"));
    broker.signal(Signal::INT);
    let (code, took) = broker.end();
    assert_eq!(code, Some(1));
    assert!(took < Duration::from_secs(1), "{took:?}");
    assert!(call.await.expect("no panic").is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_never_ends_is_cut_when_the_drains_time_is_over() {
    let mut broker = Broker::start(&["--server-drain-timeout", "3s"]);
    let call = endless_call(&broker).await;
    broker.signal(Signal::TERM);
    let (code, took) = broker.end();
    assert_eq!(code, Some(0));
    assert!((Duration::from_secs(1)..Duration::from_secs(10)).contains(&took), "{took:?}");
    assert!(call.await.expect("no panic").is_err());
}
