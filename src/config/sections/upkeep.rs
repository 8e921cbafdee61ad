//! The broker's own work.

use std::time::Duration;

use crate::config::{
    declared::section,
    kind::{Portion, Span, Whole},
};

section! {
    /// The broker's own work: expired leases, retention, jobs that services enqueued by SQL.
    UpkeepSection as "upkeep" {
        /// How often expired leases are taken away.
        reaper_interval: Duration = Span::millis(1_000, 100, 60_000);
        /// How late jobs that services enqueued by SQL are adopted at most; where the reaper looks as often, with it.
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
        /// What one step of upkeep, or of an operator's purge, deletion or redrive, should take, so that calls beside it do not
        /// wait for long: its rows are made fewer or more by that, down to 100.
        step_time: Duration = Span::millis(2, 1, 1_000);
        /// Part of one lane's time that such work takes while there is much to do; it rests between its steps. Work that goes on
        /// for 30 seconds takes twice as much, after a minute four times, until it rests no more. 1 never rests.
        share: f64 = Portion::new(0.2, 0.01);
    }
}
