//! Who holds back the removal of dead rows, as operators see it.

use serde::Serialize;

use super::{table::Table, time};
use crate::v1::{GetVacuumHorizonResponse, HorizonHolderKind};

#[derive(Serialize)]
struct HorizonJson<'a> {
    holders: Vec<HolderJson<'a>>,
    tables: Vec<TableJson<'a>>,
    blind_spots: &'a [String],
}

#[derive(Serialize)]
struct HolderJson<'a> {
    kind: &'static str,
    name: &'a str,
    transactions: i64,
    age_seconds: Option<f64>,
    caller: &'a str,
    application_name: &'a str,
    catalogs_only: bool,
    advice: &'a str,
}

#[derive(Serialize)]
struct TableJson<'a> {
    table: &'a str,
    live_rows: i64,
    dead_rows: i64,
    bytes: i64,
    last_vacuum_at: Option<String>,
}

/// A look for programs.
pub(in crate::cli) fn json(look: &GetVacuumHorizonResponse) -> impl Serialize {
    let holder = |index: usize| {
        let holder = &look.holders[index];
        HolderJson {
            kind: kind(holder.kind()),
            name: &holder.name,
            transactions: holder.transactions,
            age_seconds: holder.age.map(time::seconds),
            caller: &holder.caller,
            application_name: &holder.application_name,
            catalogs_only: holder.catalogs_only,
            advice: &holder.advice,
        }
    };
    let table = |index: usize| {
        let table = &look.tables[index];
        TableJson {
            table: &table.table,
            live_rows: table.live_rows,
            dead_rows: table.dead_rows,
            bytes: table.bytes,
            last_vacuum_at: time::maybe(table.last_vacuum_at),
        }
    };
    HorizonJson {
        holders: (0..look.holders.len()).map(holder).collect(),
        tables: (0..look.tables.len()).map(table).collect(),
        blind_spots: &look.blind_spots,
    }
}

/// Holders for people, oldest first.
pub(in crate::cli) fn holders(look: &GetVacuumHorizonResponse) -> Table {
    let mut table = Table::new(&["HELD BY", "~NAME", ">TRANSACTIONS", ">AGE", "CALLER", "~APPLICATION"]);
    for holder in &look.holders {
        let only = if holder.catalogs_only { " (catalogs only)" } else { "" };
        table.row([
            kind(holder.kind()).replace('_', " ") + only,
            holder.name.clone(),
            holder.transactions.to_string(),
            holder.age.map_or_else(|| "-".to_owned(), time::fine),
            holder.caller.clone(),
            holder.application_name.clone(),
        ]);
    }
    table
}

/// Tables for people.
pub(in crate::cli) fn tables(look: &GetVacuumHorizonResponse) -> Table {
    let mut table = Table::new(&["TABLE", ">LIVE ROWS", ">DEAD ROWS", ">MIB", "LAST VACUUM"]);
    for row in &look.tables {
        table.row([
            row.table.clone(),
            row.live_rows.to_string(),
            row.dead_rows.to_string(),
            // a tenth of a mebibyte is as much as anybody wants to know
            format!("{}.{}", row.bytes >> 20, ((row.bytes & 0xf_ffff) * 10) >> 20),
            row.last_vacuum_at.map_or_else(|| "never".to_owned(), time::from_now),
        ]);
    }
    table
}

fn kind(kind: HorizonHolderKind) -> &'static str {
    match kind {
        HorizonHolderKind::Session => "session",
        HorizonHolderKind::PreparedTransaction => "prepared_transaction",
        HorizonHolderKind::ReplicationSlot => "replication_slot",
        HorizonHolderKind::Standby => "standby",
        HorizonHolderKind::Unspecified => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{cli::output::Style, v1};

    #[test]
    fn what_is_not_known_is_shown_as_such() {
        let slot = v1::HorizonHolder {
            kind: HorizonHolderKind::ReplicationSlot.into(),
            name: "feed\u{1b}".into(),
            transactions: 12,
            catalogs_only: true,
            ..Default::default()
        };
        let job = v1::TableHealth { table: "job".into(), bytes: 3 << 19, ..Default::default() };
        let look = GetVacuumHorizonResponse { holders: vec![slot], tables: vec![job], blind_spots: vec![] };
        let shown = holders(&look).render(Style::Plain);
        assert!(shown.contains("replication slot (catalogs only)  feed\\u{1b}            12    -"), "{shown}");
        let shown = tables(&look).render(Style::Plain);
        assert!(shown.contains(" 1.5  never"), "{shown}");
    }
}
