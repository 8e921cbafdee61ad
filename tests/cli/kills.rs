//! kill -9 of a broker in the middle of its work on the embedded database.

use std::{
    collections::HashSet,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use leasehold::v1::{
    AckRequest, EnqueueRequest, LeaseRequest, NewJob, SettleStatus, lease_response::Frame,
    queue_service_client::QueueServiceClient,
};
use rustix::process::Signal;
use sqlx::{ConnectOptions as _, Connection as _, Executor as _, Row as _, sqlite::SqliteConnectOptions};
use tonic::transport::Channel;

use super::broker::Broker;

/// Jobs of a batch that nobody leases.
const KEPT: usize = 4;

/// What the clients of a broker were told.
#[derive(Default)]
struct Told {
    /// Batches that were answered OK, and all that were sent.
    stored: HashSet<String>,
    sent: HashSet<String>,
    acked: HashSet<String>,
}

/// Enqueues batches until the broker is gone: some jobs for nobody, and one for the consumer.
async fn produce(channel: Channel, name: String, told: Arc<Mutex<Told>>, answers: Arc<AtomicUsize>) {
    let mut client = QueueServiceClient::new(channel);
    for n in 0.. {
        let batch = format!("{name}-{n}");
        told.lock().expect("no panic").sent.insert(batch.clone());
        let job = |queue: &str| NewJob {
            queue: queue.into(),
            payload: batch.clone().into_bytes().into(),
            content_type: batch.clone(),
            ..NewJob::default()
        };
        let jobs = (0..KEPT).map(|_| job("kept")).chain([job("done")]).collect();
        if client.enqueue(EnqueueRequest { jobs }).await.is_err() {
            return;
        }
        told.lock().expect("no panic").stored.insert(batch);
        answers.fetch_add(1, Ordering::Relaxed);
    }
}

/// Leases and acks until the broker is gone.
async fn consume(channel: Channel, told: Arc<Mutex<Told>>) {
    let mut client = QueueServiceClient::new(channel);
    let request = LeaseRequest { queues: vec!["done".into()], max_in_flight: 20, ..LeaseRequest::default() };
    let Ok(frames) = client.lease(request).await else { return };
    let mut frames = frames.into_inner();
    while let Ok(Some(answer)) = frames.message().await {
        let Some(Frame::Jobs(leased)) = answer.frame else { continue };
        let tokens = leased.jobs.iter().map(|job| job.lease_token.clone()).collect();
        let Ok(results) = client.ack(AckRequest { lease_tokens: tokens }).await else { return };
        for (job, result) in leased.jobs.iter().zip(results.into_inner().results) {
            assert_eq!(result.status(), SettleStatus::Ok);
            told.lock().expect("no panic").acked.insert(job.content_type.clone());
        }
    }
}

async fn texts(path: &Path, sql: &'static str) -> Vec<String> {
    let mut raw = SqliteConnectOptions::new().filename(path).connect().await.expect("a connection");
    let rows = raw.fetch_all(sql).await.expect("an answer");
    raw.close().await.expect("closed");
    rows.iter().map(|row| row.get(0)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_broker_leaves_a_whole_database_with_all_that_it_acknowledged() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("jobs.db");
    let url = format!("sqlite://{}", path.display());
    let told = Arc::new(Mutex::new(Told::default()));
    for round in 0..3 {
        let mut broker = Broker::start(&["--database-url", &url, "--migrate"]);
        broker.wait_for("\"ready:");
        let answers = Arc::new(AtomicUsize::new(0));
        let mut clients = tokio::task::JoinSet::new();
        for n in 0..3 {
            let (told, answers) = (Arc::clone(&told), Arc::clone(&answers));
            clients.spawn(produce(broker.channel().await, format!("{round}-{n}"), told, answers));
        }
        clients.spawn(consume(broker.channel().await, Arc::clone(&told)));
        while answers.load(Ordering::Relaxed) < 30 + 10 * round {
            tokio::task::yield_now().await;
        }
        broker.signal(Signal::KILL);
        broker.end();
        while let Some(client) = clients.join_next().await {
            client.expect("no client panics");
        }

        assert_eq!(texts(&path, "pragma integrity_check").await, ["ok"]);
        let kept =
            texts(&path, "select content_type from job join queue q on q.id = queue_id where name = 'kept'").await;
        let undone =
            texts(&path, "select content_type from job join queue q on q.id = queue_id where name = 'done'").await;
        let told = told.lock().expect("no panic");
        for batch in &told.sent {
            let found = kept.iter().filter(|of| *of == batch).count();
            let whole = found == KEPT || (found == 0 && !told.stored.contains(batch));
            assert!(whole, "round {round}: {found} jobs of batch {batch}");
        }
        let back: Vec<_> = undone.iter().filter(|batch| told.acked.contains(*batch)).collect();
        assert!(back.is_empty(), "round {round}: acked and there again: {back:?}");
    }
    assert!(!told.lock().expect("no panic").acked.is_empty(), "the consumer had its share");
}
