//! Whether the services serve, by the gRPC health protocol.

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tonic_health::{ServingStatus, server::HealthReporter};

/// The broker as a whole, and the one service of its own.
const SERVICES: [&str; 2] = ["", "leasehold.v1.QueueService"];

/// Keeps the health service up to date.
#[derive(Debug)]
pub struct Health {
    reporter: HealthReporter,
    ready: watch::Receiver<bool>,
}

impl Health {
    /// Nothing serves until [`Health::run`] says so.
    pub(super) async fn new(reporter: HealthReporter, ready: watch::Receiver<bool>) -> Self {
        let health = Self { reporter, ready };
        health.show(false).await;
        health
    }

    /// Shows what `ready` says, until `draining` is cancelled; then nothing serves any more.
    pub async fn run(mut self, draining: CancellationToken) {
        loop {
            let ready = *self.ready.borrow_and_update();
            self.show(ready).await;
            let changed = draining.run_until_cancelled(self.ready.changed()).await;
            if !matches!(changed, Some(Ok(()))) {
                break; // draining, or nobody is left who would know
            }
        }
        self.show(false).await;
    }

    async fn show(&self, serving: bool) {
        let status = if serving { ServingStatus::Serving } else { ServingStatus::NotServing };
        for service in SERVICES {
            self.reporter.set_service_status(service, status).await;
        }
    }
}
