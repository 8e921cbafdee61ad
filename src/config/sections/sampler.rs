//! The look at everybody's connections.

use std::time::Duration;

use crate::config::{
    declared::section,
    kind::{Span, Switch, Whole},
};

section! {
    /// Who holds the database's connections, this broker's and anybody else's, and who holds back the removal of dead rows.
    SamplerSection as "sampler" {
        /// Look by itself. Off, it looks when a client asks; there are no metrics of it then, and no warnings.
        enabled: bool = Switch(true);
        /// Time between two samples of the database's sessions, on average. Each is one statement on a lane.
        interval: Duration = Span::millis(1_000, 200, 60_000);
        /// The same while nobody but brokers at their own work holds a connection.
        quiet_interval: Duration = Span::millis(10_000, 200, 60_000);
        /// Sessions that one sample reads, the ones that hold something first.
        sessions: usize = Whole::new(1_000, 10, 5_000);
        /// Names of connections told apart, beside the configured callers; the others are `other`.
        names: usize = Whole::new(200, 1, 1_000);
        /// Time between two looks at who holds back the removal of dead rows.
        horizon_interval: Duration = Span::seconds(30, 1, 3_600);
        /// Transactions begun since a snapshot from which on its holder is warned of.
        horizon_transactions: u64 = Whole::new(1_000_000, 1_000, 2_000_000_000);
        /// Age of a transaction from which on its holder is warned of.
        horizon_age: Duration = Span::seconds(600, 1, 86_400);
    }
}
