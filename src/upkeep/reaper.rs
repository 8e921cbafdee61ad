//! Leases that ran out: their jobs become ready again, or dead.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Pass, Step, arrivals::Sight};
use crate::{
    dispatch::Dispatch,
    model::{Failure, Timestamp},
    store::Store,
};

pub(super) struct Reaper {
    store: Store,
    dispatch: Dispatch,
    floor: Timestamp,
    arrivals: Arc<Sight>,
}

impl Reaper {
    pub(super) fn new(store: Store, dispatch: Dispatch, arrivals: Arc<Sight>) -> Self {
        Self { store, dispatch, floor: Timestamp::BEGINNING, arrivals }
    }
}

#[async_trait]
impl Pass for Reaper {
    fn name(&self) -> &'static str {
        "reaper"
    }

    fn start_over(&mut self) {
        self.floor = Timestamp::BEGINNING;
    }

    async fn run_once(&mut self, limit: usize) -> Result<Step, Failure> {
        let reaped = self.store.reap(self.floor, self.arrivals.floor(), limit).await?;
        self.floor = reaped.floor;
        if reaped.arrived {
            self.arrivals.tell();
        }
        if !reaped.leases.is_empty() {
            self.dispatch.reaped(&reaped.leases, &reaped.readied);
        }
        Ok(Step::of(reaped.leases.len(), limit))
    }
}
