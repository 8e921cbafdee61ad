//! Whether finished jobs' rows are removed: vacuum, and who holds it back.

use super::{super::finding::Finding, Expectations, span, unseen};
use crate::store::engine::examining::{Facts, SnapshotFacts, SnapshotHolder, TableFact, TableFacts};

/// So many row versions that wait to be removed are many, if they are also four times the live ones.
const MANY_DEAD: u64 = 100_000;
/// A snapshot from so many transactions ago is old, however long that took.
const MANY_TRANSACTIONS: u64 = 1_000_000;
/// So much log kept for somebody is much.
const MUCH_LOG: u64 = 128 << 20;

pub(super) fn judge(facts: &Facts, expected: &Expectations) -> Vec<Finding> {
    let mut findings = match &facts.tables {
        Ok(tables) => vacuum(tables),
        Err(why) => vec![unseen("vacuum", why)],
    };
    match &facts.snapshots {
        Ok(snapshots) => findings.extend(held(snapshots, expected)),
        Err(why) => findings.push(unseen("snapshots", why)),
    }
    findings
}

fn vacuum(tables: &TableFacts) -> Vec<Finding> {
    let mut findings: Vec<Finding> = tables.present.iter().filter_map(strayed).collect();
    findings.extend(tables.present.iter().filter_map(bloated));
    if findings.is_empty() && !tables.present.is_empty() {
        let count = tables.present.len();
        findings
            .push(Finding::ok("vacuum", format!("{count} tables are set as the migrations set them, and are kept up")));
    }
    findings
}

fn strayed(table: &TableFact) -> Option<Finding> {
    let mend = table.strayed.join("; ");
    if table.vacuum_off {
        let says = format!("autovacuum is off on table {}: finished rows stay, and claims slow down", table.name);
        return Some(Finding::fail("vacuum", says, mend));
    }
    let says = format!("table {} has other vacuum settings than the migrations gave it", table.name);
    (!table.strayed.is_empty()).then(|| Finding::warn("vacuum", says, mend))
}

fn bloated(table: &TableFact) -> Option<Finding> {
    let is = table.dead >= MANY_DEAD && table.dead / 4 > table.live;
    is.then(|| {
        let says = format!("table {} has some {} finished rows for {} live ones", table.name, table.dead, table.live);
        Finding::warn("vacuum", says, "see who holds a snapshot, below; with nobody, vacuum the table once by hand")
    })
}

fn held(snapshots: &SnapshotFacts, expected: &Expectations) -> Vec<Finding> {
    let old = |holder: &&SnapshotHolder| {
        holder.age.is_some_and(|age| age >= expected.old_snapshot)
            || holder.transactions >= MANY_TRANSACTIONS
            || holder.log_bytes >= MUCH_LOG
    };
    let mut findings: Vec<Finding> = snapshots.holders.iter().filter(old).map(holder).collect();
    if snapshots.hidden > 0 {
        findings.push(Finding::warn(
            "snapshots",
            format!("{} sessions of other roles cannot be seen, so nobody knows what they hold", snapshots.hidden),
            "grant pg_read_all_stats to the role, or run doctor as one that has it",
        ));
    }
    if findings.is_empty() {
        findings.push(Finding::ok("snapshots", format!("nobody holds one older than {}", span(expected.old_snapshot))));
    }
    findings
}

fn holder(holder: &SnapshotHolder) -> Finding {
    let age = holder.age.map(|age| format!(" for {}", span(age))).unwrap_or_default();
    let log = match holder.log_bytes >> 20 {
        0 => String::new(),
        mebibytes => format!(", and {mebibytes} MiB of log"),
    };
    let says = format!(
        "{} has held a snapshot{age}, {} transactions ago{log}: rows finished since then cannot be removed",
        holder.who, holder.transactions
    );
    Finding::warn("snapshots", says, holder.release.clone())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{super::healthy, *};

    fn troubles(change: impl Fn(&mut TableFact)) -> Vec<String> {
        let mut facts = healthy::facts();
        if let Ok(tables) = &mut facts.tables {
            change(&mut tables.present[0]);
        }
        healthy::troubles(&facts, &healthy::expected())
    }

    fn held_by(holder: SnapshotHolder) -> Vec<String> {
        let snapshots = SnapshotFacts { holders: vec![holder], hidden: 0 };
        healthy::troubles(&Facts { snapshots: Ok(snapshots), ..healthy::facts() }, &healthy::expected())
    }

    fn session() -> SnapshotHolder {
        SnapshotHolder {
            who: "session 7".into(),
            age: Some(Duration::from_secs(299)),
            transactions: 999_999,
            log_bytes: MUCH_LOG - 1,
            release: "end it".into(),
        }
    }

    #[test]
    fn a_table_without_autovacuum_fails_and_one_with_other_settings_warns() {
        let mend = || vec!["alter table".to_owned()];
        assert_eq!(troubles(|table| (table.vacuum_off, table.strayed) = (true, mend())), ["fail vacuum"]);
        assert_eq!(troubles(|table| table.strayed = mend()), ["warn vacuum"]);
    }

    #[test]
    fn many_finished_rows_beside_few_live_ones_are_named() {
        assert_eq!(troubles(|table| (table.dead, table.live) = (100_000, 10)), ["warn vacuum"]);
        assert!(troubles(|table| (table.dead, table.live) = (99_999, 10)).is_empty());
        assert!(troubles(|table| (table.dead, table.live) = (100_000, 50_000)).is_empty());
    }

    #[test]
    fn a_snapshot_is_old_by_time_by_transactions_or_by_the_log_it_keeps() {
        assert!(held_by(session()).is_empty());
        for old in [
            SnapshotHolder { age: Some(Duration::from_mins(5)), ..session() },
            SnapshotHolder { transactions: MANY_TRANSACTIONS, ..session() },
            SnapshotHolder { log_bytes: MUCH_LOG, ..session() },
        ] {
            assert_eq!(held_by(old), ["warn snapshots"]);
        }
    }

    #[test]
    fn sessions_that_cannot_be_seen_are_counted() {
        let snapshots = SnapshotFacts { holders: Vec::new(), hidden: 3 };
        let facts = Facts { snapshots: Ok(snapshots), ..healthy::facts() };
        assert_eq!(healthy::troubles(&facts, &healthy::expected()), ["warn snapshots"]);
    }
}
