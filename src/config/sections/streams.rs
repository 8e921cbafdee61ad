//! Lease streams and the claims for them.

use std::time::Duration;

use crate::config::{
    declared::section,
    kind::{Size, Span, Whole},
};

section! {
    /// Lease streams and the claims that serve them.
    Streams as "streams" {
        /// Lease streams of one connection; further ones are refused as `STREAM_LIMIT`.
        per_connection: usize = Whole::new(1_024, 1, 100_000);
        /// Lease streams of this replica; further ones are refused as `STREAM_LIMIT`.
        per_replica: usize = Whole::new(20_000, 1, 1_000_000);
        /// Leases outstanding on this replica; nothing is claimed beyond.
        outstanding: usize = Whole::new(1_000_000, 1, 100_000_000);
        /// Age at which a stream is asked to open anew, less or more a fifth.
        max_age: Duration = Span::seconds(300, 1, 86_400);
        /// A quiet stream carries a heartbeat once in so long.
        heartbeat: Duration = Span::seconds(15, 1, 600);
        /// Payload bytes that one claim aims for, by what the queue's jobs weighed lately.
        claim_bytes: usize = Size::new(8 << 20, 64 << 10, 256 << 20);
        /// Bytes of a frame of jobs, where it holds more than one.
        frame_bytes: usize = Size::new(1 << 20, 4 << 10, 4 << 20);
        /// How often queues are looked at for jobs that no wake-up told of.
        look_interval: Duration = Span::millis(1_000, 100, 60_000);
        /// How often leases are compared with the database, for credit that no wake-up gave back.
        reconcile_interval: Duration = Span::millis(1_000, 100, 60_000);
    }
}
