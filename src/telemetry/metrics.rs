//! All instruments, declared once. Names follow OpenTelemetry's conventions where they have one, `leasehold.` otherwise.

use std::{fmt, sync::Arc, time::Duration};

use opentelemetry::{
    KeyValue,
    metrics::{Counter, Histogram, Meter, MeterProvider as _},
};
use opentelemetry_sdk::{Resource, metrics::SdkMeterProvider};
use prometheus::Registry;

use super::caller_labels::CallerLabels;
use crate::model::{Caller, NackAction};

/// Version of the conventions that the names come from.
const SCHEMA: &str = "https://opentelemetry.io/schemas/1.44.0";

/// Buckets of every duration, in seconds.
const SECONDS: [f64; 12] = [0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0];

/// Buckets of every batch size.
const SIZES: [f64; 9] = [1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 100.0, 500.0, 1_000.0];

/// Handle to all instruments; cheap to clone. Each one made has a registry of its own, so tests share nothing.
#[derive(Clone)]
pub struct Metrics(Arc<Instruments>);

struct Instruments {
    registry: Registry,
    meter: Meter,
    /// Ends the instruments when dropped, so it lives as long as they do.
    _provider: SdkMeterProvider,
    callers: CallerLabels,
    call_duration: Histogram<f64>,
    wait_time: Histogram<f64>,
    use_time: Histogram<f64>,
    hold_time: Counter<f64>,
    operation_duration: Histogram<f64>,
    statement_errors: Counter<u64>,
    batch_size: Histogram<u64>,
    enqueued: Counter<u64>,
    duplicates: Counter<u64>,
    claimed: Counter<u64>,
    settled: Counter<u64>,
    reaped: Counter<u64>,
    dead: Counter<u64>,
}

/// How busy the lanes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LanesReading {
    /// Lanes with a statement under way.
    pub used: u64,
    /// Lanes that are connected and have nothing to do.
    pub idle: u64,
    /// Requests that wait for a lane.
    pub waiting: u64,
}

/// How busy the streams are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StreamsReading {
    /// Lease streams that are open.
    pub streams: u64,
    /// Leases outstanding on them.
    pub outstanding: u64,
}

/// What a pass of upkeep did since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassReading {
    /// Which.
    pub pass: &'static str,
    /// Steps that went through.
    pub steps: u64,
    /// Steps that failed.
    pub failures: u64,
    /// Rows changed or removed.
    pub rows: u64,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

impl Metrics {
    /// With series of their own for the `named` callers and `more` others.
    pub fn new(named: &[Caller], more: usize) -> Result<Self, MetricsError> {
        let registry = Registry::new();
        let exporter = opentelemetry_prometheus::exporter()
            .with_registry(registry.clone())
            .scope_info_enabled(false)
            .build()
            .map_err(|error| MetricsError(error.to_string()))?;
        let resource = Resource::builder_empty()
            .with_attributes([
                KeyValue::new("service.name", "leasehold"),
                KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
            ])
            .build();
        let provider = SdkMeterProvider::builder().with_reader(exporter).with_resource(resource).build();
        let scope = opentelemetry::InstrumentationScope::builder("leasehold").with_schema_url(SCHEMA).build();
        let meter = provider.meter_with_scope(scope);
        Ok(Self(Arc::new(Instruments::new(registry, meter, provider, CallerLabels::new(named, more)))))
    }

    /// What Prometheus reads.
    pub fn registry(&self) -> &Registry {
        &self.0.registry
    }

    /// Where instruments that are declared in files of their own are made.
    pub(super) fn meter(&self) -> &Meter {
        &self.0.meter
    }

    /// A gRPC call ended. `method` and `code` come from fixed sets: unknown methods are one.
    pub fn call_ended(&self, method: &'static str, code: &'static str, took: Duration) {
        let labels = [KeyValue::new("rpc.method", method), KeyValue::new("rpc.response.status_code", code)];
        self.0.call_duration.record(took.as_secs_f64(), &labels);
    }

    /// A lane ran a statement of one kind (`act`) for a caller: how long its oldest request had waited, how long the lane was held.
    pub fn lane_held(&self, caller: &Caller, act: &'static str, wait: Duration, hold: Duration) {
        let labels = self.0.callers.of(caller);
        self.0.wait_time.record(wait.as_secs_f64(), &labels);
        self.0.use_time.record(hold.as_secs_f64(), &labels);
        self.0.hold_time.add(hold.as_secs_f64(), &labels);
        self.0.operation_duration.record(hold.as_secs_f64(), &[KeyValue::new("db.operation.name", act)]);
    }

    /// A statement failed. `class` names a class of engine errors.
    pub fn statement_failed(&self, class: &'static str) {
        self.0.statement_errors.add(1, &[KeyValue::new("error.type", class)]);
    }

    /// Jobs or tokens that left in one statement of a kind.
    pub fn batch(&self, act: &'static str, size: usize) {
        self.0.batch_size.record(size as u64, &[KeyValue::new("db.operation.name", act)]);
    }

    /// Jobs were stored; `duplicates` of further ones were known by their key.
    pub fn enqueued(&self, jobs: usize, duplicates: usize) {
        self.0.enqueued.add(jobs as u64, &[]);
        self.0.duplicates.add(duplicates as u64, &[]);
    }

    /// Jobs were leased.
    pub fn claimed(&self, jobs: usize) {
        self.0.claimed.add(jobs as u64, &[]);
    }

    /// Jobs were acked.
    pub fn acked(&self, jobs: usize) {
        self.0.settled.add(jobs as u64, &[KeyValue::new("action", "ack")]);
    }

    /// Jobs were nacked, `dead` of them for good.
    pub fn nacked(&self, action: NackAction, jobs: usize, dead: usize) {
        let action = match action {
            NackAction::Retry => "retry",
            NackAction::Release => "release",
            NackAction::Reject => "reject",
        };
        self.0.settled.add(jobs as u64, &[KeyValue::new("action", action)]);
        self.0.dead.add(dead as u64, &[]);
    }

    /// Expired leases were taken away, `dead` of their jobs are dead.
    pub fn reaped(&self, leases: usize, dead: usize) {
        self.0.reaped.add(leases as u64, &[]);
        self.0.dead.add(dead as u64, &[]);
    }

    /// Jobs are dead that nobody leased within their queue's time to live.
    pub fn expired(&self, jobs: usize) {
        self.0.dead.add(jobs as u64, &[]);
    }

    /// Reads the lanes whenever somebody asks for metrics. Once per handle.
    pub fn watch_lanes(&self, read: impl Fn() -> LanesReading + Send + Sync + 'static) {
        let read = Arc::new(read);
        let pool = KeyValue::new("db.client.connection.pool.name", "lanes");
        let (again, name) = (read.clone(), pool.clone());
        self.0
            .meter
            .u64_observable_gauge("db.client.connection.count")
            .with_description("Lanes by state.")
            .with_callback(move |gauge| {
                let lanes = read();
                for (state, count) in [("used", lanes.used), ("idle", lanes.idle)] {
                    gauge.observe(count, &[KeyValue::new("db.client.connection.state", state), pool.clone()]);
                }
            })
            .build();
        self.0
            .meter
            .u64_observable_gauge("db.client.connection.pending_requests")
            .with_description("Requests that wait for a lane.")
            .with_callback(move |gauge| gauge.observe(again().waiting, std::slice::from_ref(&name)))
            .build();
    }

    /// Reads the passes of upkeep whenever somebody asks for metrics. Once per handle.
    pub fn watch_upkeep(&self, read: impl Fn() -> Vec<PassReading> + Send + Sync + 'static) {
        let read = Arc::new(read);
        let watch = |name, about, value| self.0.watch_passes(name, about, read.clone(), value);
        watch("leasehold.upkeep.steps", "Steps of upkeep that went through, by pass.", |pass| pass.steps);
        watch("leasehold.upkeep.failures", "Steps of upkeep that failed, by pass.", |pass| pass.failures);
        watch("leasehold.upkeep.rows", "Rows that upkeep changed or removed, by pass.", |pass| pass.rows);
    }

    /// Reads the streams whenever somebody asks for metrics. Once per handle.
    pub fn watch_streams(&self, read: impl Fn() -> StreamsReading + Send + Sync + 'static) {
        let read = Arc::new(read);
        let again = read.clone();
        self.0
            .meter
            .u64_observable_gauge("leasehold.streams")
            .with_description("Lease streams that are open.")
            .with_callback(move |gauge| gauge.observe(read().streams, &[]))
            .build();
        self.0
            .meter
            .u64_observable_gauge("leasehold.leases.outstanding")
            .with_description("Leases of this replica that are neither settled nor expired.")
            .with_callback(move |gauge| gauge.observe(again().outstanding, &[]))
            .build();
    }
}

impl Instruments {
    /// A counter that reads what the passes of upkeep did.
    fn watch_passes(
        &self,
        name: &'static str,
        about: &'static str,
        read: Arc<dyn Fn() -> Vec<PassReading> + Send + Sync>,
        value: fn(&PassReading) -> u64,
    ) {
        self.meter
            .u64_observable_counter(name)
            .with_description(about)
            .with_callback(move |counter| {
                for pass in read() {
                    counter.observe(value(&pass), &[KeyValue::new("pass", pass.pass)]);
                }
            })
            .build();
    }

    fn new(registry: Registry, meter: Meter, provider: SdkMeterProvider, callers: CallerLabels) -> Self {
        let seconds = |name: &'static str, about: &'static str| {
            let histogram = meter.f64_histogram(name).with_unit("s").with_description(about);
            histogram.with_boundaries(SECONDS.to_vec()).build()
        };
        let count = |name: &'static str, about: &'static str| meter.u64_counter(name).with_description(about).build();
        Self {
            call_duration: seconds("rpc.server.call.duration", "gRPC calls; streams last as long as they are open."),
            wait_time: seconds("db.client.connection.wait_time", "How long requests waited for a lane."),
            use_time: seconds("db.client.connection.use_time", "How long a lane was held, by caller."),
            hold_time: meter
                .f64_counter("leasehold.db.connection.hold_time")
                .with_unit("s")
                .with_description("Seconds for which lanes were held, by caller.")
                .build(),
            operation_duration: seconds("db.client.operation.duration", "How long statements took, by kind."),
            statement_errors: count("leasehold.db.statement.errors", "Statements that failed, by class."),
            batch_size: meter
                .u64_histogram("leasehold.batch.size")
                .with_description("Jobs or tokens in one statement, by kind.")
                .with_boundaries(SIZES.to_vec())
                .build(),
            enqueued: count("leasehold.jobs.enqueued", "Jobs stored."),
            duplicates: count("leasehold.jobs.duplicates", "Jobs that were known by their idempotency key."),
            claimed: count("leasehold.jobs.claimed", "Leases granted."),
            settled: count("leasehold.jobs.settled", "Leases ended by their holder, by action."),
            reaped: count("leasehold.leases.reaped", "Expired leases taken away."),
            dead: count("leasehold.jobs.dead", "Jobs that became dead."),
            registry,
            meter,
            _provider: provider,
            callers,
        }
    }
}

/// The exporter could not be built.
#[derive(Debug, thiserror::Error)]
#[error("metrics cannot be exported: {0}")]
pub struct MetricsError(String);

#[cfg(test)]
mod tests {
    use prometheus::TextEncoder;

    use super::*;

    fn text(metrics: &Metrics) -> String {
        TextEncoder::new().encode_to_string(&metrics.registry().gather()).expect("text")
    }

    #[test]
    fn hold_time_adds_up_by_caller() {
        let metrics = Metrics::new(&[], 1).expect("an exporter");
        let caller = Caller::parse("checkout").expect("a fine name");
        metrics.lane_held(&caller, "enqueue", Duration::from_millis(2), Duration::from_millis(250));
        metrics.lane_held(&caller, "ack", Duration::from_millis(2), Duration::from_millis(500));
        let text = text(&metrics);
        let series = "leasehold_db_connection_hold_time_seconds_total{conn_tag=\"checkout\",\
                      db_client_connection_pool_name=\"lanes\"} 0.75";
        assert!(text.contains(series), "{text}");
        assert!(text.contains("db_client_operation_duration_seconds_count{db_operation_name=\"ack\"} 1"), "{text}");
    }

    #[test]
    fn readings_are_taken_when_somebody_asks() {
        let metrics = Metrics::new(&[], 1).expect("an exporter");
        metrics.watch_lanes(|| LanesReading { used: 2, idle: 5, waiting: 3 });
        metrics.watch_streams(|| StreamsReading { streams: 4, outstanding: 9 });
        metrics.watch_upkeep(|| vec![PassReading { pass: "reaper", steps: 7, failures: 1, rows: 30 }]);
        let text = text(&metrics);
        for line in [
            "db_client_connection_state=\"used\"} 2",
            "db_client_connection_state=\"idle\"} 5",
            "db_client_connection_pending_requests{db_client_connection_pool_name=\"lanes\"} 3",
            "leasehold_streams 4",
            "leasehold_leases_outstanding 9",
            "leasehold_upkeep_steps_total{pass=\"reaper\"} 7",
            "leasehold_upkeep_rows_total{pass=\"reaper\"} 30",
        ] {
            assert!(text.contains(line), "'{line}' is missing in {text}");
        }
    }

    #[test]
    fn counters_tell_apart_how_leases_end() {
        let metrics = Metrics::new(&[], 1).expect("an exporter");
        metrics.acked(3);
        metrics.nacked(NackAction::Retry, 2, 1);
        metrics.reaped(5, 1);
        let text = text(&metrics);
        for line in [
            "leasehold_jobs_settled_total{action=\"ack\"} 3",
            "leasehold_jobs_settled_total{action=\"retry\"} 2",
            "leasehold_leases_reaped_total 5",
            "leasehold_jobs_dead_total 2",
        ] {
            assert!(text.contains(line), "'{line}' is missing in {text}");
        }
    }
}
