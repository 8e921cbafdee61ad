//! A call's id, its span, and the trace context that it came with.

use std::fmt;

use http::HeaderMap;
use tonic::{Status, metadata::MetadataMap};
use tracing::{Span, debug, info_span, warn};

use super::method::Method;
use crate::{
    grpc::{connection::Connection, status::OUTCOME},
    model::{Caller, Outcome, TraceContext},
};

/// Names a call in logs and failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::grpc) struct RequestId(u64);

impl RequestId {
    /// A new one.
    pub(in crate::grpc) fn draw() -> Self {
        Self(rand::random())
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The span that a call runs in. All that is known of the call is said at once: whoever writes logs makes text of a span's fields
/// as they come, and of all of them anew for each that comes later.
pub(super) fn span(
    method: Method,
    id: RequestId,
    (caller, connection): (Option<&Caller>, Option<&Connection>),
    trace: Option<impl fmt::Display>,
) -> Span {
    info_span!(
        "call",
        rpc.method = method.name(),
        request.id = %id,
        caller = caller.map(Caller::as_str),
        client.address = connection.map(|connection| display(connection.peer())),
        trace_id = trace.map(display),
    )
}

/// Leaves a line in the log about a failure with these trailers: loud where it is ours to explain.
pub(super) fn failed(trailers: &HeaderMap) {
    let Some(status) = Status::from_header_map(trailers) else {
        return;
    };
    let unknown = trailers.get(OUTCOME).is_none_or(|outcome| outcome != Outcome::NotApplied.as_str());
    if unknown {
        warn!(rpc.code = ?status.code(), "call failed with unknown outcome: {}", status.message());
    } else {
        debug!(rpc.code = ?status.code(), "call refused: {}", status.message());
    }
}

/// The W3C trace context of the call; nothing where it is malformed or sent twice.
pub(in crate::grpc) fn call_trace(metadata: &MetadataMap) -> Option<TraceContext> {
    sent(metadata.as_ref())
}

/// The same from the call's headers.
pub(super) fn sent(headers: &HeaderMap) -> Option<TraceContext> {
    let mut parents = headers.get_all("traceparent").iter();
    let parent = parents.next()?.to_str().ok()?;
    if parents.next().is_some() {
        return None;
    }
    // Several state headers are one list: https://www.w3.org/TR/trace-context/#tracestate-header
    let states: Vec<_> = headers.get_all("tracestate").iter().filter_map(|state| state.to_str().ok()).collect();
    TraceContext::parse(parent, &states.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn metadata(pairs: &[(&'static str, &'static str)]) -> MetadataMap {
        let mut metadata = MetadataMap::new();
        for &(key, value) in pairs {
            metadata.append(key, value.parse().expect("ASCII"));
        }
        metadata
    }

    #[test]
    fn a_calls_trace_context_is_read_and_its_states_joined() {
        let sent = metadata(&[("traceparent", PARENT), ("tracestate", "a=1"), ("tracestate", "b=2")]);
        let read = call_trace(&sent).expect("well formed");
        assert_eq!((read.traceparent.as_str(), read.tracestate.as_str()), (PARENT, "a=1,b=2"));
    }

    #[test]
    fn a_malformed_or_doubled_trace_context_is_dropped() {
        assert_eq!(call_trace(&metadata(&[])), None);
        assert_eq!(call_trace(&metadata(&[("traceparent", "x")])), None);
        assert_eq!(call_trace(&metadata(&[("traceparent", PARENT), ("traceparent", PARENT)])), None);
    }
}
