//! Producers and workers over real gRPC.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant, SystemTime},
};

use leasehold::v1::{
    AckRequest, EnqueueRequest, LeaseRequest, LeasedJob, NewJob, SettleStatus, lease_response::Frame, new_job::Start,
    queue_service_client::QueueServiceClient,
};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tonic::{
    Request, Streaming,
    metadata::MetadataValue,
    transport::{Channel, Endpoint},
};

use super::Outcome;

pub(crate) type Client = QueueServiceClient<Channel>;

/// Bytes of a job's payload, as in most measurements of queues.
pub(crate) const PAYLOAD: usize = 112;

/// A client with a connection of its own.
pub(crate) async fn connect(address: SocketAddr) -> Outcome<Client> {
    let channel = Endpoint::from_shared(format!("http://{address}"))?.tcp_nodelay(true).connect().await?;
    Ok(QueueServiceClient::new(channel))
}

/// A request of one of the business processes.
pub(crate) fn from_caller<T>(caller: &str, message: T) -> Outcome<Request<T>> {
    let mut request = Request::new(message);
    request.metadata_mut().insert("leasehold-caller", MetadataValue::try_from(caller)?);
    Ok(request)
}

/// When the jobs of a producer are due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    /// At once, said by leaving it out.
    Unset,
    /// Some time within the last hour, as a producer does that passes on when something happened.
    Past,
}

/// The shape of what producers send.
#[derive(Debug, Clone)]
pub(crate) struct Producers {
    pub(crate) queue: String,
    pub(crate) due: Due,
    /// Producers at work at the same time.
    pub(crate) clients: u64,
    /// HTTP/2 connections that they share.
    pub(crate) connections: u64,
    /// Jobs of one Enqueue.
    pub(crate) batch: u64,
}

impl Producers {
    /// Enqueues `jobs` jobs; answers how long it took, connecting left out.
    pub(crate) async fn enqueue(&self, address: SocketAddr, jobs: u64) -> Outcome<Duration> {
        let (connections, left) = (connect_all(address, self.connections).await?, Arc::new(AtomicU64::new(jobs)));
        let (started, mut producers) = (Instant::now(), JoinSet::new());
        for number in 0..self.clients {
            let (producer, left) = (self.clone(), Arc::clone(&left));
            let mut client = connections[index(number % self.connections)].clone();
            producers.spawn(async move {
                while let Some(share) = take(&left, producer.batch) {
                    client.enqueue(producer.request(share)?).await?;
                }
                Ok(())
            });
        }
        all(producers).await?;
        Ok(started.elapsed())
    }

    /// Enqueues a batch now and then until `stop`; answers how many jobs.
    pub(crate) async fn trickle(&self, address: SocketAddr, pause: Duration, stop: CancellationToken) -> Outcome<u64> {
        let (mut client, mut sent) = (connect(address).await?, 0);
        let mut ticks = tokio::time::interval(pause);
        while stop.run_until_cancelled(ticks.tick()).await.is_some() {
            client.enqueue(self.request(self.batch)?).await?;
            sent += self.batch;
        }
        Ok(sent)
    }

    fn request(&self, jobs: u64) -> Outcome<Request<EnqueueRequest>> {
        let job = || NewJob {
            queue: self.queue.clone(),
            payload: vec![b'x'; PAYLOAD].into(),
            start: (self.due == Due::Past).then(|| {
                let ago = Duration::from_secs(rand::random_range(1..3_600));
                Start::AvailableAt((SystemTime::now() - ago).into())
            }),
            ..NewJob::default()
        };
        from_caller("producer", EnqueueRequest { jobs: (0..jobs).map(|_| job()).collect() })
    }
}

/// The shape of what workers do.
#[derive(Debug, Clone)]
pub(crate) struct Workers {
    pub(crate) queue: String,
    /// Lease streams.
    pub(crate) streams: u64,
    /// HTTP/2 connections that they share.
    pub(crate) connections: u64,
    /// Credit of each stream.
    pub(crate) max_in_flight: u32,
    /// Tokens of one Ack at most; a frame with fewer jobs is acked as it is.
    pub(crate) batch: usize,
    /// With so many Acks of a stream under way, its next frame is left waiting.
    pub(crate) acks: usize,
    pub(crate) lease: Duration,
}

/// What workers did.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Drained {
    pub(crate) elapsed: Duration,
    pub(crate) acked: u64,
    /// Acks that were answered with anything but OK: leases that ended before their Ack.
    pub(crate) refused: u64,
}

impl Workers {
    /// Leases and acks until `jobs` jobs are acked.
    pub(crate) async fn drain(&self, address: SocketAddr, jobs: u64) -> Outcome<Drained> {
        let connections = connect_all(address, self.connections).await?;
        let counts = Arc::new(Counts { acked: AtomicU64::new(0), refused: AtomicU64::new(0), wanted: jobs });
        let (done, started, mut workers) = (CancellationToken::new(), Instant::now(), JoinSet::new());
        for number in 0..self.streams {
            let client = connections[index(number % self.connections)].clone();
            let worker = Worker { shape: self.clone(), client, counts: Arc::clone(&counts), done: done.clone() };
            let done = done.clone();
            workers.spawn(async move { done.run_until_cancelled(worker.work()).await.unwrap_or(Ok(())) });
        }
        all(workers).await?;
        let (acked, refused) = (counts.acked.load(Relaxed), counts.refused.load(Relaxed));
        Ok(Drained { elapsed: started.elapsed(), acked, refused })
    }
}

struct Counts {
    acked: AtomicU64,
    refused: AtomicU64,
    wanted: u64,
}

struct Worker {
    shape: Workers,
    client: Client,
    counts: Arc<Counts>,
    done: CancellationToken,
}

impl Worker {
    async fn work(mut self) -> Outcome<()> {
        let mut frames = self.open().await?;
        let mut acks = JoinSet::new();
        loop {
            let frame = tokio::select! {
                Some(acked) = acks.join_next() => {
                    acked??;
                    continue;
                }
                response = frames.message(), if acks.len() < self.shape.acks => response?.and_then(|response| response.frame),
            };
            match frame {
                Some(Frame::Jobs(leased)) => {
                    for jobs in leased.jobs.chunks(self.shape.batch) {
                        acks.spawn(ack(self.client.clone(), tokens(jobs), Arc::clone(&self.counts), self.done.clone()));
                    }
                }
                Some(Frame::Drain(_)) | None => frames = self.open().await?,
                Some(_) => {}
            }
        }
    }

    async fn open(&mut self) -> Outcome<Streaming<leasehold::v1::LeaseResponse>> {
        let request = LeaseRequest {
            queues: vec![self.shape.queue.clone()],
            consumer: "measurement".to_owned(),
            max_in_flight: self.shape.max_in_flight,
            lease_duration: Some(prost_types::Duration::try_from(self.shape.lease)?),
            ..LeaseRequest::default()
        };
        Ok(self.client.lease(from_caller("worker", request)?).await?.into_inner())
    }
}

/// The tokens of leased jobs.
pub(crate) fn tokens(jobs: &[LeasedJob]) -> Vec<String> {
    jobs.iter().map(|job| job.lease_token.clone()).collect()
}

async fn ack(
    mut client: Client,
    lease_tokens: Vec<String>,
    counts: Arc<Counts>,
    done: CancellationToken,
) -> Outcome<()> {
    let answer = client.ack(from_caller("worker", AckRequest { lease_tokens })?).await?.into_inner();
    let all = u64::try_from(answer.results.len())?;
    let ok = u64::try_from(answer.results.iter().filter(|result| result.status() == SettleStatus::Ok).count())?;
    counts.refused.fetch_add(all - ok, Relaxed);
    if counts.acked.fetch_add(ok, Relaxed) + ok >= counts.wanted {
        done.cancel();
    }
    Ok(())
}

async fn connect_all(address: SocketAddr, count: u64) -> Outcome<Vec<Client>> {
    let mut connections = Vec::new();
    for _ in 0..count {
        connections.push(connect(address).await?);
    }
    Ok(connections)
}

/// Takes up to `most` from what is left.
fn take(left: &AtomicU64, most: u64) -> Option<u64> {
    let before = left.fetch_update(Relaxed, Relaxed, |left| (left > 0).then(|| left.saturating_sub(most))).ok()?;
    Some(before.min(most))
}

/// Waits for all; the first failure ends the others.
pub(crate) async fn all(mut running: JoinSet<Outcome<()>>) -> Outcome<()> {
    while let Some(ended) = running.join_next().await {
        ended??;
    }
    Ok(())
}

fn index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
