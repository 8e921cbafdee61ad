//! Traces, metrics and logs for a collector.

use std::{path::PathBuf, time::Duration};

use crate::config::{
    declared::section,
    kind::{Collector, Fraction, Optional, Pairs, Path, SecretPairs, Span, Switch, TextPairs, Whole},
};

section! {
    /// What the broker tells about itself: traces, metrics and logs to an OpenTelemetry collector over OTLP (gRPC), and what is
    /// measured for that. Without a collector nothing is sent and no trace begins; metrics are on the second port in any case.
    TelemetrySection as "telemetry" {
        /// The collector; an `https` one must have a certificate of an authority that the system trusts, or of `otlp_ca_file`.
        otlp_endpoint: Option<String> = Optional(Collector);
        /// Certificates (PEM) of authorities that are trusted for the collector, in place of the system's. Read at the start.
        otlp_ca_file: Option<PathBuf> = Optional(Path);
        /// Headers of every request to it.
        otlp_headers: SecretPairs = Pairs::secret();
        /// Send traces.
        traces: bool = Switch(true);
        /// Send metrics.
        metrics: bool = Switch(true);
        /// Send log lines.
        logs: bool = Switch(true);
        /// Part of the traces that begin in the broker that is kept. Where a client sends its trace context, its decision holds.
        sample: f64 = Fraction(0.1);
        /// Links of one span at most: from a claim to the producers of its jobs, from a merged statement to its calls.
        links: usize = Whole::new(32, 0, 128);
        /// Spans, and as many log lines, that may wait to be sent; further ones are lost and counted.
        queue: usize = Whole::new(4_096, 64, 1_000_000);
        /// Spans or log lines of one request.
        batch: usize = Whole::new(512, 1, 10_000);
        /// Spans and log lines that wait are sent after so long, full batch or not.
        export_interval: Duration = Span::millis(2_000, 100, 60_000);
        /// Metrics are sent once in so long.
        metrics_interval: Duration = Span::seconds(30, 1, 600);
        /// A request that the collector has not answered after so long has failed; what was in it is lost.
        export_timeout: Duration = Span::millis(5_000, 100, 60_000);
        /// Part of the drain's time in which the last spans, metrics and log lines are sent.
        flush_timeout: Duration = Span::millis(2_000, 100, 60_000);
        /// Further attributes of this process, beside its name, version and replica.
        resource: TextPairs = Pairs::text();
        /// A lane that is held for longer is told of in the log, with its caller, its statement and its trace.
        slow_hold: Duration = Span::millis(1_000, 1, 600_000);
        /// Queues that are measured for metrics, the first ones by name; the others are summed as `_other`. 0 measures none.
        queues: usize = Whole::new(100, 0, 1_000);
        /// Queues are measured once in so long, or less often where they are many or long.
        queues_interval: Duration = Span::seconds(10, 1, 600);
    }
}
