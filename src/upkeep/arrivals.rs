//! What services enqueued and acked by SQL, in transactions of their own.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering::Relaxed},
};

use async_trait::async_trait;
use tokio::sync::Notify;

use super::{Pass, Step};
use crate::{dispatch::Dispatch, model::Failure, store::Store};

/// What the reaper sees of arrivals in passing, so that an idle replica asks for both at once.
#[derive(Debug, Default)]
pub(super) struct Sight {
    floor: AtomicI64,
    seen: Notify,
}

impl Sight {
    /// From where on something would be new.
    pub(super) fn floor(&self) -> i64 {
        self.floor.load(Relaxed)
    }

    /// Something is there.
    pub(super) fn tell(&self) {
        self.seen.notify_one();
    }
}

pub(super) struct Arrivals {
    store: Store,
    dispatch: Dispatch,
    sight: Arc<Sight>,
}

impl Arrivals {
    pub(super) fn new(store: Store, dispatch: Dispatch, sight: Arc<Sight>) -> Self {
        Self { store, dispatch, sight }
    }
}

#[async_trait]
impl Pass for Arrivals {
    fn name(&self) -> &'static str {
        "arrivals"
    }

    fn start_over(&mut self) {
        self.sight.floor.store(0, Relaxed);
    }

    async fn called(&mut self) {
        self.sight.seen.notified().await;
    }

    async fn run_once(&mut self, limit: usize) -> Result<Step, Failure> {
        let adopted = self.store.adopt_arrivals(self.sight.floor(), limit).await?;
        self.sight.floor.store(adopted.floor, Relaxed);
        if !adopted.readied.is_empty() {
            let ready: Vec<_> = adopted.readied.into_iter().map(|queue| (queue, None)).collect();
            self.dispatch.ready(&ready);
        }
        Ok(Step::of(adopted.rows, limit))
    }
}
