//! Stock and reservations.

use std::time::Duration;

use crate::config::{
    declared::section,
    kind::{Span, Whole},
};

section! {
    /// Stock and reservations: what one call may hold, how pools are kept, how often holds past their time are ended.
    StockSection as "stock" {
        /// Units of one item and location that lie ready for reservations; what is free beside them is put there as they are taken.
        pool: u32 = Whole::new(1_000, 1, 10_000);
        /// Lines of one reservation.
        lines: usize = Whole::new(100, 1, 100);
        /// Units of one line.
        quantity: u32 = Whole::new(1_000_000, 1, 1_000_000);
        /// Jobs that come with a reservation, those on its expiry among them; or with its commit.
        jobs: usize = Whole::new(100, 0, 100);
        /// Adjustments of one call.
        adjustments: usize = Whole::new(1_000, 1, 1_000);
        /// How long a reservation holds its units where it does not say.
        time_to_live: Duration = Span::seconds(900, 1, 86_400);
        /// Shortest that a reservation may hold its units.
        time_to_live_min: Duration = Span::seconds(1, 1, 86_400);
        /// Longest that a reservation may hold its units.
        time_to_live_max: Duration = Span::seconds(86_400, 1, 86_400);
        /// How often reservations past their time are ended; a replica that has seen no stock looks every sixth time.
        sweeper_interval: Duration = Span::millis(5_000, 100, 60_000);
        /// How often what reservations and their ends left is added up, and pools that ran low are filled; one that runs low is
        /// filled at once besides.
        refill_interval: Duration = Span::millis(10_000, 100, 60_000);
        /// How long a reservation and its reference are kept after its end. The ledger is kept for ever.
        retention: Duration = Span::hours(30 * 24, 1, 3_650 * 24);
        /// Switches that stop reservations at most.
        switches: usize = Whole::new(1_000, 1, 10_000);
        /// How often those are read anew.
        switch_refresh: Duration = Span::millis(5_000, 100, 60_000);
    }
}
