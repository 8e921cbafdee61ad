//! Every name that leaves the broker as a metric, span or attribute, with the conventions that it comes from. A rename
//! upstream is a change of this file alone.
//!
//! Names follow OpenTelemetry's semantic conventions where they have one and begin with `leasehold.` otherwise. Prometheus
//! shows dots as underscores, adds the unit, and `_total` to counters.

/// Version of the conventions.
pub const SCHEMA_URL: &str = "https://opentelemetry.io/schemas/1.44.0";

/// Instrumentation scope of everything that the broker makes.
pub const SCOPE: &str = "leasehold";

/// Keys of attributes.
pub mod key {
    /// The business process that a statement runs for; the same word as in the SQL comment.
    pub const CALLER: &str = "conn_tag";
    /// Which engine.
    pub const DB_SYSTEM: &str = "db.system.name";
    /// Which act: static for each statement, never made of values.
    pub const DB_SUMMARY: &str = "db.query.summary";
    /// Jobs or tokens of a statement that serves more than one.
    pub const DB_BATCH_SIZE: &str = "db.operation.batch.size";
    /// The lanes, as a pool of connections.
    pub const POOL: &str = "db.client.connection.pool.name";
    /// What a lane does: `used` or `idle`.
    pub const CONNECTION_STATE: &str = "db.client.connection.state";
    /// A class of errors, from a fixed set.
    pub const ERROR: &str = "error.type";
    /// `grpc`.
    pub const RPC_SYSTEM: &str = "rpc.system.name";
    /// Service and method, from a fixed set.
    pub const RPC_METHOD: &str = "rpc.method";
    /// Name of the status code. Conventions newer than 1.44.0 call it `rpc.status_code`.
    pub const RPC_STATUS: &str = "rpc.response.status_code";
    /// Where a call comes from.
    pub const CLIENT: &str = "client.address";
    /// Names a call in logs and failures.
    pub const REQUEST: &str = "leasehold.request.id";
    /// Seconds that the oldest request of a statement waited for a lane.
    pub const WAIT: &str = "leasehold.lane.wait";
    /// Of a link from a claim to a producer: which job.
    pub const MESSAGE: &str = "messaging.message.id";
    /// How a lease ended.
    pub const ACTION: &str = "action";
    /// What something came to, such as a claim: `jobs`, `nothing` or `failure`.
    pub const RESULT: &str = "result";
    /// What another system answered to a reservation that is mirrored here: `held` or `sold_out`.
    pub const EXPECTED: &str = "expected";
    /// How a reservation ended: `committed`, `released` or `expired`.
    pub const END: &str = "end";
    /// Which pass of upkeep.
    pub const PASS: &str = "pass";
    /// Name of a queue, or `_other` for all past the bound together.
    pub const QUEUE: &str = "queue";
    /// State of a job.
    pub const STATE: &str = "state";
    /// `broker` for replicas of the broker, `elsewhere` for other programs.
    pub const ORIGIN: &str = "origin";
    /// What holds a snapshot.
    pub const HOLDER: &str = "kind";
    /// A table of the broker.
    pub const TABLE: &str = "table";
    /// What is sent over OTLP: `traces`, `metrics` or `logs`.
    pub const SIGNAL: &str = "signal";
}

/// What an instrument measures with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// Only grows.
    Counter,
    /// A value as it is.
    Gauge,
    /// A value that adds up over its series.
    UpDownCounter,
    /// A distribution over these upper bounds.
    Histogram(&'static [f64]),
}

/// An instrument: where its name stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Instrument {
    /// As OpenTelemetry has it.
    pub name: &'static str,
    /// What it is.
    pub kind: Kind,
    /// As UCUM writes it.
    pub unit: &'static str,
    /// For people.
    pub about: &'static str,
    /// Keys of its attributes.
    pub labels: &'static [&'static str],
}

/// Lane time, in seconds.
const LANE_SECONDS: &[f64] = &[0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
/// As the conventions advise for database operations.
const OPERATION_SECONDS: &[f64] = &[0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0];
/// As the conventions advise for calls.
const CALL_SECONDS: &[f64] = &[0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0];
/// Jobs or tokens.
const SIZES: &[f64] = &[1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1_000.0];
/// From a checkout that is done at once to one that lasts a day.
const HOLD_SECONDS: &[f64] = &[1.0, 5.0, 15.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1_800.0, 3_600.0, 14_400.0, 86_400.0];
/// Lateness, in seconds.
const LAG_SECONDS: &[f64] = &[0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1_800.0];
/// Units in a pool.
const POOL_UNITS: &[f64] = &[0.0, 10.0, 50.0, 100.0, 250.0, 500.0, 1_000.0];

macro_rules! instruments {
    ($($(#[doc = $about:literal])+ $constant:ident = $name:literal, $kind:expr, $unit:literal, [$($label:ident),*];)+) => {
        $(
            $(#[doc = $about])+
            pub const $constant: Instrument = Instrument {
                name: $name,
                kind: $kind,
                unit: $unit,
                about: concat!($($about),+).trim_ascii_start(),
                labels: &[$(key::$label),*],
            };
        )+

        /// All of them.
        pub const INSTRUMENTS: &[Instrument] = &[$($constant),+];
    };
}

instruments! {
    /// How long gRPC calls took; streams last as long as they are open.
    CALL_DURATION = "rpc.server.call.duration", Kind::Histogram(CALL_SECONDS), "s",
        [RPC_SYSTEM, RPC_METHOD, RPC_STATUS, ERROR];

    /// How long requests waited for a lane; of merged ones, the longest.
    WAIT_TIME = "db.client.connection.wait_time", Kind::Histogram(LANE_SECONDS), "s", [POOL, CALLER];
    /// How long a lane was held.
    USE_TIME = "db.client.connection.use_time", Kind::Histogram(LANE_SECONDS), "s", [POOL, CALLER];
    /// How long opening a lane's connection took.
    CREATE_TIME = "db.client.connection.create_time", Kind::Histogram(LANE_SECONDS), "s", [POOL];
    /// Lanes that are connected.
    CONNECTION_COUNT = "db.client.connection.count", Kind::UpDownCounter, "{connection}", [POOL, CONNECTION_STATE];
    /// Lanes that there may be.
    CONNECTION_MAX = "db.client.connection.max", Kind::UpDownCounter, "{connection}", [POOL];
    /// Requests that wait for a lane.
    PENDING_REQUESTS = "db.client.connection.pending_requests", Kind::UpDownCounter, "{request}", [POOL, CALLER];
    /// Requests that waited for a lane in vain and were withdrawn.
    TIMEOUTS = "db.client.connection.timeouts", Kind::Counter, "{timeout}", [POOL, CALLER];
    /// How long statements took, with all tries of a merged one.
    OPERATION_DURATION = "db.client.operation.duration", Kind::Histogram(OPERATION_SECONDS), "s",
        [DB_SYSTEM, DB_SUMMARY, CALLER];

    /// Time for which lanes were held; its rate is the average number of lanes that a caller holds.
    HOLD_TIME = "leasehold.db.connection.hold_time", Kind::Counter, "s", [POOL, CALLER];
    /// Lanes of this replica that a caller may hold at once, where it has such a budget.
    BUDGET_LANES = "leasehold.caller.budget.lanes", Kind::Gauge, "{connection}", [CALLER];
    /// Part of all lane time that a caller gets while others wait, where it has such a budget.
    BUDGET_SHARE = "leasehold.caller.budget.share", Kind::Gauge, "1", [CALLER];
    /// Requests refused for their caller's budget.
    REFUSED = "leasehold.caller.refused", Kind::Counter, "{request}", [CALLER];
    /// Requests that failed in the database, by class.
    STATEMENT_ERRORS = "leasehold.db.statement.errors", Kind::Counter, "{error}", [ERROR];
    /// Deadlocks, and locks that were not had in time, those included that another try mended.
    STATEMENT_CONFLICTS = "leasehold.db.statement.conflicts", Kind::Counter, "{conflict}", [];
    /// Jobs or tokens in one statement.
    BATCH_SIZE = "leasehold.batch.size", Kind::Histogram(SIZES), "{item}", [DB_SUMMARY];

    /// Jobs stored.
    ENQUEUED = "leasehold.jobs.enqueued", Kind::Counter, "{job}", [];
    /// Jobs that were known by their idempotency key.
    DUPLICATES = "leasehold.jobs.duplicates", Kind::Counter, "{job}", [];
    /// Leases granted, those included that were never sent.
    CLAIMED = "leasehold.jobs.claimed", Kind::Counter, "{job}", [];
    /// Jobs sent to consumers.
    DELIVERED = "leasehold.jobs.delivered", Kind::Counter, "{job}", [];
    /// Jobs among those sent that had been leased before.
    REDELIVERED = "leasehold.jobs.redelivered", Kind::Counter, "{job}", [];
    /// Leases ended by their holder.
    SETTLED = "leasehold.jobs.settled", Kind::Counter, "{job}", [ACTION];
    /// Jobs that became dead.
    DEAD = "leasehold.jobs.dead", Kind::Counter, "{job}", [];
    /// Expired leases taken away.
    REAPED = "leasehold.leases.reaped", Kind::Counter, "{lease}", [];
    /// Settlements and extensions that came too late: their lease was lost or their job gone.
    LOST = "leasehold.leases.lost", Kind::Counter, "{lease}", [ACTION];
    /// Claims, by what they came back with.
    CLAIMS = "leasehold.claims", Kind::Counter, "{claim}", [RESULT];

    /// Lease streams that are open.
    STREAMS = "leasehold.streams", Kind::UpDownCounter, "{stream}", [];
    /// Jobs that the open streams may have outstanding together.
    CREDIT = "leasehold.streams.credit", Kind::UpDownCounter, "{job}", [];
    /// Leases of this replica that are neither settled nor expired.
    OUTSTANDING = "leasehold.leases.outstanding", Kind::UpDownCounter, "{lease}", [];
    /// Bytes of leased jobs that wait for their consumer to read.
    UNSENT_BYTES = "leasehold.streams.unsent", Kind::UpDownCounter, "By", [];

    /// Jobs of a queue by state, up to 10,000 of each, as every replica measures them by itself.
    QUEUE_JOBS = "leasehold.queue.jobs", Kind::Gauge, "{job}", [QUEUE, STATE];
    /// For how long the oldest ready job of a queue has been ready; 0 where none is.
    QUEUE_AGE = "leasehold.queue.oldest_age", Kind::Gauge, "s", [QUEUE];

    /// Sessions of the database, as of the last sample.
    SESSIONS = "leasehold.database.sessions", Kind::Gauge, "{session}", [CALLER, ORIGIN, STATE];
    /// Sessions of the database that wait for a lock, as of the last sample.
    SESSIONS_WAITING = "leasehold.database.sessions.waiting", Kind::Gauge, "{session}", [CALLER, ORIGIN];
    /// Clients' connections to the whole database server, as of the last sample.
    DATABASE_CONNECTIONS = "leasehold.database.connections", Kind::Gauge, "{connection}", [];
    /// Connections that the database server takes at most.
    DATABASE_CONNECTIONS_MAX = "leasehold.database.connections.max", Kind::Gauge, "{connection}", [];
    /// Estimated time for which connections were held, the broker's and everybody else's.
    DATABASE_HOLD_TIME = "leasehold.database.hold_time", Kind::Counter, "s", [CALLER, ORIGIN];
    /// Samples of the database's sessions, by what became of them.
    SAMPLES = "leasehold.database.samples", Kind::Counter, "{sample}", [RESULT];
    /// How long the oldest transaction that holds back dead rows is open.
    HORIZON_AGE = "leasehold.database.horizon.age", Kind::Gauge, "s", [HOLDER];
    /// Transactions begun since the oldest snapshot that holds back dead rows.
    HORIZON_TRANSACTIONS = "leasehold.database.horizon.transactions", Kind::Gauge, "{transaction}", [HOLDER];
    /// 1 while somebody holds back dead rows past the limit of the configuration.
    HORIZON_PAST_LIMIT = "leasehold.database.horizon.past_limit", Kind::Gauge, "{flag}", [];
    /// Rows of the broker's tables, by the database's estimate.
    LIVE_ROWS = "leasehold.database.table.live_rows", Kind::Gauge, "{row}", [TABLE];
    /// Dead rows of the broker's tables that are not removed, by the database's estimate.
    DEAD_ROWS = "leasehold.database.table.dead_rows", Kind::Gauge, "{row}", [TABLE];

    /// Calls of Reserve, by what they came to.
    RESERVES = "leasehold.stock.reserves", Kind::Counter, "{call}", [RESULT];
    /// Calls of Reserve that found too few units ready in the pools, and went on under the locks of their stock.
    RESERVES_SLOW = "leasehold.stock.reserves.slow", Kind::Counter, "{call}", [];
    /// Reservations that ended, by how; of the expired ones, those that the sweeper ended.
    RESERVATIONS_ENDED = "leasehold.stock.reservations.ended", Kind::Counter, "{reservation}", [END];
    /// For how long reservations held their units, of those that somebody ended.
    HOLD_LENGTH = "leasehold.stock.hold_length", Kind::Histogram(HOLD_SECONDS), "s", [END];
    /// How long after its time each reservation was ended by the sweeper.
    SWEEP_LAG = "leasehold.stock.sweep.lag", Kind::Histogram(LAG_SECONDS), "s", [];
    /// Units that a pool had left when it was refilled in the background.
    POOL_DEPTH = "leasehold.stock.pool.depth", Kind::Histogram(POOL_UNITS), "{unit}", [];
    /// Units put into pools in the background.
    REFILLED = "leasehold.stock.pool.refilled", Kind::Counter, "{unit}", [];
    /// Reservations that another system answered and that were mirrored here, by what it answered and whether that is what
    /// came of it here.
    SHADOWS = "leasehold.stock.shadow", Kind::Counter, "{call}", [EXPECTED, RESULT];
    /// Switches that stop reservations, as this replica knows them.
    STOCK_SWITCHES = "leasehold.stock.switches", Kind::Gauge, "{switch}", [];

    /// Steps of upkeep that went through.
    UPKEEP_STEPS = "leasehold.upkeep.steps", Kind::Counter, "{step}", [PASS];
    /// Steps of upkeep that failed.
    UPKEEP_FAILURES = "leasehold.upkeep.failures", Kind::Counter, "{step}", [PASS];
    /// Rows that upkeep changed or removed.
    UPKEEP_ROWS = "leasehold.upkeep.rows", Kind::Counter, "{row}", [PASS];

    /// Spans, log records and readings of all metrics sent over OTLP.
    EXPORTED = "leasehold.telemetry.exported", Kind::Counter, "{item}", [SIGNAL];
    /// The same, lost: the queue was full (`queue_full`), or nobody took them (`failed`).
    EXPORT_LOST = "leasehold.telemetry.lost", Kind::Counter, "{item}", [SIGNAL, ERROR];
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fmt::Write as _};

    use super::*;

    const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/telemetry.md");

    fn table() -> String {
        let mut table = "\n| metric | kind | unit | labels | |\n| --- | --- | --- | --- | --- |\n".to_owned();
        for Instrument { name, kind, unit, about, labels } in INSTRUMENTS {
            let kind = match kind {
                Kind::Counter => "counter",
                Kind::Gauge => "gauge",
                Kind::UpDownCounter => "up-down counter",
                Kind::Histogram(_) => "histogram",
            };
            let labels: Vec<_> = labels.iter().map(|label| format!("`{label}`")).collect();
            writeln!(table, "| `{name}` | {kind} | `{unit}` | {} | {about} |", labels.join(", ")).expect("a String");
        }
        table + "\n"
    }

    #[test]
    fn the_page_about_telemetry_has_every_instrument() {
        let page = std::fs::read_to_string(PAGE).expect("the page");
        let found = page.split("<!-- begin -->").nth(1).and_then(|rest| rest.split("<!-- end -->").next());
        assert!(found == Some(&table()), "docs/telemetry.md is stale; its table is:{}", table());
    }

    #[test]
    fn no_name_stands_twice_and_each_is_of_the_conventions_or_ours() {
        let names: BTreeSet<_> = INSTRUMENTS.iter().map(|instrument| instrument.name).collect();
        assert_eq!(names.len(), INSTRUMENTS.len());
        for name in names {
            assert!(["leasehold.", "db.client.", "rpc.server."].iter().any(|of| name.starts_with(of)), "{name}");
        }
    }
}
