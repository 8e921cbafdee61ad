//! Passes of upkeep.

use std::sync::Arc;

use opentelemetry::KeyValue;

use super::Metrics;
use crate::telemetry::names::{UPKEEP_FAILURES, UPKEEP_ROWS, UPKEEP_STEPS, key};

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

impl Metrics {
    /// Reads the passes of upkeep whenever somebody asks for metrics. Once per handle.
    #[expect(clippy::cast_precision_loss, reason = "counts stay exact up to 2^52")]
    pub fn watch_upkeep(&self, read: impl Fn() -> Vec<PassReading> + Send + Sync + 'static) {
        let read = Arc::new(read);
        for (declared, value) in [
            (&UPKEEP_STEPS, (|pass| pass.steps) as fn(&PassReading) -> u64),
            (&UPKEEP_FAILURES, |pass| pass.failures),
            (&UPKEEP_ROWS, |pass| pass.rows),
        ] {
            let read = read.clone();
            self.0.maker.observed(declared, move |say| {
                for pass in read() {
                    say(value(&pass) as f64, &[KeyValue::new(key::PASS, pass.pass)]);
                }
            });
        }
    }
}
