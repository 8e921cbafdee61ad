//! Tables, indexes, and who keeps their old rows alive.

use std::time::Duration;

use sqlx::postgres::PgRow;

use super::{Examination, here};
use crate::store::{
    blueprint::{Blueprint, PlannedTable},
    engine::examining::{ForeignIndex, IndexFacts, SnapshotFacts, SnapshotHolder, TableFact, TableFacts},
    error::EngineError,
    postgres::{
        migration::MIGRATIONS,
        session::Args,
        value::{get, narrow},
    },
};

const SNAPSHOTS: &str = include_str!("../sql/examine_snapshots.sql");
const HIDDEN: &str = include_str!("../sql/examine_hidden.sql");
const TABLES: &str = include_str!("../sql/examine_tables.sql");
const INDEXES: &str = include_str!("../sql/examine_indexes.sql");

impl Examination<'_> {
    pub(super) async fn snapshots(&mut self) -> Result<SnapshotFacts, EngineError> {
        let rows = self.rows(SNAPSHOTS, Args::new()).await?;
        let holders = rows.iter().map(holder).collect::<Result<_, _>>()?;
        let row = self.row(HIDDEN, Args::new()).await?;
        let hidden = narrow(get::<i64>(&row, "examine_hidden", "hidden")?, "examine_hidden", "hidden")?;
        Ok(SnapshotFacts { holders, hidden })
    }

    pub(super) async fn tables(&mut self, made: &Blueprint) -> Result<TableFacts, EngineError> {
        let rows = self.rows(TABLES, Args::new()).await?;
        let mut facts = TableFacts::default();
        let found = rows.iter().map(FoundTable::read).collect::<Result<Vec<_>, _>>()?;
        for planned in &made.tables {
            match found.iter().find(|found| found.name == planned.name) {
                Some(found) => facts.present.push(found.beside(planned, self.engine.schema.as_str())),
                None => facts.missing.push(planned.name.clone()),
            }
        }
        Ok(facts)
    }

    pub(super) async fn indexes(&mut self, made: &Blueprint) -> Result<IndexFacts, EngineError> {
        let rows = self.rows(INDEXES, Args::new()).await?;
        let schema = self.engine.schema.as_str();
        let known = Blueprint::of(MIGRATIONS);
        let mut facts = IndexFacts::default();
        let mut names = Vec::new();
        for row in &rows {
            let name: String = get(row, "examine_indexes", "name")?;
            let ours = get::<bool>(row, "examine_indexes", "by_constraint")?
                || known.indexes.iter().any(|index| index.name == name);
            if !get::<bool>(row, "examine_indexes", "usable")? {
                facts.invalid.push(format!("reindex index concurrently {schema}.{name}"));
            } else if ours {
                facts.in_order += 1;
            } else {
                let table: String = get(row, "examine_indexes", "table_name")?;
                let scans = get::<Option<i64>>(row, "examine_indexes", "scans")?;
                let scans = scans.and_then(|scans| u64::try_from(scans).ok());
                facts.foreign.push(ForeignIndex { name: format!("{name} on {table}"), scans });
            }
            names.push(name);
        }
        for index in made.indexes.iter().filter(|index| !names.contains(&index.name)) {
            // beside running brokers
            let statement = index.statement.replacen(" index ", " index concurrently ", 1);
            facts.missing.push(here(self.engine, &statement));
        }
        Ok(facts)
    }
}

fn holder(row: &PgRow) -> Result<SnapshotHolder, EngineError> {
    let act = "examine_snapshots";
    let text = |column| get::<String>(row, act, column);
    let number = |column| narrow::<u64, i64>(get::<i64>(row, act, column)?.max(0), act, column);
    let (kind, name, detail) = (text("kind")?, text("name")?, text("detail")?);
    let (who, release) = match kind.as_str() {
        "session" => (
            format!("session {name} ({detail})"),
            format!("end its transaction, or: select pg_terminate_backend({name})"),
        ),
        "standby" => (
            format!("a standby ({detail})"),
            "end the long query on the standby, or set hot_standby_feedback = off there".to_owned(),
        ),
        "prepared" => (
            format!("prepared transaction '{name}' ({detail})"),
            "finish it: commit prepared or rollback prepared with that name".to_owned(),
        ),
        _ => (
            format!("replication slot {name} ({detail})"),
            format!("connect its consumer, or: select pg_drop_replication_slot('{name}')"),
        ),
    };
    let seconds = get::<Option<f64>>(row, act, "seconds")?;
    let age = seconds.map(|seconds| Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX));
    Ok(SnapshotHolder { who, age, transactions: number("transactions")?, log_bytes: number("log_bytes")?, release })
}

struct FoundTable {
    name: String,
    options: Vec<String>,
    live: u64,
    dead: u64,
}

impl FoundTable {
    fn read(row: &PgRow) -> Result<Self, EngineError> {
        let act = "examine_tables";
        let number = |column| narrow::<u64, i64>(get::<i64>(row, act, column)?.max(0), act, column);
        Ok(Self {
            name: get(row, act, "name")?,
            options: get(row, act, "options")?,
            live: number("live")?,
            dead: number("dead")?,
        })
    }

    /// What it is like beside what the migrations made it.
    fn beside(&self, planned: &PlannedTable, schema: &str) -> TableFact {
        let mut strayed: Vec<String> = Vec::new();
        let wanted: Vec<&str> =
            planned.options.iter().filter(|option| !self.options.contains(option)).map(String::as_str).collect();
        if !wanted.is_empty() {
            strayed.push(format!("alter table {schema}.{} set ({})", self.name, wanted.join(", ")));
        }
        let off: Vec<&str> = self.options.iter().filter_map(|option| switched_off(option)).collect();
        if !off.is_empty() {
            strayed.push(format!("alter table {schema}.{} reset ({})", self.name, off.join(", ")));
        }
        let vacuum_off = !off.is_empty();
        TableFact { name: self.name.clone(), vacuum_off, strayed, live: self.live, dead: self.dead }
    }
}

/// The setting's name, where it keeps autovacuum away.
fn switched_off(option: &str) -> Option<&str> {
    let (name, value) = option.split_once('=')?;
    (name.ends_with("autovacuum_enabled") && matches!(value, "off" | "false" | "no" | "0")).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_strayed_is_brought_back_by_the_statements_named() {
        let planned = PlannedTable { name: "job".into(), options: vec!["fillfactor=70".into(), "a=1".into()] };
        let found = |options: &[&str]| FoundTable {
            name: "job".into(),
            options: options.iter().map(|option| (*option).to_owned()).collect(),
            live: 1,
            dead: 2,
        };
        let fact = found(&["a=1", "fillfactor=70", "b=2"]).beside(&planned, "leasehold");
        assert!(fact.strayed.is_empty() && !fact.vacuum_off, "{fact:?}");
        let fact = found(&["a=2", "autovacuum_enabled=off"]).beside(&planned, "leasehold");
        assert!(fact.vacuum_off);
        assert_eq!(
            fact.strayed,
            [
                "alter table leasehold.job set (fillfactor=70, a=1)",
                "alter table leasehold.job reset (autovacuum_enabled)"
            ]
        );
    }
}
