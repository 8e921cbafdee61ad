//! Whether what buyers were told can have been true: a refusal needs an instant within its call at which too little was free.

use std::{collections::HashMap, time::Instant};

use leasehold::model::StockKey;

/// Units of one key that came or went by a call.
#[derive(Debug, Clone, Copy)]
struct Change {
    at: Instant,
    units: i64,
}

/// A refusal of so many units.
#[derive(Debug, Clone)]
pub(super) struct Refusal {
    pub(super) key: StockKey,
    pub(super) requested: i64,
    pub(super) asked: Instant,
    pub(super) answered: Instant,
}

/// What buyers did to stock, as they know it.
#[derive(Debug, Default)]
pub(super) struct Story {
    changes: HashMap<StockKey, Vec<Change>>,
    refusals: Vec<Refusal>,
}

impl Story {
    /// Units that were there before anybody asked.
    pub(super) fn begins_with(&mut self, key: &StockKey, units: i64, at: Instant) {
        self.change(key, units, at);
    }

    /// Units that a call took. Nobody can say when within the call: from its start on they may have been gone.
    pub(super) fn took(&mut self, key: &StockKey, units: i64, asked: Instant) {
        self.change(key, -units, asked);
    }

    /// Units that came back by a call. Only from its answer on they were free for certain.
    pub(super) fn gave_back(&mut self, key: &StockKey, units: i64, answered: Instant) {
        self.change(key, units, answered);
    }

    /// A call that was told that too little is free.
    pub(super) fn refused(&mut self, refusal: Refusal) {
        self.refusals.push(refusal);
    }

    pub(super) fn refusals(&self) -> usize {
        self.refusals.len()
    }

    fn change(&mut self, key: &StockKey, units: i64, at: Instant) {
        self.changes.entry(key.clone()).or_default().push(Change { at, units });
    }

    /// Refusals that no instant of their calls explains.
    pub(super) fn false_refusals(&mut self) -> Vec<Refusal> {
        for changes in self.changes.values_mut() {
            changes.sort_by_key(|change| change.at);
        }
        self.refusals.iter().filter(|refusal| self.least_free(refusal) >= refusal.requested).cloned().collect()
    }

    /// The fewest units that can have been free at an instant of that call.
    fn least_free(&self, refusal: &Refusal) -> i64 {
        let changes = self.changes.get(&refusal.key).map_or(&[][..], Vec::as_slice);
        let (mut free, mut least) = (0, i64::MAX);
        for change in changes.iter().take_while(|change| change.at <= refusal.answered) {
            if change.at > refusal.asked {
                least = least.min(free);
            }
            free += change.units;
        }
        least.min(free)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn key() -> StockKey {
        StockKey::parse("key", "hat", "main").expect("a key")
    }

    struct Clock(Instant);

    impl Clock {
        fn at(&self, second: u64) -> Instant {
            self.0 + Duration::from_secs(second)
        }
    }

    fn told(story: &mut Story, requested: i64, asked: Instant, answered: Instant) -> bool {
        story.refusals.clear();
        story.refused(Refusal { key: key(), requested, asked, answered });
        story.false_refusals().is_empty()
    }

    #[test]
    fn a_refusal_is_explained_by_too_little_at_one_instant_of_its_call() {
        let clock = Clock(Instant::now());
        let mut story = Story::default();
        story.begins_with(&key(), 3, clock.at(0));
        story.took(&key(), 2, clock.at(10));
        story.gave_back(&key(), 2, clock.at(20));
        assert!(told(&mut story, 4, clock.at(1), clock.at(2)), "there were never four");
        assert!(!told(&mut story, 3, clock.at(1), clock.at(9)), "three were free throughout");
        assert!(told(&mut story, 3, clock.at(1), clock.at(11)), "one was free at the end");
        assert!(!told(&mut story, 1, clock.at(1), clock.at(30)), "one was free throughout");
        assert!(told(&mut story, 2, clock.at(12), clock.at(15)), "one was free throughout");
        assert!(told(&mut story, 2, clock.at(12), clock.at(25)), "one was free at the beginning");
        assert!(!told(&mut story, 3, clock.at(21), clock.at(25)), "they had come back");
    }

    #[test]
    fn a_refusal_about_what_nobody_ever_had_is_true() {
        let clock = Clock(Instant::now());
        assert!(told(&mut Story::default(), 1, clock.at(1), clock.at(2)));
    }
}
