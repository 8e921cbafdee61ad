//! What is sent over OTLP, and what of it is lost.

use std::sync::Arc;

use opentelemetry::KeyValue;

use super::Metrics;
use crate::telemetry::names::{EXPORT_LOST, EXPORTED, key};

/// What became of one signal since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExportReading {
    /// `traces`, `metrics` or `logs`.
    pub signal: &'static str,
    /// Taken by the collector.
    pub sent: u64,
    /// Never sent, since the queue was full.
    pub queue_full: u64,
    /// Sent, and refused or not answered in time.
    pub failed: u64,
}

impl Metrics {
    /// Reads the exporters whenever somebody asks for metrics. Once per handle.
    #[expect(clippy::cast_precision_loss, reason = "counts stay exact up to 2^52")]
    pub(in crate::telemetry) fn watch_exports(&self, read: impl Fn() -> Vec<ExportReading> + Send + Sync + 'static) {
        let read = Arc::new(read);
        let again = read.clone();
        self.0.maker.observed(&EXPORTED, move |say| {
            for export in read() {
                say(export.sent as f64, &[KeyValue::new(key::SIGNAL, export.signal)]);
            }
        });
        self.0.maker.observed(&EXPORT_LOST, move |say| {
            for export in again() {
                for (error, lost) in [("queue_full", export.queue_full), ("failed", export.failed)] {
                    say(lost as f64, &[KeyValue::new(key::SIGNAL, export.signal), KeyValue::new(key::ERROR, error)]);
                }
            }
        });
    }
}
