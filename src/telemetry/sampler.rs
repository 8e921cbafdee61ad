//! Which traces are kept.

use opentelemetry::{
    Context, KeyValue,
    trace::{Link, SpanKind, TraceContextExt as _, TraceId, TraceState},
};
use opentelemetry_sdk::trace::{Sampler, SamplingDecision, SamplingResult, ShouldSample};

/// A span with a parent is kept where its parent is. One without is kept where it links to one that is, so that a claim is found
/// from the traces of its jobs' producers; else a part of the traces is kept, by trace id.
#[derive(Debug, Clone)]
pub(super) struct Keep {
    part: Sampler,
}

impl Keep {
    /// Keeps this part of the traces that begin here.
    pub(super) fn part(part: f64) -> Self {
        Self { part: Sampler::TraceIdRatioBased(part) }
    }
}

impl ShouldSample for Keep {
    fn should_sample(
        &self,
        parent: Option<&Context>,
        trace_id: TraceId,
        name: &str,
        kind: &SpanKind,
        attributes: &[KeyValue],
        links: &[Link],
    ) -> SamplingResult {
        let active = parent.filter(|context| context.span().span_context().is_valid());
        if let Some(parent) = active {
            let parent = parent.span().span_context().clone();
            let decision = if parent.is_sampled() { SamplingDecision::RecordAndSample } else { SamplingDecision::Drop };
            return SamplingResult { decision, attributes: Vec::new(), trace_state: parent.trace_state().clone() };
        }
        if links.iter().any(|link| link.span_context.is_sampled()) {
            let decision = SamplingDecision::RecordAndSample;
            return SamplingResult { decision, attributes: Vec::new(), trace_state: TraceState::default() };
        }
        self.part.should_sample(None, trace_id, name, kind, attributes, links)
    }
}
