//! Looks at the horizon now and then.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use rand::Rng as _;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::{
    SamplerOptions,
    horizon::{Alarm, Horizon, HorizonLimits, horizon},
};
use crate::{model::Failure, store::Store};

/// Holders that are shown.
const HOLDERS: usize = 100;
/// No two looks that clients ask for come closer than this.
const FRESH: Duration = Duration::from_secs(1);

/// Takes looks, one at a time.
pub(super) struct Lookout {
    store: Store,
    interval: Duration,
    limits: HorizonLimits,
    /// Held while a look is under way, so that there is never a second one.
    alarm: tokio::sync::Mutex<Alarm>,
    known: Mutex<Option<Arc<Horizon>>>,
}

impl Lookout {
    pub(super) fn new(store: Store, options: &SamplerOptions) -> Self {
        let limits = HorizonLimits { transactions: options.horizon_transactions, age: options.horizon_age };
        Self {
            store,
            interval: options.horizon_interval,
            limits,
            alarm: tokio::sync::Mutex::default(),
            known: Mutex::default(),
        }
    }

    /// The last look, where it is not too long ago to be true; asks nobody.
    pub(super) fn known(&self) -> Option<Arc<Horizon>> {
        self.last().filter(|horizon| horizon.taken.elapsed() < 3 * self.interval)
    }

    fn last(&self) -> Option<Arc<Horizon>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A look that is not older than a second. To be run to its end, as [`super::sampler::Sampler::view`].
    pub(super) async fn horizon(self: Arc<Self>) -> Result<Arc<Horizon>, Failure> {
        let asked = Instant::now();
        let mut alarm = self.alarm.lock().await;
        // All who asked while somebody looked share the next look.
        match self.last().filter(|horizon| horizon.taken + FRESH > asked) {
            Some(horizon) => Ok(horizon),
            None => self.look(&mut alarm).await,
        }
    }

    async fn look(&self, alarm: &mut Alarm) -> Result<Arc<Horizon>, Failure> {
        let seen = self.store.horizon(HOLDERS).await?;
        let tables = self.store.tables().await?;
        let horizon = Arc::new(horizon(seen, tables, Instant::now(), self.limits));
        if let Some(notice) = alarm.decide(&horizon, self.limits) {
            notice.log();
        }
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&horizon));
        Ok(horizon)
    }

    /// The loop, until `stop`.
    pub(super) async fn run(self: Arc<Self>, stop: CancellationToken) {
        let mut failing = false;
        loop {
            let wait = self.interval.mul_f64(rand::rng().random_range(0.75..1.25));
            if stop.run_until_cancelled(sleep(wait)).await.is_none() {
                return;
            }
            let looked = self.look(&mut *self.alarm.lock().await).await;
            match &looked {
                Ok(_) if failing => tracing::info!("who holds back the removal of dead rows is seen again"),
                Err(failure) if !failing => {
                    tracing::warn!(%failure, "who holds back the removal of dead rows cannot be seen; it is tried again");
                }
                _ => {}
            }
            if looked.as_ref().is_ok_and(|horizon| horizon.holders.is_empty() && horizon.tables.is_empty()) {
                return; // the database keeps no dead rows, and no statistics of them
            }
            failing = looked.is_err();
        }
    }
}
