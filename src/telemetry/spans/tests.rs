use std::sync::{Arc, Mutex};

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_sdk::{
    error::OTelSdkResult,
    trace::{SdkTracerProvider, Span, SpanData, SpanProcessor},
};

use super::*;
use crate::telemetry::sampler::Keep;

/// Keeps what ended.
#[derive(Debug, Clone, Default)]
struct Kept(Arc<Mutex<Vec<SpanData>>>);

impl SpanProcessor for Kept {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    fn on_end(&self, span: SpanData) {
        self.0.lock().expect("not poisoned").push(span);
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}

fn spans(part: f64, links: usize) -> (Spans, Kept, SdkTracerProvider) {
    let kept = Kept::default();
    let provider =
        SdkTracerProvider::builder().with_sampler(Keep::part(part)).with_span_processor(kept.clone()).build();
    (Spans::new(provider.tracer("test"), links), kept, provider)
}

fn sent(trace: char, flags: &str) -> TraceContext {
    let trace = trace.to_string().repeat(32);
    TraceContext::parse(&format!("00-{trace}-b7ad6b7169203331-{flags}"), "a=b").expect("well formed")
}

fn origin(call: &CallSpan, spans: &Spans) -> Origin {
    let _attached = call.context().expect("traces are on").attach();
    spans.origin()
}

fn hold<'a>(caller: &'a Caller, origins: &'a [Origin], producers: Producers) -> StatementSpan<'a> {
    StatementSpan {
        act: "enqueue",
        system: "sqlite",
        caller,
        origins,
        producers,
        items: 3,
        wait: Duration::from_millis(2),
        hold: Duration::from_millis(40),
        error: None,
    }
}

#[test]
fn a_statement_is_a_child_of_its_call_and_that_of_what_the_client_sent() {
    let (spans, kept, _provider) = spans(0.0, 8);
    let caller = Caller::unattributed();
    let call = spans.call("Enqueue", &"id", Some(&sent('a', "01")));
    let trace = spans.statement(hold(&caller, &[origin(&call, &spans)], Producers::default()));
    call.end("OK");
    let kept = kept.0.lock().expect("not poisoned");
    let [statement, call] = kept.as_slice() else { panic!("two spans: {kept:?}") };
    assert_eq!(call.span_kind, SpanKind::Server);
    assert_eq!(call.parent_span_id.to_string(), "b7ad6b7169203331");
    assert_eq!(statement.span_kind, SpanKind::Client);
    assert_eq!(statement.parent_span_id, call.span_context.span_id());
    assert_eq!(trace.expect("kept").trace(), call.span_context.trace_id());
    assert_eq!(statement.end_time.duration_since(statement.start_time).expect("ordered"), Duration::from_millis(40));
}

#[test]
fn merged_calls_share_a_statement_that_links_to_all_but_its_parent() {
    let (spans, kept, _provider) = spans(0.0, 2);
    let calls: Vec<_> = [('a', "00"), ('b', "01"), ('c', "01"), ('d', "01"), ('e', "01")]
        .map(|(trace, flags)| spans.call("Enqueue", &"id", Some(&sent(trace, flags))))
        .into();
    let origins: Vec<_> = calls.iter().map(|call| origin(call, &spans)).collect();
    spans.statement(hold(&Caller::unattributed(), &origins, Producers::default()));
    let kept = kept.0.lock().expect("not poisoned");
    let traces: Vec<_> = kept[0].links.iter().map(|link| link.span_context.trace_id().to_string()).collect();
    assert_eq!(kept[0].span_context.trace_id().to_string(), "b".repeat(32), "the first one that is traced");
    assert_eq!(traces, ["c".repeat(32), "d".repeat(32)], "bounded");
}

#[test]
fn a_claim_is_kept_where_one_of_its_producers_is_and_links_to_those_alone() {
    let (spans, kept, _provider) = spans(0.0, 8);
    let caller = Caller::unattributed();
    let [traced, not] = [sent('a', "01"), sent('b', "00")];
    let producers =
        |jobs: &[(i64, &TraceContext)]| spans.producers(jobs.iter().map(|&(job, trace)| (JobId(job), trace)));
    assert!(spans.statement(hold(&caller, &[], producers(&[(1, &not)]))).is_none());
    let trace = spans.statement(hold(&caller, &[], producers(&[(1, &not), (2, &traced)]))).expect("kept");
    assert_ne!(trace.trace().to_string(), "a".repeat(32), "it begins a trace of its own");
    let kept = kept.0.lock().expect("not poisoned");
    let [claim] = kept.as_slice() else { panic!("one span: {kept:?}") };
    let [link] = claim.links.links.as_slice() else { panic!("one link: {:?}", claim.links) };
    assert_eq!(link.span_context.trace_id().to_string(), "a".repeat(32));
    assert_eq!(link.attributes, [KeyValue::new(key::MESSAGE, JobId(2).to_string())]);
}

#[test]
fn a_client_that_does_not_trace_is_not_traced_and_neither_are_its_statements() {
    let (spans, kept, _provider) = spans(1.0, 8);
    let call = spans.call("Enqueue", &"id", Some(&sent('a', "00")));
    let trace = spans.statement(hold(&Caller::unattributed(), &[origin(&call, &spans)], Producers::default()));
    call.end("OK");
    assert!(trace.is_none() && call.trace().is_none());
    assert!(kept.0.lock().expect("not poisoned").is_empty());
}

#[test]
fn a_failure_of_ours_is_an_error_and_a_clients_is_none() {
    let (spans, kept, _provider) = spans(1.0, 8);
    for code in ["UNAVAILABLE", "NOT_FOUND"] {
        spans.call("Ack", &"id", None).end(code);
    }
    let kept = kept.0.lock().expect("not poisoned");
    assert_eq!(kept[0].status, Status::error(""));
    assert_eq!(kept[1].status, Status::Unset);
}

#[test]
fn without_a_collector_there_is_no_span() {
    let spans = Spans::default();
    let call = spans.call("Ack", &"id", Some(&sent('a', "01")));
    assert!(call.context().is_none() && call.trace().is_none());
    assert!(spans.statement(hold(&Caller::unattributed(), &[spans.origin()], Producers::default())).is_none());
}
