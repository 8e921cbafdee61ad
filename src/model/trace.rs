//! W3C trace context that travels with a job.

/// A producer's trace context, as it came: `traceparent` and `tracestate` by <https://www.w3.org/TR/trace-context/>.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    /// Version 00 to fe, trace id and parent id not all zero.
    pub traceparent: String,
    /// Empty where there was none.
    pub tracestate: String,
}

impl TraceContext {
    /// Longest `tracestate` that is kept, in bytes; a longer one is dropped and its `traceparent` stays.
    pub const MAX_STATE_BYTES: usize = 512;

    /// The context, or nothing where `traceparent` is malformed: a broken context is dropped, never an error.
    pub fn parse(traceparent: &str, tracestate: &str) -> Option<Self> {
        if !is_traceparent(traceparent) {
            return None;
        }
        let keeps = tracestate.len() <= Self::MAX_STATE_BYTES && tracestate.bytes().all(|b| (0x20..=0x7e).contains(&b));
        Some(Self {
            traceparent: traceparent.to_owned(),
            tracestate: if keeps { tracestate.to_owned() } else { String::new() },
        })
    }
}

fn is_traceparent(text: &str) -> bool {
    let hex =
        |part: &str, len: usize| part.len() == len && part.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let not_zero = |part: &str| part.bytes().any(|b| b != b'0');
    let mut parts = text.splitn(5, '-');
    let (Some(version), Some(trace), Some(parent), Some(flags)) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    let longer = parts.next();
    hex(version, 2)
        && version != "ff"
        && (longer.is_none() || version != "00")
        && text.len() <= 512
        && text.bytes().all(|b| (0x21..=0x7e).contains(&b))
        && hex(trace, 32)
        && not_zero(trace)
        && hex(parent, 16)
        && not_zero(parent)
        && hex(flags, 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_good_context_is_kept_as_it_came() {
        let context = TraceContext::parse(GOOD, "a=b,c=d").expect("well formed");
        assert_eq!((context.traceparent.as_str(), context.tracestate.as_str()), (GOOD, "a=b,c=d"));
    }

    #[test]
    fn malformed_contexts_are_dropped() {
        let huge = format!("01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-{}", "a".repeat(10_240));
        for bad in [
            "",
            "x",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
            huge.as_str(),
        ] {
            assert_eq!(TraceContext::parse(bad, ""), None, "{bad}");
        }
    }

    #[test]
    fn a_bad_state_does_not_cost_its_parent() {
        let context = TraceContext::parse(GOOD, &"x".repeat(10_240)).expect("the parent is well formed");
        assert_eq!(context.tracestate, "");
    }
}
