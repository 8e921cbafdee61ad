//! Instants and lengths of time.

use std::time::SystemTime;

use prost_types::{Duration, Timestamp};

/// An instant in RFC 3339, to the millisecond.
pub(in crate::cli) fn instant(at: Timestamp) -> String {
    Timestamp { seconds: at.seconds, nanos: at.nanos / 1_000_000 * 1_000_000 }.to_string()
}

/// An instant in RFC 3339; nothing where there is none.
pub(in crate::cli) fn maybe(at: Option<Timestamp>) -> Option<String> {
    at.map(instant)
}

/// Seconds, for programs.
pub(in crate::cli) fn seconds(length: Duration) -> f64 {
    #[allow(clippy::cast_precision_loss)] // a length of time on the wire is at most some years
    let whole = length.seconds as f64;
    whole + f64::from(length.nanos) / 1e9
}

/// A length of time in its two largest units: `350ms`, `12s`, `5m 3s`, `2h 10m`, `3d 4h`.
pub(in crate::cli) fn span(length: Duration) -> String {
    let seconds = length.seconds.max(0);
    let two = |large: i64, unit: &str, small: i64, below: &str| match small {
        0 => format!("{large}{unit}"),
        small => format!("{large}{unit} {small}{below}"),
    };
    match seconds {
        0 if length.nanos > 0 => format!("{}ms", (length.nanos / 1_000_000).max(1)),
        0..60 => format!("{seconds}s"),
        60..3_600 => two(seconds / 60, "m", seconds % 60, "s"),
        3_600..86_400 => two(seconds / 3_600, "h", seconds % 3_600 / 60, "m"),
        _ => two(seconds / 86_400, "d", seconds % 86_400 / 3_600, "h"),
    }
}

/// A length of time that may be short, in three figures: `40µs`, `1.5ms`, `12.3s`, from a minute on as [`span`] has it.
pub(in crate::cli) fn fine(length: Duration) -> String {
    let seconds = seconds(length).max(0.0);
    let (number, unit) = match seconds {
        0.0 => return "0".to_owned(),
        ..0.001 => (seconds * 1e6, "µs"),
        ..1.0 => (seconds * 1e3, "ms"),
        ..60.0 => (seconds, "s"),
        _ => return span(length),
    };
    let text = match number {
        ..10.0 => format!("{number:.2}"),
        ..100.0 => format!("{number:.1}"),
        _ => format!("{number:.0}"),
    };
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{unit}")
}

/// How far an instant is from now by this machine's clock: `in 5m`, `3s ago`. For people, who know that clocks differ.
pub(in crate::cli) fn from_now(at: Timestamp) -> String {
    let now = Timestamp::from(SystemTime::now());
    let seconds = at.seconds.saturating_sub(now.seconds);
    let length = Duration { seconds: seconds.saturating_abs(), nanos: 0 };
    match seconds {
        0 => "now".to_owned(),
        1.. => format!("in {}", span(length)),
        _ => format!("{} ago", span(length)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_of_time_is_shown_in_its_two_largest_units() {
        let shown = |seconds, nanos| span(Duration { seconds, nanos });
        assert_eq!(shown(0, 0), "0s");
        assert_eq!(shown(0, 350_000_000), "350ms");
        assert_eq!(shown(12, 999), "12s");
        assert_eq!(shown(300, 0), "5m");
        assert_eq!(shown(7_800, 0), "2h 10m");
        assert_eq!(shown(14 * 86_400 + 3_600, 0), "14d 1h");
    }

    #[test]
    fn a_short_length_of_time_is_shown_in_three_figures() {
        let shown = |seconds, nanos| fine(Duration { seconds, nanos });
        assert_eq!(shown(0, 0), "0");
        assert_eq!(shown(0, 40_000), "40µs");
        assert_eq!(shown(0, 1_500_000), "1.5ms");
        assert_eq!(shown(0, 123_400_000), "123ms");
        assert_eq!(shown(1, 0), "1s");
        assert_eq!(shown(12, 340_000_000), "12.3s");
        assert_eq!(shown(100, 0), "1m 40s");
    }

    #[test]
    fn an_instant_is_cut_to_milliseconds() {
        assert_eq!(instant(Timestamp { seconds: 0, nanos: 123_456_789 }), "1970-01-01T00:00:00.123Z");
        assert_eq!(instant(Timestamp { seconds: 60, nanos: 999 }), "1970-01-01T00:01:00Z");
    }

    #[test]
    fn the_distance_to_an_instant_has_a_direction() {
        let at = |seconds| Timestamp { seconds: Timestamp::from(SystemTime::now()).seconds + seconds, nanos: 0 };
        assert!(from_now(at(3_600)).starts_with("in "));
        assert!(from_now(at(-3_600)).ends_with(" ago"));
    }
}
