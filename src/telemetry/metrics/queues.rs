//! What waits in queues.

use std::{sync::Arc, time::Duration};

use opentelemetry::KeyValue;

use super::Metrics;
use crate::telemetry::names::{QUEUE_AGE, QUEUE_JOBS, key};

/// What was measured of one queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueReading {
    /// Its name, or `_other` for all that are not measured apart. Whoever reads keeps the names bounded.
    pub queue: Arc<str>,
    /// Jobs by state; both come from fixed sets.
    pub jobs: Vec<(&'static str, u64)>,
    /// For how long the oldest ready job has been ready.
    pub oldest_age: Duration,
}

impl Metrics {
    /// Reads what was measured last whenever somebody asks for metrics. Once per handle.
    #[expect(clippy::cast_precision_loss, reason = "counts are bounded far below 2^52")]
    pub fn watch_queues(&self, read: impl Fn() -> Arc<[QueueReading]> + Send + Sync + 'static) {
        let read = Arc::new(read);
        let again = read.clone();
        let name = |queue: &QueueReading| KeyValue::new(key::QUEUE, queue.queue.clone());
        self.0.maker.observed(&QUEUE_JOBS, move |say| {
            for queue in read().iter() {
                for (state, jobs) in &queue.jobs {
                    say(*jobs as f64, &[name(queue), KeyValue::new(key::STATE, *state)]);
                }
            }
        });
        self.0.maker.observed(&QUEUE_AGE, move |say| {
            for queue in again().iter() {
                say(queue.oldest_age.as_secs_f64(), &[name(queue)]);
            }
        });
    }
}
