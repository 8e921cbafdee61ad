//! What stands before every service: one [`Layers`] around all of them.
//!
//! A call gets its id and span, is checked for being gRPC at all, then for its caller and deadline, and its message is read
//! under that deadline. What comes back is a failure with reason and outcome, whoever made it, panics included.

mod answer;
mod body;
mod caller;
mod deadline;
mod failures;
mod method;
mod protocol;
mod trace;

use std::{
    convert::Infallible,
    future::ready,
    mem,
    panic::AssertUnwindSafe,
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use futures_util::{FutureExt, future::BoxFuture};
use http::{Request, Response};
use tokio::sync::Semaphore;
use tonic::body::Body;
use tower::Service;
use tracing::Instrument;

pub(super) use self::{
    answer::Observer,
    trace::{RequestId, call_trace},
};
use self::{answer::UnderWay, body::ReadBody, deadline::Asked, method::Method, protocol::Refused};
use super::{connection::Connection, status};
use crate::{
    model::{Caller, Failure, Invalid},
    telemetry::spans::{CallSpan, FutureExt as _, Spans},
};

/// What a call is, once the layers have let it in. In the extensions of every request.
#[derive(Debug, Clone)]
pub(super) struct CallScope {
    /// Names it in logs and failures.
    pub(super) id: RequestId,
    /// For whom it runs.
    pub(super) caller: Caller,
    /// When its asker stops waiting: what the client asked for, the server's own bound at most.
    pub(super) deadline: Instant,
    /// What the client asked for alone: streams live longer than the server's bound on calls.
    pub(super) stream_deadline: Option<Instant>,
}

/// Bounds that the layers keep.
#[derive(Debug, Clone)]
pub(super) struct LayerOptions {
    /// Longest that a unary call may take, and that any call may take to send its message.
    pub(super) request_deadline: Duration,
    /// Bytes of messages that are not complete yet, all calls together.
    pub(super) unread_bytes: usize,
}

/// The services behind their layers.
#[derive(Clone)]
pub(super) struct Layers<S> {
    inner: S,
    request_deadline: Duration,
    unread: Arc<Semaphore>,
    observer: Option<Observer>,
    spans: Spans,
}

/// What a client hears of a panic; what panicked is for the log alone.
pub(super) const PANICKED: &str = "the broker failed in a way that it cannot explain";

impl<S> Layers<S> {
    /// Puts the layers before `inner`.
    pub(super) fn new(inner: S, options: &LayerOptions) -> Self {
        let unread = Arc::new(Semaphore::new(options.unread_bytes.min(Semaphore::MAX_PERMITS)));
        Self { inner, request_deadline: options.request_deadline, unread, observer: None, spans: Spans::default() }
    }

    /// Tells `observer` of every call that ends from now on.
    pub(super) fn observe(&mut self, observer: Observer) {
        self.observer = Some(observer);
    }

    /// Makes a span of every call from now on.
    pub(super) fn trace(&mut self, spans: Spans) {
        self.spans = spans;
    }

    /// Lets the call in, its scope in its extensions, or says why not.
    fn admit(
        &self,
        request: Request<Body>,
        (id, caller): (RequestId, Result<Caller, Invalid>),
        traced: &CallSpan,
    ) -> Result<Request<Body>, Refused> {
        protocol::check(&request)?;
        let asked = deadline::asked(request.headers());
        let (caller, asked) = match (caller, asked) {
            (Ok(caller), Ok(asked)) => (caller, asked),
            (caller, asked) => {
                return Err(Failure::invalid(caller.err().into_iter().chain(asked.err()).collect()).into());
            }
        };
        let Asked { deadline, stream_deadline } = Asked::new(asked, self.request_deadline);
        traced.serves(&caller, request.extensions().get::<Connection>().map(|connection| connection.peer().ip()));
        let mut request = request.map(|body| Body::new(ReadBody::new(body, deadline, id, self.unread.clone())));
        request.extensions_mut().insert(CallScope { id, caller, deadline, stream_deadline });
        Ok(request)
    }
}

impl<S> Service<Request<Body>> for Layers<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (id, method) = (RequestId::draw(), Method::at(request.uri().path()));
        let connection = request.extensions().get::<Connection>().cloned();
        let parent = if self.spans.are_made() { trace::sent(request.headers()) } else { None };
        let traced = self.spans.call(method.name(), &id, parent.as_ref());
        let caller = caller::caller(request.headers());
        let span = trace::span(method, id, (caller.as_ref().ok(), connection.as_ref()), traced.trace());
        let context = traced.context();
        let call = UnderWay::new(method, id, (span.clone(), traced), self.observer.clone());
        let request = match span.in_scope(|| self.admit(request, (id, caller), &call.traced)) {
            Ok(request) => request,
            Err(Refused { http, failure }) => {
                let mut answer = status::of(&failure, id, None).into_http();
                *answer.status_mut() = http;
                return Box::pin(ready(Ok(call.send(answer, None))));
            }
        };
        // The one that said it was ready is the one to call.
        let next = self.inner.clone();
        let mut inner = mem::replace(&mut self.inner, next);
        let ending = connection.filter(|_| !method.is_ours()).map(|connection| connection.ending().clone());
        let answered = async move {
            let answered = AssertUnwindSafe(async move { inner.call(request).await }).catch_unwind().await;
            let answer = match answered {
                Ok(Ok(answer)) => failures::with_outcome(answer, id),
                Ok(Err(never)) => match never {},
                Err(_panic) => status::of(&Failure::internal(PANICKED), id, None).into_http(),
            };
            Ok(call.send(answer, ending))
        };
        let answered = answered.instrument(span);
        match context {
            Some(context) => Box::pin(answered.with_context(context)),
            None => Box::pin(answered),
        }
    }
}
