//! How figures are summed up.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

/// Times in microseconds, kept with three digits whatever their size.
#[derive(Debug, Clone)]
pub(super) struct Times(Histogram<u64>);

/// Longest time that is told from longer ones.
const LONGEST: Duration = Duration::from_secs(3_600);

impl Default for Times {
    fn default() -> Self {
        let longest = u64::try_from(LONGEST.as_micros()).unwrap_or(u64::MAX);
        Self(Histogram::new_with_bounds(1, longest, 3).expect("1 µs to 1 h with three digits can be kept"))
    }
}

impl Times {
    pub(super) fn record(&mut self, time: Duration) {
        self.0.saturating_record(u64::try_from(time.as_micros()).unwrap_or(u64::MAX).max(1));
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.0.add(&other.0).expect("both have the same bounds");
    }

    /// Percentiles; nothing where nothing was recorded.
    pub(super) fn latency(&self) -> Option<Latency> {
        let at = |part: f64| seconds(self.0.value_at_quantile(part));
        (!self.0.is_empty()).then(|| Latency {
            count: self.0.len(),
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: seconds(self.0.max()),
        })
    }
}

#[allow(clippy::cast_precision_loss, reason = "microseconds of at most an hour")]
fn seconds(micros: u64) -> f64 {
    micros as f64 / 1e6
}

/// Percentiles, in seconds.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Latency {
    /// Of how many.
    pub count: u64,
    /// Half are below.
    pub p50: f64,
    /// Nine of ten are below.
    pub p90: f64,
    /// 99 of 100 are below.
    pub p99: f64,
    /// 999 of 1,000 are below.
    pub p999: f64,
    /// The longest one.
    pub max: f64,
}

/// The middle one of the values that are there; nothing where none is.
pub(super) fn median(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let mut sorted: Vec<f64> = values.flatten().collect();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(sorted[odd / 2]),
        even => Some(f64::midpoint(sorted[even / 2 - 1], sorted[even / 2])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_several_workers_together_are_those_of_all_their_times() {
        let (mut one, mut other) = (Times::default(), Times::default());
        for millis in 1..=500 {
            one.record(Duration::from_millis(millis));
            other.record(Duration::from_millis(500 + millis));
        }
        one.add(&other);
        let latency = one.latency().expect("recorded");
        assert_eq!(latency.count, 1_000);
        for (told, true_one) in [(latency.p50, 0.5), (latency.p99, 0.99), (latency.max, 1.0)] {
            assert!((told / true_one - 1.0).abs() < 0.002, "{told} {true_one}");
        }
        assert!(Times::default().latency().is_none());
    }

    #[test]
    fn the_median_passes_over_what_is_not_known() {
        assert_eq!(median([Some(3.0), None, Some(1.0), Some(2.0)].into_iter()), Some(2.0));
        assert_eq!(median([Some(4.0), Some(2.0)].into_iter()), Some(3.0));
        assert_eq!(median([None, None].into_iter()), None);
    }
}
