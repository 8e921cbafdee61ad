//! What KEDA is told of queues.

use std::time::Duration;

use crate::config::{
    declared::section,
    kind::{Span, Whole},
};

section! {
    /// The scaler that KEDA asks how many workers a queue needs.
    ScalerSection as "scaler" {
        /// Streams that wait for a queue to become active, all connections together; further ones are refused as
        /// `STREAM_LIMIT`. KEDA opens two for each trigger of type `external-push`.
        streams: usize = Whole::new(1_000, 1, 10_000);
        /// How often those queues are looked at. While nobody waits, none is.
        interval: Duration = Span::millis(1_000, 200, 60_000);
    }
}
