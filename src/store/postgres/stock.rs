//! Stock and its books.

use async_trait::async_trait;
use sqlx::postgres::PgRow;

use super::{
    reserve::{keys, short, stock_key},
    session::{Args, PgSession},
    value::{Moment, get, narrow, one_each},
};
use crate::{
    model::{Balance, Caller, Key, LedgerKind, Movement, ReservationId, StockKey},
    store::{
        engine::{
            AdjustCall, Adjusted, LedgerRow, Refilled, StockDifference, StockFigure, StockRow, StockSwitch, Stocking,
            SwitchSet, Verified, VerifyWalk,
        },
        error::EngineError,
    },
};

const ADJUST_STOCK: &str = include_str!("sql/adjust_stock.sql");
const STOCKS: &str = include_str!("sql/stocks.sql");
const STOCKS_OF: &str = include_str!("sql/stocks_of.sql");
const UNFOLDED_STOCK: &str = include_str!("sql/unfolded_stock.sql");
const REFILL_STOCK: &str = include_str!("sql/refill_stock.sql");
const VERIFY_STOCK: &str = include_str!("sql/verify_stock.sql");
const LIST_LEDGER: &str = include_str!("sql/list_ledger.sql");
const STOCK_SWITCHES: &str = include_str!("sql/stock_switches.sql");
const SET_STOCK_SWITCH: &str = include_str!("sql/set_stock_switch.sql");
const REMOVE_STOCK_SWITCH: &str = include_str!("sql/remove_stock_switch.sql");

#[async_trait]
impl Stocking for PgSession {
    async fn adjust(&mut self, caller: &Caller, call: &AdjustCall) -> Result<Adjusted, EngineError> {
        let (items, locations) = keys(call.adjustments.iter().map(|one| &one.key));
        let deltas: Vec<i64> = call.adjustments.iter().map(|one| one.delta).collect();
        let taken: Vec<i64> = deltas.iter().map(|delta| delta.saturating_neg().max(0)).collect();
        let arguments = Args::new()
            .with(call.reference.as_str())
            .with(&call.content[..])
            .with(call.reason.as_str())
            .with(caller.as_str())
            .with(narrow::<i32, _>(call.pool, "adjust_stock", "pool")?)
            .with(items)
            .with(locations)
            .with(deltas)
            .with(Balance::MOST_ON_HAND);
        let row = self.row(caller, ADJUST_STOCK, arguments).await?;
        match get::<i16>(&row, "adjust_stock", "outcome")? {
            code @ (1 | 2) => Ok(Adjusted::Made { stocks: adjusted(&row, call)?, duplicate: code == 2 }),
            3 => Ok(Adjusted::KeyReused),
            5 => Ok(Adjusted::Busy),
            6 => Ok(Adjusted::SoldOut(short(&row, "adjust_stock", &taken)?)),
            7 => {
                let place: i32 = get(&row, "adjust_stock", "place")?;
                Ok(Adjusted::TooMany { adjustment: narrow(place - 1, "adjust_stock", "place")? })
            }
            code => Err(EngineError::Bug(format!("adjust_stock: outcome {code}"))),
        }
    }

    async fn stocks(
        &mut self,
        caller: &Caller,
        item: &Key,
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Vec<StockRow>, EngineError> {
        let arguments = Args::new()
            .with(item.as_str())
            .with(after.map_or("", Key::as_str))
            .with(narrow::<i32, _>(limit, "stocks", "limit")?);
        let rows = self.rows(caller, STOCKS, arguments).await?;
        rows.iter().map(|row| stock_row(row, "stocks")).collect()
    }

    async fn stocks_of(&mut self, caller: &Caller, asked: &[StockKey]) -> Result<Vec<Option<StockRow>>, EngineError> {
        let (items, locations) = keys(asked.iter());
        let mut stocks = vec![None; asked.len()];
        for row in self.rows(caller, STOCKS_OF, Args::new().with(items).with(locations)).await? {
            let place: i64 = get(&row, "stocks_of", "n")?;
            let place: usize = narrow(place - 1, "stocks_of", "n")?;
            let balance =
                Balance { on_hand: get(&row, "stocks_of", "on_hand")?, held: get(&row, "stocks_of", "held")? };
            let key = asked.get(place).ok_or_else(|| EngineError::Bug("stocks_of: a place of nothing".into()))?;
            stocks[place] = Some(StockRow { key: key.clone(), balance });
        }
        Ok(stocks)
    }

    async fn unfolded(
        &mut self,
        caller: &Caller,
        after: Option<&StockKey>,
        limit: usize,
    ) -> Result<Vec<StockKey>, EngineError> {
        let arguments = behind(Args::new(), after).with(narrow::<i32, _>(limit, "unfolded_stock", "limit")?);
        let row = self.row(caller, UNFOLDED_STOCK, arguments).await?;
        listed(&row, "unfolded_stock")
    }

    async fn refill(&mut self, caller: &Caller, stocks: &[StockKey], pool: u32) -> Result<Vec<Refilled>, EngineError> {
        if stocks.is_empty() {
            return Ok(Vec::new());
        }
        let (items, locations) = keys(stocks.iter());
        let arguments = Args::new().with(items).with(locations).with(narrow::<i32, _>(pool, "refill_stock", "pool")?);
        let row = self.row(caller, REFILL_STOCK, arguments).await?;
        let places: Vec<i32> = get(&row, "refill_stock", "places")?;
        let folds: Vec<i64> = one_each(get(&row, "refill_stock", "folds")?, places.len(), "refill_stock", "folds")?;
        let adds: Vec<i32> = one_each(get(&row, "refill_stock", "adds")?, places.len(), "refill_stock", "adds")?;
        let depths: Vec<i32> = one_each(get(&row, "refill_stock", "depths")?, places.len(), "refill_stock", "depths")?;
        let rows = places.into_iter().zip(folds).zip(adds.into_iter().zip(depths));
        rows.map(|((place, folded), (added, depth))| {
            let place: usize = narrow(place - 1, "refill_stock", "places")?;
            let key = stocks.get(place).ok_or_else(|| EngineError::Bug("refill_stock: a place of nothing".into()))?;
            Ok(Refilled {
                key: key.clone(),
                folded: narrow(folded, "refill_stock", "folds")?,
                added: narrow(added, "refill_stock", "adds")?,
                depth: narrow(depth, "refill_stock", "depths")?,
            })
        })
        .collect()
    }

    async fn verify(&mut self, caller: &Caller, walk: &VerifyWalk) -> Result<Verified, EngineError> {
        let only = walk.item.as_ref().map(Key::as_str);
        let (item, location) = match &walk.after {
            Some(key) => (key.item.as_str(), key.location.as_str()),
            None => (only.unwrap_or_default(), ""),
        };
        let arguments = Args::new().with(only).with(item).with(location).with(narrow::<i32, _>(
            walk.limit,
            "verify_stock",
            "limit",
        )?);
        let row = self.row(caller, VERIFY_STOCK, arguments).await?;
        let stocks = listed(&row, "verify_stock")?;
        let column = |name: &str| {
            let figures: Option<Vec<i64>> = get(&row, "verify_stock", name)?;
            one_each(figures.unwrap_or_default(), stocks.len(), "verify_stock", name)
        };
        let (entered_on_hand, entered_held) = (column("entered_on_hand")?, column("entered_held")?);
        let (on_hands, helds) = (column("on_hands")?, column("helds")?);
        let (lines, frees) = (column("lines")?, column("frees")?);
        let mut differences = Vec::new();
        for (n, key) in stocks.iter().enumerate() {
            let figures = [
                (StockFigure::OnHand, entered_on_hand[n], on_hands[n]),
                (StockFigure::Held, entered_held[n], helds[n]),
                (StockFigure::HeldLines, lines[n], helds[n]),
                (StockFigure::Free, on_hands[n].saturating_sub(helds[n]), frees[n]),
            ];
            let differing = figures.into_iter().filter(|(_, expected, found)| expected != found);
            differences.extend(differing.map(|(figure, expected, found)| StockDifference {
                key: key.clone(),
                figure,
                expected,
                found,
            }));
        }
        let compared = stocks.len();
        let next = if compared < walk.limit { None } else { stocks.into_iter().next_back() };
        Ok(Verified { compared, differences, next })
    }

    async fn ledger(
        &mut self,
        caller: &Caller,
        key: &StockKey,
        before: Option<i64>,
        limit: usize,
    ) -> Result<Vec<LedgerRow>, EngineError> {
        let arguments = Args::new()
            .with(key.item.as_str())
            .with(key.location.as_str())
            .with(before.unwrap_or(i64::MAX))
            .with(narrow::<i32, _>(limit, "list_ledger", "limit")?);
        let rows = self.rows(caller, LIST_LEDGER, arguments).await?;
        rows.iter().map(entry).collect()
    }

    async fn stock_switches(&mut self, caller: &Caller, at_most: usize) -> Result<Vec<StockSwitch>, EngineError> {
        let rows = self.rows(caller, STOCK_SWITCHES, Args::new().with(count(at_most))).await?;
        rows.iter().map(|row| switch(row, "stock_switches")).collect()
    }

    async fn set_stock_switch(
        &mut self,
        caller: &Caller,
        prefix: &str,
        reason: Option<&str>,
        at_most: usize,
    ) -> Result<SwitchSet, EngineError> {
        let Some(reason) = reason else {
            self.rows(caller, REMOVE_STOCK_SWITCH, Args::new().with(prefix)).await?;
            return Ok(SwitchSet::Cleared);
        };
        let arguments = Args::new().with(prefix).with(reason).with(count(at_most));
        let rows = self.rows(caller, SET_STOCK_SWITCH, arguments).await?;
        match rows.first() {
            Some(row) => switch(row, "set_stock_switch").map(SwitchSet::Set),
            None => Ok(SwitchSet::Full),
        }
    }
}

fn count(at_most: usize) -> i64 {
    i64::try_from(at_most).unwrap_or(i64::MAX)
}

/// Before all keys where there is none.
fn behind(arguments: Args, after: Option<&StockKey>) -> Args {
    arguments.with(after.map_or("", |key| key.item.as_str())).with(after.map_or("", |key| key.location.as_str()))
}

fn listed(row: &PgRow, act: &str) -> Result<Vec<StockKey>, EngineError> {
    let items: Vec<String> = get(row, act, "items")?;
    let locations: Vec<String> = one_each(get(row, act, "locations")?, items.len(), act, "locations")?;
    items.into_iter().zip(locations).map(|(item, location)| stock_key(&item, &location, act)).collect()
}

fn adjusted(row: &PgRow, call: &AdjustCall) -> Result<Vec<StockRow>, EngineError> {
    let asked = call.adjustments.len();
    let on_hands: Vec<i64> = one_each(get(row, "adjust_stock", "on_hands")?, asked, "adjust_stock", "on_hands")?;
    let helds: Vec<i64> = one_each(get(row, "adjust_stock", "helds")?, asked, "adjust_stock", "helds")?;
    let balances = on_hands.into_iter().zip(helds).map(|(on_hand, held)| Balance { on_hand, held });
    let keys = call.adjustments.iter().map(|one| one.key.clone());
    Ok(keys.zip(balances).map(|(key, balance)| StockRow { key, balance }).collect())
}

fn stock_row(row: &PgRow, act: &str) -> Result<StockRow, EngineError> {
    Ok(StockRow {
        key: stock_key(get(row, act, "item")?, get(row, act, "location")?, act)?,
        balance: Balance { on_hand: get(row, act, "on_hand")?, held: get(row, act, "held")? },
    })
}

fn entry(row: &PgRow) -> Result<LedgerRow, EngineError> {
    let nonsense = |column: &str| EngineError::Bug(format!("list_ledger: column {column} cannot be that"));
    let reference = get::<Option<&str>>(row, "list_ledger", "reference")?;
    Ok(LedgerRow {
        id: get(row, "list_ledger", "id")?,
        kind: LedgerKind::of_code(get(row, "list_ledger", "kind")?).ok_or_else(|| nonsense("kind"))?,
        movement: Movement { on_hand: get(row, "list_ledger", "on_hand")?, held: get(row, "list_ledger", "held")? },
        reservation: get::<Option<i64>>(row, "list_ledger", "reservation_id")?.map(ReservationId),
        reference: reference
            .map(|reference| Key::parse("reference", reference).map_err(|_| nonsense("reference")))
            .transpose()?,
        reason: get::<Option<String>>(row, "list_ledger", "reason")?.unwrap_or_default(),
        entered_at: get::<Moment>(row, "list_ledger", "entered_at")?.0,
    })
}

fn switch(row: &PgRow, act: &str) -> Result<StockSwitch, EngineError> {
    Ok(StockSwitch {
        prefix: get(row, act, "prefix")?,
        reason: get(row, act, "reason")?,
        set_at: get::<Moment>(row, act, "set_at")?.0,
    })
}
