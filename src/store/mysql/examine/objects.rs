//! Tables and indexes beside what the migrations made.

use super::Examination;
use crate::store::{
    engine::{
        Migration, Observing as _,
        examining::{ForeignIndex, IndexFacts, TableFact, TableFacts},
    },
    error::EngineError,
    mysql::{PREFIX, error::Step, migration::statements, value::name},
};

/// Tables and indexes that migrations make, read from their texts.
#[derive(Debug, Default)]
pub(super) struct Made {
    tables: Vec<String>,
    indexes: Vec<MadeIndex>,
}

#[derive(Debug)]
struct MadeIndex {
    table: String,
    name: String,
    /// As it stands in its table: `key lease_until (lease_until)`.
    definition: String,
}

impl Made {
    pub(super) fn by<'m>(migrations: impl Iterator<Item = &'m Migration>) -> Self {
        let mut made = Self::default();
        for statement in migrations.flat_map(|migration| statements(migration.sql)) {
            let mut table = String::new();
            for line in statement.lines().map(str::trim) {
                if let Some(rest) = line.strip_prefix("create table if not exists ") {
                    table = rest.split(' ').next().unwrap_or_default().replacen(PREFIX, "", 1);
                    made.tables.push(table.clone());
                } else if let Some(index) = line.strip_prefix("key ").or_else(|| line.strip_prefix("unique key ")) {
                    made.indexes.push(MadeIndex {
                        table: table.clone(),
                        name: index.split(' ').next().unwrap_or_default().to_owned(),
                        definition: line.trim_end_matches(',').to_owned(),
                    });
                }
            }
        }
        made
    }
}

impl Examination<'_> {
    pub(super) async fn tables(&mut self, made: &Made) -> Result<TableFacts, EngineError> {
        let found = self.session.tables(self.caller).await?;
        let mut facts = TableFacts::default();
        for table in &made.tables {
            match found.iter().find(|found| found.table == *table) {
                Some(found) => facts.present.push(TableFact {
                    name: table.clone(),
                    vacuum_off: false,
                    strayed: Vec::new(),
                    live: found.live_rows,
                    dead: found.dead_rows,
                }),
                None => facts.missing.push(table.clone()),
            }
        }
        Ok(facts)
    }

    pub(super) async fn indexes(&mut self, made: &Made) -> Result<IndexFacts, EngineError> {
        let rows = self.session.run(self.caller, &[include_str!("../sql/examine_indexes.sql")], Step::First).await?;
        let mut found = Vec::new();
        for row in &rows {
            let (table, index) = (name(row, "table_name")?, name(row, "index_name")?);
            found.push((table.unwrap_or_default(), index.unwrap_or_default()));
        }
        let is_made = |(table, index): &(String, String)| {
            index == "PRIMARY" || made.indexes.iter().any(|made| made.table == *table && made.name == *index)
        };
        let of_ours = |(table, _): &&(String, String)| made.tables.contains(table);
        let missing = made
            .indexes
            .iter()
            .filter(|made| !found.iter().any(|(table, index)| made.table == *table && made.name == *index));
        Ok(IndexFacts {
            missing: missing
                .map(|index| self.here(&format!("alter table {PREFIX}{} add {}", index.table, index.definition)))
                .collect(),
            invalid: Vec::new(),
            foreign: found
                .iter()
                .filter(of_ours)
                .filter(|index| !is_made(index))
                .map(|(table, index)| ForeignIndex { name: format!("{index} on {table}"), scans: None })
                .collect(),
            in_order: found.iter().filter(of_ours).filter(|index| is_made(index)).count(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::mysql::migration::MIGRATIONS;

    #[test]
    fn tables_and_indexes_are_read_from_the_migrations() {
        let made = Made::by(MIGRATIONS[..1].iter());
        let tables = [
            "schema_migration",
            "queue",
            "job",
            "ready",
            "blocked",
            "lease",
            "dead_job",
            "idempotency_key",
            "ordering_key",
            "arrival",
        ];
        assert_eq!(made.tables, tables);
        let lease: Vec<_> = made.indexes.iter().filter(|index| index.table == "lease").collect();
        assert_eq!(lease[0].definition, "key lease_until (lease_until)");
        assert_eq!(lease.len(), 2);
    }
}
