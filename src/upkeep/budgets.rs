//! Callers' budgets, which any replica may change in the database.

use async_trait::async_trait;

use super::{Pass, Step};
use crate::{model::Failure, store::Store};

pub(super) struct Budgets {
    store: Store,
}

impl Budgets {
    pub(super) fn new(store: Store) -> Self {
        Self { store }
    }
}

#[async_trait]
impl Pass for Budgets {
    fn name(&self) -> &'static str {
        "budgets"
    }

    fn begins_at_once(&self) -> bool {
        true // until then the configuration's hold, which may be others
    }

    /// It reads all of them each time.
    fn start_over(&mut self) {}

    async fn run_once(&mut self, _limit: usize) -> Result<Step, Failure> {
        let changed = self.store.refresh_budgets().await?;
        Ok(Step { rows: usize::from(changed), more: false })
    }
}
