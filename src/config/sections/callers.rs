//! Business processes.

use std::time::Duration;

use crate::{
    config::{
        declared::section,
        kind::{CallerNames, Span, Whole},
    },
    model::Caller,
};

section! {
    /// Business processes that statements run for.
    Callers as "callers" {
        /// Callers that always have a comment text and metric series of their own.
        names: Vec<Caller> = CallerNames { at_most: 64 };
        /// Callers with a comment text of their own; the others run as `other`.
        with_text: usize = Whole::new(64, 1, 256);
        /// Callers whose lane time is summed apart; the others' is summed as `other`.
        in_ledger: usize = Whole::new(1_000, 64, 100_000);
        /// Callers with a budget in the database; a budget for a further one is refused.
        with_budget: usize = Whole::new(1_000, 1, 10_000);
        /// How often budgets are read from the database.
        budget_refresh: Duration = Span::millis(5_000, 100, 60_000);
        /// Open `WatchCallers` streams; further ones are refused as `STREAM_LIMIT`.
        watchers: usize = Whole::new(64, 1, 10_000);
    }
}
