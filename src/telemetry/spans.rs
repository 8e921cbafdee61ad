//! Spans: one for each call, one for each time that a lane is held. Nothing at all where traces are off.
//!
//! - A **call** is a SERVER span, child of what the client sent as `traceparent`. That of an open-ended stream ends once the
//!   stream is open: it would else grow for as long as the stream lives and be seen only then.
//! - A **statement** is a CLIENT span for one hold of a lane, made when the hold has ended. Its parent is the call that it ran for;
//!   where requests of several calls were merged, it is the child of the first one that is traced and links to the others. What
//!   runs for no call (claims, upkeep) begins a trace of its own.
//! - A **claim** links to the contexts that its jobs were enqueued with. The creation context stays the producer's: the broker is
//!   between producer and consumer, and delivers what it was given.
//!
//! No span holds a payload, a value, a key or SQL text; the only names of clients' making are callers, which are bounded text.

use std::{
    fmt::Display,
    net::IpAddr,
    str::FromStr as _,
    sync::Arc,
    time::{Duration, SystemTime},
};

use opentelemetry::{
    Context, KeyValue,
    trace::{
        Link, SpanBuilder, SpanContext, SpanId, SpanKind, Status, TraceContextExt as _, TraceFlags, TraceId,
        TraceState, Tracer as _,
    },
};
use opentelemetry_sdk::trace::SdkTracer;

pub use opentelemetry::trace::FutureExt;

use super::names::key;
use crate::model::{Caller, JobId, TraceContext};

/// Makes spans, or none; cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Spans(Option<Arc<Maker>>);

#[derive(Debug)]
struct Maker {
    tracer: SdkTracer,
    /// Links of one span at most.
    links: usize,
}

/// The span of a call that is under way. It ends with [`CallSpan::end`], or as cancelled when it is dropped.
#[derive(Debug, Clone, Default)]
pub struct CallSpan(Option<Context>);

/// A span that has ended and is kept.
#[derive(Debug, Clone)]
pub struct Made(SpanContext);

/// For which call something is asked: what [`Spans::origin`] found. Nothing where traces are off.
#[derive(Debug, Clone, Default)]
pub struct Origin(Option<SpanContext>);

/// The contexts that the jobs of a claim were enqueued with, as far as they lead somewhere.
#[derive(Debug, Clone, Default)]
pub struct Producers(Vec<(JobId, SpanContext)>);

/// A lane's hold, as a span shows it.
#[derive(Debug)]
pub struct StatementSpan<'a> {
    /// Static for each statement.
    pub act: &'static str,
    /// Which engine, as OpenTelemetry names it.
    pub system: &'static str,
    /// For whom.
    pub caller: &'a Caller,
    /// The calls it ran for.
    pub origins: &'a [Origin],
    /// Of a claim: whose jobs came.
    pub producers: Producers,
    /// Jobs or tokens.
    pub items: usize,
    /// How long the oldest request waited.
    pub wait: Duration,
    /// How long the lane was held, until now.
    pub hold: Duration,
    /// The class of the error that it ended with, where one did.
    pub error: Option<&'static str>,
}

impl Spans {
    /// With `links` of one span at most.
    pub(super) fn new(tracer: SdkTracer, links: usize) -> Self {
        Self(Some(Arc::new(Maker { tracer, links })))
    }

    /// Begins the span of a call. `method` is from a fixed set, `parent` is what the client sent.
    pub fn call(&self, method: &'static str, request: &dyn Display, parent: Option<&TraceContext>) -> CallSpan {
        let Some(made) = &self.0 else { return CallSpan(None) };
        let parent =
            parent.and_then(remote).map_or_else(Context::new, |remote| Context::new().with_remote_span_context(remote));
        let builder = SpanBuilder::from_name(method).with_kind(SpanKind::Server).with_attributes([
            KeyValue::new(key::RPC_SYSTEM, "grpc"),
            KeyValue::new(key::RPC_METHOD, method),
            KeyValue::new(key::REQUEST, request.to_string()),
        ]);
        CallSpan(Some(parent.with_span(made.tracer.build_with_context(builder, &parent))))
    }

    /// Whether there is anybody to make them for.
    pub fn are_made(&self) -> bool {
        self.0.is_some()
    }

    /// The call that is being served here.
    pub fn origin(&self) -> Origin {
        if self.0.is_none() {
            return Origin(None);
        }
        Context::map_current(|context| Origin(context.has_active_span().then(|| context.span().span_context().clone())))
    }

    /// The contexts of `jobs`: the first so many that are traced.
    pub fn producers<'a>(&self, jobs: impl Iterator<Item = (JobId, &'a TraceContext)>) -> Producers {
        let Some(made) = &self.0 else { return Producers::default() };
        let traced = jobs.filter_map(|(job, trace)| remote(trace).map(|context| (job, context)));
        Producers(traced.filter(|(_, context)| context.is_sampled()).take(made.links).collect())
    }

    /// Makes the span of a hold that has just ended; what it is called, where it is kept.
    pub fn statement(&self, span: StatementSpan<'_>) -> Option<Made> {
        let made = self.0.as_ref()?;
        let known = || span.origins.iter().filter_map(|origin| origin.0.as_ref());
        let first = known().find(|origin| origin.is_sampled()).or_else(|| known().next());
        let mut linked: Vec<&SpanContext> = Vec::new();
        for origin in known().filter(|origin| origin.is_sampled() && Some(*origin) != first) {
            if linked.len() < made.links && !linked.contains(&origin) {
                linked.push(origin);
            }
        }
        let of_calls = linked.into_iter().map(|origin| Link::new(origin.clone(), Vec::new(), 0));
        let of_jobs = span
            .producers
            .0
            .into_iter()
            .map(|(job, producer)| Link::new(producer, vec![KeyValue::new(key::MESSAGE, job.to_string())], 0));
        let parent = first.map_or_else(Context::new, |origin| Context::new().with_remote_span_context(origin.clone()));
        let ended = SystemTime::now();
        let mut attributes = vec![
            KeyValue::new(key::DB_SYSTEM, span.system),
            KeyValue::new(key::DB_SUMMARY, span.act),
            KeyValue::new(key::CALLER, Arc::<str>::from(span.caller.as_str())),
            KeyValue::new(key::WAIT, span.wait.as_secs_f64()),
        ];
        if span.items > 1 {
            attributes.push(KeyValue::new(key::DB_BATCH_SIZE, i64::try_from(span.items).unwrap_or(i64::MAX)));
        }
        if let Some(class) = span.error {
            attributes.push(KeyValue::new(key::ERROR, class));
        }
        let builder = SpanBuilder::from_name(span.act)
            .with_kind(SpanKind::Client)
            .with_start_time(ended - span.hold)
            .with_attributes(attributes)
            .with_links(of_calls.chain(of_jobs).take(made.links).collect());
        let made = made.tracer.build_with_context(builder, &parent);
        let context = Context::new().with_span(made);
        let span_made = context.span();
        if let Some(class) = span.error {
            span_made.set_status(Status::error(class));
        }
        span_made.end_with_timestamp(ended);
        Some(span_made.span_context()).filter(|made| made.is_sampled()).cloned().map(Made)
    }
}

impl Made {
    /// Its trace.
    pub fn trace(&self) -> TraceId {
        self.0.trace_id()
    }

    /// Runs `say`, whose log lines then lead to the span.
    pub fn within<T>(&self, say: impl FnOnce() -> T) -> T {
        let _attached = Context::new().with_remote_span_context(self.0.clone()).attach();
        say()
    }
}

impl CallSpan {
    /// Makes it the current one where a future runs.
    pub fn context(&self) -> Option<Context> {
        self.0.clone()
    }

    /// Its trace, where it is kept.
    pub fn trace(&self) -> Option<TraceId> {
        let context = self.0.as_ref()?.span().span_context().clone();
        context.is_sampled().then(|| context.trace_id())
    }

    /// Says for whom it runs, and where it comes from.
    pub fn serves(&self, caller: &Caller, client: Option<IpAddr>) {
        if let Some(context) = &self.0 {
            context.span().set_attribute(KeyValue::new(key::CALLER, Arc::<str>::from(caller.as_str())));
            if let Some(client) = client {
                context.span().set_attribute(KeyValue::new(key::CLIENT, client.to_string()));
            }
        }
    }

    /// Ends it with a status code, as gRPC's documentation spells it. Once; what comes after changes nothing.
    pub fn end(&self, code: &'static str) {
        if let Some(context) = &self.0 {
            let span = context.span();
            span.set_attribute(KeyValue::new(key::RPC_STATUS, code));
            if is_our_error(code) {
                span.set_attribute(KeyValue::new(key::ERROR, code));
                span.set_status(Status::error(""));
            }
            span.end();
        }
    }
}

/// Which codes the conventions count as errors of a server; the others are its client's.
pub(super) fn is_our_error(code: &str) -> bool {
    matches!(code, "UNKNOWN" | "DEADLINE_EXCEEDED" | "UNIMPLEMENTED" | "INTERNAL" | "UNAVAILABLE" | "DATA_LOSS")
}

/// A context that came over the wire; it was checked when it was parsed.
fn remote(trace: &TraceContext) -> Option<SpanContext> {
    let mut parts = trace.traceparent.split('-').skip(1);
    let trace_id = TraceId::from_hex(parts.next()?).ok()?;
    let span_id = SpanId::from_hex(parts.next()?).ok()?;
    let flags = u8::from_str_radix(parts.next()?, 16).ok()?;
    let state = TraceState::from_str(&trace.tracestate).unwrap_or_default();
    let context = SpanContext::new(trace_id, span_id, TraceFlags::new(flags & 1), true, state);
    context.is_valid().then_some(context)
}

#[cfg(test)]
mod tests;
