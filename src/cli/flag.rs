//! How values of flags are read.

use std::time::{Duration, SystemTime};

use prost_types::Timestamp;

use crate::{
    config::kind::{Given, Kind as _, Span},
    model::Caller,
};

const DAY: u64 = 24 * 3_600;

/// A length of time with its unit, as in the configuration: `30s`, `5m`. The broker says what is too long or too short.
pub(super) fn span(text: &str) -> Result<Duration, String> {
    Span::seconds(0, 0, 3_650 * DAY).parse(&Given::One(text.to_owned()))
}

/// How long to wait for something: at least a moment, at most a day.
pub(super) fn timeout(text: &str) -> Result<Duration, String> {
    Span::millis(0, 1, DAY * 1_000).parse(&Given::One(text.to_owned()))
}

/// An instant: RFC 3339, or a length of time that says how long ago by this machine's clock.
pub(super) fn instant(text: &str) -> Result<Timestamp, String> {
    if let Ok(ago) = span(text) {
        let then = SystemTime::now().checked_sub(ago).ok_or("must not be so long ago")?;
        return Ok(then.into());
    }
    moment(text)
        .map_err(|_| format!("must be an instant (2026-11-30T12:00:00Z) or how long ago it was (10m), and is '{text}'"))
}

/// An instant in RFC 3339.
pub(super) fn moment(text: &str) -> Result<Timestamp, String> {
    text.parse().map_err(|_| format!("must be an instant, such as 2026-11-30T12:00:00Z, and is '{text}'"))
}

/// The broker's address.
pub(super) fn address(text: &str) -> Result<String, String> {
    let rest = match text.split_once("://") {
        Some(("http", rest)) => rest,
        Some(("https", _)) => {
            return Err("TLS is not spoken yet: put the broker behind a mesh or a proxy that does".into());
        }
        Some(_) => return Err(format!("must begin with http://, and is '{text}'")),
        None => text,
    };
    // Nobody asks for a name and a password in it, and what is wrong with an address is shown.
    let rest = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    let uri = format!("http://{rest}");
    match uri.parse::<http::Uri>() {
        Ok(parsed) if parsed.host().is_some_and(|host| !host.is_empty()) => Ok(uri),
        _ => Err(format!("must be like http://127.0.0.1:7070, and is '{text}'")),
    }
}

/// A business process.
pub(super) fn caller(text: &str) -> Result<Caller, String> {
    Caller::parse(text).map_err(|invalid| invalid.rule.clone())
}

/// A header, `KEY=VALUE`.
pub(super) fn header(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(format!("must be KEY=VALUE, and is '{text}'")),
    }
}

/// A length of time on the wire.
pub(super) fn wire(length: Duration) -> prost_types::Duration {
    prost_types::Duration {
        seconds: i64::try_from(length.as_secs()).unwrap_or(i64::MAX),
        nanos: i32::try_from(length.subsec_nanos()).unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_leave_its_scheme_out_and_says_what_is_wrong() {
        assert_eq!(address("db:7070"), Ok("http://db:7070".into()));
        assert_eq!(address("http://[::1]:7070"), Ok("http://[::1]:7070".into()));
        assert_eq!(address("http://me:hunter2@db:7070"), Ok("http://db:7070".into()));
        for bad in ["", "https://db:7070", "unix:///tmp/x", "http://", "a b"] {
            assert!(address(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_instant_is_written_out_or_a_time_ago() {
        assert_eq!(instant("1970-01-01T00:00:10Z").map(|at| at.seconds), Ok(10));
        let ago = instant("1h").expect("a length of time").seconds;
        let now = Timestamp::from(SystemTime::now()).seconds;
        assert!((3_600..3_660).contains(&(now - ago)), "{ago} {now}");
        assert!(instant("yesterday").is_err());
        assert!(moment("10m").is_err());
    }

    #[test]
    fn a_header_is_split_at_its_first_equals_sign() {
        assert_eq!(header("a=b=c"), Ok(("a".into(), "b=c".into())));
        assert!(header("a").is_err() && header("=b").is_err());
    }
}
