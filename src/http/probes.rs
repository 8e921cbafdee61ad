//! What the second port answers.

use axum::{
    Router,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use prometheus::{Registry, TextEncoder};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::error;

/// Where the answers come from.
#[derive(Clone)]
pub struct Probes {
    /// Whether calls can be served: the database answers and has the schema.
    pub ready: watch::Receiver<bool>,
    /// Cancelled once the process drains.
    pub draining: CancellationToken,
    /// What /metrics shows.
    pub registry: Registry,
}

impl Probes {
    /// `/livez`, `/readyz` and `/metrics`.
    pub(super) fn router(self) -> Router {
        Router::new()
            .route("/livez", get(async || "ok\n"))
            .route("/readyz", get(readyz))
            .route("/metrics", get(metrics))
            .with_state(self)
    }
}

async fn readyz(State(probes): State<Probes>) -> (StatusCode, &'static str) {
    if probes.draining.is_cancelled() {
        (StatusCode::SERVICE_UNAVAILABLE, "draining\n")
    } else if *probes.ready.borrow() {
        (StatusCode::OK, "ok\n")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "database unavailable, or without the current schema\n")
    }
}

async fn metrics(State(probes): State<Probes>) -> Response {
    match TextEncoder::new().encode_to_string(&probes.registry.gather()) {
        Ok(text) => ([(header::CONTENT_TYPE, prometheus::TEXT_FORMAT)], text).into_response(),
        Err(error) => {
            error!(%error, "metrics cannot be shown");
            (StatusCode::INTERNAL_SERVER_ERROR, "metrics cannot be shown; the log says why\n").into_response()
        }
    }
}
