//! Jobs as operators see them.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{escape, facts::Facts, table::Table, time};
use crate::v1::{Job, JobState, LeasedJob};

/// A payload for programs: a text where it is one, else base64.
#[derive(Debug, Default, Serialize)]
pub(in crate::cli) struct Payload {
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_base64: Option<String>,
}

impl From<&[u8]> for Payload {
    fn from(bytes: &[u8]) -> Self {
        use base64::Engine as _;
        match std::str::from_utf8(bytes) {
            Ok(text) => Self { payload: Some(text.to_owned()), payload_base64: None },
            Err(_) => {
                Self { payload: None, payload_base64: Some(base64::engine::general_purpose::STANDARD.encode(bytes)) }
            }
        }
    }
}

#[derive(Serialize)]
struct JobJson<'a> {
    job_id: &'a str,
    queue: &'a str,
    state: &'static str,
    #[serde(flatten)]
    payload: Payload,
    payload_bytes: u64,
    content_type: &'a str,
    headers: BTreeMap<&'a str, &'a str>,
    priority: i32,
    attempt: u32,
    max_attempts: u32,
    lease_number: i64,
    enqueued_at: Option<String>,
    available_at: Option<String>,
    ready_at: Option<String>,
    lease_expires_at: Option<String>,
    cancel_requested: bool,
    ordering_key: &'a str,
    idempotency_key: &'a str,
    last_error: &'a str,
    dead_at: Option<String>,
    expires_at: Option<String>,
    acked_at: Option<String>,
    traceparent: &'a str,
    caller: &'a str,
}

/// A job for programs; its payload only where it was asked for.
pub(in crate::cli) fn json(job: &Job, with_payload: bool) -> impl Serialize {
    JobJson {
        job_id: &job.job_id,
        queue: &job.queue,
        state: state(job.state()),
        payload: if with_payload { Payload::from(&job.payload[..]) } else { Payload::default() },
        payload_bytes: job.payload_bytes,
        content_type: &job.content_type,
        headers: job.headers.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect(),
        priority: job.priority,
        attempt: job.attempt,
        max_attempts: job.max_attempts,
        lease_number: job.lease_number,
        enqueued_at: time::maybe(job.enqueued_at),
        available_at: time::maybe(job.available_at),
        ready_at: time::maybe(job.ready_at),
        lease_expires_at: time::maybe(job.lease_expires_at),
        cancel_requested: job.cancel_requested,
        ordering_key: &job.ordering_key,
        idempotency_key: &job.idempotency_key,
        last_error: &job.last_error,
        dead_at: time::maybe(job.dead_at),
        expires_at: time::maybe(job.expires_at),
        acked_at: time::maybe(job.acked_at),
        traceparent: &job.traceparent,
        caller: &job.caller,
    }
}

/// A state in a word.
pub(in crate::cli) fn state(state: JobState) -> &'static str {
    match state {
        JobState::Unspecified => "unknown",
        JobState::Ready => "ready",
        JobState::Scheduled => "scheduled",
        JobState::Blocked => "blocked",
        JobState::Leased => "leased",
        JobState::Dead => "dead",
        JobState::Acked => "acked",
    }
}

/// What is known about a job, for people.
pub(in crate::cli) fn facts(job: &Job) -> Facts {
    let mut facts = Facts::default();
    facts.add("job", &job.job_id);
    facts.add("queue", &job.queue);
    facts.add("state", state(job.state()));
    if job.cancel_requested {
        facts.add("cancelled", "yes: its consumer is told, and it does not come back");
    }
    facts.add("attempt", format!("{} of {}", job.attempt, job.max_attempts));
    facts.add("priority", job.priority.to_string());
    facts.add("caller", &job.caller);
    let at = |at| Option::map(at, |at| format!("{} ({})", time::instant(at), time::from_now(at)));
    facts.maybe("enqueued at", at(job.enqueued_at));
    facts.maybe("available at", at(job.available_at));
    facts.maybe("ready at", at(job.ready_at));
    facts.maybe("leased until", at(job.lease_expires_at));
    facts.maybe("dead at", at(job.dead_at));
    facts.maybe("acked at", at(job.acked_at));
    facts.maybe("removed at", at(job.expires_at));
    facts.add("ordering key", &job.ordering_key);
    facts.add("idempotency key", &job.idempotency_key);
    facts.add("lease number", job.lease_number.to_string());
    facts.add("content type", &job.content_type);
    let headers: BTreeMap<&String, &String> = job.headers.iter().collect();
    for (key, value) in headers {
        facts.add("header", format!("{key}={value}"));
    }
    facts.add("traceparent", &job.traceparent);
    facts.add("last error", &job.last_error);
    facts.add("payload bytes", job.payload_bytes.to_string());
    facts
}

/// Jobs of one queue, for people.
pub(in crate::cli) fn table(jobs: &[Job], with_payload: bool) -> Table {
    let mut heads = vec!["JOB", "STATE", ">PRIORITY", ">ATTEMPT", "ENQUEUED", "READY", "KEY", "CALLER", ">BYTES"];
    heads.extend(with_payload.then_some("~PAYLOAD"));
    let mut table = Table::new(&heads);
    for job in jobs {
        let mut row = vec![
            job.job_id.clone(),
            state(job.state()).to_owned(),
            job.priority.to_string(),
            format!("{}/{}", job.attempt, job.max_attempts),
            job.enqueued_at.map(time::from_now).unwrap_or_default(),
            job.ready_at.map(time::from_now).unwrap_or_default(),
            job.ordering_key.clone(),
            job.caller.clone(),
            job.payload_bytes.to_string(),
        ];
        row.extend(with_payload.then(|| String::from_utf8_lossy(&job.payload).into_owned()));
        table.row(row);
    }
    table
}

/// Dead jobs of one queue, for people.
pub(in crate::cli) fn dead_table(jobs: &[Job], with_payload: bool) -> Table {
    let mut heads = vec!["JOB", "DIED", ">ATTEMPT", "KEY", "CALLER", ">BYTES", "~LAST ERROR"];
    heads.extend(with_payload.then_some("~PAYLOAD"));
    let mut table = Table::new(&heads);
    for job in jobs {
        let mut row = vec![
            job.job_id.clone(),
            job.dead_at.map(time::from_now).unwrap_or_default(),
            format!("{}/{}", job.attempt, job.max_attempts),
            job.ordering_key.clone(),
            job.caller.clone(),
            job.payload_bytes.to_string(),
            job.last_error.clone(),
        ];
        row.extend(with_payload.then(|| String::from_utf8_lossy(&job.payload).into_owned()));
        table.row(row);
    }
    table
}

#[derive(Serialize)]
struct LeasedJson<'a> {
    lease_token: &'a str,
    job_id: &'a str,
    queue: &'a str,
    #[serde(flatten)]
    payload: Payload,
    content_type: &'a str,
    headers: BTreeMap<&'a str, &'a str>,
    priority: i32,
    attempt: u32,
    max_attempts: u32,
    lease_number: i64,
    enqueued_at: Option<String>,
    available_at: Option<String>,
    lease_expires_at: Option<String>,
    lease_remaining_seconds: Option<f64>,
    ordering_key: &'a str,
    idempotency_key: &'a str,
    last_error: &'a str,
    traceparent: &'a str,
    tracestate: &'a str,
}

/// A leased job for programs.
pub(in crate::cli) fn leased_json(job: &LeasedJob) -> impl Serialize {
    LeasedJson {
        lease_token: &job.lease_token,
        job_id: &job.job_id,
        queue: &job.queue,
        payload: Payload::from(&job.payload[..]),
        content_type: &job.content_type,
        headers: job.headers.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect(),
        priority: job.priority,
        attempt: job.attempt,
        max_attempts: job.max_attempts,
        lease_number: job.lease_number,
        enqueued_at: time::maybe(job.enqueued_at),
        available_at: time::maybe(job.available_at),
        lease_expires_at: time::maybe(job.lease_expires_at),
        lease_remaining_seconds: job.lease_remaining.map(time::seconds),
        ordering_key: &job.ordering_key,
        idempotency_key: &job.idempotency_key,
        last_error: &job.last_error,
        traceparent: &job.traceparent,
        tracestate: &job.tracestate,
    }
}

/// A leased job on a line, for people: token, job, attempt, payload. Their payload is all that may hold blanks.
pub(in crate::cli) fn leased_line(job: &LeasedJob) -> String {
    let attempt = format!("{}/{}", job.attempt, job.max_attempts);
    format!("{}  {}  {}  {attempt}  {}", job.lease_token, job.job_id, job.queue, escape::bytes(&job.payload))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_that_is_no_text_is_base64_and_says_so() {
        let shown = |bytes: &[u8]| serde_json::to_string(&Payload::from(bytes)).expect("JSON");
        assert_eq!(shown(b"{\"a\":1}"), r#"{"payload":"{\"a\":1}"}"#);
        assert_eq!(shown(b"\xff\x00"), r#"{"payload_base64":"/wA="}"#);
        assert_eq!(shown(b""), r#"{"payload":""}"#);
    }

    #[test]
    fn a_payload_that_was_not_asked_for_is_left_out_but_its_size_is_not() {
        let job = Job { payload_bytes: 7, ..Job::default() };
        let shown = serde_json::to_string(&json(&job, false)).expect("JSON");
        assert!(!shown.contains("\"payload\"") && shown.contains("\"payload_bytes\":7"), "{shown}");
    }

    #[test]
    fn a_leased_job_cannot_break_its_line() {
        let job = LeasedJob { payload: b"a\nb\x1b[2J".to_vec().into(), ..LeasedJob::default() };
        let line = leased_line(&job);
        assert!(!line.chars().any(char::is_control), "{line}");
    }
}
