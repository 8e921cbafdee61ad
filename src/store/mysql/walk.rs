//! Where the next walk over an index may begin.

use std::time::Duration;

use crate::model::Timestamp;

const INSTANT: Duration = Duration::from_micros(1);

/// A walk over an index that rows leave at its left end: where the next one may begin.
pub(super) struct Walk {
    floor: Timestamp,
    limit: usize,
    seen: Vec<Timestamp>,
    taken: Vec<Timestamp>,
}

impl Walk {
    pub(super) fn new(floor: Timestamp, limit: usize) -> Self {
        Self { floor, limit, seen: Vec::new(), taken: Vec::new() }
    }

    /// A row, in the order of the walk.
    pub(super) fn saw(&mut self, at: Timestamp) {
        self.seen.push(at);
    }

    /// One of those was taken away.
    pub(super) fn took(&mut self, at: Timestamp) {
        self.taken.push(at);
    }

    /// Before the first row that was seen and is left; before the last of a full walk, since others may share its instant;
    /// and never past `latest`, since what commits later than it was stored is not seen.
    pub(super) fn next(mut self, latest: Timestamp) -> Timestamp {
        let full = self.seen.len() >= self.limit;
        let last = self.seen.last().copied().filter(|_| full);
        self.taken.sort_unstable();
        let mut taken = self.taken.into_iter().peekable();
        let left = self.seen.into_iter().find(|at| taken.next_if(|taken| taken == at).is_none());
        let bounds = [left, last].into_iter().flatten().map(|at| at.minus(INSTANT));
        bounds.fold(latest, Timestamp::min).max(self.floor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(limit: usize, seen: &[i64], taken: &[i64]) -> i64 {
        let mut walk = Walk::new(Timestamp(5), limit);
        for at in seen {
            walk.saw(Timestamp(*at));
        }
        for at in taken {
            walk.took(Timestamp(*at));
        }
        walk.next(Timestamp(100)).0
    }

    #[test]
    fn the_next_walk_begins_before_what_was_left() {
        assert_eq!(next(9, &[], &[]), 100);
        assert_eq!(next(9, &[10, 20, 30], &[10, 20, 30]), 100, "all was taken, and there was no more");
        assert_eq!(next(9, &[10, 20, 30], &[30, 10]), 19, "somebody held one");
        assert_eq!(next(9, &[10, 20, 20, 30], &[10, 20, 30]), 19, "one of two of an instant");
        assert_eq!(next(3, &[10, 20, 30], &[10, 20, 30]), 29, "a full walk");
        assert_eq!(next(9, &[3], &[]), 5, "it only moves on");
    }
}
