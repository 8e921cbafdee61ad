//! Instants of the database's clock.

use std::time::Duration;

/// Microseconds since 1970-01-01T00:00:00Z by the database's clock. The broker's own clock never makes one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Before every instant that a database here can hold: where a walk begins that remembers nothing.
    pub const BEGINNING: Self = Self(0);

    /// This instant moved forward, stopping at the last one that fits.
    #[must_use]
    pub fn plus(self, by: Duration) -> Self {
        Self(self.0.saturating_add(micros(by)))
    }

    /// This instant moved back, stopping at [`Timestamp::BEGINNING`].
    #[must_use]
    pub fn minus(self, by: Duration) -> Self {
        Self(self.0.saturating_sub(micros(by)).max(Self::BEGINNING.0))
    }

    /// From `earlier` to this instant; zero where `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

/// Whole microseconds, the resolution of every engine; what does not fit becomes the largest that does.
pub fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moving_an_instant_never_wraps() {
        assert_eq!(Timestamp(5).minus(Duration::from_secs(1)), Timestamp::BEGINNING);
        assert_eq!(Timestamp(i64::MAX - 1).plus(Duration::MAX), Timestamp(i64::MAX));
        assert_eq!(Timestamp(3).since(Timestamp(9)), Duration::ZERO);
        assert_eq!(Timestamp(9).since(Timestamp(3)), Duration::from_micros(6));
    }
}
