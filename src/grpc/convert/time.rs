//! Durations and instants.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::model::{Budget, Invalid, Limits, Start, Timestamp, time::micros};

/// Bounds of `google.protobuf.Duration`, about 10,000 years.
const DURATION_SECONDS: i64 = 315_576_000_000;
/// Bounds of `google.protobuf.Timestamp`: the years 1 to 9999.
const TIMESTAMP_SECONDS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;
const NANOS: i32 = 1_000_000_000;
/// How far the broker's clock, which only guards the bound on due times, may be behind the sender's.
const SLACK: Duration = Duration::from_hours(24);

/// A delay: zero to the bound.
pub(super) fn delay(field: &str, sent: &prost_types::Duration, limits: &Limits) -> Result<Duration, Invalid> {
    within(field, sent, Duration::ZERO, limits.delay)
}

/// The length of a lease.
pub(super) fn lease_duration(field: &str, sent: &prost_types::Duration, limits: &Limits) -> Result<Duration, Invalid> {
    within(field, sent, limits.lease_min, limits.lease_max)
}

/// How long a budget may keep a request waiting.
pub(super) fn max_wait(field: &str, sent: &prost_types::Duration) -> Result<Duration, Invalid> {
    within(field, sent, Budget::MIN_WAIT, Budget::MAX_WAIT)
}

/// A length of time from `min` to `max`.
pub(super) fn within(
    field: &str,
    sent: &prost_types::Duration,
    min: Duration,
    max: Duration,
) -> Result<Duration, Invalid> {
    let malformed = sent.nanos.unsigned_abs() >= NANOS.unsigned_abs()
        || sent.seconds.checked_abs().is_none_or(|seconds| seconds > DURATION_SECONDS)
        || (sent.seconds > 0 && sent.nanos < 0)
        || (sent.seconds < 0 && sent.nanos > 0);
    if malformed {
        return Err(Invalid::new(
            field,
            "must be a well-formed Duration: nanos below a second, of the sign of seconds",
        ));
    }
    match (u64::try_from(sent.seconds), u32::try_from(sent.nanos)) {
        (Ok(seconds), Ok(nanos)) if (min..=max).contains(&Duration::new(seconds, nanos)) => {
            Ok(Duration::new(seconds, nanos))
        }
        _ => Err(Invalid::new(field, format!("must be {} s to {} s", min.as_secs_f64(), max.as_secs_f64()))),
    }
}

fn well_formed(field: &str, sent: &prost_types::Timestamp) -> Result<(), Invalid> {
    if TIMESTAMP_SECONDS.contains(&sent.seconds) && (0..NANOS).contains(&sent.nanos) {
        Ok(())
    } else {
        Err(Invalid::new(field, "must be a well-formed Timestamp: year 1 to 9999, nanos 0 to 999999999"))
    }
}

/// A due time: any past instant means at once, and the bound lies ahead of `now`, which is the broker's clock. That clock
/// decides nothing else, so a day of slack lets it be wrong without refusing what the database would find in bounds.
pub(super) fn due(
    field: &str,
    sent: &prost_types::Timestamp,
    limits: &Limits,
    now: SystemTime,
) -> Result<Start, Invalid> {
    well_formed(field, sent)?;
    // Rounded up, so that no job is ready before the instant asked for; the bounds above rule an overflow out.
    let due = Timestamp(sent.seconds * 1_000_000 + i64::from(sent.nanos.unsigned_abs().div_ceil(1_000).cast_signed()));
    let last = micros(now.duration_since(UNIX_EPOCH).unwrap_or_default() + limits.delay + SLACK);
    if due.0 > last {
        return Err(Invalid::new(field, format!("must be at most {} s ahead", limits.delay.as_secs())));
    }
    Ok(if due <= Timestamp::BEGINNING { Start::Now } else { Start::At(due) })
}

/// An instant; what lies before 1970 is as good as its beginning.
pub(super) fn instant(field: &str, sent: &prost_types::Timestamp) -> Result<Timestamp, Invalid> {
    well_formed(field, sent)?;
    let micros = sent.seconds * 1_000_000 + i64::from(sent.nanos / 1_000);
    Ok(Timestamp(micros).max(Timestamp::BEGINNING))
}

/// The same, rounded up to the next microsecond: a bound that lies between two belongs to the later one.
pub(super) fn instant_after(field: &str, sent: &prost_types::Timestamp) -> Result<Timestamp, Invalid> {
    let whole = instant(field, sent)?;
    let part = i64::from(sent.nanos % 1_000 != 0 && whole > Timestamp::BEGINNING);
    Ok(Timestamp(whole.0 + part))
}

/// As the wire has it.
pub(super) fn timestamp(instant: Timestamp) -> prost_types::Timestamp {
    let nanos = i32::try_from(instant.0.rem_euclid(1_000_000) * 1_000).unwrap_or(0); // below a second by the remainder
    prost_types::Timestamp { seconds: instant.0.div_euclid(1_000_000), nanos }
}

/// As the wire has it; what does not fit becomes the longest that does.
pub(super) fn duration(duration: Duration) -> prost_types::Duration {
    let seconds = i64::try_from(duration.as_secs()).unwrap_or(DURATION_SECONDS).min(DURATION_SECONDS);
    prost_types::Duration { seconds, nanos: duration.subsec_nanos().cast_signed() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(seconds: i64, nanos: i32) -> prost_types::Duration {
        prost_types::Duration { seconds, nanos }
    }

    #[test]
    fn leases_last_from_a_second_to_twelve_hours() {
        let limits = Limits::default();
        for (seconds, nanos) in [(1, 0), (1, 1), (43_200, 0), (43_199, 999_999_999)] {
            let lease = lease_duration("d", &sent(seconds, nanos), &limits).expect("in bounds");
            assert_eq!(duration(lease), sent(seconds, nanos));
        }
        for (seconds, nanos) in [
            (0, 0),
            (0, 999_999_999),
            (43_200, 1),
            (-1, 0),
            (0, -1),
            (1, -1),
            (-1, 1),
            (1, NANOS),
            (1, i32::MIN),
            (i64::MAX, 0),
            (i64::MIN, 0),
        ] {
            assert!(lease_duration("d", &sent(seconds, nanos), &limits).is_err(), "{seconds} s {nanos} ns");
        }
    }

    #[test]
    fn a_delay_is_never_negative_and_at_most_a_year() {
        let limits = Limits::default();
        assert_eq!(delay("d", &sent(0, 0), &limits), Ok(Duration::ZERO));
        assert_eq!(delay("d", &sent(31_536_000, 0), &limits), Ok(limits.delay));
        let negative = delay("d", &sent(0, -1), &limits).expect_err("negative");
        assert_eq!(negative.to_string(), "d: must be 0 s to 31536000 s");
        assert!(delay("d", &sent(31_536_000, 1), &limits).is_err());
    }

    #[test]
    fn due_times_are_checked_against_the_calendar_and_the_year_ahead() {
        let (limits, now) = (Limits::default(), UNIX_EPOCH + Duration::from_secs(1_000_000_000));
        let due = |seconds, nanos| due("at", &prost_types::Timestamp { seconds, nanos }, &limits, now);
        assert_eq!(due(1_000_000_000, 1), Ok(Start::At(Timestamp(1_000_000_000_000_001))), "rounded up");
        assert_eq!(due(5, 0), Ok(Start::At(Timestamp(5_000_000))));
        for past in [0, -1, *TIMESTAMP_SECONDS.start()] {
            assert_eq!(due(past, 0), Ok(Start::Now), "before the epoch");
        }
        assert!(due(1_000_000_000 + 31_536_000, 0).is_ok());
        let late = due(1_000_000_000 + 31_536_000 + 2 * 86_400, 0).expect_err("more than a year");
        assert_eq!(late.rule, "must be at most 31536000 s ahead");
        for (seconds, nanos) in
            [(0, -1), (0, NANOS), (i64::MAX, 0), (i64::MIN, 0), (253_402_300_800, 0), (-62_135_596_801, 0)]
        {
            assert!(due(seconds, nanos).is_err(), "{seconds} s {nanos} ns");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_duration_or_instant_is_let_in_past_its_bounds(seconds: i64, nanos: i32, small in -2_i64..40_000_000) {
            let limits = Limits::default();
            for seconds in [seconds, small] {
                if let Ok(kept) = delay("d", &sent(seconds, nanos), &limits) {
                    proptest::prop_assert!(kept <= limits.delay);
                    proptest::prop_assert_eq!(duration(kept), sent(seconds, nanos));
                }
                if let Ok(kept) = lease_duration("d", &sent(seconds, nanos), &limits) {
                    proptest::prop_assert!((limits.lease_min..=limits.lease_max).contains(&kept));
                }
                let at = prost_types::Timestamp { seconds, nanos };
                if let Ok(Start::At(kept)) = due("at", &at, &limits, UNIX_EPOCH) {
                    proptest::prop_assert!(kept > Timestamp::BEGINNING && kept <= Timestamp(micros(limits.delay + SLACK)));
                }
            }
        }
    }

    #[test]
    fn instants_survive_the_wire() {
        assert_eq!(timestamp(Timestamp(1_500_001)), prost_types::Timestamp { seconds: 1, nanos: 500_001_000 });
        assert_eq!(timestamp(Timestamp(-1)), prost_types::Timestamp { seconds: -1, nanos: 999_999_000 });
    }
}
