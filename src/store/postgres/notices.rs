//! Warnings of the server that change what an answer means.
//!
//! A COMMIT whose wait for a synchronous standby was cancelled answers like any other; that it may be lost in a failover is
//! said in a warning alone. The driver hands warnings to `tracing` and nowhere else, so a layer hands them back.

use std::{cell::RefCell, fmt};

use tracing::{Event, Level, Metadata, Subscriber, field::Field, field::Visit};
use tracing_subscriber::{
    Layer,
    filter::{FilterExt, LevelFilter, filter_fn},
    layer::Context,
    registry::LookupSpan,
};

const TARGET: &str = "sqlx::postgres::notice";

tokio::task_local! {
    static WARNINGS: RefCell<Vec<String>>;
}

/// The layer that the binary's subscriber must have for such a commit to be told from a durable one. It takes the driver's
/// warnings alone and logs nothing.
pub fn layer<S>() -> impl Layer<S>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let warnings = filter_fn(|metadata: &Metadata<'_>| metadata.target() == TARGET && *metadata.level() <= Level::WARN);
    Warnings.with_filter(warnings.and(LevelFilter::WARN))
}

struct Warnings;

impl<S: Subscriber> Layer<S> for Warnings {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut message = Message(String::new());
        event.record(&mut message);
        // An error means that no act of ours is under way.
        WARNINGS.try_with(|warnings| warnings.borrow_mut().push(message.0)).unwrap_or_default();
    }
}

struct Message(String);

impl Visit for Message {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            value.clone_into(&mut self.0);
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}

/// Runs an act and says which warnings came meanwhile.
pub(super) async fn watched<T>(act: impl Future<Output = T>) -> (T, Vec<String>) {
    WARNINGS
        .scope(RefCell::default(), async {
            let answer = act.await;
            (answer, WARNINGS.with(RefCell::take))
        })
        .await
}

/// Whether a commit with this warning may be lost in a failover. Where the server's messages are `translated` its text says
/// nothing to us, and every warning counts.
pub(super) fn casts_doubt(warning: &str, translated: bool) -> bool {
    translated || (warning.starts_with("canceling") && warning.contains("wait for synchronous replication"))
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    #[tokio::test]
    async fn warnings_reach_the_act_during_which_they_came() {
        let _guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(layer()));
        let (answer, warnings) = watched(async {
            // As the driver has it: a text, which is recorded otherwise than a literal.
            let text = String::from("canceling wait for synchronous replication due to user request");
            tracing::warn!(target: TARGET, message = text.as_str());
            tracing::info!(target: TARGET, message = "relation exists, skipping");
            tracing::warn!(message = "somebody else's");
            7
        })
        .await;
        assert_eq!(answer, 7);
        assert_eq!(warnings, ["canceling wait for synchronous replication due to user request"]);
        assert!(casts_doubt(&warnings[0], false));
        assert!(!casts_doubt("there is no transaction in progress", false));
        assert!(casts_doubt("Warten auf synchrone Replikation wird abgebrochen", true));
    }
}
