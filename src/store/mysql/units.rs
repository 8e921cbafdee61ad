//! Units of stocks that this transaction has locked: folded, found wherever they are, and put where others find them.

use std::time::Duration;

use sqlx::mysql::MySqlRow;

use super::{
    session::{MysqlSession, only},
    value::{column, count, list, moment, place},
};
use crate::{
    model::{Balance, Caller, Movement, StockKey, Timestamp},
    store::{engine::ShortLine, error::EngineError, hex::hex},
};

/// Rows folded by one statement, and how often one act does that: what is left waits for the next.
const FOLDED_AT_ONCE: usize = 1_000;
const FOLDS: usize = 20;

/// A row that was left to be folded longer ago than this is committed or never will be; where it is not so, an act that comes
/// up short looks from the beginning.
const UNSEEN: Duration = Duration::from_mins(1);

/// Units that one statement puts into a pool or takes from it.
const UNITS_AT_ONCE: usize = 1_000;

/// Reservations that are ended at once to have their units.
const OVERDUE_AT_ONCE: usize = 100;

/// Looks at a stock whose units come and go while it is looked at.
const LOOKS: usize = 1_000;

/// An item and a location, in hexadecimal.
pub(super) type Key2 = (String, String);

/// A stock whose row this transaction has locked, as it is to be.
pub(super) struct LockedStock {
    pub(super) key: StockKey,
    pub(super) balance: Balance,
    unpooled: i64,
    pub(super) next_unit: i64,
    unit_floor: i64,
    delta_floor: i64,
}

/// Units that somebody else is about to take.
///
/// Who waits for one must have begun with the lowest: sales walk upwards, and on `MariaDB` even one that passes over locked
/// units counts as waiting for each of them for a moment, so that it would be in a deadlock with whoever took the units that
/// were free and waits now for those below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Others {
    PassedOver,
    WaitedFor,
}

/// What became of a search for units.
pub(super) enum Taken {
    /// All were had.
    All(Vec<LockedStock>),
    /// Of these places too little is free.
    Short(Vec<ShortLine>),
    /// Somebody else is about to free what is missing.
    Busy,
    /// Units that were passed over may be enough.
    Contended,
}

/// What became of the search in one stock.
pub(super) enum Search {
    /// All were had.
    Found,
    /// No more than these are free.
    Short(i64),
    /// As [`Taken::Busy`].
    Busy,
    /// As [`Taken::Contended`].
    Contended,
}

/// As they stand in lists of parameters.
pub(super) fn hexed(key: &StockKey) -> Key2 {
    (hex(key.item.as_str().as_bytes()), hex(key.location.as_str().as_bytes()))
}

/// As they stand in columns.
pub(super) fn bytes(key: &StockKey) -> (Vec<u8>, Vec<u8>) {
    (key.item.as_str().as_bytes().to_vec(), key.location.as_str().as_bytes().to_vec())
}

/// Keys with their places, as one parameter.
pub(super) fn places(keys: &[&StockKey]) -> Result<String, EngineError> {
    let place = |(n, key): (usize, &&StockKey)| {
        let (item, location) = hexed(key);
        (n, item, location)
    };
    list(&keys.iter().enumerate().map(place).collect::<Vec<_>>())
}

impl LockedStock {
    /// Units of the pool, those included that others are about to take. Never less than there are.
    pub(super) fn pooled(&self) -> i64 {
        self.balance.available().saturating_sub(self.unpooled).max(0)
    }

    /// Where folding begins as a rule.
    pub(super) fn delta_floor(&self) -> i64 {
        self.delta_floor
    }

    pub(super) fn is_low(&self, pool: u32) -> bool {
        self.pooled().saturating_mul(2) < i64::from(pool)
    }

    /// Makes units held that were taken.
    pub(super) fn hold(&mut self, units: i64) -> Result<(), EngineError> {
        self.apply(Movement { on_hand: 0, held: units })
    }

    /// Changes the balance. That it leaves its bounds can only be where the fold saw an end and not yet its beginning.
    pub(super) fn apply(&mut self, movement: Movement) -> Result<(), EngineError> {
        let after = self.balance.after(movement);
        self.balance = after.ok_or_else(|| EngineError::Conflict("a balance that is about to change".into()))?;
        Ok(())
    }

    /// Adds units that are free.
    pub(super) fn free(&mut self, units: i64) {
        self.unpooled = self.unpooled.saturating_add(units);
    }
}

impl MysqlSession {
    /// Locks the stocks of these keys, which are in their order, waiting for others who have them. By their places; those
    /// that are not there are absent.
    pub(super) async fn lock_stocks(
        &mut self,
        caller: &Caller,
        keys: &[&StockKey],
        sql: &'static str,
    ) -> Result<Vec<Option<LockedStock>>, EngineError> {
        let lock = self.statement(caller, sql).bind(places(keys)?);
        let mut stocks: Vec<Option<LockedStock>> = keys.iter().map(|_| None).collect();
        for row in self.read(lock).await? {
            let n = place(&row, keys.len())?;
            stocks[n] = Some(LockedStock {
                key: keys[n].clone(),
                balance: Balance { on_hand: column(&row, "on_hand")?, held: column(&row, "held")? },
                unpooled: column(&row, "unpooled")?,
                next_unit: column(&row, "next_unit")?,
                unit_floor: column(&row, "unit_floor")?,
                delta_floor: column(&row, "delta_floor")?,
            });
        }
        Ok(stocks)
    }

    /// Takes so many units of each of these stocks, wherever they are.
    pub(super) async fn take_any(
        &mut self,
        caller: &Caller,
        locked: Vec<Option<LockedStock>>,
        wanted: &[(&StockKey, i64)],
        (now, others): (Timestamp, Others),
    ) -> Result<Taken, EngineError> {
        let mut stocks = Vec::new();
        let mut short = Vec::new();
        let mut missing = None;
        for (line, (stock, (_, units))) in locked.into_iter().zip(wanted).enumerate() {
            let Some(mut stock) = stock else {
                short.push(ShortLine { line, available: 0 });
                continue;
            };
            match self.search(caller, &mut stock, *units, (now, others)).await? {
                Search::Found => stocks.push(stock),
                Search::Short(available) => short.push(ShortLine { line, available }),
                Search::Busy => missing = missing.or(Some(Taken::Busy)),
                Search::Contended => missing = Some(Taken::Contended),
            }
        }
        if short.is_empty() { Ok(missing.unwrap_or(Taken::All(stocks))) } else { Ok(Taken::Short(short)) }
    }

    /// Takes units of one stock: of those beside the pool, of the pool, of reservations past their time. Where units of others
    /// are waited for, no other unit of this stock may be held. That too little is free is said by one statement that sees
    /// nothing else.
    pub(super) async fn search(
        &mut self,
        caller: &Caller,
        stock: &mut LockedStock,
        units: i64,
        (now, others): (Timestamp, Others),
    ) -> Result<Search, EngineError> {
        let mut had = 0;
        let mut floor = stock.delta_floor;
        for _ in 0..LOOKS {
            self.fold(caller, stock, (floor, now)).await?;
            floor = 0;
            let beside = (units - had).min(stock.unpooled);
            stock.unpooled -= beside;
            had += beside;
            if had < units {
                had += self.take_pooled(caller, stock, units - had, others).await?;
            }
            if had >= units {
                return Ok(Search::Found);
            }
            if others == Others::PassedOver && !self.pooled_units(caller, stock, 1).await?.is_empty() {
                return Ok(Search::Contended);
            }
            if self.end_overdue(caller, &stock.key, OVERDUE_AT_ONCE).await? > 0 {
                continue;
            }
            let (item, location) = bytes(&stock.key);
            let mut look = self.statement(caller, include_str!("sql/what_is_left.sql"));
            for _ in 0..3 {
                look = look.bind(item.clone()).bind(location.clone());
            }
            let left = only(self.read(look).await?)?;
            let is = |name| column::<i64>(&left, name).map(|is| is != 0);
            if is("deltas")? || is("units")? {
                continue;
            }
            return Ok(if is("overdue")? { Search::Busy } else { Search::Short(had) });
        }
        Err(EngineError::Conflict("units come and go".into()))
    }

    /// Takes up to so many units of the pool.
    async fn take_pooled(
        &mut self,
        caller: &Caller,
        stock: &LockedStock,
        units: i64,
        others: Others,
    ) -> Result<i64, EngineError> {
        let mut had = 0;
        while had < units {
            let some = (units - had).min(count(UNITS_AT_ONCE));
            let taken = match others {
                Others::PassedOver => self.first_units(caller, stock, some, include_str!("sql/free_units.sql")).await?,
                Others::WaitedFor => {
                    let there = self.pooled_units(caller, stock, some).await?;
                    let wait = self.statement(caller, include_str!("sql/wait_for_units.sql")).bind(list(&there)?);
                    units_of(&stock.key, &self.read(wait).await?)?
                }
            };
            self.take_units(caller, &taken).await?;
            had += count(taken.len());
            if count(taken.len()) < some {
                break;
            }
        }
        Ok(had)
    }

    /// So many units of the pool, the lowest numbers first, whoever has locked them.
    async fn pooled_units(
        &mut self,
        caller: &Caller,
        stock: &LockedStock,
        units: i64,
    ) -> Result<Vec<(String, String, i64)>, EngineError> {
        self.first_units(caller, stock, units, include_str!("sql/taken_units.sql")).await
    }

    /// The same as the statement finds them.
    async fn first_units(
        &mut self,
        caller: &Caller,
        stock: &LockedStock,
        units: i64,
        sql: &'static str,
    ) -> Result<Vec<(String, String, i64)>, EngineError> {
        let (item, location) = bytes(&stock.key);
        let find = self.statement(caller, sql).bind(item).bind(location).bind(stock.unit_floor).bind(units);
        units_of(&stock.key, &self.read(find).await?)
    }

    /// Takes units that this transaction has locked.
    pub(super) async fn take_units(
        &mut self,
        caller: &Caller,
        units: &[(String, String, i64)],
    ) -> Result<(), EngineError> {
        if units.is_empty() {
            return Ok(());
        }
        let take = self.statement(caller, include_str!("sql/take_units.sql")).bind(list(units)?);
        let taken = self.change(take).await?;
        if taken == units.len() as u64 {
            Ok(())
        } else {
            Err(EngineError::Bug(format!("{taken} of {} locked units were taken", units.len())))
        }
    }

    /// Adds what others left for whoever has the stock's lock, from an instant on. How many rows that were.
    pub(super) async fn fold(
        &mut self,
        caller: &Caller,
        stock: &mut LockedStock,
        (floor, now): (i64, Timestamp),
    ) -> Result<usize, EngineError> {
        let (item, location) = bytes(&stock.key);
        let mut folded = 0;
        let mut sum = Movement::default();
        for _ in 0..FOLDS {
            let take = self.statement(caller, include_str!("sql/take_deltas.sql")).bind(item.clone());
            let rows = self.read(take.bind(location.clone()).bind(floor).bind(count(FOLDED_AT_ONCE))).await?;
            let mut gone: Vec<(i64, i64, i64)> = Vec::with_capacity(rows.len());
            for row in &rows {
                gone.push((column(row, "made_at")?, column(row, "reservation_id")?, column(row, "kind")?));
                sum.on_hand = sum.on_hand.saturating_add(column(row, "on_hand")?);
                sum.held = sum.held.saturating_add(column(row, "held")?);
                stock.free(column(row, "free")?);
            }
            if !gone.is_empty() {
                let remove = self.statement(caller, include_str!("sql/remove_deltas.sql")).bind(list(&gone)?);
                self.change(remove.bind(item.clone()).bind(location.clone())).await?;
            }
            folded += gone.len();
            if gone.len() < FOLDED_AT_ONCE {
                stock.delta_floor = stock.delta_floor.max(now.minus(UNSEEN).0);
                break;
            }
        }
        stock.apply(sum)?;
        Ok(folded)
    }

    /// Puts units into the pool where it is less than half full; how many.
    pub(super) async fn fill(
        &mut self,
        caller: &Caller,
        stock: &mut LockedStock,
        pool: u32,
    ) -> Result<usize, EngineError> {
        let room = i64::from(pool).saturating_sub(stock.pooled());
        let units = room.min(stock.unpooled);
        if units <= 0 || !stock.is_low(pool) {
            return Ok(0);
        }
        let (item, location) = bytes(&stock.key);
        let first = self.statement(caller, include_str!("sql/first_unit.sql"));
        let first = self.read(first.bind(item.clone()).bind(location.clone()).bind(stock.unit_floor)).await?;
        // Only whoever has this lock adds units, so none comes into being below the first.
        stock.unit_floor = first.first().map_or(Ok(stock.next_unit), |row| column(row, "unit"))?;
        let numbers: Vec<i64> = (stock.next_unit..stock.next_unit.saturating_add(units)).collect();
        for numbers in numbers.chunks(UNITS_AT_ONCE) {
            let fill = self.statement(caller, include_str!("sql/fill_pool.sql")).bind(item.clone());
            self.change(fill.bind(location.clone()).bind(list(numbers)?)).await?;
        }
        stock.next_unit = stock.next_unit.saturating_add(units);
        stock.unpooled -= units;
        Ok(numbers.len())
    }

    /// Writes the row of a stock that is locked.
    pub(super) async fn write_stock(&mut self, caller: &Caller, stock: &LockedStock) -> Result<(), EngineError> {
        let (item, location) = bytes(&stock.key);
        let set = self
            .statement(caller, include_str!("sql/set_stock.sql"))
            .bind(stock.balance.on_hand)
            .bind(stock.balance.held)
            .bind(stock.unpooled)
            .bind(stock.next_unit)
            .bind(stock.unit_floor)
            .bind(stock.delta_floor)
            .bind(item)
            .bind(location);
        self.change(set).await.map(drop)
    }

    /// What time it is by now in the open transaction.
    pub(super) async fn now_within(&mut self, caller: &Caller) -> Result<Timestamp, EngineError> {
        let now = self.statement(caller, include_str!("sql/now.sql"));
        moment(&only(self.read(now).await?)?, "now")
    }
}

/// Units of a stock as statements are sent them.
fn units_of(key: &StockKey, rows: &[MySqlRow]) -> Result<Vec<(String, String, i64)>, EngineError> {
    let (item, location) = hexed(key);
    rows.iter().map(|row| Ok((item.clone(), location.clone(), column(row, "unit")?))).collect()
}
