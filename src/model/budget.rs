//! What a caller may have of the lanes.

use std::{fmt, str::FromStr, time::Duration};

/// A caller's budget: each replica keeps it for its own lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Lanes that it may hold at once, settling included; no cap where `None`. Never 0.
    pub max_lanes: Option<u32>,
    /// A request that the budget keeps waiting for longer is refused.
    pub max_wait: Duration,
    /// Part of all lane time that it gets while others wait; no cap where `None`.
    pub share: Option<Share>,
}

impl Budget {
    /// Shortest `max_wait`.
    pub const MIN_WAIT: Duration = Duration::from_millis(1);
    /// Longest `max_wait`.
    pub const MAX_WAIT: Duration = Duration::from_secs(60);
    /// `max_wait` where nobody says one.
    pub const DEFAULT_WAIT: Duration = Duration::from_secs(1);
    /// Largest `max_lanes`; more than any replica has.
    pub const MAX_LANES: u32 = 10_000;
}

impl Default for Budget {
    /// No cap at all.
    fn default() -> Self {
        Self { max_lanes: None, max_wait: Self::DEFAULT_WAIT, share: None }
    }
}

/// A part of a whole, above 0 to 1, in steps of a millionth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share(u32);

impl Share {
    /// All of it.
    pub const WHOLE: Self = Self(1_000_000);

    /// So many millionths; `None` for 0 and for more than the whole.
    pub fn millionths(count: u32) -> Option<Self> {
        (1..=Self::WHOLE.0).contains(&count).then_some(Self(count))
    }

    /// The nearest part to `part`; `None` where that is none at all or more than the whole.
    pub fn nearest(part: f64) -> Option<Self> {
        let count = (part * f64::from(Self::WHOLE.0)).round();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked before")]
        let within = (1.0..=f64::from(Self::WHOLE.0)).contains(&count).then_some(count as u32);
        within.map(Self)
    }

    /// In millionths.
    pub fn in_millionths(self) -> u32 {
        self.0
    }

    /// As a part of 1.
    pub fn part(self) -> f64 {
        f64::from(self.0) / f64::from(Self::WHOLE.0)
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.part())
    }
}

impl FromStr for Share {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        text.parse().ok().and_then(Self::nearest).ok_or(())
    }
}

/// Who decided a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BudgetSource {
    /// This replica's configuration.
    Configuration,
    /// The database, which goes before it.
    Database,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_above_nothing_and_at_most_everything() {
        for bad in ["0", "-0.1", "1.01", "NaN", "inf", "", "0.0000001", "half", "10%"] {
            assert!(bad.parse::<Share>().is_err(), "{bad}");
        }
        for good in ["1", "0.25", "0.000001", "1e-3"] {
            let share: Share = good.parse().expect(good);
            assert_eq!(share.to_string().parse(), Ok(share));
        }
        assert_eq!(Share::nearest(0.25), Share::millionths(250_000));
    }
}
