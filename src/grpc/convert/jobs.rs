//! Jobs as operators ask for them and see them.

use super::{
    faults::Faults,
    page::{self, page_size},
    queues::count,
    time::timestamp,
};
use crate::{
    model::{Caller, Failure, Invalid, JobId, JobState, Key, QueueName, explain::Wait, explain::WaitReason},
    store::engine::{Cancelled, JobRecord},
    v1,
};

/// Jobs of one call.
const JOBS: usize = 1_000;

/// A job's id.
pub(super) fn job_id_in(field: &str, sent: &str) -> Result<JobId, Invalid> {
    let digits = sent.bytes().all(|b| b.is_ascii_digit()) && !sent.starts_with('0');
    let id = sent.parse().ok().filter(|_| digits);
    id.map(JobId).ok_or_else(|| Invalid::new(field, "must be the job_id that an Enqueue answered, a number"))
}

/// The job that a request is about.
pub(in crate::grpc) fn job_id(sent: &str) -> Result<JobId, Failure> {
    Ok(job_id_in("job_id", sent)?)
}

/// The jobs that a request is about.
pub(in crate::grpc) fn job_ids(sent: &[String]) -> Result<Vec<JobId>, Failure> {
    let mut faults = Faults::default();
    if !(1..=JOBS).contains(&sent.len()) {
        faults.note(Invalid::new("job_ids", format!("must hold 1 to {JOBS} entries")));
        return faults.or(Vec::new());
    }
    let ids = sent.iter().enumerate();
    let ids = ids.filter_map(|(n, sent)| faults.keep(job_id_in(&format!("job_ids[{n}]"), sent))).collect();
    faults.or(ids)
}

/// What a `ListJobs` asks for, checked.
#[derive(Debug)]
pub(in crate::grpc) struct JobsPage {
    /// Whose.
    pub(in crate::grpc) queue: QueueName,
    /// Some of the live states, or one of the others.
    pub(in crate::grpc) states: Vec<JobState>,
    /// Of this key alone.
    pub(in crate::grpc) ordering_key: Option<Key>,
    /// Of this caller alone.
    pub(in crate::grpc) caller: Option<String>,
    /// With payloads.
    pub(in crate::grpc) payloads: bool,
    /// Behind this one.
    pub(in crate::grpc) after: JobId,
    /// Rows at most.
    pub(in crate::grpc) size: usize,
}

/// The request, checked.
pub(in crate::grpc) fn jobs_page(request: &v1::ListJobsRequest) -> Result<JobsPage, Failure> {
    let mut faults = Faults::default();
    let queue = faults.keep(QueueName::parse("queue", &request.queue));
    let states = states(&request.states, &mut faults);
    let ordering_key = faults.keep(optional_key("ordering_key", &request.ordering_key));
    let caller = faults.keep(optional_caller("caller", &request.caller));
    let size = faults.keep(page_size(request.page_size));
    let after = faults.keep(page::place(&jobs_list(request), &request.page_token)).flatten();
    let after = after.and_then(|place| place.parse().ok()).map_or(JobId(0), JobId);
    let queue = faults.or(queue)?.ok_or_else(|| Failure::internal("a queue's name went missing"))?;
    Ok(JobsPage {
        queue,
        states,
        ordering_key: ordering_key.flatten(),
        caller: caller.flatten(),
        payloads: request.include_payload,
        after,
        size: size.unwrap_or_default(),
    })
}

/// The token of the page behind a job.
pub(in crate::grpc) fn next_jobs(request: &v1::ListJobsRequest, after: Option<JobId>) -> String {
    after.map(|job| page::page_token(&jobs_list(request), &job.to_string())).unwrap_or_default()
}

fn jobs_list(request: &v1::ListJobsRequest) -> String {
    let v1::ListJobsRequest { queue, states, ordering_key, caller, .. } = request;
    format!("jobs {queue} {states:?} {ordering_key:?} {caller:?}")
}

fn states(sent: &[i32], faults: &mut Faults) -> Vec<JobState> {
    if sent.is_empty() {
        return JobState::LIVE.to_vec();
    }
    let mut states = Vec::new();
    for (n, sent) in sent.iter().enumerate().take(Faults::AT_MOST) {
        match v1::JobState::try_from(*sent).ok().and_then(state) {
            Some(state) => states.push(state),
            None => faults.note(Invalid::new(format!("states[{n}]"), "must be a state of a job")),
        }
    }
    states.sort_unstable();
    states.dedup();
    if sent.len() > Faults::AT_MOST || (states.len() > 1 && states.iter().any(|state| !state.is_live())) {
        faults.note(Invalid::new("states", "must be live states, each once, or one of DEAD and ACKED on its own"));
    }
    states
}

/// A key, where one is given.
pub(super) fn optional_key(field: &str, sent: &str) -> Result<Option<Key>, Invalid> {
    (!sent.is_empty()).then(|| Key::parse(field, sent)).transpose()
}

/// A caller's name, the broker's own among them, where one is given.
pub(super) fn optional_caller(field: &str, sent: &str) -> Result<Option<String>, Invalid> {
    match sent {
        "" => Ok(None),
        name if Caller::is_name(name) => Ok(Some(name.to_owned())),
        _ => Err(Invalid::new(field, "must match [a-z0-9][a-z0-9_.-]{0,63}")),
    }
}

fn state(sent: v1::JobState) -> Option<JobState> {
    match sent {
        v1::JobState::Unspecified => None,
        v1::JobState::Ready => Some(JobState::Ready),
        v1::JobState::Scheduled => Some(JobState::Scheduled),
        v1::JobState::Blocked => Some(JobState::Blocked),
        v1::JobState::Leased => Some(JobState::Leased),
        v1::JobState::Dead => Some(JobState::Dead),
        v1::JobState::Acked => Some(JobState::Acked),
    }
}

fn state_shown(state: JobState) -> v1::JobState {
    match state {
        JobState::Ready => v1::JobState::Ready,
        JobState::Scheduled => v1::JobState::Scheduled,
        JobState::Blocked => v1::JobState::Blocked,
        JobState::Leased => v1::JobState::Leased,
        JobState::Dead => v1::JobState::Dead,
        JobState::Acked => v1::JobState::Acked,
    }
}

/// As the wire has it.
pub(in crate::grpc) fn job(record: JobRecord) -> v1::Job {
    let key = |key: Option<Key>| key.map(|key| key.as_str().to_owned()).unwrap_or_default();
    v1::Job {
        job_id: record.job.to_string(),
        queue: record.queue_name.map(|name| name.as_str().to_owned()).unwrap_or_default(),
        state: state_shown(record.state).into(),
        payload: record.payload.unwrap_or_default(),
        payload_bytes: record.payload_bytes,
        content_type: record.content_type,
        headers: record.headers.into_iter().collect(),
        priority: record.priority.level().into(),
        attempt: record.attempt,
        max_attempts: record.max_attempts,
        lease_number: record.lease_number,
        enqueued_at: Some(timestamp(record.enqueued_at)),
        available_at: Some(timestamp(record.available_at)),
        ready_at: record.ready_at.map(timestamp),
        lease_expires_at: record.lease_until.map(timestamp),
        cancel_requested: record.cancel_requested,
        ordering_key: key(record.ordering_key),
        idempotency_key: key(record.idempotency_key),
        last_error: record.last_error.unwrap_or_default(),
        dead_at: record.dead_at.map(timestamp),
        expires_at: record.expires_at.map(timestamp),
        acked_at: record.acked_at.map(timestamp),
        traceparent: record.trace.map(|trace| trace.traceparent).unwrap_or_default(),
        caller: record.caller.unwrap_or_default(),
    }
}

/// As the wire has it.
pub(in crate::grpc) fn cancelled(jobs: &[Cancelled]) -> v1::CancelJobResponse {
    let status = |cancelled: &Cancelled| match cancelled {
        Cancelled::Removed => v1::CancelStatus::Cancelled,
        Cancelled::Requested(_) => v1::CancelStatus::Requested,
        Cancelled::Gone => v1::CancelStatus::Gone,
        Cancelled::Busy => v1::CancelStatus::Busy,
    };
    v1::CancelJobResponse { results: jobs.iter().map(|job| v1::CancelResult { status: status(job).into() }).collect() }
}

/// As the wire has it.
pub(in crate::grpc) fn wait(wait: Wait) -> v1::Wait {
    let reason = match wait.reason {
        WaitReason::None => v1::WaitReason::None,
        WaitReason::Scheduled => v1::WaitReason::Scheduled,
        WaitReason::Blocked => v1::WaitReason::Blocked,
        WaitReason::Adoption => v1::WaitReason::Adoption,
        WaitReason::QueuePaused => v1::WaitReason::QueuePaused,
        WaitReason::Leased => v1::WaitReason::Leased,
        WaitReason::NoConsumer => v1::WaitReason::NoConsumer,
        WaitReason::NoCredit => v1::WaitReason::NoCredit,
        WaitReason::BehindOthers => v1::WaitReason::BehindOthers,
        WaitReason::Dead => v1::WaitReason::Dead,
        WaitReason::Acked => v1::WaitReason::Acked,
        WaitReason::Held => v1::WaitReason::Held,
    };
    v1::Wait {
        reason: reason.into(),
        explanation: wait.explanation,
        until: wait.until.map(timestamp),
        blocking_job_id: wait.blocking.map(|job| job.to_string()).unwrap_or_default(),
        consumer: wait.consumer.unwrap_or_default(),
        ahead: wait.ahead.map(count),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields<T: std::fmt::Debug>(refused: Result<T, Failure>) -> Vec<String> {
        refused.expect_err("refused").invalid.into_iter().map(|fault| fault.field).collect()
    }

    #[test]
    fn a_job_is_named_by_its_number_and_nothing_else() {
        assert_eq!(job_id("9223372036854775807"), Ok(JobId(i64::MAX)));
        for bad in ["", "0", "-1", "+1", "01", "1.0", " 1", "1e3", "9223372036854775808", "one", "١"] {
            assert_eq!(fields(job_id(bad)), ["job_id"], "{bad:?}");
        }
        assert_eq!(fields(job_ids(&[])), ["job_ids"]);
        assert_eq!(fields(job_ids(&vec!["1".to_owned(); 1_001])), ["job_ids"]);
        assert_eq!(fields(job_ids(&["1".into(), "x".into(), "2".into(), String::new()])), ["job_ids[1]", "job_ids[3]"]);
    }

    #[test]
    fn a_list_without_states_is_of_all_live_jobs() {
        let request = v1::ListJobsRequest { queue: "q".into(), ..v1::ListJobsRequest::default() };
        let page = jobs_page(&request).expect("valid");
        assert_eq!((page.states.as_slice(), page.after, page.size), (&JobState::LIVE[..], JobId(0), 100));
    }

    #[test]
    fn dead_and_acked_jobs_are_listed_on_their_own() {
        use v1::JobState::{Acked, Dead, Leased, Ready, Unspecified};
        let list = |states: &[v1::JobState]| v1::ListJobsRequest {
            queue: "q".into(),
            states: states.iter().map(|state| i32::from(*state)).collect(),
            ..v1::ListJobsRequest::default()
        };
        assert_eq!(jobs_page(&list(&[Dead])).expect("valid").states, [JobState::Dead]);
        assert_eq!(jobs_page(&list(&[Leased, Ready])).expect("valid").states, [JobState::Ready, JobState::Leased]);
        for mixed in [[Dead, Ready], [Acked, Dead]] {
            assert_eq!(fields(jobs_page(&list(&mixed))), ["states"]);
        }
        assert_eq!(fields(jobs_page(&list(&[Ready, Unspecified]))), ["states[1]"]);
    }

    #[test]
    fn everything_wrong_with_a_list_is_said_at_once_and_tokens_are_the_questions_own() {
        let mut request = v1::ListJobsRequest {
            queue: "Q".into(),
            states: vec![99],
            ordering_key: "é".into(),
            caller: "*/".into(),
            page_size: 2_000,
            page_token: "x".into(),
            include_payload: false,
        };
        let all = ["queue", "states[0]", "ordering_key", "caller", "page_size", "page_token"];
        assert_eq!(fields(jobs_page(&request)), all);
        request = v1::ListJobsRequest { queue: "q".into(), ..v1::ListJobsRequest::default() };
        request.page_token = next_jobs(&request, Some(JobId(77)));
        assert_eq!(jobs_page(&request).expect("valid").after, JobId(77));
        request.caller = "unattributed".into();
        assert_eq!(fields(jobs_page(&request)), ["page_token"], "a token of another question");
        assert_eq!(next_jobs(&request, None), "");
    }
}
