//! Jobs that were ready for longer than their queue's time to live: they become dead.

use std::collections::BTreeMap;

use async_trait::async_trait;

use super::{Pass, Step};
use crate::{
    dispatch::Dispatch,
    model::{Failure, QueueId, Timestamp},
    store::Store,
};

/// Queues in one statement.
const AT_ONCE: usize = 200;
/// Where no queue has a time to live, every so many runs look whether one has got one.
const QUIET_RUNS: u32 = 5;

pub(super) struct Expiry {
    store: Store,
    dispatch: Dispatch,
    /// Where to begin in each queue that has a time to live.
    floors: BTreeMap<QueueId, Timestamp>,
    /// The last queue that was looked at in this round.
    turn: QueueId,
    /// Runs to pass over: an idle broker is to cost its database little.
    quiet: u32,
}

impl Expiry {
    pub(super) fn new(store: Store, dispatch: Dispatch) -> Self {
        Self { store, dispatch, floors: BTreeMap::new(), turn: QueueId(0), quiet: 0 }
    }
}

#[async_trait]
impl Pass for Expiry {
    fn name(&self) -> &'static str {
        "expiry"
    }

    fn start_over(&mut self) {
        self.floors.clear();
        self.quiet = 0;
    }

    /// The next queues' jobs. Where no queue has a time to live, that costs one look at an empty index.
    async fn run_once(&mut self, limit: usize) -> Result<Step, Failure> {
        if self.quiet > 0 {
            self.quiet -= 1;
            return Ok(Step { rows: 0, more: false });
        }
        let queues = self.store.expiring_queues(self.turn, AT_ONCE).await?;
        let last = queues.last().copied();
        let full = queues.len() >= AT_ONCE;
        // Those in between have no time to live any more.
        let before = std::mem::replace(&mut self.turn, last.filter(|_| full).unwrap_or(QueueId(0)));
        let upto = last.filter(|_| full).unwrap_or(QueueId(i32::MAX));
        self.floors.retain(|queue, _| *queue <= before || *queue > upto || queues.contains(queue));
        if queues.is_empty() {
            if before == QueueId(0) {
                self.quiet = QUIET_RUNS - 1;
            }
            return Ok(Step { rows: 0, more: false });
        }
        let floor = |queue: &QueueId| self.floors.get(queue).copied().unwrap_or(Timestamp::BEGINNING);
        let spots = queues.iter().map(|queue| (*queue, floor(queue))).collect();
        let expired = self.store.expire(spots, limit).await?;
        self.floors.extend(queues.into_iter().zip(expired.floors));
        if !expired.readied.is_empty() {
            let ready: Vec<_> = expired.readied.into_iter().map(|queue| (queue, None)).collect();
            self.dispatch.ready(&ready);
        }
        if expired.jobs >= limit {
            self.turn = before; // the same queues have more
        }
        Ok(Step { rows: expired.jobs, more: full || expired.jobs >= limit })
    }
}
