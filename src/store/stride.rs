//! How fast upkeep, purges and redrives go: in steps of so many rows as take a short time, with a rest after each one.
//!
//! A step holds a core of the database and its log, so calls beside it wait for its end; a rest lets them pass. Work that
//! does not end goes faster with time: it must not grow for ever for the sake of others.

use std::time::{Duration, Instant};

use super::Store;

/// Rows of a step however long it takes: what a step costs in any case, such as its commit, must not eat the rest.
const FEWEST: usize = 100;
/// No rest is longer, whatever made the step before it long.
const LONGEST_REST: Duration = Duration::from_secs(1);
/// Work that goes on for so many milliseconds without an end may take twice its share, after twice as long four times, and so on.
const PATIENCE: u32 = 30_000;
/// A step of such work may take twice as long as well, and so on, up to so many doublings: where a commit alone takes longer than a
/// step should, steps would stay at the fewest rows for ever.
const LONGER: u32 = 5;

/// What paced work may take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace {
    /// What one step should take.
    pub step: Duration,
    /// Part of the time that steps may take, above 0; at 1 there is no rest.
    pub share: f64,
}

impl Default for Pace {
    fn default() -> Self {
        Self { step: Duration::from_millis(2), share: 0.2 }
    }
}

/// One piece of work under way: how many rows its next step takes, and how long it rests before.
#[derive(Debug, Clone)]
pub struct Stride {
    pace: Pace,
    at_most: usize,
    rows: usize,
    patience_ms: u32,
    /// Since when each step has had more to do after it.
    busy_since: Option<Instant>,
}

impl Stride {
    /// Of steps of at most `at_most` rows.
    pub fn new(pace: Pace, at_most: usize) -> Self {
        Self { pace, at_most, rows: FEWEST.min(at_most), patience_ms: PATIENCE, busy_since: None }
    }

    /// The same of work that somebody waits for: after so long it rests no more.
    #[must_use]
    pub fn at_latest_after(self, patience: Duration) -> Self {
        let patience_ms = u32::try_from(patience.as_millis()).unwrap_or(u32::MAX);
        Self { patience_ms, pace: Pace { share: self.pace.share.max(0.5), ..self.pace }, ..self }
    }

    /// Rows of the next step at most.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// A step from `began` to `ended` did `rows` rows. How long to rest where there is `more` to do; without more to do, zero.
    pub fn stepped(&mut self, rows: usize, began: Instant, ended: Instant, more: bool) -> Duration {
        let took = ended.saturating_duration_since(began);
        let since = *self.busy_since.get_or_insert(began);
        let busy = ended.saturating_duration_since(since);
        self.adapt(rows, took, busy, more);
        if !more {
            self.busy_since = None;
            return Duration::ZERO;
        }
        let share = self.share_after(busy);
        took.mul_f64(1.0 / share - 1.0).min(LONGEST_REST)
    }

    /// Towards as many rows as fit into a step, by half or double at most: one slow commit says little.
    fn adapt(&mut self, rows: usize, took: Duration, busy: Duration, more: bool) {
        if rows == 0 {
            return;
        }
        let step = self.pace.step.saturating_mul(1 << doublings(busy, PATIENCE).min(LONGER));
        let fitting = as_much(rows, step.as_secs_f64() / took.as_secs_f64().max(1e-6));
        let largest = if more { self.rows.saturating_mul(2) } else { self.rows };
        let fewest = FEWEST.min(self.at_most);
        self.rows = fitting.clamp(self.rows / 2, largest).clamp(fewest, self.at_most.max(fewest));
    }

    fn share_after(&self, busy: Duration) -> f64 {
        let doublings = doublings(busy, self.patience_ms).min(30);
        (self.pace.share * f64::from(1_u32 << doublings)).clamp(0.001, 1.0)
    }
}

/// How often work that goes on for so long has run out of patience.
fn doublings(busy: Duration, patience_ms: u32) -> u32 {
    u32::try_from(busy.as_millis() / u128::from(patience_ms.max(1))).unwrap_or(u32::MAX)
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a step has some thousands of rows, and a cast of what is too large gives the largest number"
)]
fn as_much(rows: usize, times: f64) -> usize {
    (rows as f64 * times).round() as usize
}

impl Store {
    /// How work in steps of at most `at_most` rows that an operator asked for is to go.
    pub fn stride(&self, at_most: usize) -> Stride {
        Stride::new(self.inner.options.pace, at_most)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PACE: Pace = Pace { step: Duration::from_millis(10), share: 0.2 };

    /// Takes steps that each do what they may, at so many rows a millisecond; the rests and the rows of the last one.
    fn work(stride: &mut Stride, at: &mut Instant, steps: usize, rows_per_ms: usize) -> (Duration, usize) {
        let mut last = (Duration::ZERO, 0);
        for _ in 0..steps {
            let rows = stride.rows();
            let ended = *at + Duration::from_micros((rows * 1_000 / rows_per_ms) as u64);
            last = (stride.stepped(rows, *at, ended, true), rows);
            *at = ended + last.0;
        }
        last
    }

    #[test]
    fn where_a_commit_alone_takes_longer_than_a_step_should_long_work_takes_longer_steps() {
        let (mut stride, mut at) = (Stride::new(PACE, 100_000), Instant::now());
        let began = at;
        let mut after = Vec::new();
        for seconds in [20, 130] {
            while at.duration_since(began) < Duration::from_secs(seconds) {
                // A commit of 20 ms, and then 100 rows a millisecond.
                let took = Duration::from_millis(20) + Duration::from_micros(10 * stride.rows() as u64);
                let rows = stride.rows();
                at += took + stride.stepped(rows, at, at + took, true);
            }
            after.push(stride.rows());
        }
        assert_eq!(after[0], FEWEST, "at first nothing beside it is to notice it");
        assert!(after[1] > 10 * FEWEST, "{after:?}");
    }

    #[test]
    fn a_step_comes_to_take_the_time_that_it_should() {
        let (mut stride, mut at) = (Stride::new(PACE, 1_000), Instant::now());
        assert_eq!(stride.rows(), 100);
        assert_eq!(work(&mut stride, &mut at, 10, 50), (Duration::from_millis(40), 500));
        assert_eq!(work(&mut stride, &mut at, 10, 20).1, 200, "a database that became slower");
        assert_eq!(work(&mut stride, &mut at, 10, 1_000).1, 1_000, "no more than a statement may touch");
        assert_eq!(work(&mut stride, &mut at, 10, 1).1, 100, "and no fewer than are worth a commit");
    }

    #[test]
    fn fewer_rows_than_are_worth_a_commit_are_taken_where_no_more_are_allowed() {
        let (mut stride, mut at) = (Stride::new(PACE, 7), Instant::now());
        assert_eq!(work(&mut stride, &mut at, 10, 1).1, 7);
    }

    #[test]
    fn a_rest_is_in_proportion_to_its_step_and_bounded() {
        let (mut stride, began) = (Stride::new(PACE, 1_000), Instant::now());
        let after = |ms| began + Duration::from_millis(ms);
        assert_eq!(stride.stepped(100, began, after(10), true), Duration::from_millis(40));
        assert_eq!(stride.stepped(100, began, after(9_000), true), LONGEST_REST);
        assert_eq!(stride.stepped(3, began, after(10), false), Duration::ZERO);
        let mut whole = Stride::new(Pace { share: 1.0, ..PACE }, 1_000);
        assert_eq!(whole.stepped(100, began, after(10), true), Duration::ZERO);
    }

    #[test]
    fn work_that_somebody_waits_for_soon_rests_no_more() {
        let second = Duration::from_secs(1);
        let (mut stride, began) = (Stride::new(PACE, 1_000).at_latest_after(second), Instant::now());
        let ms = Duration::from_millis;
        assert_eq!(stride.stepped(100, began, began + ms(10), true), ms(10));
        assert_eq!(stride.stepped(100, began + ms(1_000), began + ms(1_010), true), Duration::ZERO);
    }

    #[test]
    fn work_without_an_end_goes_faster_until_it_rests_no_more() {
        let (mut stride, began) = (Stride::new(PACE, 1_000), Instant::now());
        let ms = Duration::from_millis;
        let mut rest_at = |s: u64| stride.stepped(100, began + ms(s * 1_000), began + ms(s * 1_000 + 10), true);
        let of_share = |share: f64| ms(10).mul_f64(1.0 / share - 1.0);
        let expected = [0.2, 0.2, 0.4, 0.8, 1.0, 1.0].map(of_share);
        assert_eq!([0, 29, 30, 60, 90, 3_600].map(&mut rest_at), expected);
    }

    #[test]
    fn work_that_came_to_its_end_begins_anew_at_its_own_share() {
        let (mut stride, began) = (Stride::new(PACE, 1_000), Instant::now());
        let at = |s| began + Duration::from_secs(s);
        let step = Duration::from_millis(10);
        stride.stepped(100, began, began + step, true);
        assert!(stride.stepped(100, at(45), at(45) + step, true) < Duration::from_millis(40));
        stride.stepped(5, at(50), at(50) + step, false);
        assert_eq!(stride.stepped(100, at(55), at(55) + step, true), Duration::from_millis(40));
    }

    proptest! {
        #[test]
        fn rows_stay_within_bounds_and_rests_end(
            at_most in 1..20_000_usize,
            share in 0.001..=1.0_f64,
            steps in prop::collection::vec((0..20_000_usize, 0..10_000_000_u64, any::<bool>()), 1..50),
        ) {
            let mut stride = Stride::new(Pace { share, ..PACE }, at_most);
            let mut at = Instant::now();
            for (rows, micros, more) in steps {
                prop_assert!((1..=at_most).contains(&stride.rows()));
                let ended = at + Duration::from_micros(micros);
                let rest = stride.stepped(rows.min(stride.rows()), at, ended, more);
                prop_assert!(rest <= LONGEST_REST);
                at = ended + rest;
            }
        }
    }
}
