//! What becomes of calls.

use bytes::Bytes;
use futures_util::FutureExt;
use http::header::CONTENT_TYPE;
use tonic::{
    body::Body,
    codegen::http::uri::PathAndQuery,
    metadata::{Ascii, MetadataValue},
};
use tower::ServiceExt;

use super::{raw::RawClient, *};

/// Runs a call without a connection; gives the failure that its answer holds.
async fn failure(method: &str, headers: &[(&'static str, &str)], body: Body, options: &LayerOptions) -> Status {
    let mut request = http::Request::post(method).header(CONTENT_TYPE, "application/grpc");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let layers = layered(Scripted::default(), options);
    let answer = soon(layers.oneshot(request.body(body).expect("a request"))).await.expect("infallible");
    assert_eq!(answer.status(), http::StatusCode::OK);
    Status::from_header_map(answer.headers()).expect("an answer without a body")
}

/// A body of these bytes.
fn bytes(bytes: impl Into<Bytes>) -> Body {
    Body::new(axum::body::Body::from(bytes.into()))
}

/// One uncompressed message.
fn message(payload: &[u8]) -> Body {
    let mut framed = vec![0];
    framed.extend(u32::try_from(payload.len()).expect("short").to_be_bytes());
    framed.extend(payload);
    bytes(framed)
}

const ACK: &str = "/leasehold.v1.QueueService/Ack";

#[tokio::test]
async fn an_unknown_method_is_unimplemented_and_not_applied() {
    for path in ["/leasehold.v1.QueueService/Nope", "/nope.Nope/Nope", "/", "/leasehold.v1.QueueService/../x"] {
        let status = failure(path, &[], message(&[]), &LAYERS).await;
        assert_fails(&status, Code::Unimplemented, Reason::Unimplemented, "not-applied");
    }
}

#[tokio::test]
async fn an_unknown_encoding_is_unimplemented_and_says_what_would_do() {
    let status = failure(ACK, &[("grpc-encoding", "gzip")], message(&[]), &LAYERS).await;
    assert_fails(&status, Code::Unimplemented, Reason::Unimplemented, "not-applied");
    assert!(status.metadata().contains_key("grpc-accept-encoding"));
}

#[tokio::test]
async fn undecodable_messages_are_invalid_and_name_the_field() {
    // jobs[0].queue = FF
    let status = failure("/leasehold.v1.QueueService/Enqueue", &[], message(&[10, 3, 10, 1, 0xff]), &LAYERS).await;
    assert_fails(&status, Code::InvalidArgument, Reason::InvalidField, "not-applied");
    assert_eq!(status.get_details_bad_request().expect("a field").field_violations[0].field, "jobs.queue");

    let broken: [(&str, Body); 6] = [
        ("no message", Body::empty()),
        ("a cut prefix", bytes(vec![0, 0, 0])),
        ("a cut message", bytes(vec![0, 0, 0, 0, 9, 1])),
        ("compressed without an encoding", bytes(vec![1, 0, 0, 0, 0])),
        ("an unknown flag", bytes(vec![2, 0, 0, 0, 0])),
        ("an endless varint", message(&[0xff; 11])),
    ];
    for (what, body) in broken {
        let status = failure(ACK, &[], body, &LAYERS).await;
        assert_fails(&status, Code::InvalidArgument, Reason::InvalidField, "not-applied");
        assert!(status.get_details_bad_request().is_some(), "{what}");
    }
}

#[tokio::test]
async fn a_message_over_the_limit_is_invalid_before_it_is_read() {
    let mut huge = vec![0];
    huge.extend(u32::MAX.to_be_bytes());
    let status = failure(ACK, &[], bytes(huge), &LAYERS).await;
    assert_fails(&status, Code::InvalidArgument, Reason::InvalidField, "not-applied");
    let status = failure(ACK, &[], message(&vec![0; (64 << 10) + 1]), &LAYERS).await;
    assert_fails(&status, Code::InvalidArgument, Reason::InvalidField, "not-applied");
}

#[tokio::test]
async fn callers_and_timeouts_that_are_malformed_are_refused_together() {
    let headers = [("grpc-timeout", "1Q"), ("leasehold-caller", "*/ drop")];
    let status = failure(ACK, &headers, message(&[]), &LAYERS).await;
    assert_fails(&status, Code::InvalidArgument, Reason::InvalidField, "not-applied");
    let request = status.get_details_bad_request().expect("two faults");
    let fields: Vec<_> = request.field_violations.iter().map(|fault| fault.field.as_str()).collect();
    assert_eq!(fields, ["leasehold-caller", "grpc-timeout"]);
}

#[tokio::test]
async fn a_message_that_never_ends_is_refused_at_the_deadline() {
    let endless = axum::body::Body::from_stream(futures_util::stream::pending::<Result<Bytes, Status>>());
    let status = failure(ACK, &[("grpc-timeout", "20m")], Body::new(endless), &LAYERS).await;
    assert_fails(&status, Code::DeadlineExceeded, Reason::Deadline, "not-applied");

    let endless = axum::body::Body::from_stream(futures_util::stream::pending::<Result<Bytes, Status>>());
    let options = LayerOptions { request_deadline: Duration::from_millis(20), ..LAYERS };
    let status = failure(ACK, &[], Body::new(endless), &options).await;
    assert_fails(&status, Code::DeadlineExceeded, Reason::Deadline, "not-applied");
}

#[tokio::test]
async fn incomplete_messages_are_bounded_together() {
    let options = LayerOptions { unread_bytes: 64, ..LAYERS };
    let status = failure(ACK, &[], message(&[0; 60]), &options).await;
    assert_fails(&status, Code::Unavailable, Reason::Overloaded, "not-applied");
    let layers = layered(Scripted::default(), &options);
    for _ in 0..5 {
        let request =
            http::Request::post(ACK).header(CONTENT_TYPE, "application/grpc").body(message(&[])).expect("one");
        let answer = layers.clone().oneshot(request).await.expect("infallible");
        assert!(!answer.headers().contains_key("grpc-status"), "what was read makes room");
    }
}

#[tokio::test]
async fn a_bug_in_a_handler_is_internal_and_its_outcome_unknown() {
    let served = served(ServerOptions::default()).await;
    let mut client = served.client().await;
    let status = client.enqueue(v1::EnqueueRequest::default()).await.expect_err("it panics");
    assert_fails(&status, Code::Internal, Reason::Internal, "unknown");
    assert!(!status.message().contains("on purpose"), "what panicked is for the log alone");
    assert!(client.ack(v1::AckRequest::default()).await.is_ok(), "the connection stays usable");
}

#[tokio::test]
async fn a_handlers_own_failure_is_left_as_it_is() {
    let served = served(ServerOptions::default()).await;
    let mut request = Request::new(v1::NackRequest::default());
    request.metadata_mut().insert("leasehold-caller", MetadataValue::<Ascii>::from_static("checkout"));
    let status = served.client().await.nack(request).await.expect_err("it fails");
    assert_fails(&status, Code::Unavailable, Reason::OutcomeUnknown, "unknown");
    assert_eq!(status.message(), "for checkout");
}

#[tokio::test]
async fn other_services_fail_with_outcome_too() {
    let served = served(ServerOptions::default()).await;
    let channel = Channel::from_shared(format!("http://{}", served.address)).expect("an address").connect().await;
    let mut client = tonic_health::pb::health_client::HealthClient::new(channel.expect("connected"));
    let request = tonic_health::pb::HealthCheckRequest { service: "nope".into() };
    let status = client.check(request).await.expect_err("no such service");
    assert_fails(&status, Code::NotFound, Reason::NotFound, "not-applied");
}

#[tokio::test]
async fn a_call_of_an_unknown_method_over_the_wire_has_trailers() {
    let served = served(ServerOptions::default()).await;
    let channel = Channel::from_shared(format!("http://{}", served.address)).expect("an address").connect().await;
    let mut grpc = tonic::client::Grpc::new(channel.expect("connected"));
    grpc.ready().await.expect("ready");
    let codec = tonic_prost::ProstCodec::<v1::AckRequest, v1::AckResponse>::default();
    let path = PathAndQuery::from_static("/leasehold.v1.QueueService/Nope");
    let status = grpc.unary(Request::new(v1::AckRequest::default()), path, codec).await.expect_err("unknown");
    assert_fails(&status, Code::Unimplemented, Reason::Unimplemented, "not-applied");
}

#[tokio::test]
async fn a_client_that_sends_headers_alone_hears_of_its_deadline() {
    let served = served(ServerOptions::default()).await;
    let mut client = RawClient::open(served.address, 65_535).await;
    client.call(1, "Ack", &[("grpc-timeout", "50m")], None).await;
    assert!(client.next_of(super::raw::HEADERS, true).await.is_some());
}

#[tokio::test]
async fn every_call_that_ends_is_told_with_its_code() {
    let (told, mut heard) = mpsc::unbounded_channel();
    let mut layers = layered(Scripted::default(), &LAYERS);
    layers.observe(Arc::new(move |method, code, _| told.send((method, code)).expect("listening")));
    let call = |path: &str, content_type: &str| {
        let request = http::Request::post(path).header(CONTENT_TYPE, content_type).body(message(&[]));
        layers.clone().oneshot(request.expect("a request"))
    };
    let grpc = "application/grpc";
    let answer = call(ACK, grpc).await.expect("infallible");
    assert!(heard.try_recv().is_err(), "an answer that is not sent yet is no end");
    axum::body::to_bytes(axum::body::Body::new(answer.into_body()), 1 << 10).await.expect("an answer");
    assert_eq!(heard.try_recv(), Ok(("leasehold.v1.QueueService/Ack", "OK")));
    call("/made/up", grpc).await.expect("infallible");
    assert_eq!(heard.try_recv(), Ok(("_OTHER", "UNIMPLEMENTED")));
    call(ACK, "text/plain").await.expect("infallible");
    assert_eq!(heard.try_recv(), Ok(("leasehold.v1.QueueService/Ack", "UNIMPLEMENTED")));
    let mut held = Box::pin(call("/leasehold.v1.QueueService/Extend", grpc));
    assert!((&mut held).now_or_never().is_none());
    drop(held);
    assert_eq!(heard.try_recv(), Ok(("leasehold.v1.QueueService/Extend", "CANCELLED")));
    call("/leasehold.v1.QueueService/Nack", grpc).await.expect("infallible");
    assert_eq!(heard.try_recv(), Ok(("leasehold.v1.QueueService/Nack", "UNAVAILABLE")));
}
