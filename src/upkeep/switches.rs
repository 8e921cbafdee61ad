//! Switches that stop reservations, which any replica may set in the database.

use async_trait::async_trait;

use super::{Pass, Step};
use crate::{model::Failure, store::Store};

pub(super) struct Switches {
    store: Store,
}

impl Switches {
    pub(super) fn new(store: Store) -> Self {
        Self { store }
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
        let changed = self.store.refresh_stock_switches().await?;
        Ok(Step { rows: usize::from(changed), more: false })
    }
}
