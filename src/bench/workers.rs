//! Workers that do nothing: they lease and ack as fast as jobs come.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{sync::Semaphore, task::JoinSet, time::timeout};
use tokio_util::sync::CancellationToken;
use tonic::Streaming;

use super::{
    BenchError,
    clients::{Client, Clients},
    figures::Times,
    producers::Jobs,
    shape::index,
    stamp::Stamp,
};
use crate::v1::{
    AckRequest, LeaseRequest, LeaseResponse, LeasedJob, NackAction, NackItem, NackRequest, SettleStatus,
    lease_response::Frame,
};

/// A stream that has said nothing for so long has sent what it had.
const QUIET: Duration = Duration::from_millis(500);
/// Leases of one Nack.
const NACKED: usize = 1_000;

/// What is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Timed {
    /// Ack calls.
    Acks,
    /// Jobs, until a worker has them.
    Jobs,
}

/// All workers of a round.
pub(super) struct Workers {
    running: JoinSet<Result<Ended, BenchError>>,
    clients: Clients,
    jobs: Arc<Jobs>,
    /// A permit for each stream that is open.
    open: Arc<Semaphore>,
}

struct Ended {
    times: Times,
    held: Vec<Held>,
}

/// A lease, and the number of its job.
struct Held {
    token: String,
    number: u64,
}

impl Workers {
    /// Opens all streams; once `over` is cancelled, nothing is acked any more.
    pub(super) fn start(clients: &Clients, jobs: &Arc<Jobs>, timed: Timed, over: &CancellationToken) -> Self {
        let (mut running, open) = (JoinSet::new(), Arc::new(Semaphore::new(0)));
        for stream in 0..jobs.shape.streams.max(1) {
            let worker = Worker {
                queues: jobs.shape.queues_of(stream, &jobs.queues),
                client: clients.client(stream),
                jobs: Arc::clone(jobs),
                timed,
                over: over.clone(),
                open: Arc::clone(&open),
                times: Times::default(),
            };
            running.spawn(worker.work());
        }
        Self { running, clients: clients.clone(), jobs: Arc::clone(jobs), open }
    }

    /// Waits until all streams are open, or one of them failed.
    pub(super) async fn wait_until_open(&mut self) -> Result<(), BenchError> {
        let streams = self.jobs.shape.streams.max(1);
        tokio::select! {
            opened = self.open.acquire_many(streams) => opened.map(drop).map_err(|error| BenchError::Other(error.to_string())),
            failed = failure(&mut self.running) => Err(failed),
        }
    }

    /// Waits until one of them failed.
    pub(super) async fn failure(&mut self) -> BenchError {
        failure(&mut self.running).await
    }

    /// Waits for all, and gives back what they did not ack. Answers what was timed.
    pub(super) async fn end(mut self) -> Result<Times, BenchError> {
        let (mut times, mut held) = (Times::default(), Vec::new());
        while let Some(ended) = self.running.join_next().await {
            let ended = ended.map_err(|error| BenchError::Other(error.to_string()))??;
            times.add(&ended.times);
            held.extend(ended.held);
        }
        // only now that no stream is open, or the next one would get them at once
        let client = self.clients.client(0);
        for part in held.chunks(NACKED) {
            for held in part {
                self.jobs.tally.release(held.number);
            }
            let item = |held: &Held| NackItem {
                lease_token: held.token.clone(),
                action: NackAction::Release.into(),
                ..NackItem::default()
            };
            client.queue().nack(client.call(NackRequest { items: part.iter().map(item).collect() })).await?;
        }
        Ok(times)
    }
}

/// A worker that ended before the round was over, which none should.
async fn failure(running: &mut JoinSet<Result<Ended, BenchError>>) -> BenchError {
    match running.join_next().await {
        Some(Ok(Err(failed))) => failed,
        Some(Err(error)) => BenchError::Other(error.to_string()),
        Some(Ok(Ok(_))) | None => BenchError::Other("a worker ended before the round did".to_owned()),
    }
}

struct Worker {
    queues: Vec<String>,
    client: Client,
    jobs: Arc<Jobs>,
    timed: Timed,
    over: CancellationToken,
    open: Arc<Semaphore>,
    times: Times,
}

type Acked = Result<Duration, BenchError>;

impl Worker {
    async fn work(mut self) -> Result<Ended, BenchError> {
        let (mut frames, mut acks, mut seen) = (self.lease().await?, JoinSet::new(), false);
        let most = index(u64::from(self.jobs.shape.acks.max(1)));
        loop {
            let frame = tokio::select! {
                () = self.over.cancelled() => break,
                Some(acked) = acks.join_next() => {
                    self.acked(acked)?;
                    continue;
                }
                frame = frames.message(), if acks.len() < most => frame?.and_then(|response| response.frame),
            };
            match frame {
                Some(Frame::Jobs(leased)) => {
                    let batch = index(self.jobs.shape.batch);
                    let mut held = self.take(leased.jobs).into_iter().peekable();
                    while held.peek().is_some() {
                        acks.spawn(ack(
                            self.client.clone(),
                            held.by_ref().take(batch).collect(),
                            Arc::clone(&self.jobs),
                            self.over.clone(),
                        ));
                    }
                }
                Some(Frame::Opened(_)) if !seen => {
                    seen = true;
                    self.open.add_permits(1);
                }
                Some(Frame::Drain(_)) | None => frames = self.lease().await?,
                Some(_) => {}
            }
        }
        while let Some(acked) = acks.join_next().await {
            self.acked(acked)?;
        }
        let held = self.rest(frames).await;
        Ok(Ended { times: self.times, held })
    }

    async fn lease(&self) -> Result<Streaming<LeaseResponse>, BenchError> {
        let lease = self.jobs.shape.lease;
        let request = LeaseRequest {
            queues: self.queues.clone(),
            consumer: "bench".to_owned(),
            max_in_flight: self.jobs.shape.credit,
            lease_duration: Some(
                prost_types::Duration::try_from(lease).map_err(|error| BenchError::Other(error.to_string()))?,
            ),
            ..LeaseRequest::default()
        };
        Ok(self.client.queue().lease(self.client.stream(request)).await?.into_inner())
    }

    fn acked(&mut self, acked: Result<Acked, tokio::task::JoinError>) -> Result<(), BenchError> {
        let took = acked.map_err(|error| BenchError::Other(error.to_string()))??;
        if self.timed == Timed::Acks {
            self.times.record(took);
        }
        Ok(())
    }

    /// Notes that these jobs came, and which they are.
    fn take(&mut self, jobs: Vec<LeasedJob>) -> Vec<Held> {
        let mut held = Vec::with_capacity(jobs.len());
        for job in jobs {
            let stamp = Stamp::read(&job.payload, self.jobs.shape.payload_bytes);
            match stamp.filter(|stamp| stamp.run == self.jobs.tally.run) {
                Some(stamp) => {
                    self.jobs.tally.deliver(stamp.number);
                    if self.timed == Timed::Jobs {
                        self.times.record(stamp.age(self.jobs.began));
                    }
                    held.push(Held { token: job.lease_token, number: stamp.number });
                }
                None => self.jobs.tally.stray(),
            }
        }
        held
    }

    /// What still comes when the round is over. Nothing is acked any more, so that credit ends it.
    async fn rest(&mut self, mut frames: Streaming<LeaseResponse>) -> Vec<Held> {
        // what comes so late is not a part of the round's figures
        self.timed = Timed::Acks;
        let mut held = Vec::new();
        while self.jobs.tally.open() > 0 {
            let Ok(Ok(Some(response))) = timeout(QUIET, frames.message()).await else { break };
            if let Some(Frame::Jobs(leased)) = response.frame {
                held.extend(self.take(leased.jobs));
            }
        }
        held
    }
}

async fn ack(client: Client, held: Vec<Held>, jobs: Arc<Jobs>, over: CancellationToken) -> Acked {
    let lease_tokens = held.iter().map(|held| held.token.clone()).collect();
    let asked = Instant::now();
    let results = client.queue().ack(client.call(AckRequest { lease_tokens })).await?.into_inner().results;
    let took = asked.elapsed();
    let ok = |status: SettleStatus| status == SettleStatus::Ok;
    let refused = held.len() - results.iter().filter(|result| ok(result.status())).count();
    jobs.tally.refuse(refused as u64);
    let done = held.iter().zip(&results).filter(|(_, result)| ok(result.status()));
    jobs.tally.ack(done.map(|(held, _)| held.number), &over);
    Ok(took)
}
