//! Stock as the promises have it, in numbers alone.

use leasehold::model::{ReservationId, ReservationState};

use super::acts::KEYS;

/// What is known of a reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Held,
    /// Its time is over: its units are free, and it is expired as soon as somebody says so.
    Due,
    Ended(ReservationState),
}

/// A reservation that was made.
#[derive(Debug, Clone)]
pub(super) struct Made {
    pub(super) id: ReservationId,
    pub(super) reference: String,
    pub(super) lines: Vec<(usize, u32)>,
    pub(super) brief: bool,
    pub(super) jobs: bool,
    pub(super) fate: Fate,
}

/// An adjustment that was made.
#[derive(Debug, Clone)]
pub(super) struct Adjusting {
    pub(super) reference: String,
    pub(super) deltas: Vec<(usize, i64)>,
}

/// All that must be so.
#[derive(Debug, Default)]
pub(super) struct Model {
    pub(super) on_hand: [i64; KEYS],
    pub(super) made: Vec<Made>,
    pub(super) adjusted: Vec<Adjusting>,
    /// Jobs that were stored.
    pub(super) jobs: usize,
}

impl Model {
    /// Units of a key that reservations hold whose time is not over.
    pub(super) fn held(&self, key: usize) -> i64 {
        let holding = self.made.iter().filter(|one| one.fate == Fate::Held);
        holding.flat_map(|one| &one.lines).filter(|line| line.0 == key).map(|line| i64::from(line.1)).sum()
    }

    pub(super) fn free(&self, key: usize) -> i64 {
        self.on_hand[key] - self.held(key)
    }

    /// Places of lines of which too little is free, with what is.
    pub(super) fn short(&self, lines: &[(usize, i64)]) -> Vec<(usize, i64)> {
        let free = lines.iter().map(|&(key, units)| (self.free(key), units));
        free.enumerate().filter(|(_, (free, units))| free < units).map(|(place, (free, _))| (place, free)).collect()
    }

    pub(super) fn adjust(&mut self, made: Adjusting) {
        for &(key, delta) in &made.deltas {
            self.on_hand[key] += delta;
        }
        self.adjusted.push(made);
    }

    /// A reservation came to its end.
    pub(super) fn end(&mut self, place: usize, state: ReservationState) {
        let one = &mut self.made[place];
        assert!(matches!(one.fate, Fate::Held | Fate::Due), "a second end: {one:?} is {state:?}");
        if state == ReservationState::Expired {
            assert_eq!(one.fate, Fate::Due, "expired before its time: {one:?}");
        }
        one.fate = Fate::Ended(state);
        if state == ReservationState::Committed {
            for (key, quantity) in one.lines.clone() {
                self.on_hand[key] -= i64::from(quantity);
            }
        }
        self.jobs += usize::from(self.made[place].jobs && state != ReservationState::Released);
    }
}
