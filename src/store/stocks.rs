//! Stock and its books: adjusted, looked at, compared, pools filled.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{
            AtomicBool,
            Ordering::{Relaxed, SeqCst},
        },
    },
};

use super::{
    Call, Store,
    engine::{AdjustCall, Adjusted, LedgerRow, Refilled, StockRow, Verified, VerifyWalk},
    jobs::Again,
    reservations::{busy, reused, sold_out},
    statement::Statement,
};
use crate::model::{Adjustment, Balance, Caller, Failure, Invalid, Key, StockKey, stock::adjustments_hash};

/// How stock is kept.
#[derive(Debug, Clone)]
pub struct StockOptions {
    /// Units in the pool of an item and location when it is full.
    pub pool: u32,
    /// Switches that there may be.
    pub switches_at_most: usize,
}

impl Default for StockOptions {
    fn default() -> Self {
        Self { pool: 1_000, switches_at_most: 1_000 }
    }
}

/// Adjustments to be made. Its parts have been checked against their limits.
#[derive(Debug, Clone)]
pub struct NewAdjustments {
    /// Names the call.
    pub reference: Key,
    /// At least one, each key once.
    pub adjustments: Vec<Adjustment>,
    /// For people; may be empty.
    pub reason: String,
}

/// Adjustments that are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adjustments {
    /// The stocks as they are now, in the order of the adjustments.
    pub stocks: Vec<StockRow>,
    /// They had been made before.
    pub duplicate: bool,
}

/// Keys that one statement fills the pools of: each may fold up to 10,000 rows.
const REFILLED_AT_ONCE: usize = 8;
/// Keys remembered that want to be refilled; past that the pass over all of them finds them.
const REMEMBERED: usize = 10_000;

/// Pools that ran low, for whoever fills them next.
#[derive(Default)]
pub(super) struct Refills {
    low: Mutex<BTreeSet<StockKey>>,
    under_way: AtomicBool,
}

impl Refills {
    fn low(&self) -> MutexGuard<'_, BTreeSet<StockKey>> {
        self.low.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers keys; false where nobody has to be told.
    fn add(&self, keys: impl Iterator<Item = StockKey>) -> bool {
        let mut low = self.low();
        for key in keys {
            if low.len() < REMEMBERED {
                low.insert(key);
            }
        }
        !low.is_empty() && !self.under_way.swap(true, SeqCst)
    }

    /// The next ones to be refilled; nobody is at it any more where there are none.
    fn next(&self) -> Vec<StockKey> {
        let mut low = self.low();
        let next: Vec<StockKey> = low.iter().take(REFILLED_AT_ONCE).cloned().collect();
        for key in &next {
            low.remove(key);
        }
        if next.is_empty() {
            self.under_way.store(false, SeqCst);
        }
        next
    }
}

impl Store {
    /// Whether something was done with stock through this replica since its start, or found to be done.
    pub fn uses_stock(&self) -> bool {
        self.inner.uses_stock.load(Relaxed)
    }

    pub(super) fn note_use_of_stock(&self) {
        self.inner.uses_stock.store(true, Relaxed);
    }

    /// Makes all adjustments or none. What another act is about to free is waited for, for a second at most.
    pub async fn adjust_stock(&self, call: &Call, new: NewAdjustments) -> Result<Adjustments, Failure> {
        self.note_use_of_stock();
        let mut adjustments = new.adjustments.clone();
        adjustments.sort_by(|one, other| one.key.cmp(&other.key));
        let wanted = Arc::new(AdjustCall {
            reference: new.reference,
            content: adjustments_hash(&adjustments),
            adjustments,
            reason: new.reason,
            pool: self.inner.options.stock.pool,
        });
        let mut again = Again::new(call, self.inner.options.busy_for);
        let adjusted = loop {
            let (caller, asked) = (call.caller.clone(), Arc::clone(&wanted));
            let adjusted = self
                .single(call, Statement::writing("adjust_stock"), move |session| {
                    Box::pin(async move { session.adjust(&caller, &asked).await })
                })
                .await?;
            if adjusted != Adjusted::Busy || !again.pause().await {
                break adjusted;
            }
        };
        let place = |key: &StockKey| new.adjustments.iter().position(|one| one.key == *key);
        match adjusted {
            Adjusted::Made { mut stocks, duplicate } => {
                stocks.sort_by_cached_key(|stock| place(&stock.key));
                Ok(Adjustments { stocks, duplicate })
            }
            Adjusted::KeyReused => Err(reused("the reference is in use for other adjustments", &wanted.reference)),
            Adjusted::SoldOut(short) => Err(sold_out(&short, |line| {
                let one = wanted.adjustments.get(line)?;
                Some((one.key.clone(), one.delta.unsigned_abs()))
            })),
            Adjusted::Busy => Err(busy()),
            Adjusted::TooMany { adjustment } => {
                let at = wanted.adjustments.get(adjustment).and_then(|one| place(&one.key)).unwrap_or(adjustment);
                let rule = format!("must not make more than {} units on hand", Balance::MOST_ON_HAND);
                Err(Invalid::new(format!("adjustments[{at}].delta"), rule).into())
            }
        }
    }

    /// See [`super::engine::Stocking::stocks`].
    pub async fn stocks(
        &self,
        call: &Call,
        item: &Key,
        after: Option<Key>,
        limit: usize,
    ) -> Result<Vec<StockRow>, Failure> {
        let (caller, item) = (call.caller.clone(), item.clone());
        self.single(call, Statement::reading("stocks"), move |session| {
            Box::pin(async move { session.stocks(&caller, &item, after.as_ref(), limit).await })
        })
        .await
    }

    /// The stock of one key; `None` where nothing was ever adjusted there.
    pub async fn stock(&self, call: &Call, key: StockKey) -> Result<Option<StockRow>, Failure> {
        Ok(self.stocks_of(call, vec![key]).await?.pop().flatten())
    }

    /// See [`super::engine::Stocking::stocks_of`].
    pub async fn stocks_of(&self, call: &Call, keys: Vec<StockKey>) -> Result<Vec<Option<StockRow>>, Failure> {
        let caller = call.caller.clone();
        self.single(call, Statement::reading("stocks_of"), move |session| {
            Box::pin(async move { session.stocks_of(&caller, &keys).await })
        })
        .await
    }

    /// One step; see [`super::engine::Stocking::verify`].
    pub async fn verify_stock(&self, call: &Call, walk: VerifyWalk) -> Result<Verified, Failure> {
        let caller = call.caller.clone();
        self.single(call, Statement::reading("verify_stock"), move |session| {
            Box::pin(async move { session.verify(&caller, &walk).await })
        })
        .await
    }

    /// See [`super::engine::Stocking::ledger`].
    pub async fn ledger(
        &self,
        call: &Call,
        key: StockKey,
        before: Option<i64>,
        limit: usize,
    ) -> Result<Vec<LedgerRow>, Failure> {
        let caller = call.caller.clone();
        self.single(call, Statement::reading("list_ledger"), move |session| {
            Box::pin(async move { session.ledger(&caller, &key, before, limit).await })
        })
        .await
    }

    /// Folds and fills the pools of stocks behind `after` that have something to fold, a few of them. Answers with what was
    /// done, and with the last key looked at where there may be more behind it.
    pub async fn refill_from(&self, after: Option<StockKey>) -> Result<(Vec<Refilled>, Option<StockKey>), Failure> {
        let caller = Caller::broker("refill");
        let keys = self
            .single(&self.own(caller.clone()), Statement::reading("unfolded_stock"), move |session| {
                Box::pin(async move { session.unfolded(&caller, after.as_ref(), REFILLED_AT_ONCE).await })
            })
            .await?;
        if !keys.is_empty() {
            self.note_use_of_stock();
        }
        let next = if keys.len() < REFILLED_AT_ONCE { None } else { keys.last().cloned() };
        let refilled = if keys.is_empty() { Vec::new() } else { self.refill(keys).await? };
        Ok((refilled, next))
    }

    /// Fills pools that ran low, in the background.
    pub(super) fn refill_soon(&self, keys: impl Iterator<Item = StockKey>) {
        if !self.inner.refills.add(keys) {
            return;
        }
        let store = self.clone();
        tokio::spawn(async move {
            loop {
                let keys = store.inner.refills.next();
                if keys.is_empty() {
                    return;
                }
                if let Err(failure) = store.refill(keys).await {
                    tracing::debug!(%failure, "pools of stock were not filled; a reservation or the next pass will");
                }
            }
        });
    }

    async fn refill(&self, keys: Vec<StockKey>) -> Result<Vec<Refilled>, Failure> {
        let (caller, pool) = (Caller::broker("refill"), self.inner.options.stock.pool);
        let refilled = self
            .single(&self.own(caller.clone()), Statement::writing("refill_stock"), move |session| {
                Box::pin(async move { session.refill(&caller, &keys, pool).await })
            })
            .await?;
        if let Some(metrics) = &self.inner.options.metrics {
            for stock in refilled.iter().filter(|stock| stock.added > 0) {
                metrics.pool_refilled(stock.depth.saturating_sub(stock.added), stock.added);
            }
        }
        Ok(refilled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(item: &str) -> StockKey {
        StockKey::parse("key", item, "x").expect("a key")
    }

    #[test]
    fn one_at_a_time_fills_pools_and_whoever_does_finds_what_came_meanwhile() {
        let refills = Refills::default();
        assert!(!refills.add(std::iter::empty()), "nothing ran low");
        assert!(refills.add([key("a"), key("b")].into_iter()));
        assert!(!refills.add([key("a"), key("c")].into_iter()), "somebody is at it");
        assert_eq!(refills.next(), [key("a"), key("b"), key("c")]);
        assert!(!refills.add([key("a")].into_iter()), "and has not ended");
        assert_eq!(refills.next(), [key("a")]);
        assert_eq!(refills.next(), []);
        assert!(refills.add([key("a")].into_iter()), "nobody is at it any more");
    }
}
