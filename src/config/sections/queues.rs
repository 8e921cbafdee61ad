//! Queues: how they come into being and how they are known.

use std::time::Duration;

use crate::config::{
    declared::section,
    kind::{Optional, Size, Span, Whole},
};

section! {
    /// Queues that come into being with their first job: how many there may be, and their settings. Queues that exist keep
    /// theirs, which the database holds.
    Queues as "queues" {
        /// Queues at most, all together; a job for a further one is refused as `QUEUE_FULL`.
        at_most: u64 = Whole::new(10_000, 1, 1_000_000);
        /// How old what a replica knows of a queue's settings may be. A change on one replica holds on all of them after so long,
        /// and a queue that is deleted goes no sooner.
        refresh_interval: Duration = Span::millis(5_000, 100, 60_000);
        /// Jobs that one step of a purge walks.
        purge_step: usize = Whole::new(500, 1, 1_000);
        /// How old the counts of queues with 2,000 jobs and more may be that operators are shown: those who look within that time
        /// share what one count found. 0 shares nothing.
        count_age: Duration = Span::millis(2_000, 0, 60_000);
        /// Length of a lease where the stream asks for none.
        lease_duration: Duration = Span::seconds(30, 1, 43_200);
        /// Leases granted before a job is dead, where the job says nothing.
        max_attempts: u16 = Whole::new(20, 1, 1_000);
        /// Longest delay before the first retry; it doubles with each one.
        backoff_base: Duration = Span::millis(1_000, 1, 86_400_000);
        /// No retry waits longer.
        backoff_cap: Duration = Span::millis(600_000, 1, 86_400_000);
        /// How long an idempotency key is known, from its first enqueue.
        idempotency_retention: Duration = Span::seconds(24 * 3_600, 60, 365 * 86_400);
        /// How long a dead job is kept.
        dead_retention: Duration = Span::seconds(14 * 86_400, 60, 3_650 * 86_400);
        /// Live jobs at most; further ones are refused as `QUEUE_FULL`.
        max_backlog_jobs: Option<u64> = Optional(Whole::new(1_000_000, 1, 1_000_000_000_000));
        /// Payload bytes of live jobs at most; further ones are refused as `QUEUE_FULL`.
        max_backlog_bytes: Option<usize> = Optional(Size::new(1 << 30, 1, 1 << 50));
    }
}
