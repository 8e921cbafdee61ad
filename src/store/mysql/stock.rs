//! Stock and its books.

use async_trait::async_trait;

use super::{
    reservation::stock_key,
    session::MysqlSession,
    units,
    value::{column, count, moment, name, place},
};
use crate::{
    model::{Balance, Caller, Key, StockKey, Timestamp},
    store::{
        engine::{
            AdjustCall, Adjusted, LedgerRow, Refilled, StockRow, StockSwitch, Stocking, SwitchSet, Verified, VerifyWalk,
        },
        error::EngineError,
    },
};

#[async_trait]
impl Stocking for MysqlSession {
    async fn adjust(&mut self, caller: &Caller, call: &AdjustCall) -> Result<Adjusted, EngineError> {
        let now = self.begin(caller).await?;
        let adjusted = self.adjust_all(caller, call, now).await;
        match adjusted {
            Ok(Adjusted::Made { .. } | Adjusted::KeyReused) | Err(_) => self.end(caller, adjusted).await,
            Ok(Adjusted::SoldOut(_) | Adjusted::Busy | Adjusted::TooMany { .. }) => {
                self.roll_back(caller).await?;
                adjusted
            }
        }
    }

    async fn stocks(
        &mut self,
        caller: &Caller,
        item: &Key,
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Vec<StockRow>, EngineError> {
        let after = after.map_or_else(Vec::new, |location| location.as_str().as_bytes().to_vec());
        let find = self
            .statement(caller, include_str!("sql/list_stocks.sql"))
            .bind(item.as_str().as_bytes().to_vec())
            .bind(after)
            .bind(count(limit));
        let rows = self.read_alone(find, caller).await?;
        rows.iter()
            .map(|row| {
                let balance = Balance { on_hand: column(row, "on_hand")?, held: column(row, "held")? };
                Ok(StockRow { key: stock_key(row)?, balance })
            })
            .collect()
    }

    async fn stocks_of(&mut self, caller: &Caller, keys: &[StockKey]) -> Result<Vec<Option<StockRow>>, EngineError> {
        let asked: Vec<&StockKey> = keys.iter().collect();
        let find = self.statement(caller, include_str!("sql/read_stocks.sql")).bind(units::places(&asked)?);
        let mut stocks = vec![None; keys.len()];
        for row in self.read_alone(find, caller).await? {
            let n = place(&row, keys.len())?;
            let balance = Balance { on_hand: column(&row, "on_hand")?, held: column(&row, "held")? };
            stocks[n] = Some(StockRow { key: keys[n].clone(), balance });
        }
        Ok(stocks)
    }

    async fn unfolded(
        &mut self,
        caller: &Caller,
        after: Option<&StockKey>,
        limit: usize,
    ) -> Result<Vec<StockKey>, EngineError> {
        let (item, location) = after.map_or_else(Default::default, units::bytes);
        let find = self.statement(caller, include_str!("sql/unfolded.sql")).bind(item.clone()).bind(location);
        self.read_alone(find.bind(item).bind(count(limit)), caller).await?.iter().map(stock_key).collect()
    }

    async fn refill(&mut self, caller: &Caller, keys: &[StockKey], pool: u32) -> Result<Vec<Refilled>, EngineError> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let now = self.begin(caller).await?;
        let refilled = self.refill_locked(caller, keys, pool, now).await;
        self.end(caller, refilled).await
    }

    async fn verify(&mut self, caller: &Caller, walk: &VerifyWalk) -> Result<Verified, EngineError> {
        self.begin(caller).await?;
        let verified = self.verify_keys(caller, walk).await;
        self.end(caller, verified).await
    }

    async fn ledger(
        &mut self,
        caller: &Caller,
        key: &StockKey,
        before: Option<i64>,
        limit: usize,
    ) -> Result<Vec<LedgerRow>, EngineError> {
        self.ledger_of(caller, key, before, limit).await
    }

    async fn stock_switches(&mut self, caller: &Caller, at_most: usize) -> Result<Vec<StockSwitch>, EngineError> {
        let find = self.statement(caller, include_str!("sql/stock_switches.sql")).bind(count(at_most));
        let rows = self.read_alone(find, caller).await?;
        rows.iter()
            .map(|row| {
                let prefix = name(row, "prefix")?.unwrap_or_default();
                Ok(StockSwitch { prefix, reason: column(row, "reason")?, set_at: moment(row, "set_at")? })
            })
            .collect()
    }

    async fn set_stock_switch(
        &mut self,
        caller: &Caller,
        prefix: &str,
        reason: Option<&str>,
        at_most: usize,
    ) -> Result<SwitchSet, EngineError> {
        let now = self.begin(caller).await?;
        let bytes = prefix.as_bytes().to_vec();
        let change = match reason {
            Some(reason) => self
                .statement(caller, include_str!("sql/set_stock_switch.sql"))
                .bind(bytes.clone())
                .bind(reason.to_owned())
                .bind(now.0)
                .bind(bytes)
                .bind(count(at_most)),
            None => self.statement(caller, include_str!("sql/remove_stock_switch.sql")).bind(bytes),
        };
        let changed = self.change(change).await;
        let set = changed.map(|rows| match reason {
            Some(reason) if rows > 0 => {
                SwitchSet::Set(StockSwitch { prefix: prefix.to_owned(), reason: reason.to_owned(), set_at: now })
            }
            Some(_) => SwitchSet::Full,
            None => SwitchSet::Cleared,
        });
        self.end(caller, set).await
    }
}

impl MysqlSession {
    async fn refill_locked(
        &mut self,
        caller: &Caller,
        keys: &[StockKey],
        pool: u32,
        now: Timestamp,
    ) -> Result<Vec<Refilled>, EngineError> {
        let asked: Vec<&StockKey> = keys.iter().collect();
        let stocks = self.lock_stocks(caller, &asked, include_str!("sql/try_stocks.sql")).await?;
        let mut refilled = Vec::new();
        for mut stock in stocks.into_iter().flatten() {
            // From the beginning: what stayed behind a floor is found here.
            let folded = self.fold(caller, &mut stock, (0, now)).await?;
            let added = self.fill(caller, &mut stock, pool).await?;
            if folded > 0 || added > 0 {
                self.write_stock(caller, &stock).await?;
            }
            let depth = usize::try_from(stock.pooled()).unwrap_or(usize::MAX);
            refilled.push(Refilled { key: stock.key, folded, added, depth });
        }
        Ok(refilled)
    }
}
