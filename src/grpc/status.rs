//! Failures as the wire has them: the only maker of a [`Status`].
//!
//! Every one carries `google.rpc.ErrorInfo` with the domain `leasehold`, `google.rpc.RequestInfo` with the id that the log
//! knows the call by, what else its reason calls for, and the trailer `leasehold-outcome`.

use std::{collections::HashMap, fmt::Write, time::Instant};

use http::{HeaderMap, HeaderValue};
use prost::Message as _;
use tonic::{
    Code, Status,
    metadata::{MetadataMap, MetadataValue},
};
use tonic_types::{ErrorDetails, StatusExt};

use super::{convert, layers::RequestId};
use crate::{
    model::{Failure, Reason, Shortage},
    v1,
};

/// Name of the trailer that says whether anything happened.
pub(super) const OUTCOME: &str = "leasehold-outcome";

/// The domain of every reason.
pub(super) const DOMAIN: &str = "leasehold";

/// Bytes of the stocks that a status names as sold out: a key may have 400, and a cart a hundred.
const SHORTAGE_BYTES: usize = 2_000;
/// Stocks that the precondition names too.
const SHORTAGES_AS_PRECONDITIONS: usize = 2;

/// Faults that the text names; all of them are in the details. Some clients refuse headers past 8 KiB.
const FAULTS_IN_TEXT: usize = 3;

/// The failure of call `id`. `deadline` tells a call that ran out of time from one whose database went away, where the
/// outcome is unknown.
pub(super) fn of(failure: &Failure, id: RequestId, deadline: Option<Instant>) -> Status {
    let reason = failure.reason;
    let mut details = ErrorDetails::with_error_info(reason.as_str(), DOMAIN, HashMap::new());
    details.set_request_info(id.to_string(), "");
    if let Some(delay) = failure.retry_after {
        details.set_retry_info(Some(delay));
    }
    for fault in &failure.invalid {
        details.add_bad_request_violation(fault.field.as_str(), fault.rule.as_str());
    }
    let subject = failure.subject.as_deref().unwrap_or_default();
    match reason {
        Reason::CallerBudget | Reason::StreamLimit | Reason::QueueFull => {
            details.add_quota_failure_violation(subject, failure.message.as_str());
        }
        Reason::NotFound => {
            details.set_resource_info(failure.kind.unwrap_or("queue"), subject, "", failure.message.as_str());
        }
        Reason::SoldOut => {
            for short in shortages(failure).iter().take(SHORTAGES_AS_PRECONDITIONS) {
                let why = format!("{} units wanted, {} free", short.requested, short.available);
                details.add_precondition_failure_violation("STOCK", short.key.to_string(), why);
            }
        }
        Reason::ReservationEnded => {
            details.add_precondition_failure_violation("HELD", subject, failure.message.as_str());
        }
        Reason::QueueNotEmpty => {
            details.add_precondition_failure_violation("QUEUE_EMPTY", subject, failure.message.as_str());
        }
        Reason::WrongState => {
            details.add_precondition_failure_violation("STATE", subject, failure.message.as_str());
        }
        Reason::InvalidField if failure.invalid.is_empty() => {
            // A rule of the database's own, which knows no field of ours.
            details.add_bad_request_violation("request", failure.message.as_str());
        }
        Reason::KeyReused if !subject.is_empty() => {
            details.set_resource_info("idempotency_key", subject, "", failure.message.as_str());
        }
        _ => {}
    }
    let mut trailers = MetadataMap::new();
    trailers.insert(OUTCOME, MetadataValue::from_static(failure.outcome.as_str()));
    let status = Status::with_error_details_and_metadata(code(reason, deadline), text(failure, id), details, trailers);
    if shortages(failure).is_empty() { status } else { with_detail(status, &sold_out(failure)) }
}

fn shortages(failure: &Failure) -> &[Shortage] {
    failure.sold_out.as_ref().map_or(&[], |sold_out| &sold_out.shortages)
}

/// Of which stocks too little is free, as many as fit; at least one.
fn sold_out(failure: &Failure) -> v1::SoldOut {
    let mut bytes = 0;
    let fitting = shortages(failure).iter().take_while(|short| {
        let fits = bytes < SHORTAGE_BYTES;
        bytes += short.key.item.as_str().len() + short.key.location.as_str().len() + 16;
        fits
    });
    v1::SoldOut { lines: fitting.map(convert::short_shown).collect() }
}

/// The same with a message of our own contract among its details, in the place that the standard ones leave for such.
fn with_detail(status: Status, detail: &v1::SoldOut) -> Status {
    let Ok(mut details) = tonic_types::Status::decode(status.details()) else { return status };
    let detail = prost_types::Any {
        type_url: "type.googleapis.com/leasehold.v1.SoldOut".to_owned(),
        value: detail.encode_to_vec(),
    };
    details.details.push(detail);
    let details = details.encode_to_vec().into();
    Status::with_details_and_metadata(status.code(), status.message(), details, status.metadata().clone())
}

/// The failure of call `id` as the trailers of an answer that has begun.
pub(super) fn trailers(failure: &Failure, id: RequestId) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    if let Err(unsendable) = of(failure, id, None).add_header(&mut trailers) {
        // Its text is no header value; its code always is one.
        trailers.insert(Status::GRPC_STATUS, HeaderValue::from(unsendable.code() as u16));
    }
    trailers
}

fn code(reason: Reason, deadline: Option<Instant>) -> Code {
    match reason {
        Reason::InvalidField => Code::InvalidArgument,
        Reason::NotFound => Code::NotFound,
        Reason::Unimplemented => Code::Unimplemented,
        Reason::KeyReused => Code::AlreadyExists,
        Reason::CallerBudget | Reason::StreamLimit | Reason::QueueFull => Code::ResourceExhausted,
        Reason::SoldOut | Reason::ReservationEnded | Reason::QueueNotEmpty | Reason::WrongState => {
            Code::FailedPrecondition
        }
        Reason::Conflict => Code::Aborted,
        Reason::Deadline => Code::DeadlineExceeded,
        Reason::OutcomeUnknown if deadline.is_some_and(|deadline| deadline <= Instant::now()) => Code::DeadlineExceeded,
        Reason::Disabled
        | Reason::Overloaded
        | Reason::Draining
        | Reason::DatabaseUnavailable
        | Reason::OutcomeUnknown => Code::Unavailable,
        Reason::Internal => Code::Internal,
    }
}

fn text(failure: &Failure, id: RequestId) -> String {
    if failure.reason == Reason::Internal {
        return format!("{} (request {id})", failure.message);
    }
    let more = failure.invalid.len().saturating_sub(FAULTS_IN_TEXT);
    if more == 0 {
        return failure.message.clone();
    }
    let mut text = String::new();
    for fault in &failure.invalid[..FAULTS_IN_TEXT] {
        write!(text, "{fault}; ").expect("writing into a String does not fail");
    }
    text + &format!("and {more} more")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::model::{Invalid, Outcome, StockKey};

    fn made(failure: &Failure) -> Status {
        of(failure, RequestId::draw(), None)
    }

    #[test]
    fn every_reason_has_its_code_info_and_outcome() {
        for reason in Reason::ALL {
            let mut failure = Failure::not_applied(reason, "why");
            if matches!(reason, Reason::OutcomeUnknown | Reason::Internal) {
                failure.outcome = Outcome::Unknown;
            }
            let status = made(&failure);
            assert!(!matches!(status.code(), Code::Ok | Code::Unknown), "{reason:?}");
            let info = status.get_error_details();
            let info = info.error_info().expect("always there");
            assert_eq!((info.reason.as_str(), info.domain.as_str()), (reason.as_str(), "leasehold"));
            assert_eq!(status.metadata().get(OUTCOME).expect("always there"), failure.outcome.as_str());
        }
    }

    #[test]
    fn failures_that_pass_say_when_to_try_again() {
        for reason in [
            Reason::CallerBudget,
            Reason::StreamLimit,
            Reason::QueueFull,
            Reason::Overloaded,
            Reason::Draining,
            Reason::DatabaseUnavailable,
            Reason::Conflict,
        ] {
            let status = made(&Failure::not_applied(reason, "later"));
            assert!(status.get_details_retry_info().is_some_and(|info| info.retry_delay.is_some()), "{reason:?}");
        }
        let status = made(&Failure::not_applied(Reason::KeyReused, "never"));
        assert!(status.get_details_retry_info().is_none());
    }

    #[test]
    fn quotas_name_who_is_over_them() {
        let status = made(&Failure::not_applied(Reason::QueueFull, "the queue is full").about("orders"));
        let quota = status.get_details_quota_failure().expect("a quota");
        assert_eq!(quota.violations[0].subject, "orders");
        let status = made(&Failure::not_applied(Reason::NotFound, "no such queue").about("orders"));
        assert_eq!(status.get_details_resource_info().expect("a resource").resource_name, "orders");
    }

    #[test]
    fn all_faults_are_in_the_details_and_the_first_in_the_text() {
        let faults = (0..20).map(|n| Invalid::new(format!("jobs[{n}].queue"), "must match x")).collect();
        let status = made(&Failure::invalid(faults));
        assert_eq!(
            status.message(),
            "jobs[0].queue: must match x; jobs[1].queue: must match x; jobs[2].queue: must match x; and 17 more"
        );
        let request = status.get_details_bad_request().expect("the faults");
        assert_eq!(request.field_violations.len(), 20);
        assert_eq!(request.field_violations[19].field, "jobs[19].queue");
    }

    #[test]
    fn a_refusal_that_knows_no_field_is_about_the_request() {
        let status = made(&Failure::not_applied(Reason::InvalidField, "refused by a rule of the database"));
        let request = status.get_details_bad_request().expect("a fault");
        assert_eq!(request.field_violations[0].field, "request");
    }

    #[test]
    fn the_largest_refusal_fits_into_the_headers_that_every_client_takes() {
        let field = format!("jobs[999].headers[\"{}\"]", "k".repeat(64));
        let faults = vec![Invalid::new(field, "keys must be 1 to 128 printable ASCII characters"); 20];
        let answer = made(&Failure::invalid(faults)).into_http::<tonic::body::Body>();
        let bytes: usize = answer.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + 32).sum();
        assert!(bytes < 8 << 10, "{bytes} bytes");
    }

    #[test]
    fn a_cart_that_is_sold_out_says_of_what_in_a_detail_of_its_own_and_still_fits() {
        let short = |n: usize| Shortage {
            key: StockKey::parse("key", &format!("{n}{}", "i".repeat(198)), &"l".repeat(200)).expect("a key"),
            requested: u64::MAX,
            available: 3,
        };
        let status = made(&Failure::sold_out((0..100).map(short).collect()));
        assert_eq!(status.code(), Code::FailedPrecondition);
        assert!(status.get_details_precondition_failure().is_some() && status.get_details_error_info().is_some());
        let details = tonic_types::Status::decode(status.details()).expect("details");
        let last = details.details.last().expect("a detail");
        assert_eq!(last.type_url, "type.googleapis.com/leasehold.v1.SoldOut");
        let sold_out = v1::SoldOut::decode(&last.value[..]).expect("what is sold out");
        assert_eq!((sold_out.lines.len(), sold_out.lines[0].requested, sold_out.lines[0].available), (5, u32::MAX, 3));
        let answer = status.into_http::<tonic::body::Body>();
        let bytes: usize = answer.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + 32).sum();
        assert!(bytes < 8 << 10, "{bytes} bytes");
    }

    #[test]
    fn an_unknown_outcome_past_the_deadline_is_the_deadlines() {
        let failure = Failure::unknown("no answer came");
        let now = Instant::now();
        assert_eq!(of(&failure, RequestId::draw(), Some(now)).code(), Code::DeadlineExceeded);
        assert_eq!(of(&failure, RequestId::draw(), Some(now + Duration::from_mins(1))).code(), Code::Unavailable);
        assert_eq!(made(&failure).code(), Code::Unavailable);
    }

    #[test]
    fn a_bug_is_reported_with_the_id_that_the_log_knows() {
        let id = RequestId::draw();
        let status = of(&Failure::internal("a bug"), id, None);
        assert_eq!(status.message(), format!("a bug (request {id})"));
        assert_eq!(status.get_details_request_info().expect("an id").request_id, id.to_string());
    }
}
