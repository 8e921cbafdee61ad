//! What services enqueued and acked by SQL, in transactions of their own.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering::Relaxed},
    },
    time::Duration,
};

use async_trait::async_trait;
use tokio::sync::Notify;

use super::{PATIENCE, Pass, SLOWEST, Step, UpkeepOptions};
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

    fn is_waited_for(&self) -> Option<Duration> {
        Some(PATIENCE)
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

/// Where the reaper looks as often, it calls the pass over the arrivals whenever there are any.
pub(super) fn interval(options: &UpkeepOptions) -> Duration {
    let seen_by_reaper = options.reaper_interval <= options.arrivals_interval;
    if seen_by_reaper { options.arrivals_interval.max(SLOWEST) } else { options.arrivals_interval }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_are_looked_for_apart_where_the_reaper_looks_less_often() {
        let every = |reaper, arrivals| {
            let [reaper_interval, arrivals_interval] = [reaper, arrivals].map(Duration::from_secs);
            interval(&UpkeepOptions { reaper_interval, arrivals_interval, ..UpkeepOptions::default() }).as_secs()
        };
        assert_eq!([every(1, 1), every(2, 1), every(1, 2), every(1, 60)], [10, 1, 10, 60]);
    }
}
