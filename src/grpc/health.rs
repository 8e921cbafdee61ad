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

#[cfg(test)]
mod tests {
    use std::pin::Pin;

    use futures_util::{Stream, StreamExt};
    use tonic::{Request, Status};
    use tonic_health::{
        pb::{HealthCheckRequest, HealthCheckResponse, health_server::Health as _},
        server::HealthService,
    };

    use super::*;

    type Watched = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

    async fn serves(watched: &mut Watched) -> bool {
        let answer = watched.next().await.expect("it goes on").expect("a status");
        answer.status() == tonic_health::pb::health_check_response::ServingStatus::Serving
    }

    #[tokio::test]
    async fn services_serve_while_ready_and_never_again_once_draining() {
        let reporter = HealthReporter::new();
        let service = HealthService::from_health_reporter(reporter.clone());
        let (ready, receiver) = watch::channel(false);
        let health = Health::new(reporter, receiver).await;
        let mut watched: Vec<Watched> = Vec::new();
        for name in SERVICES {
            let request = Request::new(HealthCheckRequest { service: name.to_owned() });
            watched.push(Box::pin(service.watch(request).await.expect("known").into_inner()));
        }
        for watched in &mut watched {
            assert!(!serves(watched).await, "nothing has answered yet");
        }
        let draining = CancellationToken::new();
        let running = tokio::spawn(health.run(draining.clone()));
        ready.send_replace(true);
        for watched in &mut watched {
            while !serves(watched).await {} // running says once more what was said before
        }
        draining.cancel();
        running.await.expect("ended well");
        for watched in &mut watched {
            assert!(!serves(watched).await, "draining");
        }
    }

    #[tokio::test]
    async fn services_stop_serving_when_nobody_knows_any_more() {
        let reporter = HealthReporter::new();
        let service = HealthService::from_health_reporter(reporter.clone());
        let (ready, receiver) = watch::channel(true);
        let health = Health::new(reporter, receiver).await;
        drop(ready);
        health.run(CancellationToken::new()).await;
        let request = Request::new(HealthCheckRequest::default());
        let answer = service.check(request).await.expect("known").into_inner();
        assert_eq!(answer.status(), tonic_health::pb::health_check_response::ServingStatus::NotServing);
    }
}
