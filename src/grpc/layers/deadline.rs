//! When a call's asker stops waiting.

use std::time::{Duration, Instant};

use http::{HeaderMap, HeaderValue};

use crate::model::Invalid;

const TIMEOUT: &str = "grpc-timeout";

/// The time that a client gives its call, where it says so.
pub(super) fn asked(headers: &HeaderMap) -> Result<Option<Duration>, Invalid> {
    let mut sent = headers.get_all(TIMEOUT).iter();
    let Some(value) = sent.next() else {
        return Ok(None);
    };
    if sent.next().is_some() {
        return Err(Invalid::new(TIMEOUT, "must be sent at most once"));
    }
    timeout(value).map(Some).ok_or_else(|| Invalid::new(TIMEOUT, "must be 1 to 8 digits and one of H, M, S, m, u, n"))
}

fn timeout(value: &HeaderValue) -> Option<Duration> {
    let (unit, digits) = value.as_bytes().split_last()?;
    if !(1..=8).contains(&digits.len()) {
        return None;
    }
    let number = digits.iter().try_fold(0_u64, |number, digit| match digit {
        b'0'..=b'9' => Some(number * 10 + u64::from(digit - b'0')),
        _ => None,
    })?;
    match unit {
        b'H' => Some(Duration::from_secs(number * 3_600)),
        b'M' => Some(Duration::from_secs(number * 60)),
        b'S' => Some(Duration::from_secs(number)),
        b'm' => Some(Duration::from_millis(number)),
        b'u' => Some(Duration::from_micros(number)),
        b'n' => Some(Duration::from_nanos(number)),
        _ => None,
    }
}

/// The deadlines that follow from what was asked.
pub(super) struct Asked {
    /// The call's.
    pub(super) deadline: Instant,
    /// A stream's.
    pub(super) stream_deadline: Option<Instant>,
}

impl Asked {
    /// From now on; `bound` is the server's own for unary calls.
    pub(super) fn new(asked: Option<Duration>, bound: Duration) -> Self {
        let now = Instant::now();
        // A deadline past what the clock can tell is none.
        let stream_deadline = asked.and_then(|asked| now.checked_add(asked));
        let bound = now + bound;
        Self { deadline: stream_deadline.map_or(bound, |deadline| deadline.min(bound)), stream_deadline }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(values: &[&'static str]) -> HeaderMap {
        let header = |value: &&'static str| (http::HeaderName::from_static(TIMEOUT), HeaderValue::from_static(value));
        values.iter().map(header).collect()
    }

    #[test]
    fn every_unit_is_understood() {
        assert_eq!(asked(&sent(&[])), Ok(None));
        for (value, expected) in [
            ("1H", Duration::from_hours(1)),
            ("2M", Duration::from_mins(2)),
            ("99999999S", Duration::from_secs(99_999_999)),
            ("500m", Duration::from_millis(500)),
            ("7u", Duration::from_micros(7)),
            ("0n", Duration::ZERO),
            ("99999999H", Duration::from_hours(99_999_999)),
        ] {
            assert_eq!(asked(&sent(&[value])), Ok(Some(expected)), "{value}");
        }
    }

    #[test]
    fn malformed_timeouts_are_refused() {
        for value in ["", "S", "1", "1Q", "-1S", "+1S", " 1S", "1 S", "1.5S", "123456789S", "1s", "1h", "0x1S"] {
            assert_eq!(asked(&sent(&[value])).expect_err(value).field, TIMEOUT, "{value}");
        }
        assert!(asked(&sent(&["1S", "1S"])).is_err(), "sent twice");
        let bytes = HeaderValue::from_bytes(b"1\xff").expect("a header value");
        assert_eq!(timeout(&bytes), None);
    }

    #[test]
    fn the_servers_bound_holds_for_calls_and_not_for_streams() {
        let bound = Duration::from_secs(30);
        let silent = Asked::new(None, bound);
        assert_eq!(silent.stream_deadline, None);
        let short = Asked::new(Some(Duration::from_secs(1)), bound);
        assert_eq!(Some(short.deadline), short.stream_deadline);
        let long = Asked::new(Some(Duration::from_hours(1)), bound);
        assert!(long.stream_deadline.is_some_and(|deadline| deadline > long.deadline));
        assert!(silent.deadline > short.deadline);
    }
}
