//! Plans as the server tells them.

use std::{
    fmt,
    sync::{Arc, Mutex},
};

use sqlx::{AssertSqlSafe, Executor, PgConnection};
use tracing::{Event, Subscriber, field::Field, field::Visit, instrument::WithSubscriber};
use tracing_subscriber::{
    Layer,
    layer::{Context, SubscriberExt},
};

/// Indexes that are read as a whole on purpose: the list of migrations, and what services left for queues that did not exist
/// yet, of which the first one is asked for.
const WHOLE: [&str; 2] = ["schema_migration_pkey", "arrival_named"];

/// Lines of a plan that read a whole table, or an index without a bound.
pub(crate) fn detours(plan: &[String]) -> Vec<&str> {
    let mut found = Vec::new();
    for (n, line) in plan.iter().enumerate() {
        let whole_table = line.contains("Seq Scan") || line.contains("Hash Join") || line.contains("Merge Join");
        let index = line.contains("Index Scan") || line.contains("Index Only Scan");
        let on_purpose = WHOLE.iter().any(|index| line.contains(index));
        let bounded = on_purpose || plan.get(n + 1).is_some_and(|next| next.contains("Index Cond"));
        if whole_table || index && !bounded {
            found.push(line.as_str());
        }
    }
    found
}

/// Runs `text` and answers with the plan of every statement in it, those within functions included: `auto_explain` tells
/// them as messages to the session, which the driver hands to `tracing`.
pub(crate) async fn explained(session: &mut PgConnection, text: &str) -> Vec<Vec<String>> {
    let tell = "load 'auto_explain'; set auto_explain.log_min_duration = 0; set auto_explain.log_nested_statements = on; \
                set auto_explain.log_level = 'notice'; set client_min_messages = notice";
    session.execute(tell).await.expect("a superuser's session");
    let told = Told::default();
    let subscriber = tracing_subscriber::registry().with(told.clone());
    session
        .execute(sqlx::raw_sql(AssertSqlSafe(text.to_owned())))
        .with_subscriber(subscriber)
        .await
        .unwrap_or_else(|error| panic!("{text}: {error}"));
    let told = told.0.lock().expect("one thread");
    told.iter()
        .filter(|message| message.contains("Query Text"))
        .map(|message| message.lines().map(str::to_owned).collect())
        .collect()
}

#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<String>>>);

impl<S: Subscriber> Layer<S> for Told {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if event.metadata().target() == "sqlx::postgres::notice" {
            event.record(&mut Message(&self.0));
        }
    }
}

struct Message<'a>(&'a Mutex<Vec<String>>);

impl Visit for Message<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            self.0.lock().expect("one thread").push(value.to_owned());
        }
    }

    // The driver's message is a text.
    fn record_debug(&mut self, _: &Field, _: &dyn fmt::Debug) {}
}
