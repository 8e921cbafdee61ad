//! Dead jobs as operators ask for them.

use super::{
    faults::Faults,
    jobs::{job_id_in, optional_caller, optional_key},
    page::{self, page_size},
    time::{instant, instant_after},
};
use crate::{
    model::{Failure, Invalid, JobId, QueueName, Timestamp},
    store::engine::{DeadFilter, DeadPlace},
    v1::{self, redrive_dead_jobs_request::Which},
};

/// Bytes of a text that an error is to contain.
const ERROR_BYTES: usize = 200;
/// Jobs a second of a redrive that says nothing, and at most.
const RATES: (u32, u32) = (100, 100_000);

/// What a `ListDeadJobs` asks for, checked.
#[derive(Debug)]
pub(in crate::grpc) struct DeadPage {
    /// Whose.
    pub(in crate::grpc) queue: QueueName,
    /// Which.
    pub(in crate::grpc) filter: DeadFilter,
    /// With payloads.
    pub(in crate::grpc) payloads: bool,
    /// Before this one.
    pub(in crate::grpc) before: Option<DeadPlace>,
    /// Rows at most.
    pub(in crate::grpc) size: usize,
}

/// The request, checked.
pub(in crate::grpc) fn dead_page(request: &v1::ListDeadJobsRequest) -> Result<DeadPage, Failure> {
    let mut faults = Faults::default();
    let queue = faults.keep(QueueName::parse("queue", &request.queue));
    let filter = filter("filter", request.filter.as_ref(), &mut faults);
    let size = faults.keep(page_size(request.page_size));
    let before = faults.keep(page::place(&dead_list(request), &request.page_token)).flatten();
    let queue = faults.or(queue)?.ok_or_else(|| Failure::internal("a queue's name went missing"))?;
    Ok(DeadPage {
        queue,
        filter,
        payloads: request.include_payload,
        before: before.as_deref().and_then(place),
        size: size.unwrap_or_default(),
    })
}

/// The token of the page before a dead job.
pub(in crate::grpc) fn next_dead(request: &v1::ListDeadJobsRequest, before: Option<DeadPlace>) -> String {
    let place = before.map(|place| format!("{} {}", place.dead_at.0, place.job));
    place.map(|place| page::page_token(&dead_list(request), &place)).unwrap_or_default()
}

fn place(text: &str) -> Option<DeadPlace> {
    let (at, job) = text.split_once(' ')?;
    Some(DeadPlace { dead_at: Timestamp(at.parse().ok()?), job: JobId(job.parse().ok()?) })
}

fn dead_list(request: &v1::ListDeadJobsRequest) -> String {
    format!("dead {} {:?}", request.queue, request.filter)
}

/// What a `RedriveDeadJobs` asks for, checked.
#[derive(Debug)]
pub(in crate::grpc) struct RedriveSpec {
    /// Which jobs.
    pub(in crate::grpc) which: Redrive,
    /// Jobs at most.
    pub(in crate::grpc) limit: u64,
    /// Jobs a second at most.
    pub(in crate::grpc) rate: u32,
}

/// See [`RedriveSpec`].
#[derive(Debug)]
pub(in crate::grpc) enum Redrive {
    /// One.
    Job(JobId),
    /// Those of a queue.
    OfQueue(QueueName, DeadFilter),
}

/// The request, checked.
pub(in crate::grpc) fn redrive_spec(request: &v1::RedriveDeadJobsRequest) -> Result<RedriveSpec, Failure> {
    let mut faults = Faults::default();
    let which = match &request.which {
        None => {
            faults.note(Invalid::new("job_id", "must be given, or of_queue"));
            None
        }
        Some(Which::JobId(job)) => faults.keep(job_id_in("job_id", job)).map(Redrive::Job),
        Some(Which::OfQueue(of)) => {
            let queue = faults.keep(QueueName::parse("of_queue.queue", &of.queue));
            let filter = filter("of_queue.filter", of.filter.as_ref(), &mut faults);
            queue.map(|queue| Redrive::OfQueue(queue, filter))
        }
    };
    let rate = if request.rate == 0 { RATES.0 } else { request.rate };
    if rate > RATES.1 {
        faults.note(Invalid::new("rate", format!("must be 1 to {}", RATES.1)));
    }
    let limit = if request.limit == 0 { u64::MAX } else { request.limit };
    let which = faults.or(which)?.ok_or_else(|| Failure::internal("what to redrive went missing"))?;
    Ok(RedriveSpec { which, limit, rate })
}

fn filter(field: &str, sent: Option<&v1::DeadFilter>, faults: &mut Faults) -> DeadFilter {
    let Some(sent) = sent else { return DeadFilter::default() };
    let inside = |name: &str| format!("{field}.{name}");
    let after = sent.died_after.as_ref().map(|sent| instant(&inside("died_after"), sent)).transpose();
    let before = sent.died_before.as_ref().map(|sent| instant_after(&inside("died_before"), sent)).transpose();
    let error = &sent.error_contains;
    if error.len() > ERROR_BYTES || error.contains('\0') {
        let rule = format!("must be at most {ERROR_BYTES} bytes, none of which is 0");
        faults.note(Invalid::new(inside("error_contains"), rule));
    }
    DeadFilter {
        died_after: faults.keep(after).flatten(),
        died_before: faults.keep(before).flatten(),
        error_contains: (!error.is_empty()).then(|| error.clone()),
        ordering_key: faults.keep(optional_key(&inside("ordering_key"), &sent.ordering_key)).flatten(),
        caller: faults.keep(optional_caller(&inside("caller"), &sent.caller)).flatten(),
    }
}

#[cfg(test)]
mod tests {
    use prost_types::Timestamp as Sent;

    use super::*;

    fn fields<T: std::fmt::Debug>(refused: Result<T, Failure>) -> Vec<String> {
        refused.expect_err("refused").invalid.into_iter().map(|fault| fault.field).collect()
    }

    fn bad_filter() -> v1::DeadFilter {
        v1::DeadFilter {
            died_after: Some(Sent { seconds: 0, nanos: -1 }),
            died_before: Some(Sent { seconds: i64::MAX, nanos: 0 }),
            error_contains: "e".repeat(201),
            ordering_key: "\n".into(),
            caller: "A".into(),
        }
    }

    #[test]
    fn everything_wrong_with_a_filter_is_said_at_once() {
        let request = v1::ListDeadJobsRequest { filter: Some(bad_filter()), ..v1::ListDeadJobsRequest::default() };
        let all = ["queue", "filter.error_contains", "filter.died_after", "filter.died_before", "filter.ordering_key"];
        assert_eq!(fields(dead_page(&request))[..5], all);
        let of_queue = v1::DeadJobsOfQueue { queue: "q".into(), filter: Some(bad_filter()) };
        let request = v1::RedriveDeadJobsRequest {
            which: Some(Which::OfQueue(of_queue)),
            rate: 100_001,
            ..v1::RedriveDeadJobsRequest::default()
        };
        let wrong = fields(redrive_spec(&request));
        assert_eq!((wrong.len(), wrong[5].as_str()), (6, "rate"), "{wrong:?}");
    }

    #[test]
    fn instants_between_two_microseconds_leave_out_no_job_that_fits() {
        let filter = v1::DeadFilter {
            died_after: Some(Sent { seconds: 1, nanos: 500 }),
            died_before: Some(Sent { seconds: 1, nanos: 500 }),
            ..v1::DeadFilter::default()
        };
        let request = v1::ListDeadJobsRequest { queue: "q".into(), filter: Some(filter), ..Default::default() };
        let filter = dead_page(&request).expect("valid").filter;
        // After 1.0000005 s is after 1.000000 s, and before it is before 1.000001 s, where instants are whole microseconds.
        assert_eq!((filter.died_after, filter.died_before), (Some(Timestamp(1_000_000)), Some(Timestamp(1_000_001))));
    }

    #[test]
    fn a_redrive_names_what_and_how_fast() {
        let mut request = v1::RedriveDeadJobsRequest::default();
        assert_eq!(fields(redrive_spec(&request)), ["job_id"]);
        request.which = Some(Which::JobId("x".into()));
        assert_eq!(fields(redrive_spec(&request)), ["job_id"]);
        request.which = Some(Which::JobId("12".into()));
        let spec = redrive_spec(&request).expect("valid");
        assert!(matches!(spec.which, Redrive::Job(JobId(12))));
        assert_eq!((spec.rate, spec.limit), (100, u64::MAX));
    }

    #[test]
    fn a_token_of_dead_jobs_leads_back_to_its_place() {
        let mut request = v1::ListDeadJobsRequest { queue: "q".into(), ..v1::ListDeadJobsRequest::default() };
        let before = DeadPlace { dead_at: Timestamp(1_700_000_000_000_001), job: JobId(5) };
        request.page_token = next_dead(&request, Some(before));
        assert_eq!(dead_page(&request).expect("valid").before, Some(before));
        request.queue = "r".into();
        assert_eq!(fields(dead_page(&request)), ["page_token"]);
    }
}
