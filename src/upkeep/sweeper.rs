//! Reservations past their time: their units go back, and their jobs are stored.

use async_trait::async_trait;

use super::{Pass, Step, seldom::Seldom};
use crate::{
    dispatch::Dispatch,
    model::{Failure, Timestamp},
    store::Store,
};

/// Reservations that one statement ends at most: each may have a hundred lines.
const AT_ONCE: usize = 100;

pub(super) struct Sweeper {
    store: Store,
    dispatch: Dispatch,
    floor: Timestamp,
    seldom: Seldom,
}

impl Sweeper {
    pub(super) fn new(store: Store, dispatch: Dispatch) -> Self {
        Self { store, dispatch, floor: Timestamp::BEGINNING, seldom: Seldom::default() }
    }
}

#[async_trait]
impl Pass for Sweeper {
    fn name(&self) -> &'static str {
        "sweeper"
    }

    fn start_over(&mut self) {
        self.floor = Timestamp::BEGINNING;
    }

    async fn run_once(&mut self, limit: usize) -> Result<Step, Failure> {
        if !self.store.uses_stock() && !self.seldom.comes() {
            return Ok(Step { rows: 0, more: false });
        }
        let limit = limit.min(AT_ONCE);
        let swept = self.store.sweep_expired(self.floor, limit).await?;
        self.floor = swept.floor;
        if !swept.readied.is_empty() {
            let ready: Vec<_> = swept.readied.into_iter().map(|queue| (queue, None)).collect();
            self.dispatch.ready(&ready);
        }
        Ok(Step::of(swept.lags.len(), limit))
    }
}
