//! Lanes and the line before them.

use std::time::Duration;

use crate::config::{
    declared::section,
    kind::{Size, Span, Switch, Whole},
};

section! {
    /// Lanes, the database connections that run statements, and the line before them.
    Lanes as "lanes" {
        /// Lanes. The broker opens two connections more at most: one listens for wake-ups, one sends them.
        count: usize = Whole::new(8, 3, 256);
        /// Requests that may wait for a lane; further ones are refused as `OVERLOADED`.
        waiting_requests: usize = Whole::new(10_000, 16, 1_000_000);
        /// Bytes of requests that may wait for a lane; further ones are refused as `OVERLOADED`.
        waiting_bytes: usize = Size::new(64 << 20, 4 << 20, 4 << 30);
        /// How long a request waits for a lane.
        acquire_timeout: Duration = Span::millis(2_000, 10, 60_000);
        /// How long opening a connection to the database may take.
        connect_timeout: Duration = Span::millis(5_000, 100, 60_000);
        /// How long a statement may take.
        statement_timeout: Duration = Span::millis(10_000, 100, 300_000);
        /// How long a statement waits for a row that another transaction holds; one of several requests waits for 50 ms and then
        /// runs in halves.
        lock_timeout: Duration = Span::millis(2_000, 10, 60_000);
        /// How long a commit may take before its outcome counts as unknown.
        commit_timeout: Duration = Span::millis(15_000, 100, 300_000);
        /// An idle lane is used once in so long, so that a dead peer is noticed.
        idle_use: Duration = Span::seconds(30, 1, 600);
        /// Jobs or tokens in one statement of several requests.
        merged_jobs: usize = Whole::new(1_000, 1, 10_000);
        /// Bytes in one statement of several requests.
        merged_bytes: usize = Size::new(4 << 20, 64 << 10, 64 << 20);
        /// Commit claims without waiting for the disk; PostgreSQL alone. A crash or failover of the database may then undo the
        /// claims of its last moments: those jobs are handed out again, at once, uncounted and under the same lease number.
        unflushed_claims: bool = Switch(false);
    }
}
