use prometheus::{IntCounter, Registry};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::watch,
    task::JoinHandle,
};

use super::*;

struct Running {
    address: SocketAddr,
    ready: watch::Sender<bool>,
    draining: CancellationToken,
    stop: CancellationToken,
    ended: JoinHandle<()>,
}

async fn running(options: HttpOptions) -> Running {
    let server = HttpServer::bind(HttpOptions { listen: ([127, 0, 0, 1], 0).into(), ..options }).await.expect("bound");
    let address = server.local_addr().expect("an address");
    let (ready, receiver) = watch::channel(false);
    let (draining, stop, registry) = (CancellationToken::new(), CancellationToken::new(), Registry::new());
    let counter = IntCounter::new("jobs_total", "Jobs.").expect("a counter");
    counter.inc_by(7);
    registry.register(Box::new(counter)).expect("registered once");
    let probes = Probes { ready: receiver, draining: draining.clone(), registry };
    let ended = tokio::spawn(server.run(probes, stop.clone()));
    Running { address, ready, draining, stop, ended }
}

async fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.expect("connected");
    stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes()).await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("the server ends the connection");
    answer
}

#[tokio::test]
async fn readiness_follows_the_database_and_ends_with_the_drain() {
    let running = running(HttpOptions::default()).await;
    let away = get(running.address, "/readyz").await;
    assert!(away.starts_with("HTTP/1.1 503") && away.contains("database unavailable"), "{away}");
    running.ready.send_replace(true);
    assert!(get(running.address, "/readyz").await.starts_with("HTTP/1.1 200"));
    running.draining.cancel();
    let draining = get(running.address, "/readyz").await;
    assert!(draining.starts_with("HTTP/1.1 503") && draining.ends_with("draining\n"), "{draining}");
    assert!(get(running.address, "/livez").await.starts_with("HTTP/1.1 200"), "alive to the end");
}

#[tokio::test]
async fn metrics_are_prometheus_text() {
    let running = running(HttpOptions::default()).await;
    let metrics = get(running.address, "/metrics").await;
    assert!(metrics.contains("content-type: text/plain; version=0.0.4"), "{metrics}");
    assert!(metrics.contains("\njobs_total 7\n"), "{metrics}");
    assert!(get(running.address, "/other").await.starts_with("HTTP/1.1 404"));
}

#[tokio::test]
async fn a_client_that_never_ends_its_headers_is_cut_and_makes_room() {
    let patience = Duration::from_millis(50);
    let running = running(HttpOptions { connections: 1, patience, ..HttpOptions::default() }).await;
    let mut silent = TcpStream::connect(running.address).await.expect("connected");
    silent.write_all(b"GET /livez HTTP/1.1\r\nx: ").await.expect("sent");
    assert!(get(running.address, "/livez").await.starts_with("HTTP/1.1 200"), "waited for the silent one's place");
    let mut rest = Vec::new();
    let ended = silent.read_to_end(&mut rest).await;
    assert!(ended.is_err() || !rest.starts_with(b"HTTP/1.1 200"), "{rest:?}");
}

#[tokio::test]
async fn a_stop_ends_open_connections() {
    let running = running(HttpOptions::default()).await;
    let mut open = TcpStream::connect(running.address).await.expect("connected");
    open.write_all(b"GET").await.expect("sent");
    assert!(get(running.address, "/livez").await.starts_with("HTTP/1.1 200"));
    running.stop.cancel();
    running.ended.await.expect("ended well");
    let mut rest = Vec::new();
    // Closed or reset, but over.
    assert!(open.read_to_end(&mut rest).await.is_err() || rest.is_empty());
}
