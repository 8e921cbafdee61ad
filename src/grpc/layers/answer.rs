//! The answer of a call while it is sent, and the end of the call.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::{HeaderMap, Response};
use http_body::{Frame, SizeHint};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::{Code, Status, body::Body};
use tracing::Span;

use super::{RequestId, method::Method, trace};
use crate::{
    grpc::status,
    model::{Failure, Reason},
    telemetry::spans::CallSpan,
};

/// Hears of every call that ended: its method, the name of its code, and how long it took. Both names come from fixed sets.
pub(in crate::grpc) type Observer = Arc<dyn Fn(&'static str, &'static str, Duration) + Send + Sync>;

/// A call under way. Its end is told once: by the answer's status, or as cancelled where nobody waited for that.
pub(super) struct UnderWay {
    pub(super) method: Method,
    pub(super) id: RequestId,
    pub(super) span: Span,
    pub(super) traced: CallSpan,
    started: Instant,
    observer: Option<Observer>,
}

impl UnderWay {
    /// From now on.
    pub(super) fn new(
        method: Method,
        id: RequestId,
        (span, traced): (Span, CallSpan),
        observer: Option<Observer>,
    ) -> Self {
        Self { method, id, span, traced, started: Instant::now(), observer }
    }

    /// `answer` as it is sent. One that goes on (a stream of another service than ours, which drains by itself) ends when
    /// `ending` is cancelled.
    pub(super) fn send(mut self, answer: Response<Body>, ending: Option<CancellationToken>) -> Response<Body> {
        if answer.headers().contains_key(Status::GRPC_STATUS) {
            self.ended(answer.headers());
            return answer;
        }
        if self.method.is_open_ended() {
            self.traced.end(name(Code::Ok)); // it is open; it ends when somebody wants it to
        }
        let ending = ending.map(|ending| Box::pin(ending.cancelled_owned()));
        answer.map(|body| Body::new(Answer { body, call: self, ending, over: false }))
    }

    fn ended(&mut self, trailers: &HeaderMap) {
        let code = trailers.get(Status::GRPC_STATUS).map_or(Code::Ok, |code| Code::from_bytes(code.as_bytes()));
        if code != Code::Ok {
            self.span.in_scope(|| trace::failed(trailers));
        }
        self.tell(code);
    }

    fn tell(&mut self, code: Code) {
        self.traced.end(name(code));
        if let Some(observer) = self.observer.take() {
            observer(self.method.name(), name(code), self.started.elapsed());
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.tell(Code::Cancelled);
    }
}

/// A body that knows when its call has ended.
struct Answer {
    body: Body,
    call: UnderWay,
    ending: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    over: bool,
}

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = &mut *self;
        if this.over {
            return Poll::Ready(None);
        }
        let ends = |ending: &mut Pin<Box<WaitForCancellationFutureOwned>>| ending.as_mut().poll(cx).is_ready();
        let frame = if this.ending.as_mut().is_some_and(ends) {
            this.over = true;
            let failure = Failure::not_applied(Reason::Draining, "this connection goes away; open another one");
            Some(Ok(Frame::trailers(status::trailers(&failure, this.call.id))))
        } else {
            std::task::ready!(Pin::new(&mut this.body).poll_frame(cx))
        };
        match &frame {
            Some(Ok(frame)) => {
                if let Some(trailers) = frame.trailers_ref() {
                    this.call.ended(trailers);
                }
            }
            Some(Err(broken)) => this.call.tell(broken.code()),
            None => {}
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.over || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// As the gRPC documentation spells it.
fn name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}
