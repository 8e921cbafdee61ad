//! Answers that take several steps: a frame after each, until the work is done, its asker closes the stream, the call's
//! deadline passes, or the connection goes away.
//!
//! The steps run in a task of their own, which the stream's end lets finish the step that it is in: so what was done is
//! known, and written to the audit log, however the call ends.

use std::{
    panic::AssertUnwindSafe,
    time::{Duration, Instant},
};

use futures_util::{FutureExt as _, Stream};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Status};
use tracing::Instrument as _;

use super::{
    audit::Audit,
    connection::Connection,
    layers::{CallScope, PANICKED},
    status,
    unary::scope,
};
use crate::{
    model::{Failure, Outcome, Reason},
    store::Call,
};

/// How long a single step may take, its wait for a lane included.
const STEP: Duration = Duration::from_secs(30);

/// Work that is done in steps.
pub(super) trait Steps: Send + 'static {
    /// What is said after each of them.
    type Frame: Send + 'static;

    /// Takes the next step.
    fn step(&mut self, call: &Call) -> impl Future<Output = Result<Stepped<Self::Frame>, Failure>> + Send;

    /// What was done so far, e.g. `removed=12`.
    fn done(&self) -> String;

    /// Whether anything was changed so far.
    fn changed(&self) -> bool;
}

/// A step that went through.
pub(super) struct Stepped<F> {
    /// What to say.
    pub(super) frame: F,
    /// How long to wait before the next step; `None` after the last one.
    pub(super) next: Option<Duration>,
}

/// Runs the steps; the stream carries their frames. Without `audit` they change nothing.
pub(super) fn run<S: Steps, T>(
    steps: S,
    request: &Request<T>,
    audit: Option<Audit>,
) -> impl Stream<Item = Result<S::Frame, Status>> + Send + use<S, T> {
    let connection = request.extensions().get::<Connection>();
    let ending = connection.map_or_else(CancellationToken::new, |connection| connection.ending().clone());
    let (out, frames) = mpsc::channel(1);
    let driver = Driver { steps, scope: scope(request), ending, out };
    tokio::spawn(driver.drive(audit).in_current_span());
    ReceiverStream::new(frames)
}

struct Driver<S: Steps> {
    steps: S,
    scope: CallScope,
    /// Cancelled when the connection goes away.
    ending: CancellationToken,
    out: mpsc::Sender<Result<S::Frame, Status>>,
}

/// How the steps ended.
enum End {
    Done,
    Closed,
    Failed(Failure),
}

impl<S: Steps> Driver<S> {
    async fn drive(mut self, audit: Option<Audit>) {
        let end = AssertUnwindSafe(self.take_steps()).catch_unwind().await;
        let end = end.unwrap_or_else(|_panic| End::Failed(Failure::internal(PANICKED)));
        let done = self.steps.done();
        let failure = match end {
            End::Failed(failure) => self.so_far(failure, &done),
            End::Done => return audit.map_or((), |audit| audit.succeeded(&done)),
            End::Closed => return audit.map_or((), |audit| audit.stopped(&done)),
        };
        if let Some(audit) = audit {
            audit.failed(&failure, &done);
        }
        let status = status::of(&failure, self.scope.id, self.scope.stream_deadline);
        // Nobody is left to hear it where this fails.
        drop(self.out.send(Err(status)).await);
    }

    async fn take_steps(&mut self) -> End {
        loop {
            let call = Call { caller: self.scope.caller.clone(), deadline: Instant::now() + STEP };
            let stepped = match self.steps.step(&call).await {
                Ok(stepped) => stepped,
                Err(failure) => return End::Failed(failure),
            };
            let Some(pause) = stepped.next else {
                return if self.out.send(Ok(stepped.frame)).await.is_ok() { End::Done } else { End::Closed };
            };
            let over = Over::of(&self.out, &self.ending, self.scope.stream_deadline);
            if let Err(end) = over.unless(self.out.send(Ok(stepped.frame))).await {
                return end;
            }
            if let Err(end) = over.unless(tokio::time::sleep(pause).map(Ok::<(), ()>)).await {
                return end;
            }
        }
    }

    /// A failure after some steps went through says what they did; as a whole its outcome is not that nothing happened.
    fn so_far(&self, mut failure: Failure, done: &str) -> Failure {
        if self.steps.changed() {
            failure.outcome = Outcome::Unknown;
            failure.message = format!("{}; before that: {done}", failure.message);
        }
        failure
    }
}

/// What ends a call before its work is done.
struct Over<'a, F> {
    out: &'a mpsc::Sender<Result<F, Status>>,
    ending: &'a CancellationToken,
    deadline: Option<Instant>,
}

impl<'a, F> Over<'a, F> {
    fn of(out: &'a mpsc::Sender<Result<F, Status>>, ending: &'a CancellationToken, deadline: Option<Instant>) -> Self {
        Self { out, ending, deadline }
    }

    /// Waits for `what`, unless the call is over before.
    async fn unless<E>(&self, what: impl Future<Output = Result<(), E>>) -> Result<(), End> {
        let too_late = async {
            match self.deadline {
                Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.out.closed() => Err(End::Closed),
            () = self.ending.cancelled() => Err(End::Failed(Failure::not_applied(
                Reason::Draining,
                "this connection goes away; repeat the call on another one to go on",
            ))),
            () = too_late => Err(End::Failed(Failure::not_applied(
                Reason::Deadline,
                "the call's deadline passed; repeat the call to go on",
            ))),
            ended = what => ended.map_err(|_| End::Closed),
        }
    }
}
