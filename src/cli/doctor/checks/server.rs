//! What answered, and what stands between.

use super::{super::finding::Finding, span};
use crate::store::engine::examining::{ClockFacts, Facts};

/// Clocks closer than this are as good as one.
const SAME: i64 = 1_000_000;

pub(super) fn judge(facts: &Facts) -> Vec<Finding> {
    let server = &facts.server;
    let mut findings = vec![Finding::ok("reach", format!("{} answers at {}", server.product, server.place))];
    findings.push(if server.new_enough {
        Finding::ok("version", format!("{} {} (oldest that works: {})", server.product, server.version, server.oldest))
    } else {
        Finding::fail(
            "version",
            format!("{} {} is too old: the broker refuses it", server.product, server.version),
            format!("upgrade the server to {} or newer", server.oldest),
        )
    });
    findings.push(match &server.read_only {
        None => Finding::ok("writes", "it takes writes"),
        Some(why) => Finding::fail(
            "writes",
            format!("it takes no writes: {why}"),
            "point database_url at the primary, or lift what forbids writes",
        ),
    });
    if let Some(evidence) = &facts.pooler {
        findings.push(Finding::warn(
            "pooler",
            format!("a pooler stands between: {evidence}"),
            "connect to the server itself: the broker is a pooler already. Behind one that keeps no sessions wake-ups are not \
             heard, and jobs are found by polling",
        ));
    }
    findings.push(clock(facts.clock));
    findings
}

fn clock(ClockFacts { ahead, give_or_take }: ClockFacts) -> Finding {
    let certain = ahead.unsigned_abs().saturating_sub(u64::try_from(give_or_take.as_micros()).unwrap_or(u64::MAX));
    let apart = span(std::time::Duration::from_micros(ahead.unsigned_abs()));
    let way = if ahead < 0 { "behind" } else { "ahead of" };
    if certain < SAME.unsigned_abs() {
        return Finding::ok("clock", format!("the database's and this machine's are {apart} apart"));
    }
    Finding::warn(
        "clock",
        format!("the database's clock is {apart} {way} this machine's"),
        "set both by the same time servers. Leases go by the database's clock alone, so nothing is lost, but logs and \
         dashboards of the two do not match",
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{super::healthy, *};

    #[test]
    fn an_old_server_a_standby_and_a_pooler_are_named() {
        let mut facts = healthy::facts();
        facts.server.new_enough = false;
        facts.server.read_only = Some("it is a standby".into());
        facts.pooler = Some("signs".into());
        assert_eq!(healthy::troubles(&facts, &healthy::expected()), ["fail version", "fail writes", "warn pooler"]);
    }

    #[test]
    fn clocks_that_differ_for_certain_are_named() {
        let level = |ahead, uncertain| {
            let clock = ClockFacts { ahead, give_or_take: Duration::from_micros(uncertain) };
            super::clock(clock).level.as_str()
        };
        assert_eq!(level(999_999, 0), "ok");
        assert_eq!(level(1_000_000, 0), "warn");
        assert_eq!(level(-1_000_000, 0), "warn");
        assert_eq!(level(1_500_000, 600_000), "ok");
    }
}
