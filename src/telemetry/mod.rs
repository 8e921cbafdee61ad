//! What the broker tells about itself: log lines and metrics. Every instrument is declared in [`metrics`] and nowhere else,
//! and every label comes from a bounded set.

mod caller_labels;
pub mod database;
pub mod logging;
pub mod metrics;

pub use metrics::Metrics;
