//! How long calls take and how they end, for metrics.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
    time::Instant,
};

use bytes::Bytes;
use futures_util::{FutureExt as _, future::BoxFuture};
use http::{HeaderMap, Request, Response};
use http_body::{Frame, SizeHint};
use tonic::{Code, Status, body::Body};
use tower::Service;

use crate::telemetry::Metrics;

/// The methods that have a series of their own. Others come from clients, who may send anything, and share one.
const METHODS: [&str; 8] = [
    "leasehold.v1.QueueService/Enqueue",
    "leasehold.v1.QueueService/Lease",
    "leasehold.v1.QueueService/Ack",
    "leasehold.v1.QueueService/Nack",
    "leasehold.v1.QueueService/Extend",
    "grpc.health.v1.Health/Check",
    "grpc.health.v1.Health/Watch",
    "grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
];

/// Times every call of `inner`, streams to their last frame.
#[derive(Clone)]
pub(in crate::grpc) struct Timed<S> {
    inner: S,
    metrics: Option<Metrics>,
}

impl<S> Timed<S> {
    /// Calls of `inner`, told to `metrics` where somebody wants to know.
    pub(in crate::grpc) fn new(inner: S, metrics: Option<Metrics>) -> Self {
        Self { inner, metrics }
    }
}

impl<S> Service<Request<Body>> for Timed<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Some(metrics) = self.metrics.clone() else { return self.inner.call(request).boxed() };
        // made before the call is, so that one whose client goes away early is counted as well
        let mut watch =
            Stopwatch { metrics, method: method(request.uri().path()), began: Instant::now(), ended: false };
        let answer = self.inner.call(request);
        async move {
            let answer = answer.await?;
            watch.look(answer.headers());
            Ok(answer.map(|body| Body::new(TimedBody { body, watch })))
        }
        .boxed()
    }
}

fn method(path: &str) -> &'static str {
    let called = path.strip_prefix('/').unwrap_or(path);
    METHODS.into_iter().find(|method| *method == called).unwrap_or("_OTHER")
}

/// Tells once how its call ended. One that is dropped before that was cancelled, by its client or with its connection.
struct Stopwatch {
    metrics: Metrics,
    method: &'static str,
    began: Instant,
    ended: bool,
}

impl Stopwatch {
    /// Ends where `headers`, the answer's or its trailers, say how.
    fn look(&mut self, headers: &HeaderMap) {
        if let Some(status) = Status::from_header_map(headers) {
            self.end(status.code());
        }
    }

    fn end(&mut self, code: Code) {
        if !std::mem::replace(&mut self.ended, true) {
            self.metrics.call_ended(self.method, name(code), self.began.elapsed());
        }
    }
}

impl Drop for Stopwatch {
    fn drop(&mut self) {
        self.end(Code::Cancelled);
    }
}

/// As the protocol writes it.
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

/// An answer whose trailers say how its call ended.
struct TimedBody {
    body: Body,
    watch: Stopwatch,
}

impl http_body::Body for TimedBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = &mut *self;
        let polled = Pin::new(&mut this.body).poll_frame(cx);
        match &polled {
            Poll::Ready(Some(Ok(frame))) => {
                if let Some(trailers) = frame.trailers_ref() {
                    this.watch.look(trailers);
                }
            }
            Poll::Ready(Some(Err(status))) => this.watch.end(status.code()),
            _ => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use prometheus::TextEncoder;
    use tower::ServiceExt as _;

    use super::*;

    async fn series(answer: Response<Body>, read: bool) -> String {
        let metrics = Metrics::new(&[], 1).expect("an exporter");
        let answer = std::sync::Mutex::new(Some(answer));
        let inner = tower::service_fn(move |_: Request<Body>| {
            let answer = answer.lock().expect("one thread").take().expect("one call");
            async move { Ok::<_, Infallible>(answer) }
        });
        let request = Request::builder().uri("/leasehold.v1.QueueService/Ack").body(Body::empty()).expect("a request");
        let answered = Timed::new(inner, Some(metrics.clone())).oneshot(request).await.expect("infallible");
        if read {
            let mut body = answered.into_body();
            while std::future::poll_fn(|cx| http_body::Body::poll_frame(Pin::new(&mut body), cx)).await.is_some() {}
        }
        TextEncoder::new().encode_to_string(&metrics.registry().gather()).expect("text")
    }

    fn counted(code: &str) -> String {
        let labels = format!("rpc_method=\"leasehold.v1.QueueService/Ack\",rpc_response_status_code=\"{code}\"");
        format!("rpc_server_call_duration_seconds_count{{{labels}}} 1")
    }

    #[tokio::test]
    async fn a_failure_that_comes_with_the_headers_is_counted_once() {
        let text = series(Status::unavailable("no").into_http(), true).await;
        assert!(text.contains(&counted("UNAVAILABLE")), "{text}");
        assert!(!text.contains("CANCELLED"), "{text}");
    }

    #[tokio::test]
    async fn a_call_that_nobody_reads_to_its_end_was_cancelled() {
        let text = series(Response::new(Body::empty()), false).await;
        assert!(text.contains(&counted("CANCELLED")), "{text}");
    }

    #[test]
    fn what_a_client_makes_up_is_one_method() {
        assert_eq!(method("/leasehold.v1.QueueService/Ack"), "leasehold.v1.QueueService/Ack");
        assert_eq!(method("/x/y"), "_OTHER");
        assert_eq!(method(""), "_OTHER");
    }
}
