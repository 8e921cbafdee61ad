//! What stands before every service: one [`Layers`] around all of them.
//!
//! A call gets its id and span, is checked for being gRPC at all, then for its caller and deadline, and its message is read
//! under that deadline. What comes back is a failure with reason and outcome, whoever made it, panics included.

mod body;
mod caller;
mod deadline;
mod failures;
mod protocol;
mod timed;
mod trace;

use std::{
    convert::Infallible,
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

use self::{body::ReadBody, deadline::Asked};
pub(super) use self::{
    timed::Timed,
    trace::{RequestId, call_trace},
};
use super::status;
use crate::model::{Caller, Failure};

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
}

impl<S> Layers<S> {
    /// Puts the layers before `inner`.
    pub(super) fn new(inner: S, options: &LayerOptions) -> Self {
        let unread = Arc::new(Semaphore::new(options.unread_bytes.min(Semaphore::MAX_PERMITS)));
        Self { inner, request_deadline: options.request_deadline, unread }
    }

    /// Lets the call in, its scope in its extensions, or says why not.
    fn admit(&self, request: Request<Body>, id: RequestId) -> Result<Request<Body>, Failure> {
        let caller = caller::caller(request.headers());
        let asked = deadline::asked(request.headers());
        let (caller, asked) = match (caller, asked) {
            (Ok(caller), Ok(asked)) => (caller, asked),
            (caller, asked) => {
                return Err(Failure::invalid(caller.err().into_iter().chain(asked.err()).collect()));
            }
        };
        let Asked { deadline, stream_deadline } = Asked::new(asked, self.request_deadline);
        trace::record_caller(&caller);
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
        let id = RequestId::draw();
        let span = trace::span(&request, id);
        if let Some(refused) = protocol::refused(&request, id) {
            return Box::pin(async move { Ok(refused) });
        }
        let request = match span.in_scope(|| self.admit(request, id)) {
            Ok(request) => request,
            Err(failure) => {
                let answer = status::of(&failure, id, None).into_http();
                span.in_scope(|| trace::answered(&answer));
                return Box::pin(async move { Ok(answer) });
            }
        };
        // The one that said it was ready is the one to call.
        let next = self.inner.clone();
        let mut inner = mem::replace(&mut self.inner, next);
        let call = async move {
            let answered = AssertUnwindSafe(async move { inner.call(request).await }).catch_unwind().await;
            let answer = match answered {
                Ok(Ok(answer)) => failures::with_outcome(answer, id),
                Ok(Err(never)) => match never {},
                Err(_panic) => {
                    status::of(&Failure::internal("the broker failed in a way that it cannot explain"), id, None)
                        .into_http()
                }
            };
            trace::answered(&answer);
            Ok(answer)
        };
        Box::pin(call.instrument(span))
    }
}
