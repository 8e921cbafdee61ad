//! The wire: services, the layers before them, the accept loop.
//!
//! [`Api::new`] puts the services together, [`Server`] serves them, [`Health`] keeps the health service honest. Only
//! `convert` knows both wire and model values, only `status` makes failures as the wire has them.

mod admin;
mod audit;
mod connection;
mod connections;
mod convert;
mod health;
mod layers;
mod preface;
mod queue;
mod reservation;
mod scaler;
mod server;
mod status;
mod steps;
mod unary;

use std::{
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::future::BoxFuture;
use http::{Request, Response};
use tokio::sync::watch;
use tonic::{body::Body, service::Routes};
use tower::Service;

use self::layers::{LayerOptions, Layers};
pub use self::{
    health::Health,
    server::{Server, ServerOptions},
};
use crate::{
    connections::Observer,
    dispatch::Dispatch,
    keda::external_scaler_server::ExternalScalerServer,
    model::Limits,
    store::Store,
    telemetry::{Metrics, Spans},
    v1::{
        self, connection_service_server::ConnectionServiceServer, queue_admin_service_server::QueueAdminServiceServer,
        queue_service_server::QueueServiceServer, reservation_service_server::ReservationServiceServer,
        stock_admin_service_server::StockAdminServiceServer,
    },
};

/// Bounds on calls.
#[derive(Debug, Clone)]
pub struct ApiOptions {
    /// What requests are checked against.
    pub limits: Limits,
    /// Longest that a unary call may take; a client may ask for less.
    pub request_deadline: Duration,
    /// Bytes of one request.
    pub request_bytes: usize,
    /// What this replica calls itself.
    pub replica: String,
    /// Open streams of `WatchCallers`.
    pub watchers: usize,
    /// Open streams of the scaler.
    pub scaler_streams: usize,
    /// Between two looks at the queues of those streams.
    pub scaler_interval: Duration,
    /// Bytes of requests that are not complete yet, all connections together.
    pub unread_bytes: usize,
    /// Every call that ends is told here: method, code and time.
    pub metrics: Option<Metrics>,
    /// Makes a span of every call.
    pub spans: Spans,
}

impl Default for ApiOptions {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            request_deadline: Duration::from_secs(30),
            request_bytes: 4 << 20,
            replica: "leasehold".to_owned(),
            watchers: 64,
            scaler_streams: 1_000,
            scaler_interval: Duration::from_secs(1),
            unread_bytes: 256 << 20,
            metrics: None,
            spans: Spans::default(),
        }
    }
}

/// All services behind their layers, ready for [`Server::run`].
#[derive(Clone)]
pub struct Api(Layers<Routes>);

impl Api {
    /// Puts the services together. They are shown as not serving until the [`Health`] that comes with them runs and `ready`
    /// is true.
    pub async fn new(
        store: Store,
        dispatch: Dispatch,
        observer: Observer,
        options: ApiOptions,
        ready: watch::Receiver<bool>,
    ) -> (Self, Health) {
        let (reporter, health) = tonic_health::server::health_reporter();
        let admin = admin::AdminApi::new(store.clone(), dispatch.clone(), &options);
        let connections = connections::ConnectionsApi::new(store.clone(), observer, &options.replica, options.watchers);
        let scaler = scaler::ScalerApi::new(store.clone(), &options);
        let reservations = reservation::ReservationApi::new(store.clone(), dispatch.clone(), options.limits.clone());
        let stock = reservation::StockAdminApi::new(store.clone());
        let queue = queue::QueueApi::new(store, dispatch, options.limits, options.metrics.clone());
        let routes = Routes::new(QueueServiceServer::new(queue).max_decoding_message_size(options.request_bytes))
            .add_service(QueueAdminServiceServer::new(admin).max_decoding_message_size(options.request_bytes))
            .add_service(ConnectionServiceServer::new(connections).max_decoding_message_size(options.request_bytes))
            .add_service(ExternalScalerServer::new(scaler).max_decoding_message_size(options.request_bytes))
            .add_service(ReservationServiceServer::new(reservations).max_decoding_message_size(options.request_bytes))
            .add_service(StockAdminServiceServer::new(stock).max_decoding_message_size(options.request_bytes))
            .add_service(health)
            .add_service(reflection().build_v1().expect("the descriptor set that is compiled in is whole"))
            .add_service(reflection().build_v1alpha().expect("the descriptor set that is compiled in is whole"))
            .prepare();
        let bounds = LayerOptions { request_deadline: options.request_deadline, unread_bytes: options.unread_bytes };
        let mut layers = Layers::new(routes, &bounds);
        layers.trace(options.spans);
        if let Some(metrics) = options.metrics {
            layers.observe(Arc::new(move |method, code, took| metrics.call_ended(method, code, took)));
        }
        (Self(layers), Health::new(reporter, ready).await)
    }
}

fn reflection() -> tonic_reflection::server::Builder<'static> {
    tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(v1::FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
}

impl Service<Request<Body>> for Api {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        self.0.call(request)
    }
}

#[cfg(test)]
mod tests;
