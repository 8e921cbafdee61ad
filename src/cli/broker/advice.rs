//! What to do about a failure, by its reason.

use tonic::Code;

use super::super::Exit;

/// How the program ends for a reason of the broker, and what can be done next. A reason that is newer than this program is gone
/// by its status.
pub(super) fn of(reason: &str, code: Code) -> (Exit, &'static str) {
    match reason {
        "INVALID_FIELD" => (Exit::Invalid, "correct what is named and try again"),
        "NOT_FOUND" => (
            Exit::NotFound,
            "'leasehold queue list' lists queues, 'leasehold job list QUEUE' and 'leasehold dead list QUEUE' jobs, \
'leasehold stock find --reference KEY' finds a reservation",
        ),
        "UNIMPLEMENTED" => (Exit::Refused, "the broker does not know this call: 'leasehold ping' says its version"),
        "KEY_REUSED" => (Exit::Refused, "send the same content as before, or use another idempotency key or reference"),
        "DISABLED" => (
            Exit::Refused,
            "'leasehold queue enable QUEUE' lets jobs in again, 'leasehold queue delete QUEUE' ends a deletion that was cut short, \
'leasehold stock switches' shows which reservations are stopped and 'leasehold stock enable' allows them again",
        ),
        "SOLD_OUT" => (
            Exit::Refused,
            "'leasehold stock show ITEM' says what there is; more comes with 'leasehold stock adjust', or when holds end",
        ),
        "RESERVATION_ENDED" => (
            Exit::Refused,
            "'leasehold stock find RESERVATION' says how it ended; what went back has to be reserved anew, under another reference",
        ),
        "QUEUE_NOT_EMPTY" => (Exit::Refused, "do what it says; --purge removes jobs that are not leased as well"),
        "WRONG_STATE" => (Exit::Refused, "'leasehold job explain JOB' says in which state it is and why"),
        "QUEUE_FULL" => (
            Exit::TryLater,
            "wait until jobs were worked off, or raise the bound: 'leasehold queue update QUEUE --max-backlog-jobs COUNT'",
        ),
        "STREAM_LIMIT" | "CALLER_BUDGET" => (Exit::TryLater, "wait until others have ended, or raise the bound"),
        "CONFLICT" | "DEADLINE" => (Exit::TryLater, "try again; a longer --timeout helps where the broker is busy"),
        "OVERLOADED" => (Exit::Unavailable, "the broker is busy: try again"),
        "DRAINING" => (Exit::Unavailable, "this replica is going away: try again, another one answers"),
        "DATABASE_UNAVAILABLE" => {
            (Exit::Unavailable, "look at the broker's database: 'leasehold doctor' says what it finds")
        }
        "OUTCOME_UNKNOWN" => (
            Exit::Unknown,
            "look before you repeat it; with the same idempotency key or lease token a repeated call is safe",
        ),
        "UNAUTHENTICATED" | "FORBIDDEN" => (Exit::Forbidden, "call as somebody who may"),
        "INTERNAL" => (Exit::Bug, "report it with the request id; the broker's log says more about it"),
        _ => by_code(code),
    }
}

fn by_code(code: Code) -> (Exit, &'static str) {
    match code {
        Code::InvalidArgument => (Exit::Invalid, "correct what is named and try again"),
        Code::NotFound => (Exit::NotFound, "look for what there is"),
        Code::AlreadyExists | Code::FailedPrecondition => {
            (Exit::Refused, "change what stands in the way, then try again")
        }
        Code::ResourceExhausted | Code::Aborted | Code::DeadlineExceeded => (Exit::TryLater, "try again later"),
        Code::Unavailable => (Exit::Unavailable, "try again later"),
        Code::Unauthenticated | Code::PermissionDenied => (Exit::Forbidden, "call as somebody who may"),
        _ => (Exit::Failure, "the broker is newer than this program; its documentation explains the reason"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Reason;

    #[test]
    fn every_reason_of_the_broker_has_an_advice_of_its_own() {
        let unknown = of("FROM_THE_FUTURE", Code::Unknown);
        for reason in Reason::ALL {
            assert_ne!(of(reason.as_str(), Code::Unknown), unknown, "{reason:?}");
        }
    }

    #[test]
    fn a_reason_from_the_future_goes_by_its_status() {
        assert_eq!(of("FROM_THE_FUTURE", Code::FailedPrecondition).0, Exit::Refused);
        assert_eq!(of("FROM_THE_FUTURE", Code::ResourceExhausted).0, Exit::TryLater);
    }
}
