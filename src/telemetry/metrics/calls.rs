//! gRPC calls.

use std::time::Duration;

use opentelemetry::{KeyValue, metrics::Histogram};

use super::{Maker, Metrics};
use crate::telemetry::{
    names::{CALL_DURATION, key},
    spans::is_our_error,
};

pub(super) struct CallInstruments {
    duration: Histogram<f64>,
}

impl CallInstruments {
    pub(super) fn new(maker: &Maker) -> Self {
        Self { duration: maker.histogram(&CALL_DURATION) }
    }
}

impl Metrics {
    /// A gRPC call ended. `method` and `code` come from fixed sets: unknown methods are one.
    pub fn call_ended(&self, method: &'static str, code: &'static str, took: Duration) {
        let labels = [
            KeyValue::new(key::RPC_SYSTEM, "grpc"),
            KeyValue::new(key::RPC_METHOD, method),
            KeyValue::new(key::RPC_STATUS, code),
            KeyValue::new(key::ERROR, code),
        ];
        let labels = if is_our_error(code) { &labels[..] } else { &labels[..3] };
        self.0.calls.duration.record(took.as_secs_f64(), labels);
    }
}
