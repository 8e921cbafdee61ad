//! Queues in lists, what is in them, and purges.

use super::{
    faults::Faults,
    page::{self, page_size},
    time::{duration, instant},
};
use crate::{
    model::{Count, Failure, Invalid, JobState, QueueName, Timestamp},
    store::engine::{Attendance, QueueCounts},
    v1,
};

/// What a `ListQueues` asks for, checked.
#[derive(Debug)]
pub(in crate::grpc) struct QueuesPage {
    /// Names begin with it.
    pub(in crate::grpc) prefix: String,
    /// Names come after it.
    pub(in crate::grpc) after: String,
    /// Rows at most.
    pub(in crate::grpc) size: usize,
}

/// The request, checked.
pub(in crate::grpc) fn queues_page(request: &v1::ListQueuesRequest) -> Result<QueuesPage, Failure> {
    let mut faults = Faults::default();
    let prefix = &request.prefix;
    if !prefix.is_empty() {
        let name = QueueName::parse("prefix", prefix);
        faults.keep(name.map_err(|_| Invalid::new("prefix", "must be the beginning of a queue's name")));
    }
    let size = faults.keep(page_size(request.page_size));
    let after = faults.keep(page::place(&list(prefix), &request.page_token));
    faults.or(QueuesPage {
        prefix: prefix.clone(),
        after: after.flatten().unwrap_or_default(),
        size: size.unwrap_or_default(),
    })
}

/// The token of the page behind the queue named `last`.
pub(in crate::grpc) fn next_queues(prefix: &str, last: &str) -> String {
    page::page_token(&list(prefix), last)
}

fn list(prefix: &str) -> String {
    format!("queues {prefix}")
}

/// What a `PurgeQueue` asks for, checked.
#[derive(Debug)]
pub(in crate::grpc) struct PurgeSpec {
    /// Which queue.
    pub(in crate::grpc) queue: QueueName,
    /// Which jobs.
    pub(in crate::grpc) states: Vec<JobState>,
    /// Only those enqueued before.
    pub(in crate::grpc) before: Option<Timestamp>,
    /// Jobs at most.
    pub(in crate::grpc) limit: Option<u64>,
}

/// The request, checked.
pub(in crate::grpc) fn purge_spec(request: &v1::PurgeQueueRequest) -> Result<PurgeSpec, Failure> {
    let mut faults = Faults::default();
    let queue = faults.keep(QueueName::parse("queue", &request.queue));
    if request.states.is_empty() {
        faults.note(Invalid::new("states", "must name at least one state"));
    }
    let mut states = Vec::new();
    for (index, sent) in request.states.iter().enumerate().take(Faults::AT_MOST) {
        match state(*sent) {
            Some(state) => states.push(state),
            None => faults
                .note(Invalid::new(format!("states[{index}]"), "must be READY, SCHEDULED, BLOCKED, DEAD or ACKED")),
        }
    }
    let before = request.enqueued_before.as_ref();
    let before = faults.keep(before.map(|sent| instant("enqueued_before", sent)).transpose());
    let limit = Some(request.limit).filter(|limit| *limit > 0);
    let queue = faults.or(queue)?.ok_or_else(|| Failure::internal("a queue's name went missing"))?;
    Ok(PurgeSpec { queue, states, before: before.flatten(), limit })
}

/// A state that can be purged.
fn state(sent: i32) -> Option<JobState> {
    match v1::JobState::try_from(sent).ok()? {
        v1::JobState::Ready => Some(JobState::Ready),
        v1::JobState::Scheduled => Some(JobState::Scheduled),
        v1::JobState::Blocked => Some(JobState::Blocked),
        v1::JobState::Dead => Some(JobState::Dead),
        v1::JobState::Acked => Some(JobState::Acked),
        v1::JobState::Unspecified | v1::JobState::Leased => None,
    }
}

/// As the wire has it.
pub(in crate::grpc) fn count(count: Count) -> v1::Count {
    v1::Count { value: count.value.try_into().unwrap_or(i64::MAX), at_least: count.at_least }
}

/// What is in a queue, and what replicas say of it, as the wire has it.
pub(in crate::grpc) fn queue_counts(counts: &QueueCounts, attendance: &Attendance) -> v1::QueueCounts {
    let rates = attendance.rates;
    v1::QueueCounts {
        ready: Some(count(counts.ready)),
        scheduled: Some(count(counts.scheduled)),
        blocked: Some(count(counts.blocked)),
        leased: Some(count(counts.leased)),
        dead: Some(count(counts.dead)),
        oldest_ready_age: counts.oldest_ready.map(|(_, age)| duration(age)),
        rates: Some(v1::QueueRates {
            enqueued: rates.enqueued,
            leased: rates.leased,
            acked: rates.acked,
            retried: rates.retried,
            expired: rates.expired,
            dead: rates.dead,
        }),
        streams: u32::try_from(attendance.streams).unwrap_or(u32::MAX),
        free_credit: attendance.free_credit,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields<T: std::fmt::Debug>(refused: Result<T, Failure>) -> Vec<String> {
        refused.expect_err("refused").invalid.into_iter().map(|fault| fault.field).collect()
    }

    #[test]
    fn a_page_of_queues_goes_on_where_the_last_one_ended() {
        let mut request = v1::ListQueuesRequest { prefix: "or".into(), ..v1::ListQueuesRequest::default() };
        let first = queues_page(&request).expect("valid");
        assert_eq!((first.after.as_str(), first.size), ("", 100));
        request.page_token = next_queues("or", "orders");
        assert_eq!(queues_page(&request).expect("valid").after, "orders");
        request.prefix = "ab".into();
        assert_eq!(fields(queues_page(&request)), ["page_token"], "a token of another question");
    }

    #[test]
    fn everything_wrong_with_a_list_is_said_at_once() {
        let request = v1::ListQueuesRequest {
            prefix: "Or%".into(),
            page_size: 1_001,
            page_token: "x".into(),
            ..v1::ListQueuesRequest::default()
        };
        assert_eq!(fields(queues_page(&request)), ["prefix", "page_size", "page_token"]);
    }

    #[test]
    fn a_purge_says_what_and_never_the_leased_ones() {
        let purge = |states: &[v1::JobState]| v1::PurgeQueueRequest {
            queue: "orders".into(),
            states: states.iter().map(|state| i32::from(*state)).collect(),
            ..v1::PurgeQueueRequest::default()
        };
        let spec = purge_spec(&purge(&[v1::JobState::Dead, v1::JobState::Ready])).expect("valid");
        assert_eq!(spec.states, [JobState::Dead, JobState::Ready]);
        assert_eq!((spec.limit, spec.before), (None, None));
        assert_eq!(fields(purge_spec(&purge(&[]))), ["states"]);
        let refused = purge_spec(&purge(&[v1::JobState::Leased, v1::JobState::Ready, v1::JobState::Unspecified]));
        assert_eq!(fields(refused), ["states[0]", "states[2]"]);
        let mut bad = purge(&[v1::JobState::Ready]);
        bad.states.push(77);
        bad.queue = String::new();
        bad.enqueued_before = Some(prost_types::Timestamp { seconds: 0, nanos: -1 });
        assert_eq!(fields(purge_spec(&bad)), ["queue", "states[1]", "enqueued_before"]);
    }
}
