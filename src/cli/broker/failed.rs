//! Why a command ends early, in words for people.

use std::{error::Error, fmt, fmt::Write as _, io};

use prost::Message as _;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use super::{
    super::{
        Exit, exit, flag,
        output::{escape, stock, time},
    },
    advice,
};
use crate::v1::SoldOut;

/// How many faults of a request, or short lines of one, are listed.
const FAULTS: usize = 20;
/// So many short lines are in the broker's message.
const SHORT_IN_MESSAGE: usize = 3;

/// Why a command ends early, and how.
#[derive(Debug)]
pub(in crate::cli) struct Failed {
    /// The exit code.
    pub(in crate::cli) exit: Exit,
    /// For people, without control characters but for its line ends; empty where there is nobody to tell.
    text: String,
}

impl Failed {
    /// Ends so for this reason.
    pub(in crate::cli) fn new(exit: Exit, text: impl Into<String>) -> Self {
        Self { exit, text: text.into() }
    }

    /// No connection: nothing was sent.
    pub(super) fn unreachable(address: &str, error: &tonic::transport::Error) -> Self {
        let why = innermost(error);
        let next = "is a broker serving there? --address or LEASEHOLD_ADDRESS says where it is";
        Self::new(Exit::Unavailable, format!("cannot reach the broker at {address}: {why}\n  next: {next}"))
    }

    /// Adds a line about what had happened by then.
    #[must_use]
    pub(in crate::cli) fn after(mut self, what: &str) -> Self {
        if !self.text.is_empty() {
            write!(self.text, "\n  before that: {what}").expect("writing to a String cannot fail");
        }
        self
    }

    /// The broker's reason; empty where none of ours answered.
    pub(in crate::cli) fn reason(status: &Status) -> String {
        let details = status.get_error_details();
        details
            .error_info()
            .filter(|info| info.domain == "leasehold")
            .map_or_else(String::new, |info| info.reason.clone())
    }

    /// Its first line.
    pub(in crate::cli) fn headline(&self) -> &str {
        self.text.lines().next().unwrap_or_default()
    }

    /// Tells people, and gives the exit code.
    pub(in crate::cli) fn tell(&self) -> Exit {
        if !self.text.is_empty() {
            exit::note(&format_args!("leasehold: {}", self.text));
        }
        self.exit
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<io::Error> for Failed {
    /// Of a write to stdout. A reader that went away, as `head` does, has what it wanted.
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::new(Exit::Ok, "");
        }
        Self::new(Exit::Failure, error.to_string())
    }
}

impl From<Status> for Failed {
    fn from(status: Status) -> Self {
        let details = status.get_error_details();
        let reason = details.error_info().filter(|info| info.domain == "leasehold").map(|info| info.reason.as_str());
        let Some(reason) = reason else { return without_reason(&status) };
        let outcome = status.metadata().get("leasehold-outcome").and_then(|value| value.to_str().ok());
        let (exit, next) = advice::of(reason, status.code());
        let exit = if outcome == Some("unknown") && exit != Exit::Bug { Exit::Unknown } else { exit };
        let happened = if outcome == Some("not-applied") { "nothing was changed" } else { "it may have happened" };
        let faults = details.bad_request().map(|bad| bad.field_violations.as_slice()).unwrap_or_default();
        let message = match faults {
            [] => escape::text(status.message()),
            [only] => escape::text(&format!("{}: {}", only.field, only.description)),
            many => format!("{} fields are wrong", many.len()),
        };
        let mut text = format!("{message} ({}; {happened})", escape::text(reason));
        if faults.len() > 1 {
            for fault in faults.iter().take(FAULTS) {
                add(&mut text, "-", &format!("{}: {}", fault.field, fault.description));
            }
            if faults.len() > FAULTS {
                add(&mut text, "-", &format!("and {} more", faults.len() - FAULTS));
            }
        }
        let short = short_lines(&status).lines;
        if short.len() > SHORT_IN_MESSAGE {
            for line in short.iter().take(FAULTS) {
                add(&mut text, "-", &stock::short_text(line));
            }
            if short.len() > FAULTS {
                add(&mut text, "-", &format!("and {} more", short.len() - FAULTS));
            }
        }
        add(&mut text, "next:", next);
        if let Some(delay) = details.retry_info().and_then(|info| info.retry_delay) {
            add(&mut text, "again in:", &time::span(flag::wire(delay)));
        }
        if let Some(info) = details.request_info().filter(|_| exit == Exit::Bug) {
            add(&mut text, "request id:", &info.request_id);
        }
        Self::new(exit, text)
    }
}

/// Whether a failed call may have happened.
pub(in crate::cli) fn outcome_is_unknown(status: &Status) -> bool {
    match status.metadata().get("leasehold-outcome").and_then(|value| value.to_str().ok()) {
        Some("not-applied") => false,
        Some(_) => true,
        None => !is_connecting(status) && without_reason(status).exit == Exit::Unknown,
    }
}

/// Of which lines too little was there; none of another failure.
fn short_lines(status: &Status) -> SoldOut {
    let all = tonic_types::Status::decode(status.details()).map(|all| all.details).unwrap_or_default();
    let own = all.iter().find(|detail| detail.type_url.ends_with("/leasehold.v1.SoldOut"));
    own.and_then(|detail| SoldOut::decode(detail.value.as_slice()).ok()).unwrap_or_default()
}

fn add(text: &mut String, label: &str, line: &str) {
    write!(text, "\n  {label} {}", escape::text(line)).expect("writing to a String cannot fail");
}

/// Nobody of ours answered: the connection was lost, or the other end is no broker.
fn without_reason(status: &Status) -> Failed {
    let why = status.source().map_or_else(|| status.message().to_owned(), innermost);
    let why = escape::text(&why);
    let (exit, text) = match status.code() {
        Code::Unimplemented => {
            (Exit::Refused, "the other end does not know this call: is it a broker, and new enough?")
        }
        Code::PermissionDenied | Code::Unauthenticated => {
            (Exit::Forbidden, "something before the broker refused the call")
        }
        Code::OutOfRange => (Exit::Failure, "the answer is too large: ask for less, or without payloads"),
        Code::Unavailable if is_connecting(status) => {
            (Exit::Unavailable, "cannot reach the broker: is it serving at --address or LEASEHOLD_ADDRESS?")
        }
        _ => (Exit::Unknown, "no answer came from the broker, so it may have happened: look before you repeat it"),
    };
    Failed::new(exit, format!("{text} ({why})"))
}

/// Whether it failed before anything was sent.
fn is_connecting(status: &Status) -> bool {
    let mut cause: Option<&(dyn Error + 'static)> = status.source();
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<io::Error>()
            && matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound)
        {
            return true;
        }
        cause = error.source();
    }
    false
}

/// The first cause, which says what people need to know.
fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use tonic::metadata::{MetadataMap, MetadataValue};
    use tonic_types::ErrorDetails;

    use super::*;

    fn status(code: Code, reason: &str, outcome: &'static str, message: &str) -> Status {
        let details = ErrorDetails::with_error_info(reason, "leasehold", HashMap::new());
        let mut trailers = MetadataMap::new();
        trailers.insert("leasehold-outcome", MetadataValue::from_static(outcome));
        Status::with_error_details_and_metadata(code, message, details, trailers)
    }

    #[test]
    fn a_failure_names_its_message_its_reason_and_what_to_do_next() {
        let failed = Failed::from(status(Code::NotFound, "NOT_FOUND", "not-applied", "there is no queue orders"));
        assert_eq!(failed.exit, Exit::NotFound);
        let text = failed.to_string();
        assert!(text.starts_with("there is no queue orders (NOT_FOUND; nothing was changed)\n  next: "), "{text}");
    }

    #[test]
    fn an_unknown_outcome_has_its_own_exit_code_whatever_the_status() {
        for code in [Code::Unavailable, Code::DeadlineExceeded] {
            let failed = Failed::from(status(code, "OUTCOME_UNKNOWN", "unknown", "no answer to the commit"));
            assert_eq!(failed.exit, Exit::Unknown);
            assert!(failed.to_string().contains("it may have happened"), "{failed}");
        }
        assert_eq!(Failed::from(status(Code::Internal, "INTERNAL", "unknown", "a bug")).exit, Exit::Bug);
    }

    #[test]
    fn what_somebody_else_wrote_cannot_steer_the_terminal() {
        let failed = Failed::from(status(Code::NotFound, "NOT_FOUND", "not-applied", "no queue \u{1b}[2J\u{9b}31m"));
        assert!(!failed.to_string().chars().any(|c| c.is_control() && c != '\n'), "{failed}");
    }

    #[test]
    fn an_end_without_a_reason_is_unknown_unless_nothing_was_sent() {
        assert_eq!(Failed::from(Status::unavailable("h2 went away")).exit, Exit::Unknown);
        let mut refused = Status::unavailable("error trying to connect");
        refused.set_source(std::sync::Arc::new(io::Error::from(io::ErrorKind::ConnectionRefused)));
        assert_eq!(Failed::from(refused).exit, Exit::Unavailable);
    }

    #[test]
    fn too_little_stock_says_of_what_and_how_little() {
        let key = Some(crate::v1::StockKey { item: "espresso".into(), location: "berlin".into() });
        let line = crate::v1::ShortLine { key, requested: 3, available: 1 };
        let own = prost_types::Any {
            type_url: "type.googleapis.com/leasehold.v1.SoldOut".into(),
            value: SoldOut { lines: vec![line; FAULTS + 2] }.encode_to_vec(),
        };
        let sold_out = status(Code::FailedPrecondition, "SOLD_OUT", "not-applied", "too little is there");
        let mut all = tonic_types::Status::decode(sold_out.details()).expect("the details");
        all.details.push(own);
        let details = all.encode_to_vec().into();
        let trailers = sold_out.metadata().clone();
        let sold_out = Status::with_details_and_metadata(sold_out.code(), sold_out.message(), details, trailers);
        let failed = Failed::from(sold_out);
        assert_eq!(failed.exit, Exit::Refused);
        let text = failed.to_string();
        assert_eq!(text.matches("\n  - espresso at berlin: 3 wanted, 1 available").count(), FAULTS, "{text}");
        assert!(text.contains("\n  - and 2 more\n  next: "), "{text}");
    }

    #[test]
    fn a_reader_that_went_away_is_no_failure() {
        let failed = Failed::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!((failed.exit, failed.to_string()), (Exit::Ok, String::new()));
    }
}
