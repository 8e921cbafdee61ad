//! The audit log: who changed what, and what became of it. One line for each administrative call that changes something,
//! refused ones included; on stderr with the rest of the log, under the target `leasehold::audit`, whatever the log's level.
//!
//! A call makes its [`Audit`] before anything else, says what it is about, and ends it with its answer. One that is dropped
//! without that (its asker has gone) leaves a line all the same, since what it asked for may have happened.

use std::{fmt, net::SocketAddr};

use tonic::Request;
use tracing::info;

use super::{connection::Connection, layers::RequestId, unary::scope};
use crate::{
    model::{Caller, Failure, Outcome, limits::storable_text},
    telemetry::logging::AUDIT,
};

/// Bytes that are kept of what a call is about; a request may name a thousand jobs.
const ABOUT_BYTES: usize = 1_000;

/// One call, until its end is written down.
#[derive(Debug)]
pub(super) struct Audit {
    method: &'static str,
    id: RequestId,
    caller: Caller,
    peer: Option<SocketAddr>,
    about: String,
    ended: bool,
}

impl Audit {
    /// The call of `method`, e.g. `QueueAdminService/UpdateQueue`.
    pub(super) fn of<T>(method: &'static str, request: &Request<T>) -> Self {
        let scope = scope(request);
        let peer = request.extensions().get::<Connection>().map(Connection::peer);
        Self { method, id: scope.id, caller: scope.caller, peer, about: String::new(), ended: false }
    }

    /// What it is to change, e.g. `queue=orders paused=true`: names, ids and settings, never a payload. Cut at a length; what
    /// a client wrote is shown escaped.
    #[must_use]
    pub(super) fn about(mut self, about: impl fmt::Display) -> Self {
        self.about = storable_text(&about.to_string(), ABOUT_BYTES);
        self
    }

    /// Writes down the answer and hands it on. `done` says what was changed, e.g. `removed=12`; empty where the request says
    /// it all.
    pub(super) fn end<T>(self, answer: Result<T, Failure>, done: impl FnOnce(&T) -> String) -> Result<T, Failure> {
        match &answer {
            Ok(answered) => self.succeeded(&done(answered)),
            Err(failure) => self.failed(failure, ""),
        }
        answer
    }

    /// It went through.
    pub(super) fn succeeded(mut self, done: &str) {
        self.write("ok", "applied", done);
    }

    /// Its asker has closed it, after `done` was changed already.
    pub(super) fn stopped(mut self, done: &str) {
        self.write("stopped", "applied", done);
    }

    /// It failed, after `done` was changed already.
    pub(super) fn failed(mut self, failure: &Failure, done: &str) {
        self.write(failure.reason.as_str(), failure.outcome.as_str(), done);
    }

    fn write(&mut self, result: &str, outcome: &str, done: &str) {
        self.ended = true;
        let peer = self.peer.map(|peer| peer.to_string()).unwrap_or_default();
        info!(
            target: AUDIT,
            method = self.method,
            request = %self.id,
            by = self.caller.as_str(),
            peer,
            about = ?self.about,
            result,
            outcome,
            done,
            "{} {result}", self.method
        );
    }
}

impl Drop for Audit {
    fn drop(&mut self) {
        if !self.ended {
            self.write("given up", Outcome::Unknown.as_str(), "");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex, PoisonError};

    use tracing::{Event, Subscriber, field::Visit, subscriber::with_default};
    use tracing_subscriber::{Layer, layer::Context, layer::SubscriberExt as _};

    use super::*;
    use crate::{grpc::layers::CallScope, model::Reason};

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<String>>>);

    impl<S: Subscriber> Layer<S> for Lines {
        fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
            struct Fields(String);
            impl Visit for Fields {
                fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn fmt::Debug) {
                    use fmt::Write as _;
                    write!(self.0, "{}={value:?} ", field.name()).expect("a text");
                }
            }
            let mut fields = Fields(format!("{} ", event.metadata().target()));
            event.record(&mut fields);
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(fields.0);
        }
    }

    fn lines(run: impl FnOnce(Audit)) -> Vec<String> {
        let lines = Lines::default();
        let mut request = Request::new(());
        let now = std::time::Instant::now();
        let caller = Caller::parse("console").expect("a name");
        let scope = CallScope { id: RequestId::draw(), caller, deadline: now, stream_deadline: None };
        request.extensions_mut().insert(scope);
        with_default(tracing_subscriber::registry().with(lines.clone()), || {
            run(Audit::of("QueueAdminService/UpdateQueue", &request));
        });
        let lines = lines.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.clone()
    }

    #[test]
    fn a_call_leaves_one_line_with_who_what_and_outcome() {
        let written = lines(|audit| {
            let audit = audit.about("queue=\"orders\" paused=true");
            audit.end(Ok(7), |removed| format!("removed={removed}")).expect("as it was");
        });
        assert_eq!(written.len(), 1);
        for part in
            ["leasehold::audit", "QueueAdminService/UpdateQueue", "console", "orders", "\"ok\"", "applied", "removed=7"]
        {
            assert!(written[0].contains(part), "{part} is not in {written:?}");
        }
    }

    #[test]
    fn a_refused_call_says_why_and_that_nothing_happened() {
        let failure = Failure::not_applied(Reason::NotFound, "no such queue");
        let written = lines(|audit| drop(audit.end(Err::<(), _>(failure), |()| String::new())));
        assert_eq!(written.len(), 1);
        assert!(written[0].contains("NOT_FOUND") && written[0].contains("not-applied"), "{written:?}");
    }

    #[test]
    fn a_call_whose_asker_has_gone_leaves_a_line_too() {
        let written = lines(|audit| drop(audit.about("queue=\"orders\"")));
        assert_eq!(written.len(), 1);
        assert!(written[0].contains("given up") && written[0].contains("unknown"), "{written:?}");
    }

    #[test]
    fn what_a_client_wrote_cannot_make_a_line_of_its_own() {
        let written = lines(|audit| audit.about(format!("queue={}", "a\nb".repeat(10_000))).succeeded(""));
        assert!(!written[0].contains('\n'), "{written:?}");
        assert!(written[0].len() < 3_000, "{} bytes", written[0].len());
    }
}
