use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;

use super::*;
use crate::{
    model::{JobId, QueueId},
    store::engine::EnqueuedRow,
};

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const OTHER: &str = "00-11111111111111111111111111111111-2222222222222222-00";

fn job() -> v1::NewJob {
    v1::NewJob { queue: "orders".into(), ..v1::NewJob::default() }
}

fn read(jobs: Vec<v1::NewJob>) -> Result<Vec<NewJob>, Failure> {
    let now = UNIX_EPOCH + Duration::from_hours(500_000);
    new_jobs(v1::EnqueueRequest { jobs }, &Limits::default(), None, now)
}

fn faults(jobs: Vec<v1::NewJob>) -> Vec<(String, String)> {
    match read(jobs) {
        Ok(_) => Vec::new(),
        Err(failure) => failure.invalid.into_iter().map(|fault| (fault.field, fault.rule)).collect(),
    }
}

fn headers(pairs: &[(&str, &str)]) -> HashMap<String, String> {
    pairs.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect()
}

#[test]
fn a_job_that_says_nothing_has_the_contracts_defaults() {
    let read = read(vec![job()]).expect("valid");
    let job = &read[0];
    assert_eq!((job.priority, job.start, job.max_attempts), (Priority::DEFAULT, Start::Now, None));
    assert_eq!((&job.idempotency_key, &job.ordering_key, &job.trace), (&None, &None, &None));
}

#[test]
fn the_bounds_themselves_are_fine() {
    let mut full = job();
    full.payload = Bytes::from(vec![0xff; 1 << 20]);
    full.content_type = "c".repeat(200);
    full.headers = (0..32).map(|n| (format!("{n:0128}"), "v".repeat(384))).collect();
    full.priority = Some(9);
    full.max_attempts = Some(1_000);
    full.idempotency_key = "i".repeat(200);
    full.ordering_key = "o".repeat(200);
    full.start = Some(v1::new_job::Start::Delay(prost_types::Duration { seconds: 31_536_000, nanos: 0 }));
    let read = read(vec![full]).expect("valid");
    assert_eq!(read[0].headers.len(), 32);
    assert_eq!(read[0].start, Start::After(Duration::from_hours(8_760)));
}

#[test]
fn each_field_is_refused_by_its_path_and_rule() {
    type Break = fn(&mut v1::NewJob);
    let cases: [(Break, &str, &str); 17] = [
        (|job| job.queue = "Orders".into(), "queue", "must match [a-z0-9][a-z0-9._-]{0,127}"),
        (|job| job.payload = Bytes::from(vec![0; (1 << 20) + 1]), "payload", "must be at most 1048576 bytes"),
        (|job| job.content_type = "c".repeat(201), "content_type", "at most 200 bytes"),
        (|job| job.content_type = "a\0".into(), "content_type", "printable ASCII"),
        (
            |job| job.headers = (0..33).map(|n| (n.to_string(), String::new())).collect(),
            "headers",
            "at most 32 entries",
        ),
        (|job| job.headers = headers(&[("a", &"v".repeat(16 << 10))]), "headers", "at most 16384 bytes together"),
        (|job| job.headers = headers(&[("", "v")]), "headers", "keys must be 1 to 128"),
        (|job| job.headers = headers(&[("é", "v")]), "headers", "keys must be 1 to 128"),
        (|job| job.headers = headers(&[("a\"b", "v\0")]), "headers[\"a\\\"b\"]", "must not hold NUL"),
        (|job| job.priority = Some(10), "priority", "from 0 to 9"),
        (|job| job.priority = Some(-1), "priority", "from 0 to 9"),
        (|job| job.max_attempts = Some(0), "max_attempts", "from 1 to 1000"),
        (|job| job.max_attempts = Some(u32::MAX), "max_attempts", "from 1 to 1000"),
        (|job| job.idempotency_key = "k\n".into(), "idempotency_key", "printable ASCII"),
        (|job| job.ordering_key = "k".repeat(201), "ordering_key", "1 to 200"),
        (
            |job| job.start = Some(v1::new_job::Start::Delay(prost_types::Duration { seconds: -1, nanos: 0 })),
            "delay",
            "must be 0 s to 31536000 s",
        ),
        (
            |job| {
                job.start =
                    Some(v1::new_job::Start::AvailableAt(prost_types::Timestamp { seconds: i64::MAX, nanos: 0 }));
            },
            "available_at",
            "well-formed Timestamp",
        ),
    ];
    for (break_it, field, rule) in cases {
        let mut broken = job();
        break_it(&mut broken);
        let found = faults(vec![job(), broken]);
        assert_eq!(found.len(), 1, "{field}: {found:?}");
        assert_eq!(found[0].0, format!("jobs[1].{field}"));
        assert!(found[0].1.contains(rule), "{field}: {}", found[0].1);
    }
}

#[test]
fn all_faults_of_a_request_are_reported_together_up_to_twenty() {
    let mut broken = job();
    broken.queue = String::new();
    broken.priority = Some(10);
    broken.max_attempts = Some(0);
    let two = faults(vec![broken.clone(), job(), broken.clone()]);
    let fields: Vec<_> = two.iter().map(|(field, _)| field.as_str()).collect();
    assert_eq!(
        fields,
        [
            "jobs[0].queue",
            "jobs[0].priority",
            "jobs[0].max_attempts",
            "jobs[2].queue",
            "jobs[2].priority",
            "jobs[2].max_attempts"
        ]
    );
    assert_eq!(faults(vec![broken; 1_000]).len(), 20);
}

#[test]
fn a_request_holds_one_to_a_thousand_jobs() {
    for count in [0, 1_001] {
        assert_eq!(faults(vec![job(); count]), [("jobs".to_owned(), "must hold 1 to 1000 jobs".to_owned())]);
    }
    assert_eq!(read(vec![job(); 1_000]).expect("valid").len(), 1_000);
}

#[test]
fn any_text_without_nul_is_a_header_value() {
    let mut sent = job();
    sent.headers = headers(&[("a", "é🦀\n*/ DROP"), ("empty", ""), ("b", "\u{202e}")]);
    let read = read(vec![sent.clone()]).expect("valid");
    assert!(read[0].headers.iter().eq(sent.headers.iter().collect::<std::collections::BTreeMap<_, _>>()));
}

#[test]
fn a_jobs_own_trace_context_goes_before_the_calls() {
    let call = TraceContext::parse(OTHER, "");
    let with = |pairs: &[(&str, &str)]| {
        let jobs = vec![v1::NewJob { headers: headers(pairs), ..job() }];
        let jobs = new_jobs(v1::EnqueueRequest { jobs }, &Limits::default(), call.as_ref(), UNIX_EPOCH);
        jobs.expect("a broken trace context is never an error").remove(0).trace
    };
    assert_eq!(with(&[]), call);
    assert_eq!(with(&[("tracestate", "a=b")]), call, "a state without a parent is nothing");
    let own = with(&[("Traceparent", PARENT), ("tracestate", "a=b")]).expect("its own");
    assert_eq!((own.traceparent.as_str(), own.tracestate.as_str()), (PARENT, "a=b"));
    assert_eq!(with(&[("traceparent", "broken")]), None);
}

#[test]
fn the_answer_keeps_ids_and_says_what_is_a_duplicate() {
    let stored = [(7, false), (i64::MAX, true)].map(|(id, duplicate)| Stored {
        row: EnqueuedRow { job: JobId(id), duplicate, ready_in: None },
        queue: QueueId(1),
    });
    let answer = enqueued(&stored);
    assert_eq!(answer.jobs[0], v1::EnqueuedJob { job_id: "7".into(), duplicate: false });
    assert_eq!(answer.jobs[1], v1::EnqueuedJob { job_id: "9223372036854775807".into(), duplicate: true });
}
