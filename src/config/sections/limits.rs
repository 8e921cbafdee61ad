//! What one request may hold.

use std::time::Duration;

use crate::config::{
    declared::section,
    kind::{Size, Span, Whole},
};

section! {
    /// What one request may hold. What is over its limit is refused, never cut, except error texts.
    RequestLimits as "limits" {
        /// Bytes of one payload.
        payload_bytes: usize = Size::new(1 << 20, 1, 3 << 20);
        /// Headers of one job.
        header_entries: usize = Whole::new(32, 0, 256);
        /// Bytes of one job's headers, keys and values together.
        header_bytes: usize = Size::new(16 << 10, 0, 256 << 10);
        /// Jobs or tokens in one call.
        batch: usize = Whole::new(1_000, 1, 1_000);
        /// Queues of one Lease stream.
        queues_per_stream: usize = Whole::new(32, 1, 256);
        /// Jobs outstanding on one Lease stream.
        max_in_flight: u32 = Whole::new(10_000, 1, 10_000);
        /// Furthest ahead that a job may be due.
        delay: Duration = Span::hours(365 * 24, 1, 365 * 24);
        /// Shortest lease.
        lease_min: Duration = Span::seconds(1, 1, 43_200);
        /// Longest lease.
        lease_max: Duration = Span::seconds(43_200, 1, 43_200);
        /// Most attempts that a job may ask for.
        max_attempts: u16 = Whole::new(1_000, 1, 1_000);
        /// Bytes of an error text that are kept.
        error_bytes: usize = Size::new(4 << 10, 64, 64 << 10);
    }
}
