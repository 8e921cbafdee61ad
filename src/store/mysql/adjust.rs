//! Changing what is on hand.

use super::{
    session::{MysqlSession, only},
    units::{self, LockedStock, Others, Search},
    value::{column, list, place},
};
use crate::{
    model::{Balance, Caller, LedgerKind, StockKey, Timestamp},
    store::{
        engine::{AdjustCall, Adjusted, ShortLine, StockRow},
        error::EngineError,
    },
};

impl MysqlSession {
    pub(super) async fn adjust_all(
        &mut self,
        caller: &Caller,
        call: &AdjustCall,
        now: Timestamp,
    ) -> Result<Adjusted, EngineError> {
        let keys: Vec<&StockKey> = call.adjustments.iter().map(|adjustment| &adjustment.key).collect();
        let reference = call.reference.as_str().as_bytes().to_vec();
        let name = self
            .statement(caller, include_str!("sql/adjust_name.sql"))
            .bind(reference.clone())
            .bind(now.0)
            .bind(call.reason.clone())
            .bind(caller.as_str().to_owned())
            .bind(call.content.to_vec());
        let (touched, id) = self.upsert(name).await?;
        if touched != 1 {
            let read = self.statement(caller, include_str!("sql/read_adjustment.sql")).bind(reference);
            let content: Vec<u8> = column(&only(self.read(read).await?)?, "content")?;
            if content != call.content {
                return Ok(Adjusted::KeyReused);
            }
            return Ok(Adjusted::Made { stocks: self.stocks_now(caller, &keys).await?, duplicate: true });
        }
        let names: Vec<_> = keys.iter().map(|key| units::hexed(key)).collect();
        let open = self.statement(caller, include_str!("sql/open_stocks.sql")).bind(list(&names)?);
        self.change(open).await?;
        let stocks = self.lock_stocks(caller, &keys, include_str!("sql/lock_stocks.sql")).await?;
        let mut stocks: Vec<LockedStock> =
            stocks.into_iter().collect::<Option<_>>().ok_or_else(|| EngineError::Bug("a stock is not there".into()))?;
        let mut short = Vec::new();
        let mut busy = false;
        for (n, (stock, adjustment)) in stocks.iter_mut().zip(&call.adjustments).enumerate() {
            if adjustment.delta < 0 {
                match self.search(caller, stock, adjustment.delta.saturating_neg(), (now, Others::WaitedFor)).await? {
                    Search::Found => {}
                    Search::Short(available) => short.push(ShortLine { line: n, available }),
                    Search::Busy | Search::Contended => busy = true,
                }
            } else {
                self.fold(caller, stock, (stock.delta_floor(), now)).await?;
                let on_hand = stock.balance.on_hand.saturating_add(adjustment.delta);
                if on_hand > Balance::MOST_ON_HAND {
                    return Ok(Adjusted::TooMany { adjustment: n });
                }
                stock.free(adjustment.delta);
            }
            if short.is_empty() && !busy {
                stock.apply(LedgerKind::Adjust.movement(adjustment.delta))?;
                self.fill(caller, stock, call.pool).await?;
                self.write_stock(caller, stock).await?;
            }
        }
        if !short.is_empty() {
            return Ok(Adjusted::SoldOut(short));
        }
        if busy {
            return Ok(Adjusted::Busy);
        }
        let rows: Vec<_> =
            names.iter().zip(&call.adjustments).map(|((item, location), one)| (item, location, one.delta)).collect();
        let enter = self.statement(caller, include_str!("sql/adjust_entries.sql")).bind(id);
        let now = self.now_within(caller).await?;
        let enter = self.change(enter.bind(now.0).bind(list(&rows)?)).await?;
        if enter != rows.len() as u64 {
            return Err(EngineError::Bug(format!("{enter} of {} entries were made", rows.len())));
        }
        Ok(Adjusted::Made { stocks: self.stocks_now(caller, &keys).await?, duplicate: false })
    }

    /// The stocks of these keys as they are, which are all there.
    pub(super) async fn stocks_now(
        &mut self,
        caller: &Caller,
        keys: &[&StockKey],
    ) -> Result<Vec<StockRow>, EngineError> {
        let find = self.statement(caller, include_str!("sql/read_stocks.sql")).bind(units::places(keys)?);
        let mut stocks: Vec<Option<StockRow>> = keys.iter().map(|_| None).collect();
        for row in self.read(find).await? {
            let n = place(&row, keys.len())?;
            let balance = Balance { on_hand: column(&row, "on_hand")?, held: column(&row, "held")? };
            stocks[n] = Some(StockRow { key: keys[n].clone(), balance });
        }
        stocks.into_iter().collect::<Option<_>>().ok_or_else(|| EngineError::Bug("a stock is not there".into()))
    }
}
