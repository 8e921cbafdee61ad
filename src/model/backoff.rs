//! Delay before a failed job is tried again.

use std::time::Duration;

/// Exponential back-off with full jitter: the delay is drawn evenly from zero to a ceiling that doubles with each attempt
/// and stops at a cap. (Full jitter spreads retries best: <https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/>.)
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// Ceiling after the first attempt.
    pub base: Duration,
    /// No ceiling is higher.
    pub cap: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { base: Duration::from_secs(1), cap: Duration::from_secs(600) }
    }
}

impl Backoff {
    /// Longest delay after attempt number `attempt` (1 is the first). Any number is fine: the cap comes before the overflow.
    pub fn ceiling(self, attempt: u32) -> Duration {
        let doublings = attempt.saturating_sub(1).min(31);
        self.base.saturating_mul(1 << doublings).min(self.cap)
    }

    /// The delay for a `fraction` drawn evenly from 0 to 1.
    pub fn delay(self, attempt: u32, fraction: f64) -> Duration {
        self.ceiling(attempt).mul_f64(fraction.clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ceilings_double_up_to_the_cap() {
        let backoff = Backoff::default();
        assert_eq!(backoff.ceiling(1), Duration::from_secs(1));
        assert_eq!(backoff.ceiling(4), Duration::from_secs(8));
        assert_eq!(backoff.ceiling(10), Duration::from_secs(512));
        assert_eq!(backoff.ceiling(11), Duration::from_secs(600));
    }

    #[test]
    fn backoff_of_huge_attempt_numbers_stays_within_zero_and_cap() {
        let backoff = Backoff::default();
        for attempt in [0, 31, 32, 33, 63, 64, 65, 1_715, 1_000_000, u32::MAX] {
            for fraction in [0.0, 0.3, 1.0, -1.0, 7.0] {
                let delay = backoff.delay(attempt, fraction);
                assert!(delay <= backoff.cap, "attempt {attempt}: {delay:?}");
            }
        }
        let widest = Backoff { base: Duration::from_secs(600), cap: Duration::MAX };
        assert!(widest.ceiling(u32::MAX) > Duration::from_secs(600));
    }
}
