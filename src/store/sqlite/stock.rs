//! Stock and its books.

use async_trait::async_trait;
use sqlx::sqlite::SqliteRow;

use super::{
    record::key,
    reservation::{reference_of, stock_key},
    session::{SqliteSession, column, list, narrow, place},
};
use crate::{
    model::{Balance, Caller, Key, LedgerKind, Movement, ReservationId, StockKey, Timestamp},
    store::{
        engine::{
            AdjustCall, Adjusted, LedgerRow, Refilled, ShortLine, StockDifference, StockFigure, StockRow, StockSwitch,
            Stocking, SwitchSet, Verified, VerifyWalk,
        },
        error::EngineError,
    },
};

#[async_trait]
impl Stocking for SqliteSession {
    async fn adjust(&mut self, caller: &Caller, call: &AdjustCall) -> Result<Adjusted, EngineError> {
        let now = self.begin(caller).await?;
        let adjusted = self.adjust_all(caller, call, now).await;
        if let Ok(Adjusted::SoldOut(_) | Adjusted::TooMany { .. }) = adjusted {
            self.roll_back(caller).await?;
            return adjusted;
        }
        self.end(caller, now, adjusted).await
    }

    async fn stocks(
        &mut self,
        caller: &Caller,
        item: &Key,
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Vec<StockRow>, EngineError> {
        let find = self
            .statement(caller, include_str!("sql/stocks.sql"))
            .bind(reference_of(item))
            .bind(after.map_or_else(String::new, reference_of))
            .bind(self.shared.clock.now().0)
            .bind(count(limit));
        self.read(find).await?.iter().map(stock_row).collect()
    }

    async fn stocks_of(&mut self, caller: &Caller, keys: &[StockKey]) -> Result<Vec<Option<StockRow>>, EngineError> {
        let now = self.shared.clock.now();
        self.stocks_at(caller, &keys.iter().collect::<Vec<_>>(), now).await
    }

    async fn unfolded(
        &mut self,
        _caller: &Caller,
        _after: Option<&StockKey>,
        _limit: usize,
    ) -> Result<Vec<StockKey>, EngineError> {
        Ok(Vec::new()) // every act writes to the stock itself
    }

    async fn refill(&mut self, _caller: &Caller, _keys: &[StockKey], _pool: u32) -> Result<Vec<Refilled>, EngineError> {
        Ok(Vec::new()) // there is no pool
    }

    async fn verify(&mut self, caller: &Caller, walk: &VerifyWalk) -> Result<Verified, EngineError> {
        let (item, location) = walk
            .after
            .as_ref()
            .map_or_else(Default::default, |key| (reference_of(&key.item), reference_of(&key.location)));
        let find = self
            .statement(caller, include_str!("sql/verify_stocks.sql"))
            .bind(item)
            .bind(location)
            .bind(walk.item.as_ref().map(reference_of))
            .bind(count(walk.limit));
        let rows = self.read(find).await?;
        let mut differences = Vec::new();
        let mut last = None;
        for row in &rows {
            let key = stock_key(row)?;
            differences.extend(differing(row, &key)?);
            last = Some(key);
        }
        Ok(Verified { compared: rows.len(), differences, next: last.filter(|_| rows.len() >= walk.limit) })
    }

    async fn ledger(
        &mut self,
        caller: &Caller,
        key: &StockKey,
        before: Option<i64>,
        limit: usize,
    ) -> Result<Vec<LedgerRow>, EngineError> {
        let find = self
            .statement(caller, include_str!("sql/list_ledger.sql"))
            .bind(reference_of(&key.item))
            .bind(reference_of(&key.location))
            .bind(before.unwrap_or(i64::MAX))
            .bind(count(limit));
        self.read(find).await?.iter().map(entry).collect()
    }

    async fn stock_switches(&mut self, caller: &Caller, at_most: usize) -> Result<Vec<StockSwitch>, EngineError> {
        let find = self.statement(caller, include_str!("sql/stock_switches.sql")).bind(count(at_most));
        let rows = self.read(find).await?;
        let switch = |row: &SqliteRow| {
            Ok(StockSwitch {
                prefix: column(row, "prefix")?,
                reason: column(row, "reason")?,
                set_at: Timestamp(column(row, "set_at")?),
            })
        };
        rows.iter().map(switch).collect()
    }

    async fn set_stock_switch(
        &mut self,
        caller: &Caller,
        prefix: &str,
        reason: Option<&str>,
        at_most: usize,
    ) -> Result<SwitchSet, EngineError> {
        let now = self.begin(caller).await?;
        let change = match reason {
            Some(reason) => self
                .statement(caller, include_str!("sql/set_stock_switch.sql"))
                .bind(prefix.to_owned())
                .bind(reason.to_owned())
                .bind(now.0)
                .bind(count(at_most)),
            None => self.statement(caller, include_str!("sql/remove_stock_switch.sql")).bind(prefix.to_owned()),
        };
        let set = self.change(change).await.map(|rows| match reason {
            Some(reason) if rows > 0 => {
                SwitchSet::Set(StockSwitch { prefix: prefix.to_owned(), reason: reason.to_owned(), set_at: now })
            }
            Some(_) => SwitchSet::Full,
            None => SwitchSet::Cleared,
        });
        self.end(caller, now, set).await
    }
}

impl SqliteSession {
    async fn adjust_all(
        &mut self,
        caller: &Caller,
        call: &AdjustCall,
        now: Timestamp,
    ) -> Result<Adjusted, EngineError> {
        let keys: Vec<&StockKey> = call.adjustments.iter().map(|one| &one.key).collect();
        let known = self.statement(caller, include_str!("sql/adjust_known.sql")).bind(reference_of(&call.reference));
        if let Some(row) = self.change_returning(known).await?.first() {
            if column::<Vec<u8>>(row, "content")? != call.content {
                return Ok(Adjusted::KeyReused);
            }
            return Ok(Adjusted::Made { stocks: self.adjusted(caller, &keys, now).await?, duplicate: true });
        }
        let taking: Vec<usize> = (0..keys.len()).filter(|&n| call.adjustments[n].delta < 0).collect();
        let wanted: Vec<(&StockKey, i64)> =
            taking.iter().map(|&n| (keys[n], call.adjustments[n].delta.saturating_neg())).collect();
        let short = self.free_up(caller, &wanted, now).await?;
        if !short.is_empty() {
            let of = |short: ShortLine| ShortLine { line: taking[short.line], ..short };
            return Ok(Adjusted::SoldOut(short.into_iter().map(of).collect()));
        }
        for (n, stock) in self.stocks_at(caller, &keys, now).await?.into_iter().enumerate() {
            let on_hand = stock.map_or(0, |stock| stock.balance.on_hand);
            if on_hand.saturating_add(call.adjustments[n].delta) > Balance::MOST_ON_HAND {
                return Ok(Adjusted::TooMany { adjustment: n });
            }
        }
        let name = self
            .statement(caller, include_str!("sql/adjust_name.sql"))
            .bind(reference_of(&call.reference))
            .bind(now.0)
            .bind(call.reason.clone())
            .bind(caller.as_str().to_owned())
            .bind(call.content.to_vec());
        let named = self.change_returning(name).await?;
        let named = named.first().ok_or_else(|| EngineError::Bug("an adjustment without an id".to_owned()))?;
        let id: i64 = column(named, "id")?;
        let rows: Vec<(&str, &str, i64)> =
            call.adjustments.iter().map(|one| (one.key.item.as_str(), one.key.location.as_str(), one.delta)).collect();
        for sql in [include_str!("sql/open_stocks.sql"), include_str!("sql/adjust_stocks.sql")] {
            let adjust = self.statement(caller, sql).bind(list(&rows)?);
            self.change(adjust).await?;
        }
        let enter = self.statement(caller, include_str!("sql/adjust_entries.sql")).bind(list(&rows)?);
        self.change(enter.bind(id).bind(now.0)).await?;
        Ok(Adjusted::Made { stocks: self.adjusted(caller, &keys, now).await?, duplicate: false })
    }

    /// Stocks that are there.
    async fn adjusted(
        &mut self,
        caller: &Caller,
        keys: &[&StockKey],
        now: Timestamp,
    ) -> Result<Vec<StockRow>, EngineError> {
        let stocks: Option<Vec<StockRow>> = self.stocks_at(caller, keys, now).await?.into_iter().collect();
        stocks.ok_or_else(|| EngineError::Bug("a stock is not there".to_owned()))
    }

    /// The stocks of these keys, what reservations past their time hold counted as free.
    async fn stocks_at(
        &mut self,
        caller: &Caller,
        keys: &[&StockKey],
        now: Timestamp,
    ) -> Result<Vec<Option<StockRow>>, EngineError> {
        let names: Vec<(&str, &str)> = keys.iter().map(|key| (key.item.as_str(), key.location.as_str())).collect();
        let look = self.statement(caller, include_str!("sql/cart_stocks.sql")).bind(list(&names)?).bind(now.0);
        let mut stocks: Vec<Option<StockRow>> = keys.iter().map(|_| None).collect();
        for row in self.read(look).await? {
            let n = place(&row, keys.len())?;
            let held = column::<i64>(&row, "held")?.saturating_sub(column(&row, "overdue")?);
            let balance = Balance { on_hand: column(&row, "on_hand")?, held };
            stocks[n] = Some(StockRow { key: keys[n].clone(), balance });
        }
        Ok(stocks)
    }
}

fn count(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

fn stock_row(row: &SqliteRow) -> Result<StockRow, EngineError> {
    let balance = Balance { on_hand: column(row, "on_hand")?, held: column(row, "held")? };
    Ok(StockRow { key: stock_key(row)?, balance })
}

fn entry(row: &SqliteRow) -> Result<LedgerRow, EngineError> {
    let kind = LedgerKind::of_code(narrow(row, "kind")?);
    Ok(LedgerRow {
        id: column(row, "id")?,
        kind: kind.ok_or_else(|| EngineError::Bug("an entry of no kind".to_owned()))?,
        movement: Movement { on_hand: column(row, "on_hand")?, held: column(row, "held")? },
        reservation: column::<Option<i64>>(row, "reservation_id")?.map(ReservationId),
        reference: key(row, "reference")?,
        reason: column::<Option<String>>(row, "reason")?.unwrap_or_default(),
        entered_at: Timestamp(column(row, "entered_at")?),
    })
}

/// The figures that do not agree.
fn differing(row: &SqliteRow, key: &StockKey) -> Result<Vec<StockDifference>, EngineError> {
    let figure = |name| column::<i64>(row, name);
    let compared = [
        (StockFigure::OnHand, figure("entered_on_hand")?, figure("on_hand")?),
        (StockFigure::Held, figure("entered_held")?, figure("held")?),
        (StockFigure::HeldLines, figure("lines_held")?, figure("held")?),
    ];
    let differing = compared.into_iter().filter(|(_, expected, found)| expected != found);
    let tell = |(figure, expected, found)| StockDifference { key: key.clone(), figure, expected, found };
    Ok(differing.map(tell).collect())
}
