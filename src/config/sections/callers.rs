//! Business processes.

use crate::{
    config::{
        declared::section,
        kind::{CallerNames, Whole},
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
    }
}
