//! Queues as operators see them.

use serde::Serialize;

use super::{facts::Facts, table::Table, time};
use crate::v1::{Count, Queue, QueueCounts, QueueRates, QueueSettings};

#[derive(Serialize)]
struct QueueJson<'a> {
    queue: &'a str,
    settings: Option<SettingsJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    counts: Option<CountsJson>,
    /// Its deletion has begun and not ended: it takes no jobs.
    deleting: bool,
}

#[derive(Serialize)]
struct SettingsJson<'a> {
    paused: bool,
    disabled_reason: Option<&'a str>,
    lease_duration_seconds: Option<f64>,
    max_attempts: Option<u32>,
    backoff_base_seconds: Option<f64>,
    backoff_cap_seconds: Option<f64>,
    idempotency_retention_seconds: Option<f64>,
    dead_retention_seconds: Option<f64>,
    max_backlog_jobs: Option<u64>,
    max_backlog_bytes: Option<u64>,
    time_to_live_seconds: Option<f64>,
    acked_retention_seconds: Option<f64>,
}

#[derive(Serialize)]
struct CountsJson {
    ready: i64,
    scheduled: i64,
    blocked: i64,
    leased: i64,
    dead: i64,
    /// Which of the numbers before may be larger.
    at_least: Vec<&'static str>,
    oldest_ready_age_seconds: Option<f64>,
    rates: Option<RatesJson>,
    streams: u32,
    free_credit: u64,
}

#[derive(Serialize)]
struct RatesJson {
    enqueued: f64,
    leased: f64,
    acked: f64,
    retried: f64,
    expired: f64,
    dead: f64,
}

/// A queue for programs.
pub(in crate::cli) fn json(queue: &Queue) -> impl Serialize {
    QueueJson {
        queue: &queue.name,
        settings: queue.settings.as_ref().map(settings_json),
        counts: queue.counts.as_ref().map(counts_json),
        deleting: queue.deleting,
    }
}

fn settings_json(settings: &QueueSettings) -> SettingsJson<'_> {
    SettingsJson {
        paused: settings.paused(),
        disabled_reason: disabled(settings),
        lease_duration_seconds: settings.lease_duration.map(time::seconds),
        max_attempts: settings.max_attempts,
        backoff_base_seconds: settings.backoff_base.map(time::seconds),
        backoff_cap_seconds: settings.backoff_cap.map(time::seconds),
        idempotency_retention_seconds: settings.idempotency_retention.map(time::seconds),
        dead_retention_seconds: settings.dead_retention.map(time::seconds),
        max_backlog_jobs: settings.max_backlog_jobs,
        max_backlog_bytes: settings.max_backlog_bytes,
        time_to_live_seconds: settings.time_to_live.map(time::seconds),
        acked_retention_seconds: settings.acked_retention.map(time::seconds),
    }
}

fn counts_json(counts: &QueueCounts) -> CountsJson {
    let by_state = by_state(counts);
    let [ready, scheduled, blocked, leased, dead] = by_state.map(|(_, count)| count.map_or(0, |count| count.value));
    let more = |count: Option<&Count>| count.is_some_and(|count| count.at_least);
    CountsJson {
        ready,
        scheduled,
        blocked,
        leased,
        dead,
        at_least: by_state.iter().filter(|(_, count)| more(*count)).map(|(state, _)| *state).collect(),
        oldest_ready_age_seconds: counts.oldest_ready_age.map(time::seconds),
        rates: counts.rates.map(|rates| RatesJson {
            enqueued: rates.enqueued,
            leased: rates.leased,
            acked: rates.acked,
            retried: rates.retried,
            expired: rates.expired,
            dead: rates.dead,
        }),
        streams: counts.streams,
        free_credit: counts.free_credit,
    }
}

fn by_state(counts: &QueueCounts) -> [(&'static str, Option<&Count>); 5] {
    [
        ("ready", counts.ready.as_ref()),
        ("scheduled", counts.scheduled.as_ref()),
        ("blocked", counts.blocked.as_ref()),
        ("leased", counts.leased.as_ref()),
        ("dead", counts.dead.as_ref()),
    ]
}

/// A count for people: `10000+` where there are more.
pub(in crate::cli) fn count(count: Option<&Count>) -> String {
    match count {
        Some(Count { value, at_least: true }) => format!("{value}+"),
        Some(count) => count.value.to_string(),
        None => "-".to_owned(),
    }
}

fn disabled(settings: &QueueSettings) -> Option<&str> {
    settings.disabled_reason.as_deref().filter(|reason| !reason.is_empty())
}

/// Whether it serves, in a word or two.
fn serves(queue: &Queue) -> &'static str {
    if queue.deleting {
        return "deleting";
    }
    let settings = queue.settings.as_ref();
    let paused = settings.is_some_and(QueueSettings::paused);
    match (paused, settings.is_some_and(|settings| disabled(settings).is_some())) {
        (false, false) => "open",
        (true, false) => "paused",
        (false, true) => "disabled",
        (true, true) => "paused, disabled",
    }
}

/// Queues for people.
pub(in crate::cli) fn table(queues: &[Queue], with_counts: bool) -> Table {
    if !with_counts {
        let mut table = Table::new(&["QUEUE", "STATE"]);
        for queue in queues {
            table.row([queue.name.clone(), serves(queue).to_owned()]);
        }
        return table;
    }
    let mut table = Table::new(&[
        "QUEUE",
        "STATE",
        ">READY",
        ">SCHEDULED",
        ">BLOCKED",
        ">LEASED",
        ">DEAD",
        ">OLDEST",
        ">IN/S",
        ">ACKED/S",
        ">STREAMS",
    ]);
    let none = QueueCounts::default();
    for queue in queues {
        let counts = queue.counts.as_ref().unwrap_or(&none);
        let mut row = vec![queue.name.clone(), serves(queue).to_owned()];
        row.extend(by_state(counts).map(|(_, number)| count(number)));
        row.push(counts.oldest_ready_age.map_or_else(|| "-".to_owned(), time::span));
        row.push(counts.rates.map_or_else(|| "-".to_owned(), |rates| rate(rates.enqueued)));
        row.push(counts.rates.map_or_else(|| "-".to_owned(), |rates| rate(rates.acked)));
        row.push(counts.streams.to_string());
        table.row(row);
    }
    table
}

fn rate(rate: f64) -> String {
    format!("{rate:.1}")
}

/// What is known about a queue, for people.
pub(in crate::cli) fn facts(queue: &Queue) -> Facts {
    let mut facts = Facts::default();
    facts.add("queue", &queue.name);
    facts.add("state", serves(queue));
    if let Some(counts) = &queue.counts {
        for (state, number) in by_state(counts) {
            facts.add(state, count(number));
        }
        facts.maybe("oldest ready", counts.oldest_ready_age.map(|age| format!("since {}", time::span(age))));
        facts.maybe("last minute", counts.rates.as_ref().map(rates));
        facts.add("streams", format!("{}, with free credit for {} jobs", counts.streams, counts.free_credit));
    }
    if let Some(settings) = &queue.settings {
        facts.maybe("disabled because", disabled(settings).map(str::to_owned));
        facts.maybe("lease", settings.lease_duration.map(time::span));
        facts.maybe("max attempts", settings.max_attempts.map(|attempts| attempts.to_string()));
        let pauses = settings.backoff_base.zip(settings.backoff_cap);
        facts.maybe("back-off", pauses.map(|(base, cap)| format!("{} to {}", time::span(base), time::span(cap))));
        facts.maybe("idempotency keys", settings.idempotency_retention.map(|kept| format!("for {}", time::span(kept))));
        facts.maybe("dead jobs kept", settings.dead_retention.map(|kept| format!("for {}", time::span(kept))));
        facts.maybe("acked jobs kept", settings.acked_retention.map(|kept| format!("for {}", time::span(kept))));
        facts.maybe("max backlog", settings.max_backlog_jobs.map(|jobs| format!("{jobs} jobs")));
        facts.maybe("max backlog bytes", settings.max_backlog_bytes.map(|bytes| bytes.to_string()));
        facts.maybe("time to live", settings.time_to_live.map(time::span));
    }
    facts
}

fn rates(rates: &QueueRates) -> String {
    format!(
        "per second {} enqueued, {} leased, {} acked, {} retried, {} expired, {} dead",
        rate(rates.enqueued),
        rate(rates.leased),
        rate(rates.acked),
        rate(rates.retried),
        rate(rates.expired),
        rate(rates.dead)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::output::Style;

    fn queue() -> Queue {
        let exactly = |value| Some(Count { value, at_least: false });
        let counts = QueueCounts {
            ready: Some(Count { value: 10_000, at_least: true }),
            scheduled: exactly(3),
            blocked: exactly(0),
            leased: exactly(12),
            dead: exactly(1),
            oldest_ready_age: Some(prost_types::Duration { seconds: 95, nanos: 0 }),
            ..QueueCounts::default()
        };
        let settings = QueueSettings { paused: Some(true), disabled_reason: Some(String::new()), ..Default::default() };
        Queue { name: "orders".into(), settings: Some(settings), counts: Some(counts), deleting: false }
    }

    #[test]
    fn numbers_that_may_be_larger_say_so_to_people_and_to_programs() {
        let shown = table(&[queue()], true).render(Style::Plain);
        assert!(shown.contains("orders  paused  10000+ "), "{shown}");
        assert!(shown.contains("1m 35s"), "{shown}");
        let json = serde_json::to_value(json(&queue())).expect("JSON");
        assert_eq!(json["counts"]["ready"], 10_000);
        assert_eq!(json["counts"]["at_least"], serde_json::json!(["ready"]));
        assert_eq!(json["settings"]["paused"], true);
    }

    #[test]
    fn an_empty_reason_does_not_disable() {
        assert_eq!(serves(&queue()), "paused");
        assert_eq!(serves(&Queue::default()), "open");
        assert_eq!(serves(&Queue { deleting: true, ..queue() }), "deleting");
    }
}
