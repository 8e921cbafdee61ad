//! What the broker tells about itself: log lines, metrics and spans.
//!
//! Every name that leaves the broker is declared in [`names`] and nowhere else, and every label comes from a bounded set. Metrics
//! are there for Prometheus always; with a collector configured, traces, metrics and logs go to it over OTLP as well. Without
//! one, no span is ever made.

mod caller_labels;
pub mod database;
pub mod logging;
pub mod metrics;
pub mod names;
mod otlp;
mod outbox;
mod sampler;
pub mod spans;

use std::time::Duration;

use futures_util::future::join_all;
use opentelemetry::KeyValue;
use opentelemetry_sdk::Resource;
use tokio::time::timeout;

use self::{
    logging::ExtraLayer,
    metrics::MetricsError,
    otlp::{Line, Sending},
};
pub use self::{metrics::Metrics, spans::Spans};
use crate::{
    config::sections::{LogLevel, TelemetrySection},
    model::Caller,
};

/// Metrics, spans and what sends them; made once, before the first log line.
pub struct Telemetry {
    metrics: Metrics,
    spans: Spans,
    log_layer: Option<ExtraLayer>,
    sendings: Vec<Sending>,
    flush_timeout: Duration,
}

/// Telemetry cannot be sent as it is configured.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// Metrics cannot be exported.
    #[error(transparent)]
    Metrics(#[from] MetricsError),
    /// The endpoint is none.
    #[error("telemetry.otlp_endpoint is no address of a collector")]
    Endpoint,
    /// TLS to the collector cannot be set up, e.g. since the system trusts no authority.
    #[error(
        "TLS to the collector of telemetry.otlp_endpoint cannot be set up: {0}; does the system have certificates of authorities, or telemetry.otlp_ca_file?"
    )]
    Tls(String),
    /// A file of authorities is none: which one and why.
    #[error("telemetry.otlp_ca_file, {0}: {1}")]
    Authorities(String, String),
    /// The headers are none. What they hold is secret, so they are not shown.
    #[error("telemetry.otlp_headers cannot be sent as headers")]
    Headers,
    /// An exporter cannot be made.
    #[error("telemetry cannot be sent: {0}")]
    Exporter(#[from] opentelemetry_otlp::ExporterBuildError),
}

impl Telemetry {
    /// Metrics with series of their own for the `named` callers and `more` others, and where `options` name a collector, what
    /// sends to it. Needs a runtime. `replica` is this process's name for operators, `level` that of log records that are sent.
    pub fn start(
        options: &TelemetrySection,
        (named, more): (&[Caller], usize),
        replica: &str,
        level: LogLevel,
    ) -> Result<Self, TelemetryError> {
        let resource = resource(&options.resource.pairs(), replica);
        let (mut spans, mut log_layer, mut reader, mut sendings) = (Spans::default(), None, None, Vec::new());
        if let Some(line) = Line::new(options, resource.clone())? {
            if options.traces {
                let (made, sending) = line.traces()?;
                spans = made;
                sendings.push(sending);
            }
            if options.logs {
                let (bridge, sending) = line.logs()?;
                log_layer = Some(logging::sent(bridge, level));
                sendings.push(sending);
            }
            if options.metrics {
                let (made, sending) = line.metrics()?;
                reader = Some(made);
                sendings.push(sending);
            }
        }
        let metrics = Metrics::with_reader(named, more, resource, reader)?;
        if !sendings.is_empty() {
            let readers: Vec<_> = sendings.iter().map(Sending::reader).collect();
            metrics.watch_exports(move || readers.iter().map(|read| read()).collect());
        }
        Ok(Self { metrics, spans, log_layer, sendings, flush_timeout: options.flush_timeout })
    }

    /// All instruments.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// The maker of spans.
    pub fn spans(&self) -> &Spans {
        &self.spans
    }

    /// What must hear of every event, so that log records are sent; once.
    pub fn take_log_layer(&mut self) -> Option<ExtraLayer> {
        self.log_layer.take()
    }

    /// Sends what was not sent yet, for as long as the options allow; what is left then is lost. A collector that hangs is left
    /// hanging.
    pub async fn flush(self) {
        if self.sendings.is_empty() {
            return;
        }
        let metrics = self.metrics;
        // The SDK blocks the thread that asks.
        let metrics_sent = tokio::task::spawn_blocking(move || metrics.flush());
        let sent = async { tokio::join!(join_all(self.sendings.into_iter().map(Sending::finish)), metrics_sent) };
        let in_time = timeout(self.flush_timeout, sent).await;
        if !matches!(in_time, Ok((_, Ok(true)))) {
            tracing::warn!("the collector did not take the last telemetry in time; it is lost");
        }
    }
}

/// Who speaks: the broker, its version and replica, and what the options add. `OTEL_RESOURCE_ATTRIBUTES` is not read: every option
/// has one place.
fn resource(more: &[(String, String)], replica: &str) -> Resource {
    let mut attributes =
        vec![KeyValue::new("service.name", "leasehold"), KeyValue::new("service.version", env!("CARGO_PKG_VERSION"))];
    if !replica.is_empty() {
        attributes.push(KeyValue::new("service.instance.id", replica.to_owned()));
    }
    attributes.extend(more.iter().map(|(name, value)| KeyValue::new(name.clone(), value.clone())));
    Resource::builder_empty().with_attributes(attributes).build()
}
