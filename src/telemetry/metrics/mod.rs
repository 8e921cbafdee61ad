//! Metrics: what the parts of the broker count and measure. Instruments are declared in [`super::names`] alone; here is
//! one file for each subject.
//!
//! Counters and distributions are written where things happen. What can be read at any time is read when somebody asks for
//! metrics: Prometheus on the second port, and the exporter once an interval where one is configured.

mod budgets;
mod calls;
mod exports;
mod jobs;
mod lanes;
mod maker;
mod queues;
mod stock;
mod streams;
mod upkeep;

use std::{fmt, sync::Arc};

use opentelemetry::{InstrumentationScope, metrics::MeterProvider as _};
use opentelemetry_sdk::{
    Resource,
    metrics::{Instrument as Declared, SdkMeterProvider, Stream, reader::MetricReader},
};
use prometheus::Registry;

pub use self::{
    budgets::BudgetReading, exports::ExportReading, lanes::LanesReading, queues::QueueReading, stock::ReserveResult,
    streams::StreamsReading, upkeep::PassReading,
};
use self::{
    calls::CallInstruments, jobs::JobInstruments, lanes::LaneInstruments, maker::Maker, stock::StockInstruments,
};
use super::{
    caller_labels::CallerLabels,
    names::{self, SCHEMA_URL, SCOPE},
};
use crate::model::Caller;

/// Series of one instrument at most; more are summed in one of OpenTelemetry's. Lies above callers × statements.
const SERIES: usize = 10_000;

/// Handle to all instruments; cheap to clone. Each one made has a registry of its own, so tests share nothing.
#[derive(Clone)]
pub struct Metrics(Arc<Inner>);

struct Inner {
    registry: Registry,
    maker: Maker,
    /// Ends the instruments when dropped, so it lives as long as they do.
    provider: SdkMeterProvider,
    calls: CallInstruments,
    lanes: LaneInstruments,
    jobs: JobInstruments,
    stock: StockInstruments,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

impl Metrics {
    /// With series of their own for the `named` callers and `more` others, for Prometheus alone.
    pub fn new(named: &[Caller], more: usize) -> Result<Self, MetricsError> {
        Self::with_reader(named, more, super::resource(&[], ""), None::<super::otlp::MetricsReader>)
    }

    /// The same for a second reader beside Prometheus.
    pub(super) fn with_reader(
        named: &[Caller],
        more: usize,
        resource: Resource,
        reader: Option<impl MetricReader>,
    ) -> Result<Self, MetricsError> {
        let registry = Registry::new();
        let exporter = opentelemetry_prometheus::exporter()
            .with_registry(registry.clone())
            .scope_info_enabled(false)
            .build()
            .map_err(|error| MetricsError(error.to_string()))?;
        let mut provider =
            SdkMeterProvider::builder().with_reader(exporter).with_resource(resource).with_view(more_series);
        if let Some(reader) = reader {
            provider = provider.with_reader(reader);
        }
        let provider = provider.build();
        let scope = InstrumentationScope::builder(SCOPE).with_schema_url(SCHEMA_URL).build();
        let maker = Maker::new(provider.meter_with_scope(scope));
        Ok(Self(Arc::new(Inner {
            registry,
            calls: CallInstruments::new(&maker),
            lanes: LaneInstruments::new(&maker, CallerLabels::new(named, more)),
            jobs: JobInstruments::new(&maker),
            stock: StockInstruments::new(&maker),
            maker,
            provider,
        })))
    }

    /// What Prometheus reads.
    pub fn registry(&self) -> &Registry {
        &self.0.registry
    }

    /// For subjects that have a file beside this folder.
    pub(super) fn maker(&self) -> &Maker {
        &self.0.maker
    }

    /// Sends what was not sent yet, where there is a reader to send it. Blocks.
    pub(super) fn flush(&self) -> bool {
        self.0.provider.force_flush().is_ok()
    }
}

/// The one instrument whose labels multiply.
fn more_series(instrument: &Declared) -> Option<Stream> {
    (instrument.name() == names::OPERATION_DURATION.name)
        .then(|| Stream::builder().with_cardinality_limit(SERIES).build().ok())
        .flatten()
}

/// The exporter could not be built.
#[derive(Debug, thiserror::Error)]
#[error("metrics cannot be exported: {0}")]
pub struct MetricsError(String);

#[cfg(test)]
mod tests;
