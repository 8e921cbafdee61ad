//! How long things took: count, sum, longest, and how they spread, in a fixed amount of memory.

use std::time::Duration;

/// Buckets of a spread. The first one ends at 16 µs; each further one ends at 1.68 (two to the three quarters) times the end of
/// the one before, the last one at 97 s. So a quantile is off by a quarter at most, where things are spread evenly by far less.
const BUCKETS: usize = 32;
/// Nanoseconds at which the first bucket ends, as a power of two.
const FIRST: f32 = 14.0;
/// Buckets in each doubling.
const PER_DOUBLING: f32 = 4.0 / 3.0;

/// Lengths of time, added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spread {
    pub(super) count: u64,
    /// Nanoseconds.
    pub(super) sum: u64,
    /// Nanoseconds.
    pub(super) max: u64,
    buckets: [u32; BUCKETS],
}

impl Spread {
    /// Of nothing.
    pub const EMPTY: Self = Self { count: 0, sum: 0, max: 0, buckets: [0; BUCKETS] };

    /// Adds one length.
    pub fn add(&mut self, length: Duration) {
        let nanos = nanos(length);
        self.count += 1;
        self.sum = self.sum.saturating_add(nanos);
        self.max = self.max.max(nanos);
        let bucket = bucket(nanos);
        if self.buckets[bucket] == u32::MAX {
            self.halve();
        }
        self.buckets[bucket] += 1;
    }

    /// Adds all of another one.
    pub(super) fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.sum = self.sum.saturating_add(other.sum);
        self.max = self.max.max(other.max);
        for at in 0..BUCKETS {
            while self.buckets[at].checked_add(other.buckets[at]).is_none() {
                self.halve();
            }
            self.buckets[at] += other.buckets[at];
        }
    }

    /// Quantiles need the buckets' proportions alone.
    fn halve(&mut self) {
        self.buckets.iter_mut().for_each(|count| *count /= 2);
    }

    /// The longest of all.
    pub fn longest(&self) -> Duration {
        Duration::from_nanos(self.max)
    }

    /// The length that `part` of all (0 to 1) do not exceed, about.
    pub(super) fn quantile(&self, part: f64) -> Duration {
        let all: u64 = self.buckets.iter().map(|&count| u64::from(count)).sum();
        #[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
        let mut rank = (part * all as f64).max(1.0);
        for (at, &count) in self.buckets.iter().enumerate() {
            let count = f64::from(count);
            if rank <= count {
                return Duration::from_nanos(within(at, rank / count).min(self.max));
            }
            rank -= count;
        }
        Duration::from_nanos(self.max)
    }
}

/// A length in nanoseconds.
pub(super) fn nanos(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}

#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "within BUCKETS"
)]
fn bucket(nanos: u64) -> usize {
    let place = ((nanos as f32).log2() - FIRST) * PER_DOUBLING + 1.0;
    (place.max(0.0) as usize).min(BUCKETS - 1)
}

/// Nanoseconds `part` of the way through a bucket.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "below 2^37")]
fn within(bucket: usize, part: f64) -> u64 {
    if bucket == 0 {
        return (part * f64::from(FIRST).exp2()) as u64;
    }
    let doublings = ((bucket - 1) as f64 + part) / f64::from(PER_DOUBLING);
    (f64::from(FIRST) + doublings).exp2() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lengths: impl IntoIterator<Item = Duration>) -> Spread {
        let mut spread = Spread::EMPTY;
        lengths.into_iter().for_each(|length| spread.add(length));
        spread
    }

    fn near(is: Duration, should: Duration) {
        let ratio = is.as_secs_f64() / should.as_secs_f64();
        assert!((0.75..1.34).contains(&ratio), "{is:?} for {should:?}");
    }

    #[test]
    fn quantiles_are_near_over_the_whole_range() {
        for scale in [20_u64, 300, 5_000, 80_000] {
            let spread = of((1..=1_000).map(|n| Duration::from_micros(n * scale)));
            near(spread.quantile(0.5), Duration::from_micros(500 * scale));
            near(spread.quantile(0.99), Duration::from_micros(990 * scale));
            assert_eq!(spread.quantile(1.0), Duration::from_micros(1_000 * scale));
        }
        let same = of(std::iter::repeat_n(Duration::from_millis(3), 100));
        near(same.quantile(0.5), Duration::from_millis(3));
    }

    #[test]
    fn nothing_and_the_longest_of_all_have_a_place() {
        assert_eq!(Spread::EMPTY.quantile(0.99), Duration::ZERO);
        let spread = of([Duration::ZERO, Duration::MAX]);
        assert_eq!((spread.count, spread.max), (2, u64::MAX));
        assert!(spread.quantile(0.5) < Duration::from_micros(17));
        assert!(spread.quantile(0.99) > Duration::from_secs(50));
    }

    #[test]
    fn spreads_add_up() {
        let mut both = of([Duration::from_millis(1), Duration::from_millis(2)]);
        both.merge(&of([Duration::from_secs(1)]));
        assert_eq!(both, of([Duration::from_secs(1), Duration::from_millis(2), Duration::from_millis(1)]));
        assert_eq!(Duration::from_nanos(both.sum), Duration::from_millis(1_003));
    }

    #[test]
    fn a_full_bucket_keeps_the_proportions() {
        let mut spread = of([Duration::from_millis(1), Duration::from_secs(1)]);
        spread.buckets.iter_mut().for_each(|count| *count *= u32::MAX);
        let full = spread;
        spread.merge(&full);
        spread.add(Duration::from_millis(1));
        near(spread.quantile(0.25), Duration::from_millis(1));
        near(spread.quantile(0.75), Duration::from_secs(1));
    }
}
