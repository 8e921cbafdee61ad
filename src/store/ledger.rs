//! Who held the lanes, and for how long.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use crate::model::Caller;

/// Lane time of one caller since the start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Holds {
    /// Times that a lane was held.
    pub count: u64,
    /// Time on lanes.
    pub held: Duration,
    /// Time that requests were queued for a lane; of merged ones, the longest.
    pub waited: Duration,
}

/// Sums per caller. Callers past the bound are summed as `other`, so the sum over all of them is exact.
#[derive(Debug)]
pub(super) struct Ledger {
    max_callers: usize,
    holds: Mutex<HashMap<Caller, Holds>>,
}

impl Ledger {
    pub(super) fn new(max_callers: usize) -> Self {
        Self { max_callers, holds: Mutex::default() }
    }

    pub(super) fn record(&self, caller: &Caller, held: Duration, waited: Duration) {
        let mut holds = self.holds.lock().unwrap_or_else(PoisonError::into_inner);
        let known = holds.contains_key(caller);
        let caller = if known || holds.len() < self.max_callers { caller.clone() } else { Caller::other() };
        let entry = holds.entry(caller).or_default();
        entry.count += 1;
        entry.held += held;
        entry.waited += waited;
    }

    pub(super) fn snapshot(&self) -> Vec<(Caller, Holds)> {
        let holds = self.holds.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<_> = holds.iter().map(|(caller, holds)| (caller.clone(), holds.clone())).collect();
        all.sort_by(|(a, _), (b, _)| a.cmp(b));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_exact_past_the_bound_on_callers() {
        let ledger = Ledger::new(2);
        for name in ["a", "b", "c", "d", "a"] {
            ledger.record(&Caller::parse(name).expect("a name"), Duration::from_secs(1), Duration::ZERO);
        }
        let snapshot = ledger.snapshot();
        let names: Vec<_> = snapshot.iter().map(|(caller, _)| caller.as_str()).collect();
        assert_eq!(names, ["a", "b", "other"]);
        let held: Duration = snapshot.iter().map(|(_, holds)| holds.held).sum();
        assert_eq!(held, Duration::from_secs(5));
    }
}
