//! Whether the replicas' connections fit.

use super::{super::finding::Finding, Expectations, unseen};
use crate::store::engine::examining::{ConnectionFacts, Seen};

const CHECK: &str = "connections";

pub(super) fn judge(connections: &Seen<Option<ConnectionFacts>>, expected: &Expectations) -> Vec<Finding> {
    let there = match connections {
        Ok(None) => return Vec::new(),
        Ok(Some(there)) => there,
        Err(why) => return vec![unseen(CHECK, why)],
    };
    let others = |in_use: u64| in_use.saturating_sub(there.ours);
    let server = there.allowed.saturating_sub(there.reserved);
    let mut findings = vec![room(
        &format!("the server (max_connections {}, {} of them reserved)", there.allowed, there.reserved),
        server,
        others(there.in_use),
        expected,
    )];
    for (whose, limit) in [("the role's own limit", there.role), ("the database's own limit", there.database)] {
        if let Some((limit, in_use)) = limit {
            findings.push(room(&format!("{whose} ({limit})"), limit, others(in_use), expected));
        }
    }
    findings
}

/// Whether what the replicas need fits beside what others use.
fn room(whose: &str, limit: u64, others: u64, expected: &Expectations) -> Finding {
    let needed = expected.replicas.saturating_mul(expected.connections);
    let left = limit.saturating_sub(others);
    let replicas = if expected.replicas == 1 {
        "one replica needs".into()
    } else {
        format!("{} replicas need", expected.replicas)
    };
    let says = format!("{replicas} {needed}; {whose} has {left} beside the {others} that others use");
    let advice = "raise the limit, or lower lanes.count or the number of replicas";
    if needed > left {
        Finding::fail(CHECK, says, advice)
    } else if left - needed < limit / 10 {
        Finding::warn(CHECK, format!("{says}: less than a tenth of it would be left"), advice)
    } else {
        Finding::ok(CHECK, says)
    }
}

#[cfg(test)]
mod tests {
    use super::{super::super::finding::Level, super::healthy, *};

    fn levels(there: ConnectionFacts) -> Vec<Level> {
        judge(&Ok(Some(there)), &healthy::expected()).into_iter().map(|finding| finding.level).collect()
    }

    const THERE: ConnectionFacts =
        ConnectionFacts { allowed: 100, reserved: 3, in_use: 0, ours: 0, role: None, database: None };

    #[test]
    fn two_replicas_of_ten_need_twenty() {
        assert_eq!(levels(ConnectionFacts { in_use: 68, ..THERE }), [Level::Ok]);
        assert_eq!(levels(ConnectionFacts { in_use: 69, ..THERE }), [Level::Warn]);
        assert_eq!(levels(ConnectionFacts { in_use: 77, ..THERE }), [Level::Warn]);
        assert_eq!(levels(ConnectionFacts { in_use: 78, ..THERE }), [Level::Fail]);
    }

    #[test]
    fn replicas_that_run_already_are_not_counted_twice() {
        assert_eq!(levels(ConnectionFacts { in_use: 88, ours: 20, ..THERE }), [Level::Ok]);
    }

    #[test]
    fn limits_of_role_and_database_are_looked_at_too() {
        assert_eq!(
            levels(ConnectionFacts { role: Some((15, 0)), database: Some((40, 0)), ..THERE }),
            [Level::Ok, Level::Fail, Level::Ok]
        );
    }
}
