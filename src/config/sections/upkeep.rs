//! The broker's own work.

use std::time::Duration;

use crate::config::{
    declared::section,
    kind::{Span, Whole},
};

section! {
    /// The broker's own work: expired leases, retention, jobs that services enqueued by SQL.
    UpkeepSection as "upkeep" {
        /// How often expired leases are taken away.
        reaper_interval: Duration = Span::millis(1_000, 100, 60_000);
        /// How often jobs that services enqueued by SQL are adopted.
        arrivals_interval: Duration = Span::millis(1_000, 100, 60_000);
        /// How often jobs past their queue's time to live are made dead.
        expiry_interval: Duration = Span::millis(2_000, 100, 60_000);
        /// How often dead jobs, acked jobs that are kept, and idempotency keys past their retention are removed.
        prune_interval: Duration = Span::seconds(60, 1, 86_400);
        /// How often this replica writes down, for operators, its streams and what became of queues' jobs.
        presence_interval: Duration = Span::seconds(10, 1, 600);
        /// A replica that wrote nothing for so long is taken for gone.
        presence_absent: Duration = Span::seconds(60, 2, 3_600);
        /// Rows that one statement of upkeep may touch.
        batch: usize = Whole::new(1_000, 1, 10_000);
    }
}
