//! Migrations, tables and indexes.

use super::{super::finding::Finding, Expectations, unseen};
use crate::store::engine::{
    AppliedMigration,
    examining::{Facts, ForeignIndex, IndexFacts},
};

const MIGRATE: &str = "run 'leasehold migrate up' as a role that may create tables";

pub(super) fn judge(facts: &Facts, expected: &Expectations) -> Vec<Finding> {
    let mut findings = vec![match &facts.applied {
        Ok(applied) => version(&facts.known, applied, expected),
        Err(why) => unseen("schema", why),
    }];
    let has_schema = !matches!(&facts.applied, Ok(applied) if applied.is_empty());
    if let Ok(tables) = &facts.tables
        && !tables.missing.is_empty()
    {
        findings.push(Finding::fail(
            "schema",
            format!("tables that the migrations made are gone: {}", tables.missing.join(", ")),
            "restore them from a backup (docs/restore.md); migrations do not run twice",
        ));
    }
    match &facts.indexes {
        Ok(indexes) if has_schema => findings.extend(in_order(indexes, is_newer(facts))),
        Ok(_) => {}
        Err(why) => findings.push(unseen("indexes", why)),
    }
    findings
}

fn version(known: &[AppliedMigration], applied: &[AppliedMigration], expected: &Expectations) -> Finding {
    let (newest_known, newest_applied) = (newest(known), newest(applied));
    if let Some((ours, theirs)) = known
        .iter()
        .filter_map(|ours| Some((ours, applied.iter().find(|theirs| theirs.number == ours.number)?)))
        .find(|(ours, theirs)| ours.name != theirs.name)
    {
        return Finding::fail(
            "schema",
            format!("migration {} is '{}' there and '{}' here", ours.number, theirs.name, ours.name),
            "check that database and schema are this broker's, and that this is a released version",
        );
    }
    let missing = known.iter().filter(|ours| applied.iter().all(|theirs| theirs.number != ours.number)).count();
    match missing {
        0 if newest_applied > newest_known => Finding::ok(
            "schema",
            format!("at migration {newest_applied}, newer than this version's {newest_known}: fine during an upgrade"),
        ),
        0 => Finding::ok("schema", format!("at migration {newest_applied}, as this version needs")),
        _ if expected.migrates => Finding::ok(
            "schema",
            format!("{}; the broker applies what is missing when it starts", behind(missing, applied, newest_known)),
        ),
        _ => Finding::fail("schema", behind(missing, applied, newest_known), MIGRATE),
    }
}

fn behind(missing: usize, applied: &[AppliedMigration], newest_known: i32) -> String {
    if applied.is_empty() {
        return "the database has no schema of ours".into();
    }
    let s = if missing == 1 { "" } else { "s" };
    format!("at migration {}, {missing} migration{s} behind this version's {newest_known}", newest(applied))
}

fn newest(migrations: &[AppliedMigration]) -> i32 {
    migrations.iter().map(|migration| migration.number).max().unwrap_or(0)
}

/// Whether a newer version has been at work on the schema.
fn is_newer(facts: &Facts) -> bool {
    matches!(&facts.applied, Ok(applied) if newest(applied) > newest(&facts.known))
}

/// Indexes that a `newer` version may have made are not called foreign.
fn in_order(indexes: &IndexFacts, newer: bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    for statement in &indexes.missing {
        findings.push(Finding::fail(
            "indexes",
            "an index that statements go by is missing",
            format!("make it again, beside running brokers: {statement}"),
        ));
    }
    for statement in &indexes.invalid {
        findings.push(Finding::fail(
            "indexes",
            "an index cannot be used: its making was cut short",
            format!("make it anew: {statement}"),
        ));
    }
    if !newer {
        findings.extend(indexes.foreign.iter().map(foreign));
    }
    if findings.is_empty() {
        findings.push(Finding::ok("indexes", format!("all {} are there and usable", indexes.in_order)));
    }
    findings
}

fn foreign(index: &ForeignIndex) -> Finding {
    let used = match index.scans {
        Some(0) => " and was never used",
        _ => "",
    };
    Finding::warn(
        "indexes",
        format!("{} is no index of ours{used}: each write to the table has to keep it up too", index.name),
        "drop it, unless a report of yours needs it",
    )
}

#[cfg(test)]
mod tests {
    use super::{super::healthy, *};
    use crate::store::engine::examining::TableFacts;

    fn migration(number: i32, name: &str) -> AppliedMigration {
        AppliedMigration { number, name: name.into() }
    }

    fn with(applied: Vec<AppliedMigration>) -> Facts {
        Facts { applied: Ok(applied), ..healthy::facts() }
    }

    #[test]
    fn a_schema_that_is_missing_behind_or_somebody_elses_fails() {
        for applied in [vec![], vec![migration(1, "schema")], vec![migration(1, "schema"), migration(2, "theirs")]] {
            assert_eq!(healthy::troubles(&with(applied.clone()), &healthy::expected()), ["fail schema"], "{applied:?}");
        }
    }

    #[test]
    fn a_broker_that_migrates_needs_no_schema_yet() {
        let migrates = Expectations { migrates: true, ..healthy::expected() };
        assert!(healthy::troubles(&with(vec![]), &migrates).is_empty());
    }

    #[test]
    fn a_newer_schema_is_fine() {
        let newer = vec![migration(1, "schema"), migration(2, "functions"), migration(3, "later")];
        let mut facts = with(newer);
        assert!(healthy::troubles(&facts, &healthy::expected()).is_empty());
        let of_the_newer = ForeignIndex { name: "later on job".into(), scans: Some(0) };
        facts.indexes = Ok(IndexFacts { foreign: vec![of_the_newer], ..IndexFacts::default() });
        assert!(healthy::troubles(&facts, &healthy::expected()).is_empty(), "what a newer version made is not foreign");
    }

    #[test]
    fn missing_tables_and_indexes_fail_and_foreign_indexes_warn() {
        let facts = Facts {
            tables: Ok(TableFacts { missing: vec!["job".into()], present: Vec::new() }),
            indexes: Ok(IndexFacts {
                missing: vec!["create index a".into()],
                invalid: vec!["reindex b".into()],
                foreign: vec![ForeignIndex { name: "c on job".into(), scans: Some(0) }],
                in_order: 3,
            }),
            ..healthy::facts()
        };
        assert_eq!(
            healthy::troubles(&facts, &healthy::expected()),
            ["fail schema", "fail indexes", "fail indexes", "warn indexes"]
        );
        let lines = in_order(facts.indexes.as_ref().expect("seen"), false);
        assert!(lines[0].remedy.as_ref().is_some_and(|remedy| remedy.ends_with("create index a")), "{lines:?}");
        assert!(lines[2].says.contains("never used"), "{lines:?}");
    }
}
