//! For whom a call runs.

use http::HeaderMap;

use crate::model::{Caller, Invalid};

const CALLER: &str = "leasehold-caller";

/// The caller that the call names, else nobody in particular.
pub(super) fn caller(headers: &HeaderMap) -> Result<Caller, Invalid> {
    let mut sent = headers.get_all(CALLER).iter();
    let Some(name) = sent.next() else {
        return Ok(Caller::unattributed());
    };
    if sent.next().is_some() {
        return Err(Invalid::new(CALLER, "must be sent at most once"));
    }
    // Bytes that are no text break the grammar as well; the parser says so.
    Caller::parse(name.to_str().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn sent(values: &[&[u8]]) -> HeaderMap {
        let value = |value: &&[u8]| HeaderValue::from_bytes(value).expect("a header value");
        values.iter().map(|bytes| (http::HeaderName::from_static(CALLER), value(bytes))).collect()
    }

    #[test]
    fn a_call_without_a_caller_is_unattributed() {
        assert_eq!(caller(&HeaderMap::new()), Ok(Caller::unattributed()));
        assert_eq!(caller(&sent(&[b"checkout"])).expect("a fine name").as_str(), "checkout");
    }

    #[test]
    fn hostile_and_doubled_callers_are_refused() {
        let cases: [&[&[u8]]; 8] = [
            &[b"a", b"a"],
            &[b""],
            &[b"\xff"],
            &["é".as_bytes()],
            &[b"*/ drop"],
            &[b"leasehold.reaper"],
            &[b"a\tb"],
            &[b"Checkout"],
        ];
        for values in cases {
            assert_eq!(caller(&sent(values)).expect_err("refused").field, CALLER, "{values:?}");
        }
    }
}
