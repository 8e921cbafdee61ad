//! What became of each queue's jobs on this replica: sums since the start, from which rates are made.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use crate::model::QueueId;

/// Queues that sums are kept for. Past that, all begin anew.
const QUEUES: usize = 10_000;

/// Sums of one queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Stored.
    pub enqueued: u64,
    /// Leased.
    pub leased: u64,
    /// Acked through this replica.
    pub acked: u64,
    /// Nacked, to come back.
    pub retried: u64,
    /// Leases that this replica's reaper took.
    pub expired: u64,
    /// Dead.
    pub dead: u64,
}

/// Sums of all queues.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally(Arc<Mutex<HashMap<QueueId, Totals>>>);

impl Tally {
    /// Adds to the sums of each queue named.
    pub(super) fn add(&self, queues: impl Iterator<Item = QueueId>, to: impl Fn(&mut Totals) -> &mut u64) {
        let mut sums = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for queue in queues {
            if sums.len() >= QUEUES && !sums.contains_key(&queue) {
                sums.clear();
            }
            *to(sums.entry(queue).or_default()) += 1;
        }
    }

    pub(super) fn totals(&self) -> HashMap<QueueId, Totals> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invented_queues_cost_a_bounded_number_of_sums() {
        let tally = Tally::default();
        tally.add((0..25_000).map(QueueId), |sums| &mut sums.enqueued);
        assert!(tally.totals().len() <= QUEUES);
        assert_eq!(tally.totals()[&QueueId(24_999)], Totals { enqueued: 1, ..Totals::default() });
    }
}
