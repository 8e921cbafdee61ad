//! A Lease stream, and how one is had while brokers come and go.

use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::time::{Instant, timeout, timeout_at};
use tonic::{Code, Status, Streaming};

use crate::{
    cli::broker::{Broker, Failed, Pauses},
    v1::{LeaseRequest, LeaseResponse, LeasedJob, RevokedLease, lease_response::Frame},
};

/// Heartbeats that may stay out.
const MISSED: u32 = 3;
/// Until the first frame says better. A heartbeat comes every 15 s by default.
const FIRST_HEARTBEAT: Duration = Duration::from_secs(15);

/// What is asked for.
#[derive(Debug, Clone)]
pub(super) struct Ask {
    pub(super) queues: Vec<String>,
    pub(super) consumer: String,
    pub(super) lease: Option<prost_types::Duration>,
    pub(super) stop_when_empty: bool,
    /// How long it is tried to open a stream; for ever where absent.
    pub(super) patience: Option<Duration>,
}

/// What comes next.
#[derive(Debug)]
pub(super) enum Event {
    Jobs(Vec<LeasedJob>),
    Revoked(Vec<RevokedLease>),
    /// Nothing is ready and nothing is outstanding: there is no more to come.
    Empty,
    /// The broker ended it, or the connection was lost: another one is to be opened.
    Ended(Option<Status>),
}

/// An open stream.
pub(super) struct Stream {
    frames: Streaming<LeaseResponse>,
    /// Jobs that it may have outstanding.
    pub(super) credit: u32,
    stop_when_empty: bool,
    heartbeat: Duration,
    heard: Instant,
    drained: bool,
}

impl Stream {
    /// Opens one, again and again while the broker is away, which `say` is told. Fails at once where trying again cannot help.
    pub(super) async fn open(
        broker: &Broker,
        ask: &Ask,
        credit: u32,
        say: &(dyn Fn(&str) + Send + Sync),
    ) -> Result<Self, Failed> {
        let began = Instant::now();
        let mut pauses = Pauses::new(Duration::from_millis(100), Duration::from_secs(5));
        let mut told = false;
        loop {
            let status = match Self::try_to_open(broker, ask, credit).await {
                Ok(stream) => {
                    if told {
                        say("leasehold: the broker is back");
                    }
                    return Ok(stream);
                }
                Err(status) => status,
            };
            let over = ask.patience.is_some_and(|patience| began.elapsed() >= patience);
            if over || is_permanent(&status) {
                return Err(status.into());
            }
            if !told {
                say(&format!("leasehold: no stream, trying again: {}", Failed::from(status.clone()).headline()));
                told = true;
            }
            pauses.wait(&status).await;
        }
    }

    async fn try_to_open(broker: &Broker, ask: &Ask, credit: u32) -> Result<Self, Status> {
        let request = LeaseRequest {
            queues: ask.queues.clone(),
            consumer: ask.consumer.clone(),
            max_in_flight: credit,
            lease_duration: ask.lease,
            stop_when_empty: ask.stop_when_empty,
            ..LeaseRequest::default()
        };
        let mut client = broker.queue();
        let answer = timeout(broker.timeout(), client.lease(broker.stream(request))).await;
        let answer = answer.map_err(|_| Status::unavailable("no answer in time"))??;
        Ok(Self {
            frames: answer.into_inner(),
            credit,
            stop_when_empty: ask.stop_when_empty,
            heartbeat: FIRST_HEARTBEAT,
            heard: Instant::now(),
            drained: false,
        })
    }

    /// Waits for what comes next. May be dropped and called again: nothing is lost.
    pub(super) async fn next(&mut self) -> Event {
        loop {
            let Ok(frame) = timeout_at(self.heard + self.heartbeat * MISSED, self.frames.message()).await else {
                return Event::Ended(Some(Status::unavailable("no heartbeat came")));
            };
            self.heard = Instant::now();
            match frame {
                Ok(Some(LeaseResponse { frame })) => match frame {
                    Some(Frame::Jobs(leased)) => return Event::Jobs(leased.jobs),
                    Some(Frame::Revoked(revoked)) => return Event::Revoked(revoked.leases),
                    Some(Frame::Drain(_)) => self.drained = true,
                    Some(Frame::Opened(opened)) => {
                        let said = opened.heartbeat_interval.and_then(|said| Duration::try_from(said).ok());
                        self.heartbeat = said.filter(|said| !said.is_zero()).unwrap_or(FIRST_HEARTBEAT);
                    }
                    Some(Frame::Heartbeat(_)) | None => {}
                },
                Ok(None) if self.stop_when_empty && !self.drained => return Event::Empty,
                Ok(None) => return Event::Ended(None),
                Err(status) => return Event::Ended(Some(status)),
            }
        }
    }

    /// Ends it: jobs that have come and were not looked at yet.
    pub(super) fn close(mut self) -> Vec<LeasedJob> {
        let mut left = Vec::new();
        while let Some(event) = self.next().now_or_never() {
            match event {
                Event::Jobs(jobs) => left.extend(jobs),
                Event::Revoked(_) => {}
                Event::Empty | Event::Ended(_) => break,
            }
        }
        left
    }
}

/// Whether the same request fails again however long one waits.
pub(super) fn is_permanent(status: &Status) -> bool {
    matches!(
        status.code(),
        Code::InvalidArgument
            | Code::NotFound
            | Code::AlreadyExists
            | Code::PermissionDenied
            | Code::FailedPrecondition
            | Code::OutOfRange
            | Code::Unimplemented
            | Code::Unauthenticated
    )
}
