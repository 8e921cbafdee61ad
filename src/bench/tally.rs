//! What became of every job.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

use tokio_util::sync::CancellationToken;

use super::shape::index;

const HELD: u8 = 1;
const ACKED: u8 = 2;

/// What became of every job, by its number.
#[derive(Debug)]
pub(super) struct Tally {
    /// The measurement's own number, in every stamp.
    pub(super) run: u64,
    states: Vec<AtomicU8>,
    stored: AtomicU64,
    acked: AtomicU64,
    refused: AtomicU64,
    twice: AtomicU64,
    strange: AtomicU64,
    /// With so many acked the round is over.
    goal: AtomicU64,
}

impl Tally {
    /// For jobs with numbers below `numbers`.
    pub(super) fn new(numbers: usize) -> Self {
        let mut states = Vec::new();
        states.resize_with(numbers, AtomicU8::default);
        let zero = AtomicU64::default;
        Self {
            run: rand::random(),
            states,
            stored: zero(),
            acked: zero(),
            refused: zero(),
            twice: zero(),
            strange: zero(),
            goal: AtomicU64::new(u64::MAX),
        }
    }

    /// An Enqueue of so many was answered with OK.
    pub(super) fn store(&self, jobs: u64) {
        self.stored.fetch_add(jobs, Relaxed);
    }

    /// A worker has the job. One that somebody has already, or has finished, came twice.
    pub(super) fn deliver(&self, number: u64) {
        match self.states.get(index(number)) {
            Some(state) if state.fetch_or(HELD, Relaxed) != 0 => _ = self.twice.fetch_add(1, Relaxed),
            Some(_) => {}
            None => self.stray(),
        }
    }

    /// A job came that nobody had enqueued, or that should have waited.
    pub(super) fn stray(&self) {
        self.strange.fetch_add(1, Relaxed);
    }

    /// A worker gives the job back: it may come again.
    pub(super) fn release(&self, number: u64) {
        if let Some(state) = self.states.get(index(number)) {
            state.fetch_and(!HELD, Relaxed);
        }
    }

    /// Acks were answered with OK. Reaching the goal cancels `over`.
    pub(super) fn ack(&self, numbers: impl Iterator<Item = u64>, over: &CancellationToken) {
        let mut acked = 0;
        for number in numbers {
            let Some(state) = self.states.get(index(number)) else { continue };
            if state.fetch_or(ACKED, Relaxed) & ACKED != 0 {
                self.twice.fetch_add(1, Relaxed);
            }
            acked += 1;
        }
        if self.acked.fetch_add(acked, Relaxed) + acked >= self.goal.load(Relaxed) {
            over.cancel();
        }
    }

    /// So many acks were answered with anything but OK.
    pub(super) fn refuse(&self, acks: u64) {
        self.refused.fetch_add(acks, Relaxed);
    }

    /// The round is over with so many more acked.
    pub(super) fn aim(&self, jobs: u64) {
        self.goal.store(self.acked() + jobs, Relaxed);
    }

    /// Jobs that were stored and are neither acked nor, as far as anybody here did it, removed.
    pub(super) fn open(&self) -> u64 {
        self.stored.load(Relaxed).saturating_sub(self.acked())
    }

    pub(super) fn acked(&self) -> u64 {
        self.acked.load(Relaxed)
    }

    /// Acks that were answered with anything but OK.
    pub(super) fn refused(&self) -> u64 {
        self.refused.load(Relaxed)
    }

    /// Deliveries of jobs that somebody had already, and acks of acked ones.
    pub(super) fn twice(&self) -> u64 {
        self.twice.load(Relaxed)
    }

    /// Deliveries of jobs that nobody had enqueued, or that should have waited.
    pub(super) fn strange(&self) -> u64 {
        self.strange.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_comes_again_while_it_is_held_or_after_its_ack_came_twice() {
        let (tally, over) = (Tally::new(3), CancellationToken::new());
        tally.store(3);
        for number in [0, 1, 2] {
            tally.deliver(number);
        }
        tally.ack([0, 1].into_iter(), &over);
        assert_eq!((tally.twice(), tally.open()), (0, 1));
        tally.deliver(2);
        tally.deliver(0);
        assert_eq!(tally.twice(), 2);
        tally.ack([0].into_iter(), &over);
        assert_eq!(tally.twice(), 3);
        assert!(!over.is_cancelled(), "nobody aimed at anything");
    }

    #[test]
    fn a_job_that_was_given_back_may_come_again() {
        let tally = Tally::new(1);
        tally.deliver(0);
        tally.release(0);
        tally.deliver(0);
        assert_eq!(tally.twice(), 0);
    }

    #[test]
    fn a_number_that_was_never_given_is_strange() {
        let tally = Tally::new(1);
        tally.deliver(super::super::stamp::BACKDROP);
        tally.deliver(1);
        assert_eq!(tally.strange(), 2);
    }

    #[test]
    fn a_round_is_over_with_its_last_ack() {
        let (tally, over) = (Tally::new(4), CancellationToken::new());
        tally.ack([0, 1].into_iter(), &over);
        tally.aim(2);
        tally.ack([2].into_iter(), &over);
        assert!(!over.is_cancelled());
        tally.ack([3].into_iter(), &over);
        assert!(over.is_cancelled());
    }
}
