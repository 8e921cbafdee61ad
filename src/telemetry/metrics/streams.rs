//! Lease streams.

use std::sync::Arc;

use super::Metrics;
use crate::telemetry::names::{CREDIT, OUTSTANDING, STREAMS, UNSENT_BYTES};

/// How busy the streams are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StreamsReading {
    /// Lease streams that are open.
    pub streams: u64,
    /// Jobs that they may have outstanding together.
    pub credit: u64,
    /// Leases outstanding on them.
    pub outstanding: u64,
    /// Bytes of leased jobs that wait to be read.
    pub unsent_bytes: u64,
}

impl Metrics {
    /// Reads the streams whenever somebody asks for metrics. Once per handle.
    #[expect(clippy::cast_precision_loss, reason = "these are far below 2^52")]
    pub fn watch_streams(&self, read: impl Fn() -> StreamsReading + Send + Sync + 'static) {
        let read = Arc::new(read);
        for (declared, value) in [
            (&STREAMS, (|read| read.streams) as fn(StreamsReading) -> u64),
            (&CREDIT, |read| read.credit),
            (&OUTSTANDING, |read| read.outstanding),
            (&UNSENT_BYTES, |read| read.unsent_bytes),
        ] {
            let read = read.clone();
            self.0.maker.observed(declared, move |say| say(value(read()) as f64, &[]));
        }
    }
}
