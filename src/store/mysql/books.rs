//! The books of stocks: whether their figures agree, and their ledger.

use std::collections::BTreeSet;

use sqlx::mysql::MySqlRow;

use super::{
    record::key,
    session::{MysqlSession, Statement},
    units,
    value::{column, count, moment, narrow, place},
};
use crate::{
    model::{Caller, LedgerKind, Movement, ReservationId, StockKey},
    store::{
        engine::{LedgerRow, StockDifference, StockFigure, Verified, VerifyWalk},
        error::EngineError,
    },
};

/// Two ways to look for keys: all, and those of one item.
struct Keys {
    all: &'static str,
    of_item: &'static str,
}

const STOCKS: Keys =
    Keys { all: include_str!("sql/verify_stocks.sql"), of_item: include_str!("sql/verify_stocks_of_item.sql") };

const ENTRIES: Keys =
    Keys { all: include_str!("sql/verify_entries.sql"), of_item: include_str!("sql/verify_entries_of_item.sql") };

impl MysqlSession {
    /// Compares the figures of the next keys, those of each key at one instant.
    pub(super) async fn verify_keys(&mut self, caller: &Caller, walk: &VerifyWalk) -> Result<Verified, EngineError> {
        let mut keys: BTreeSet<StockKey> = BTreeSet::new();
        for kind in [&STOCKS, &ENTRIES] {
            let find = self.keys_behind(caller, kind, walk);
            keys.extend(self.keys_of(find).await?);
        }
        let more = keys.len() >= walk.limit;
        let keys: Vec<StockKey> = keys.into_iter().take(walk.limit).collect();
        let mut differences = Vec::new();
        if !keys.is_empty() {
            let asked: Vec<&StockKey> = keys.iter().collect();
            let find = self.statement(caller, include_str!("sql/verify_keys.sql")).bind(units::places(&asked)?);
            let mut found: Vec<(usize, StockDifference)> = Vec::new();
            for row in self.read(find).await? {
                let n = place(&row, keys.len())?;
                found.extend(differing(&row, &keys[n])?.into_iter().map(|difference| (n, difference)));
            }
            found.sort_by_key(|(n, _)| *n);
            differences.extend(found.into_iter().map(|(_, difference)| difference));
        }
        Ok(Verified { compared: keys.len(), differences, next: keys.into_iter().next_back().filter(|_| more) })
    }

    fn keys_behind(&mut self, caller: &Caller, keys: &Keys, walk: &VerifyWalk) -> Statement {
        let (item, location) = walk.after.as_ref().map_or_else(Default::default, units::bytes);
        if let Some(only) = &walk.item {
            let bytes = only.as_str().as_bytes().to_vec();
            // Behind a key of another item lie all of this one or none.
            let location = if item < bytes { Vec::new() } else { location };
            let limit = if item > bytes { 0 } else { walk.limit };
            return self.statement(caller, keys.of_item).bind(bytes).bind(location).bind(count(limit));
        }
        let find = self.statement(caller, keys.all).bind(item.clone()).bind(location).bind(item);
        find.bind(count(walk.limit))
    }

    pub(super) async fn ledger_of(
        &mut self,
        caller: &Caller,
        key: &StockKey,
        before: Option<i64>,
        limit: usize,
    ) -> Result<Vec<LedgerRow>, EngineError> {
        let (item, location) = units::bytes(key);
        let find = self.statement(caller, include_str!("sql/list_ledger.sql")).bind(item).bind(location);
        let find = find.bind(before.unwrap_or(i64::MAX)).bind(count(limit));
        self.read_alone(find, caller).await?.iter().map(entry).collect()
    }
}

fn entry(row: &MySqlRow) -> Result<LedgerRow, EngineError> {
    let kind = LedgerKind::of_code(narrow(row, "kind")?);
    Ok(LedgerRow {
        id: column(row, "id")?,
        kind: kind.ok_or_else(|| EngineError::Bug("an entry of no kind".into()))?,
        movement: Movement { on_hand: column(row, "on_hand")?, held: column(row, "held")? },
        reservation: column::<Option<i64>>(row, "reservation_id")?.map(ReservationId),
        reference: key(row, "reference")?,
        reason: column::<Option<String>>(row, "reason")?.unwrap_or_default(),
        entered_at: moment(row, "entered_at")?,
    })
}

/// The figures that do not agree.
fn differing(row: &MySqlRow, key: &StockKey) -> Result<Vec<StockDifference>, EngineError> {
    let figure = |name| column::<i64>(row, name);
    let sum = |one, other| Ok::<_, EngineError>(figure(one)?.saturating_add(figure(other)?));
    let on_hand = sum("on_hand", "delta_on_hand")?;
    let held = sum("held", "delta_held")?;
    let free = sum("unpooled", "delta_free")?.saturating_add(figure("units")?);
    let compared = [
        (StockFigure::OnHand, figure("entered_on_hand")?, on_hand),
        (StockFigure::Held, figure("entered_held")?, held),
        (StockFigure::HeldLines, figure("lines_held")?, held),
        (StockFigure::Free, on_hand.saturating_sub(held), free),
    ];
    let differing = compared.into_iter().filter(|(_, expected, found)| expected != found);
    let tell = |(figure, expected, found)| StockDifference { key: key.clone(), figure, expected, found };
    Ok(differing.map(tell).collect())
}
