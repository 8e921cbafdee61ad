//! Trying again what met a conflict: a deadlock, or a lock not had in time. Nothing was applied then.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

/// Tries of a single request.
pub(super) const TRIES: u32 = 3;

/// Waits before the next try, jittered, longer each time.
pub(super) async fn pause(trial: u32) {
    let pause = 5 + rand::random::<u64>() % (20 * u64::from(trial));
    tokio::time::sleep(Duration::from_millis(pause)).await;
}

/// Conflicts that an act met, those included that another try mended. Shared by the act and the lane that it ran on.
#[derive(Debug, Clone, Default)]
pub(super) struct Conflicts(Arc<AtomicU64>);

impl Conflicts {
    pub(super) fn met(&self) {
        self.0.fetch_add(1, Relaxed);
    }

    pub(super) fn count(&self) -> u64 {
        self.0.load(Relaxed)
    }
}
