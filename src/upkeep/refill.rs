//! Stocks that acts left something to be added up for: that is done, and their pools are filled.

use async_trait::async_trait;

use super::{Pass, Step, seldom::Seldom};
use crate::{
    model::{Failure, StockKey},
    store::Store,
};

pub(super) struct Refill {
    store: Store,
    /// The last key looked at.
    after: Option<StockKey>,
    seldom: Seldom,
}

impl Refill {
    pub(super) fn new(store: Store) -> Self {
        Self { store, after: None, seldom: Seldom::default() }
    }
}

#[async_trait]
impl Pass for Refill {
    fn name(&self) -> &'static str {
        "refill"
    }

    fn start_over(&mut self) {
        self.after = None;
    }

    async fn run_once(&mut self, _limit: usize) -> Result<Step, Failure> {
        if !self.store.uses_stock() && !self.seldom.comes() {
            return Ok(Step { rows: 0, more: false });
        }
        let (refilled, next) = self.store.refill_from(self.after.take()).await?;
        let rows = refilled.iter().map(|stock| stock.folded + stock.added).sum();
        let more = next.is_some();
        self.after = next;
        Ok(Step { rows, more })
    }
}
