//! What is free, seen without a lock.

use super::{
    session::MysqlSession,
    units::{self, LockedStock},
    value::{column, place},
};
use crate::{
    model::{Balance, Caller, StockKey},
    store::{engine::ShortLine, error::EngineError},
};

/// What one statement saw of several stocks, all at one instant.
///
/// What is not committed does not count: units that somebody is about to take are free, those that somebody is about to give
/// back are not. So what is short here was short at that instant.
pub(super) struct Supply {
    /// Of which too little is free.
    pub(super) short: Vec<ShortLine>,
    /// By place: the unit that would go into the pool next.
    next_units: Vec<Option<i64>>,
}

impl Supply {
    /// Whether somebody has put units into one of the pools since.
    pub(super) fn was_filled(&self, stocks: &[Option<LockedStock>]) -> bool {
        let mut pairs = self.next_units.iter().zip(stocks);
        pairs.any(|(before, stock)| {
            stock.as_ref().is_some_and(|stock| before.is_some_and(|unit| unit < stock.next_unit))
        })
    }
}

impl MysqlSession {
    /// Looks whether so many units of each are free, those counted that reservations past their time hold.
    pub(super) async fn supply(&mut self, caller: &Caller, wanted: &[(&StockKey, i64)]) -> Result<Supply, EngineError> {
        let keys: Vec<&StockKey> = wanted.iter().map(|(key, _)| *key).collect();
        let look = self.statement(caller, include_str!("sql/read_stocks.sql")).bind(units::places(&keys)?);
        let mut free = vec![0; wanted.len()];
        let mut next_units = vec![None; wanted.len()];
        for row in self.read(look).await? {
            let n = place(&row, wanted.len())?;
            free[n] = Balance { on_hand: column(&row, "on_hand")?, held: column(&row, "held")? }.available();
            next_units[n] = Some(column(&row, "next_unit")?);
        }
        let short = wanted
            .iter()
            .zip(free)
            .enumerate()
            .filter(|(_, ((_, units), free))| free < units)
            .map(|(line, (_, available))| ShortLine { line, available })
            .collect();
        Ok(Supply { short, next_units })
    }
}
