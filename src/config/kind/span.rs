//! Lengths of time.

use std::time::Duration;

use super::{Description, Given, Kind};

/// Longest first, so that writing finds the shortest text. In milliseconds.
const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// A length of time within bounds: `50ms`, `10s`, `5m`, `12h`, `14d`. A number without a unit is refused, since half of its
/// readers would guess the wrong one.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    default: u64,
    min: u64,
    max: u64,
}

impl Span {
    /// `default` milliseconds, from `min` to `max`.
    pub const fn millis(default: u64, min: u64, max: u64) -> Self {
        Self { default, min, max }
    }

    /// `default` seconds, from `min` to `max`.
    pub const fn seconds(default: u64, min: u64, max: u64) -> Self {
        Self::millis(default * 1_000, min * 1_000, max * 1_000)
    }

    /// `default` hours, from `min` to `max`.
    pub const fn hours(default: u64, min: u64, max: u64) -> Self {
        Self::seconds(default * 3_600, min * 3_600, max * 3_600)
    }
}

impl Kind for Span {
    type Value = Duration;

    fn parse(&self, given: &Given) -> Result<Duration, String> {
        let text = given.single()?;
        read(text).filter(|millis| (self.min..=self.max).contains(millis)).map(Duration::from_millis).ok_or_else(|| {
            format!(
                "must be a length of time from {} to {} with its unit (ms, s, m, h, d), and is '{text}'",
                write(self.min),
                write(self.max)
            )
        })
    }

    fn default(&self) -> Duration {
        Duration::from_millis(self.default)
    }

    fn description(&self) -> Description {
        Description {
            placeholder: "TIME",
            default: write(self.default),
            range: format!("{} to {}", write(self.min), write(self.max)),
            secret: false,
            switch: false,
        }
    }
}

fn read(text: &str) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let factor = UNITS.iter().find(|(name, _)| *name == unit.trim_start())?.1;
    number.parse::<u64>().ok()?.checked_mul(factor)
}

fn write(millis: u64) -> String {
    match UNITS.iter().find(|(_, factor)| millis >= *factor && millis.is_multiple_of(*factor)) {
        Some((unit, factor)) => format!("{}{unit}", millis / factor),
        None => format!("{millis}ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_read_as_they_are_written() {
        for millis in [0, 1, 50, 1_500, 10_000, 300_000, 43_200_000, 86_400_000 * 14] {
            assert_eq!(read(&write(millis)), Some(millis), "{}", write(millis));
        }
        assert_eq!(write(1_209_600_000), "14d");
        assert_eq!(write(90_000), "90s");
    }

    #[test]
    fn a_length_of_time_needs_its_unit() {
        for bad in ["", "10", "s", "1.5s", "-1s", "10 sec", "1h30m", "99999999999999999999d", "18446744073709551615d"] {
            assert_eq!(read(bad), None, "{bad:?}");
        }
    }
}
