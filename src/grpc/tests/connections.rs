//! What becomes of connections.

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::{
    raw::{DATA, GOAWAY, HEADERS, PREFACE, RawClient},
    *,
};

const SHORT: Duration = Duration::from_millis(100);

#[tokio::test]
async fn half_a_preface_is_closed_at_its_deadline() {
    let served = served(ServerOptions { preface: SHORT, ..ServerOptions::default() }).await;
    let mut client = RawClient::connect(served.address).await;
    client.stream.write_all(&PREFACE[..12]).await.expect("sent");
    // Our own settings may come first; then the end, clean or not.
    soon(client.stream.read_to_end(&mut Vec::new())).await.ok();
    served.kill.cancel();
    served.ends().await;
}

#[tokio::test]
async fn a_whole_preface_outlives_its_deadline() {
    let served = served(ServerOptions { preface: SHORT, connection_age: 3 * SHORT, ..ServerOptions::default() }).await;
    let mut client = RawClient::open(served.address, 65_535).await;
    assert!(client.next_of(GOAWAY, true).await.is_some(), "closed before its age");
}

#[tokio::test]
async fn bytes_of_another_protocol_are_closed() {
    let served = served(ServerOptions::default()).await;
    for foreign in
        [&b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"[..], b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 tls hello.."]
    {
        let mut client = RawClient::connect(served.address).await;
        client.stream.write_all(foreign).await.expect("sent");
        let mut answer = Vec::new();
        // Ended or reset; an HTTP/2 client would have been sent settings before a GOAWAY.
        if soon(client.stream.read_to_end(&mut answer)).await.is_ok() {
            assert!(!answer.starts_with(b"HTTP/1.1 200"), "{answer:?}");
        }
    }
    assert!(served.client().await.ack(v1::AckRequest::default()).await.is_ok(), "others are still served");
}

#[tokio::test]
async fn an_old_connection_says_goaway_and_ends_with_its_last_stream() {
    let served = served(ServerOptions { connection_age: SHORT, ..ServerOptions::default() }).await;
    let mut client = RawClient::open(served.address, 65_535).await;
    client.call(1, "Lease", &[], Some(&[])).await;
    assert!(client.next_of(DATA, true).await.is_some(), "the stream opens");
    let first = client.next_of(GOAWAY, true).await.expect("a GOAWAY");
    assert_eq!(first.payload[..4], [0x7f, 0xff, 0xff, 0xff], "calls on their way are still taken");
    assert!(client.next_of(DATA, true).await.is_some(), "the stream is told to drain");
    assert!(client.next_of(HEADERS, true).await.is_some(), "and ends");
    assert!(client.next_of(DATA, true).await.is_none(), "then the connection does");
    assert_eq!(served.scripted.running.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn an_old_connection_whose_client_is_silent_is_cut_after_its_grace() {
    let options = ServerOptions { connection_age: SHORT, connection_grace: SHORT, ..ServerOptions::default() };
    let served = served(options).await;
    let mut client = RawClient::open(served.address, 65_535).await;
    assert!(client.next_of(GOAWAY, false).await.is_some());
    assert!(client.next_of(GOAWAY, false).await.is_none(), "the ping was never answered");
}

#[tokio::test]
async fn a_drain_is_bounded_however_little_a_client_reads() {
    let served = served(ServerOptions { drain: SHORT, ..ServerOptions::default() }).await;
    let mut silent = RawClient::open(served.address, 0).await;
    silent.call(1, "Lease", &[], Some(&[])).await;
    assert!(silent.next_of(HEADERS, false).await.is_some(), "the call has begun");
    let mut half = RawClient::connect(served.address).await;
    half.stream.write_all(&PREFACE[..12]).await.expect("sent");
    served.drain.cancel();
    served.ends().await;
}

#[tokio::test]
async fn a_drain_lets_calls_under_way_finish_and_takes_no_connections() {
    let served = served(ServerOptions::default()).await;
    let mut client = served.client().await;
    let call = tokio::spawn(async move { client.extend(v1::ExtendRequest::default()).await });
    soon(served.scripted.entered.notified()).await;
    served.drain.cancel();
    // The kernel may still have taken it; the end of the listener then ends it, and nobody has said a word.
    if let Ok(mut late) = TcpStream::connect(served.address).await {
        assert_eq!(soon(late.read(&mut [0; 9])).await.unwrap_or(0), 0);
    }
    served.scripted.release.notify_one();
    assert!(soon(call).await.expect("no panic").is_ok());
    served.ends().await;
}

#[tokio::test]
async fn a_kill_ends_calls_and_connections_on_the_spot() {
    let served = served(ServerOptions { drain: Duration::from_hours(1), ..ServerOptions::default() }).await;
    let mut client = served.client().await;
    let call = tokio::spawn(async move { client.extend(v1::ExtendRequest::default()).await });
    soon(served.scripted.entered.notified()).await;
    served.drain.cancel();
    served.kill.cancel();
    served.ends().await;
    assert!(soon(call).await.expect("no panic").is_err(), "nobody let it go");
}

#[tokio::test]
async fn lease_streams_over_the_limit_are_refused_at_once_while_unary_calls_pass() {
    let served = served(ServerOptions { lease_streams_per_connection: 8, ..ServerOptions::default() }).await;
    let mut client = served.client().await;
    let mut streams = Vec::new();
    for _ in 0..8 {
        let mut stream = client.lease(v1::LeaseRequest::default()).await.expect("room").into_inner();
        assert!(soon(stream.message()).await.expect("a frame").is_some());
        streams.push(stream);
    }
    for _ in 0..3 {
        let refused = client.lease(v1::LeaseRequest::default()).await.expect_err("no room");
        assert_fails(&refused, Code::ResourceExhausted, Reason::StreamLimit, "not-applied");
        let details = refused.get_error_details();
        assert!(details.retry_info().is_some() && details.quota_failure().is_some());
    }
    soon(client.ack(v1::AckRequest::default())).await.expect("unary calls pass");
    let mut other = served.client().await;
    assert!(other.lease(v1::LeaseRequest::default()).await.is_ok(), "the limit is each connection's own");
    streams.pop();
    soon(async { while client.lease(v1::LeaseRequest::default()).await.is_err() {} }).await;
}

#[tokio::test]
async fn calls_end_with_their_connection() {
    let served = served(ServerOptions::default()).await;
    let mut client = RawClient::open(served.address, 65_535).await;
    client.call(1, "Lease", &[], Some(&[])).await;
    client.call(3, "Extend", &[], Some(&[])).await;
    soon(served.scripted.entered.notified()).await;
    assert!(client.next_of(DATA, true).await.is_some());
    assert_eq!(served.scripted.running.load(Ordering::SeqCst), 2);
    drop(client);
    soon(async {
        while served.scripted.running.load(Ordering::SeqCst) > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn watched_health_does_not_hold_up_a_drain() {
    let served = served(ServerOptions { drain: Duration::from_hours(1), ..ServerOptions::default() }).await;
    let channel = Channel::from_shared(format!("http://{}", served.address)).expect("an address").connect().await;
    let mut client = tonic_health::pb::health_client::HealthClient::new(channel.expect("connected"));
    let mut health = client.watch(tonic_health::pb::HealthCheckRequest::default()).await.expect("known").into_inner();
    assert!(soon(health.message()).await.expect("a status").is_some());
    served.drain.cancel();
    let ended = soon(health.message()).await.expect_err("it would go on for ever");
    assert_fails(&ended, Code::Unavailable, Reason::Draining, "not-applied");
    served.ends().await;
}
