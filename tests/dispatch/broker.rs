//! A broker without a network.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures_util::StreamExt as _;
use leasehold::{
    connections::{Observer, SamplerOptions, Watching},
    dispatch::{Dispatch, DispatchOptions, Frame, LeaseStream, SentJob, StreamSpec},
    model::{Caller, Failure, Headers, LeaseToken, NackAction, NewJob, Priority, QueueName, Start},
    store::{
        Call, Store, StoreOptions,
        engine::{AckedRow, LeaseRef, NackRow, NackedRow},
    },
    upkeep::{Upkeep, UpkeepOptions},
};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::lanes::stage::Stage;

/// A test waits at most this long for what must come.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Broker {
    pub(crate) store: Store,
    pub(crate) dispatch: Dispatch,
    _upkeep: Upkeep,
    _watching: Watching,
    /// Goes with the broker, where it has one of its own.
    _stage: Option<Stage>,
}

impl Broker {
    pub(crate) async fn start() -> Self {
        Self::with(DispatchOptions::default()).await
    }

    /// On the embedded database.
    pub(crate) async fn with(options: DispatchOptions) -> Self {
        let stage = Stage::sqlite().await;
        let (store, dispatch, upkeep, watching) = parts(&stage, options).await;
        Self { store, dispatch, _upkeep: upkeep, _watching: watching, _stage: Some(stage) }
    }

    /// One of several on the same database.
    pub(crate) async fn on(stage: &Stage, options: DispatchOptions) -> Self {
        let (store, dispatch, upkeep, watching) = parts(stage, options).await;
        Self { store, dispatch, _upkeep: upkeep, _watching: watching, _stage: None }
    }

    /// As the edge does it.
    pub(crate) async fn enqueue(&self, jobs: Vec<NewJob>) {
        let stored = self.store.enqueue(&call(), jobs).await.expect("stored");
        let ready: Vec<_> = stored.iter().map(|stored| (stored.queue, stored.row.ready_in)).collect();
        self.dispatch.ready(&ready);
    }

    pub(crate) async fn ack(&self, jobs: &[SentJob]) -> Vec<AckedRow> {
        let tokens: Vec<LeaseToken> = jobs.iter().map(|job| job.token).collect();
        let acked = self.store.ack(&call(), tokens.iter().map(lease_of).collect()).await.expect("an answer");
        self.dispatch.settled(&tokens);
        acked
    }

    pub(crate) async fn nack(&self, job: &SentJob, action: NackAction, delay: Duration) -> NackedRow {
        let row = NackRow {
            lease: lease_of(&job.token),
            action,
            delay: Some(delay),
            jitter: 1.0,
            error: "failed".to_owned(),
        };
        let nacked = self.store.nack(&call(), vec![row]).await.expect("an answer")[0];
        self.dispatch.settled(&[job.token]);
        if let Some(queue) = nacked.readied {
            self.dispatch.ready(&[(queue, nacked.ready_in)]);
        }
        nacked
    }

    pub(crate) fn open(&self, spec: StreamSpec) -> Consumer {
        Consumer::new(self.dispatch.open(spec).expect("a stream"))
    }
}

async fn parts(stage: &Stage, options: DispatchOptions) -> (Store, Dispatch, Upkeep, Watching) {
    let store = stage.store(StoreOptions::default()).await;
    let dispatch = Dispatch::start(store.clone(), options, "test".to_owned());
    let upkeep = Upkeep::start(store.clone(), dispatch.clone(), UpkeepOptions::default());
    let (_, watching) = Observer::start(&store, SamplerOptions::default());
    (store, dispatch, upkeep, watching)
}

/// Reads a stream.
pub(crate) struct Consumer {
    stream: LeaseStream,
}

impl Consumer {
    pub(crate) fn new(stream: LeaseStream) -> Self {
        Self { stream }
    }

    /// The next frame, or how the stream ended.
    pub(crate) async fn frame(&mut self) -> Option<Result<Frame, Failure>> {
        within(self.stream.next()).await
    }

    /// The next jobs, past anything else that is said.
    pub(crate) async fn jobs(&mut self) -> Vec<SentJob> {
        loop {
            match self.frame().await {
                Some(Ok(Frame::Jobs(jobs))) => return jobs,
                Some(Ok(_)) => {}
                end => panic!("the stream ended with {end:?}"),
            }
        }
    }

    /// Jobs until there are this many, or more.
    pub(crate) async fn at_least(&mut self, count: usize) -> Vec<SentJob> {
        let mut jobs = Vec::new();
        while jobs.len() < count {
            jobs.extend(self.jobs().await);
        }
        jobs
    }
}

/// Waits for what must come, and fails the test where it does not.
pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    timeout(PATIENCE, future).await.expect("in time")
}

pub(crate) fn call() -> Call {
    Call { caller: caller(), deadline: Instant::now() + PATIENCE }
}

pub(crate) fn lease_of(token: &LeaseToken) -> LeaseRef {
    LeaseRef { job: token.job, lease: token.lease }
}

fn caller() -> Caller {
    Caller::parse("shop").expect("a caller")
}

pub(crate) fn spec(queues: &[&str], max_in_flight: u32) -> StreamSpec {
    StreamSpec {
        queues: queues.iter().map(|name| queue(name)).collect(),
        consumer: "test".to_owned(),
        caller: caller(),
        max_in_flight,
        max_in_flight_bytes: 0,
        lease_duration: None,
        stop_when_empty: false,
        deadline: None,
        connection_closing: CancellationToken::new(),
        peer: "test".to_owned(),
    }
}

fn queue(name: &str) -> QueueName {
    QueueName::parse("queue", name).expect("a queue")
}

pub(crate) fn job(queue_name: &str, payload: impl Into<Bytes>) -> NewJob {
    NewJob {
        queue: queue(queue_name),
        payload: payload.into(),
        content_type: String::new(),
        headers: Headers::new(),
        priority: Priority::DEFAULT,
        start: Start::Now,
        max_attempts: None,
        idempotency_key: None,
        ordering_key: None,
        trace: None,
    }
}

/// This many different jobs.
pub(crate) fn jobs(queue_name: &str, count: usize) -> Vec<NewJob> {
    (0..count).map(|number| job(queue_name, number.to_string())).collect()
}

/// How often each payload came.
pub(crate) fn deliveries(jobs: &[SentJob]) -> HashMap<Bytes, usize> {
    let mut counts = HashMap::new();
    for job in jobs {
        *counts.entry(job.job.payload.clone()).or_default() += 1;
    }
    counts
}
