//! Leases that ran out: their jobs become ready again, or dead.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use async_trait::async_trait;

use super::{PATIENCE, Pass, Step, arrivals::Sight};
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
    /// Until then arrivals are not looked for in passing.
    blind_until: Option<Instant>,
}

/// A pass that took longer may have walked over arrivals that somebody's old transaction keeps there: they are looked for apart
/// then, so that leases do not wait for that.
const SLOW: Duration = Duration::from_millis(50);
const BLIND_FOR: Duration = Duration::from_mins(1);
/// No arrival has this number.
const NOWHERE: i64 = i64::MAX;

impl Reaper {
    pub(super) fn new(store: Store, dispatch: Dispatch, arrivals: Arc<Sight>) -> Self {
        Self { store, dispatch, floor: Timestamp::BEGINNING, arrivals, blind_until: None }
    }
}

#[async_trait]
impl Pass for Reaper {
    fn name(&self) -> &'static str {
        "reaper"
    }

    fn is_waited_for(&self) -> Option<Duration> {
        Some(PATIENCE)
    }

    fn start_over(&mut self) {
        self.floor = Timestamp::BEGINNING;
    }

    async fn run_once(&mut self, limit: usize) -> Result<Step, Failure> {
        let began = Instant::now();
        let is_blind = self.blind_until.is_some_and(|until| began < until);
        let arrivals = if is_blind { NOWHERE } else { self.arrivals.floor() };
        let reaped = self.store.reap(self.floor, arrivals, limit).await?;
        self.floor = reaped.floor;
        if !is_blind && began.elapsed() > SLOW {
            self.blind_until = Some(Instant::now() + BLIND_FOR);
        }
        if reaped.arrived || is_blind {
            self.arrivals.tell();
        }
        if !reaped.leases.is_empty() {
            self.dispatch.reaped(&reaped.leases, &reaped.readied);
        }
        Ok(Step::of(reaped.leases.len(), limit))
    }
}
