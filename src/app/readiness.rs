//! Says in the log when the broker becomes ready and when it stops being so.

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Watches `ready` until the drain begins.
pub(super) async fn tell(mut ready: watch::Receiver<bool>, draining: CancellationToken) {
    let mut was_ready = false;
    loop {
        let is_ready = *ready.borrow_and_update();
        match (was_ready, is_ready) {
            (false, true) => tracing::info!("ready: the database answers and has the current schema"),
            (true, false) => tracing::warn!("not ready: no connection to the database is left"),
            _ => {}
        }
        was_ready = is_ready;
        if !matches!(draining.run_until_cancelled(ready.changed()).await, Some(Ok(()))) {
            return;
        }
    }
}
