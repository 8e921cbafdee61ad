//! Switches that stop reservations, which any replica may set in the database.

use async_trait::async_trait;

use super::{Pass, Step, seldom::Seldom};
use crate::{model::Failure, store::Store};

pub(super) struct Switches {
    store: Store,
    seldom: Seldom,
}

impl Switches {
    pub(super) fn new(store: Store) -> Self {
        Self { store, seldom: Seldom::default() }
    }
}

#[async_trait]
impl Pass for Switches {
    fn name(&self) -> &'static str {
        "switches"
    }

    fn begins_at_once(&self) -> bool {
        true // until then nothing is stopped that should be
    }

    /// It reads all of them each time.
    fn start_over(&mut self) {}

    async fn run_once(&mut self, _limit: usize) -> Result<Step, Failure> {
        // The first Reserve reads them itself.
        if !self.store.goes_by_switches() && !self.seldom.comes() {
            return Ok(Step { rows: 0, more: false });
        }
        let changed = self.store.refresh_stock_switches().await?;
        Ok(Step { rows: usize::from(changed), more: false })
    }
}
