//! Jobs in.

use std::{collections::HashMap, fmt, time::SystemTime};

use super::{
    faults::Faults,
    is_printable,
    time::{delay, due},
};
use crate::{
    model::{Failure, Headers, Invalid, Key, Limits, NewJob, Priority, QueueName, Start, TraceContext},
    store::Stored,
    v1,
};

const CONTENT_TYPE_BYTES: usize = 200;
const HEADER_KEY_BYTES: usize = 128;

/// The jobs of an Enqueue, checked. `call` is the trace context of the call, for jobs that carry none of their own; `now`
/// is the broker's clock, for the bound on due times alone.
pub(in crate::grpc) fn new_jobs(
    request: v1::EnqueueRequest,
    limits: &Limits,
    call: Option<&TraceContext>,
    now: SystemTime,
) -> Result<Vec<NewJob>, Failure> {
    if !(1..=limits.batch).contains(&request.jobs.len()) {
        return Err(Invalid::new("jobs", format!("must hold 1 to {} jobs", limits.batch)).into());
    }
    let mut faults = Faults::default();
    let jobs = jobs_in("jobs", request.jobs, &mut faults, limits, call, now);
    faults.or(jobs)
}

/// The jobs in `field`, checked; what is wrong with them is noted.
pub(super) fn jobs_in(
    field: &str,
    sent: Vec<v1::NewJob>,
    faults: &mut Faults,
    limits: &Limits,
    call: Option<&TraceContext>,
    now: SystemTime,
) -> Vec<NewJob> {
    let mut jobs = Vec::with_capacity(sent.len());
    for (index, job) in sent.into_iter().enumerate() {
        if faults.is_full() {
            break;
        }
        let mut check = Check { faults, place: format_args!("{field}[{index}]"), limits };
        jobs.extend(check.job(job, call, now));
    }
    jobs
}

/// One job under check.
struct Check<'a> {
    faults: &'a mut Faults,
    /// Where it stands in the request.
    place: fmt::Arguments<'a>,
    limits: &'a Limits,
}

impl Check<'_> {
    fn job(&mut self, job: v1::NewJob, call: Option<&TraceContext>, now: SystemTime) -> Option<NewJob> {
        let queue = self.keep(QueueName::parse("queue", &job.queue));
        if job.payload.len() > self.limits.payload_bytes {
            self.refuse("payload", format!("must be at most {} bytes", self.limits.payload_bytes));
        }
        if !is_printable(&job.content_type, CONTENT_TYPE_BYTES) {
            self.refuse(
                "content_type",
                format!("must be at most {CONTENT_TYPE_BYTES} bytes of printable ASCII characters"),
            );
        }
        let trace = trace(&job.headers, call);
        let headers = self.headers(job.headers);
        let priority = match job.priority {
            None => Some(Priority::DEFAULT),
            Some(level) => {
                self.keep(Priority::new(level).ok_or_else(|| Invalid::new("priority", "must be from 0 to 9")))
            }
        };
        let start = match &job.start {
            None => Some(Start::Now),
            Some(v1::new_job::Start::Delay(sent)) => self
                .keep(delay("delay", sent, self.limits))
                .map(|delay| if delay.is_zero() { Start::Now } else { Start::After(delay) }),
            Some(v1::new_job::Start::AvailableAt(sent)) => self.keep(due("available_at", sent, self.limits, now)),
        };
        let max_attempts = match job.max_attempts {
            None => Some(None),
            Some(sent) => self.attempts(sent).map(Some),
        };
        let idempotency_key = self.key("idempotency_key", &job.idempotency_key);
        let ordering_key = self.key("ordering_key", &job.ordering_key);
        Some(NewJob {
            queue: queue?,
            payload: job.payload,
            content_type: job.content_type,
            headers,
            priority: priority?,
            start: start?,
            max_attempts: max_attempts?,
            idempotency_key: idempotency_key?,
            ordering_key: ordering_key?,
            trace,
        })
    }

    fn headers(&mut self, sent: HashMap<String, String>) -> Headers {
        if sent.len() > self.limits.header_entries {
            self.refuse("headers", format!("must hold at most {} entries", self.limits.header_entries));
            return Headers::new();
        }
        if sent.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>() > self.limits.header_bytes {
            self.refuse("headers", format!("must be at most {} bytes together", self.limits.header_bytes));
            return Headers::new();
        }
        let headers: Headers = sent.into_iter().collect(); // in the order of keys, so that faults come in one, too
        for (key, value) in &headers {
            if key.is_empty() || !is_printable(key, HEADER_KEY_BYTES) {
                self.refuse("headers", format!("keys must be 1 to {HEADER_KEY_BYTES} printable ASCII characters"));
            } else if value.contains('\0') {
                self.refuse(&format!("headers[{:?}]", &key[..key.len().min(64)]), "must not hold NUL");
            }
        }
        headers
    }

    fn attempts(&mut self, sent: u32) -> Option<u16> {
        let checked = u16::try_from(sent).ok().filter(|attempts| (1..=self.limits.max_attempts).contains(attempts));
        self.keep(
            checked
                .ok_or_else(|| Invalid::new("max_attempts", format!("must be from 1 to {}", self.limits.max_attempts))),
        )
    }

    /// The key, where one was sent; nothing at all where it is faulty.
    #[allow(clippy::option_option, reason = "faulty and absent are different things")]
    fn key(&mut self, field: &str, sent: &str) -> Option<Option<Key>> {
        if sent.is_empty() {
            return Some(None);
        }
        self.keep(Key::parse(field, sent)).map(Some)
    }

    fn refuse(&mut self, field: &str, rule: impl Into<String>) {
        self.faults.note(Invalid::new(field, rule).within(self.place));
    }

    fn keep<T>(&mut self, checked: Result<T, Invalid>) -> Option<T> {
        let place = self.place;
        self.faults.keep(checked.map_err(|fault| fault.within(place)))
    }
}

/// The job's own trace context, else that of the call. A job whose own is malformed has none: the call's would be a guess.
fn trace(headers: &HashMap<String, String>, call: Option<&TraceContext>) -> Option<TraceContext> {
    let header = |name: &str| {
        let exact = headers.get(name);
        exact.or_else(|| headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value))
    };
    match header("traceparent") {
        Some(parent) => TraceContext::parse(parent, header("tracestate").map_or("", String::as_str)),
        None => call.cloned(),
    }
}

/// The answer to an Enqueue.
pub(in crate::grpc) fn enqueued(stored: &[Stored]) -> v1::EnqueueResponse {
    let job = |stored: &Stored| v1::EnqueuedJob { job_id: stored.row.job.to_string(), duplicate: stored.row.duplicate };
    v1::EnqueueResponse { jobs: stored.iter().map(job).collect() }
}

#[cfg(test)]
mod tests;
