//! Sending over OTLP: traces and logs through an [`outbox`](super::outbox) each, metrics by the SDK's reader on a thread of its
//! own. Requests go over one connection that is opened when it is first needed. None is tried again: newer data would wait for it.

use std::{
    path::Path,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use opentelemetry::{Context, InstrumentationScope, trace::TracerProvider as _};
use opentelemetry_appender_tracing::layer::OpenTelemetryTracingBridge;
use opentelemetry_otlp::{
    LogExporter, MetricExporter, RetryPolicy, SpanExporter, WithExportConfig as _, WithTonicConfig as _,
};
use opentelemetry_sdk::{
    Resource,
    error::OTelSdkResult,
    logs::{LogBatch, LogExporter as _, LogProcessor, SdkLogRecord, SdkLoggerProvider},
    metrics::{PeriodicReader, Temporality, data::ResourceMetrics, exporter::PushMetricExporter},
    trace::{SdkTracerProvider, Span, SpanData, SpanExporter as _, SpanProcessor},
};
use tonic::{
    metadata::MetadataMap,
    transport::{Certificate, Channel, ClientTlsConfig, Endpoint},
};

use super::{
    TelemetryError,
    metrics::ExportReading,
    names::{SCHEMA_URL, SCOPE},
    outbox::{Carrier, Fates, Outbox, OutboxOptions, Post},
    sampler::Keep,
    spans::Spans,
};
use crate::config::sections::TelemetrySection;

/// Opening a connection to the collector takes at most this long.
const CONNECT: Duration = Duration::from_secs(5);

/// Reads metrics once an interval and sends them.
pub(super) type MetricsReader = PeriodicReader<CountedMetrics>;

/// What a signal needs to be sent.
pub(super) struct Line<'a> {
    options: &'a TelemetrySection,
    channel: Channel,
    metadata: MetadataMap,
    resource: Resource,
}

/// With TLS where the endpoint asks for it.
fn secured(endpoint: Endpoint, options: &TelemetrySection) -> Result<Endpoint, TelemetryError> {
    if endpoint.uri().scheme_str() != Some("https") {
        return Ok(endpoint);
    }
    let tls = ClientTlsConfig::new();
    let tls = match &options.otlp_ca_file {
        Some(file) => tls.ca_certificate(authorities(file)?),
        None => tls.with_native_roots(),
    };
    endpoint.tls_config(tls).map_err(|error| TelemetryError::Tls(error.to_string()))
}

/// The certificates of a file. It is looked into, since one of something else would be found out by the first handshake only.
fn authorities(file: &Path) -> Result<Certificate, TelemetryError> {
    let unfit = |why: String| TelemetryError::Authorities(file.display().to_string(), why);
    let pem = std::fs::read_to_string(file).map_err(|error| unfit(error.to_string()))?;
    if pem.contains("-----BEGIN CERTIFICATE-----") {
        Ok(Certificate::from_pem(pem))
    } else {
        Err(unfit("it holds no certificate in PEM".to_owned()))
    }
}

impl<'a> Line<'a> {
    /// To the collector of the options; nothing where they name none. On a runtime, which the connection then uses.
    pub(super) fn new(options: &'a TelemetrySection, resource: Resource) -> Result<Option<Self>, TelemetryError> {
        let Some(endpoint) = &options.otlp_endpoint else { return Ok(None) };
        let endpoint = Endpoint::from_shared(endpoint.clone()).map_err(|_| TelemetryError::Endpoint)?;
        let endpoint = secured(endpoint, options)?;
        let channel = endpoint.connect_timeout(CONNECT).timeout(options.export_timeout).connect_lazy();
        let mut headers = http::HeaderMap::new();
        for (name, value) in options.otlp_headers.pairs() {
            let name = http::HeaderName::try_from(name).map_err(|_| TelemetryError::Headers)?;
            let mut value = http::HeaderValue::try_from(value).map_err(|_| TelemetryError::Headers)?;
            value.set_sensitive(true);
            headers.append(name, value);
        }
        Ok(Some(Self { options, channel, metadata: MetadataMap::from_headers(headers), resource }))
    }

    fn outbox(&self, interval: Duration) -> OutboxOptions {
        OutboxOptions {
            queue: self.options.queue,
            batch: self.options.batch,
            interval,
            timeout: self.options.export_timeout,
        }
    }

    /// A maker of spans whose spans are sent.
    pub(super) fn traces(&self) -> Result<(Spans, Sending), TelemetryError> {
        let mut exporter = SpanExporter::builder()
            .with_tonic()
            .with_channel(self.channel.clone())
            .with_metadata(self.metadata.clone())
            .with_timeout(self.options.export_timeout)
            .with_retry_policy(RetryPolicy::disabled())
            .build()?;
        exporter.set_resource(&self.resource);
        let (outbox, carrier, fates) = Outbox::open(self.outbox(self.options.export_interval), SpanPost(exporter));
        let links = self.options.links;
        let provider = SdkTracerProvider::builder()
            .with_sampler(Keep::part(self.options.sample))
            .with_max_links_per_span(u32::try_from(links).unwrap_or(u32::MAX))
            .with_resource(self.resource.clone())
            .with_span_processor(SpanQueue(outbox))
            .build();
        let scope = InstrumentationScope::builder(SCOPE).with_schema_url(SCHEMA_URL).build();
        Ok((
            Spans::new(provider.tracer_with_scope(scope), links),
            Sending { signal: "traces", carrier: Some(carrier), fates },
        ))
    }

    /// A listener to events, whose records are sent.
    pub(super) fn logs(&self) -> Result<(Bridge, Sending), TelemetryError> {
        let mut exporter = LogExporter::builder()
            .with_tonic()
            .with_channel(self.channel.clone())
            .with_metadata(self.metadata.clone())
            .with_timeout(self.options.export_timeout)
            .with_retry_policy(RetryPolicy::disabled())
            .build()?;
        exporter.set_resource(&self.resource);
        let (outbox, carrier, fates) = Outbox::open(self.outbox(self.options.export_interval), LogPost(exporter));
        let provider = SdkLoggerProvider::builder()
            .with_resource(self.resource.clone())
            .with_log_processor(LogQueue(outbox))
            .build();
        let bridge = OpenTelemetryTracingBridge::new(&provider);
        Ok((bridge, Sending { signal: "logs", carrier: Some(carrier), fates }))
    }

    /// A reader of metrics that sends them.
    pub(super) fn metrics(&self) -> Result<(MetricsReader, Sending), TelemetryError> {
        let exporter = MetricExporter::builder()
            .with_tonic()
            .with_channel(self.channel.clone())
            .with_metadata(self.metadata.clone())
            .with_timeout(self.options.export_timeout)
            .with_retry_policy(RetryPolicy::disabled())
            .with_temporality(Temporality::Cumulative)
            .build()?;
        let fates = Arc::new(Fates::default());
        let counted = CountedMetrics { exporter, fates: fates.clone() };
        let reader = PeriodicReader::builder(counted).with_interval(self.options.metrics_interval).build();
        Ok((reader, Sending { signal: "metrics", carrier: None, fates }))
    }
}

/// Turns events into log records.
pub(super) type Bridge = OpenTelemetryTracingBridge<SdkLoggerProvider, opentelemetry_sdk::logs::SdkLogger>;

/// A signal that is sent.
pub(super) struct Sending {
    signal: &'static str,
    carrier: Option<Carrier>,
    fates: Arc<Fates>,
}

impl Sending {
    /// What became of it so far, whenever it is asked.
    pub(super) fn reader(&self) -> impl Fn() -> ExportReading + Send + Sync + 'static {
        let (signal, fates) = (self.signal, self.fates.clone());
        move || ExportReading {
            signal,
            sent: fates.sent.load(Relaxed),
            queue_full: fates.queue_full.load(Relaxed),
            failed: fates.failed.load(Relaxed),
        }
    }

    /// Sends what waits.
    pub(super) async fn finish(self) {
        if let Some(carrier) = self.carrier {
            carrier.finish().await;
        }
    }
}

struct SpanPost(SpanExporter);

impl Post<SpanData> for SpanPost {
    async fn post(&self, batch: Vec<SpanData>) -> bool {
        self.0.export(batch).await.is_ok()
    }
}

struct LogPost(LogExporter);

impl Post<Box<(SdkLogRecord, InstrumentationScope)>> for LogPost {
    async fn post(&self, batch: Vec<Box<(SdkLogRecord, InstrumentationScope)>>) -> bool {
        let records: Vec<_> = batch.iter().map(|record| (&record.0, &record.1)).collect();
        self.0.export(LogBatch::new(&records)).await.is_ok()
    }
}

/// Puts spans that have ended into their outbox.
#[derive(Debug)]
struct SpanQueue(Outbox<SpanData>);

impl SpanProcessor for SpanQueue {
    fn on_start(&self, _span: &mut Span, _context: &Context) {}

    fn on_end(&self, span: SpanData) {
        self.0.put(span);
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _timeout: Duration) -> OTelSdkResult {
        Ok(())
    }
}

/// Puts log records into their outbox.
#[derive(Debug)]
struct LogQueue(Outbox<Box<(SdkLogRecord, InstrumentationScope)>>);

impl LogProcessor for LogQueue {
    fn emit(&self, record: &mut SdkLogRecord, scope: &InstrumentationScope) {
        self.0.put(Box::new((record.clone(), scope.clone())));
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _timeout: Duration) -> OTelSdkResult {
        Ok(())
    }
}

/// Counts what became of each reading of all metrics.
pub(super) struct CountedMetrics {
    exporter: MetricExporter,
    fates: Arc<Fates>,
}

impl PushMetricExporter for CountedMetrics {
    async fn export(&self, metrics: &ResourceMetrics) -> OTelSdkResult {
        let sent = self.exporter.export(metrics).await;
        let fate = if sent.is_ok() { &self.fates.sent } else { &self.fates.failed };
        fate.fetch_add(1, Relaxed);
        sent
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn temporality(&self) -> Temporality {
        self.exporter.temporality()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_a_certificate_is_refused_by_name() {
        for (file, why) in [("Cargo.toml", "no certificate"), ("is-not-there.pem", "No such file")] {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
            let text = authorities(&path).expect_err("it is none").to_string();
            assert!(
                text.starts_with("telemetry.otlp_ca_file, ") && text.contains(file) && text.contains(why),
                "{text}"
            );
        }
    }
}
