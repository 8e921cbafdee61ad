//! Instruments about the database as a whole: who uses its connections, and who holds back the removal of dead rows. All are
//! read from what the last look saw, whenever somebody asks for metrics.

use std::sync::Arc;

use opentelemetry::KeyValue;

use super::{
    Metrics,
    names::{
        DATABASE_CONNECTIONS, DATABASE_CONNECTIONS_MAX, DATABASE_HOLD_TIME, DEAD_ROWS, HORIZON_AGE, HORIZON_PAST_LIMIT,
        HORIZON_TRANSACTIONS, Instrument, LIVE_ROWS, SAMPLES, SESSIONS, SESSIONS_WAITING, key,
    },
};

/// Whose connections: a name from a bounded set, and whether they are brokers'.
pub type HolderLabel = (String, bool);

/// What is known of the database by now; what was not seen lately is absent.
#[derive(Debug, Clone, Default)]
pub struct DatabaseReading {
    /// Its sessions.
    pub sessions: Option<SessionsReading>,
    /// Estimated seconds for which connections were held, since the start.
    pub held: Vec<(HolderLabel, f64)>,
    /// What became of the looks, since the start.
    pub looks: [(&'static str, u64); 3],
    /// Its horizon.
    pub horizon: Option<HorizonReading>,
}

/// Sessions as of the last look.
#[derive(Debug, Clone, Default)]
pub struct SessionsReading {
    /// Clients' connections to the whole server.
    pub connections: u64,
    /// Connections that it takes at most.
    pub max_connections: u64,
    /// By holder.
    pub callers: Vec<HeldReading>,
}

/// Sessions of one holder.
#[derive(Debug, Clone)]
pub struct HeldReading {
    /// Whose.
    pub caller: HolderLabel,
    /// How many are in each state.
    pub states: [(&'static str, u64); 4],
    /// How many wait for a lock.
    pub waiting: u64,
}

/// The horizon as of the last look.
#[derive(Debug, Clone, Default)]
pub struct HorizonReading {
    /// Somebody is past the limits.
    pub past_limit: bool,
    /// By kind of holder: transactions begun since its snapshot, and seconds since its transaction began, each of the oldest.
    pub oldest: Vec<(&'static str, u64, Option<f64>)>,
    /// The broker's tables.
    pub tables: Vec<TableReading>,
}

/// One of the broker's tables.
#[derive(Debug, Clone)]
pub struct TableReading {
    /// Its name.
    pub table: String,
    /// Rows, by estimate.
    pub live_rows: u64,
    /// Dead rows that are not removed, by estimate.
    pub dead_rows: u64,
}

type Read = Arc<dyn Fn() -> DatabaseReading + Send + Sync>;

impl Metrics {
    /// Reads what is known of the database whenever somebody asks for metrics. Once per handle.
    pub fn watch_database(&self, read: impl Fn() -> DatabaseReading + Send + Sync + 'static) {
        let read: Read = Arc::new(read);
        self.watch_sessions(&read);
        self.watch_looks(&read);
        self.watch_horizon(&read);
        self.watch_tables(&read);
    }

    /// Whole numbers.
    #[expect(clippy::cast_precision_loss, reason = "counts of sessions, transactions and rows are far below 2^52")]
    fn watch_numbers(
        &self,
        declared: &Instrument,
        read: &Read,
        numbers: impl Fn(&DatabaseReading) -> Vec<(u64, Vec<KeyValue>)> + Send + Sync + 'static,
    ) {
        let read = Arc::clone(read);
        self.maker().observed(declared, move |say| {
            for (number, labels) in numbers(&read()) {
                say(number as f64, &labels);
            }
        });
    }

    fn watch_sessions(&self, read: &Read) {
        self.watch_numbers(&SESSIONS, read, |reading| {
            let callers = reading.sessions.iter().flat_map(|sessions| &sessions.callers);
            let states = callers.flat_map(|caller| {
                caller.states.iter().map(|(state, count)| {
                    let state = KeyValue::new(key::STATE, *state);
                    (*count, holder(&caller.caller).into_iter().chain([state]).collect())
                })
            });
            states.collect()
        });
        self.watch_numbers(&SESSIONS_WAITING, read, |reading| {
            let callers = reading.sessions.iter().flat_map(|sessions| &sessions.callers);
            callers.map(|caller| (caller.waiting, holder(&caller.caller).into())).collect()
        });
        self.watch_numbers(&DATABASE_CONNECTIONS, read, |reading| {
            reading.sessions.iter().map(|sessions| (sessions.connections, Vec::new())).collect()
        });
        self.watch_numbers(&DATABASE_CONNECTIONS_MAX, read, |reading| {
            reading.sessions.iter().map(|sessions| (sessions.max_connections, Vec::new())).collect()
        });
    }

    fn watch_looks(&self, read: &Read) {
        let held = Arc::clone(read);
        self.maker().observed(&DATABASE_HOLD_TIME, move |say| {
            for (caller, seconds) in held().held {
                say(seconds, &holder(&caller));
            }
        });
        self.watch_numbers(&SAMPLES, read, |reading| {
            reading.looks.iter().map(|(result, count)| (*count, vec![KeyValue::new(key::RESULT, *result)])).collect()
        });
    }

    fn watch_horizon(&self, read: &Read) {
        let ages = Arc::clone(read);
        self.maker().observed(&HORIZON_AGE, move |say| {
            for (kind, _, age) in ages().horizon.into_iter().flat_map(|horizon| horizon.oldest) {
                if let Some(age) = age {
                    say(age, &[KeyValue::new(key::HOLDER, kind)]);
                }
            }
        });
        self.watch_numbers(&HORIZON_TRANSACTIONS, read, |reading| {
            let oldest = reading.horizon.iter().flat_map(|horizon| &horizon.oldest);
            oldest.map(|(kind, transactions, _)| (*transactions, vec![KeyValue::new(key::HOLDER, *kind)])).collect()
        });
        self.watch_numbers(&HORIZON_PAST_LIMIT, read, |reading| {
            reading.horizon.iter().map(|horizon| (horizon.past_limit.into(), Vec::new())).collect()
        });
    }

    fn watch_tables(&self, read: &Read) {
        let tables = |value: fn(&TableReading) -> u64| {
            move |reading: &DatabaseReading| {
                let tables = reading.horizon.iter().flat_map(|horizon| &horizon.tables);
                tables.map(|table| (value(table), vec![KeyValue::new(key::TABLE, table.table.clone())])).collect()
            }
        };
        self.watch_numbers(&LIVE_ROWS, read, tables(|table| table.live_rows));
        self.watch_numbers(&DEAD_ROWS, read, tables(|table| table.dead_rows));
    }
}

fn holder((caller, broker): &HolderLabel) -> [KeyValue; 2] {
    let origin = if *broker { "broker" } else { "elsewhere" };
    [KeyValue::new(key::CALLER, caller.clone()), KeyValue::new(key::ORIGIN, origin)]
}

#[cfg(test)]
mod tests {
    use prometheus::TextEncoder;

    use super::*;

    fn text(reading: DatabaseReading) -> String {
        let metrics = Metrics::new(&[], 1).expect("an exporter");
        metrics.watch_database(move || reading.clone());
        TextEncoder::new().encode_to_string(&metrics.registry().gather()).expect("text")
    }

    #[test]
    fn what_is_known_of_the_database_is_shown() {
        let shop = ("shop".to_owned(), false);
        let text = text(DatabaseReading {
            sessions: Some(SessionsReading {
                connections: 7,
                max_connections: 100,
                callers: vec![HeldReading {
                    caller: shop.clone(),
                    states: [("active", 2), ("idle_in_transaction", 1), ("idle", 3), ("hidden", 0)],
                    waiting: 1,
                }],
            }),
            held: vec![(shop, 12.5)],
            looks: [("taken", 5), ("skipped", 2), ("failed", 1)],
            horizon: Some(HorizonReading {
                past_limit: true,
                oldest: vec![("session", 123, Some(4.5)), ("replication_slot", 9, None)],
                tables: vec![TableReading { table: "job".into(), live_rows: 10, dead_rows: 99 }],
            }),
        });
        for line in [
            "leasehold_database_sessions{conn_tag=\"shop\",origin=\"elsewhere\",state=\"idle_in_transaction\"} 1",
            "leasehold_database_sessions_waiting{conn_tag=\"shop\",origin=\"elsewhere\"} 1",
            "leasehold_database_connections 7",
            "leasehold_database_connections_max 100",
            "leasehold_database_hold_time_seconds_total{conn_tag=\"shop\",origin=\"elsewhere\"} 12.5",
            "leasehold_database_samples_total{result=\"skipped\"} 2",
            "leasehold_database_horizon_age_seconds{kind=\"session\"} 4.5",
            "leasehold_database_horizon_transactions{kind=\"replication_slot\"} 9",
            "leasehold_database_horizon_past_limit 1",
            "leasehold_database_table_dead_rows{table=\"job\"} 99",
        ] {
            assert!(text.contains(line), "'{line}' is missing in {text}");
        }
    }

    #[test]
    fn what_was_not_seen_is_not_shown() {
        let text = text(DatabaseReading::default());
        for name in ["sessions", "connections", "horizon", "table"] {
            assert!(!text.contains(&format!("leasehold_database_{name}")), "{text}");
        }
    }
}
