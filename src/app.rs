//! The composition root: builds the parts from the configuration, starts them, drains them. The only place that knows all.
//!
//! Start: both sockets are bound, then the store begins to connect, then calls are served. Nothing waits for the database:
//! until it answers with a current schema the broker is alive and not ready. Drain: readiness fails, streams and calls end,
//! then the broker's own work, then the lanes.

pub mod database;
mod options;
mod readiness;

use std::{io, net::SocketAddr, time::Duration};

use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    config::Config,
    connections::{Observer, Watching},
    dispatch::Dispatch,
    grpc::{Api, Server},
    http::{HttpServer, Probes},
    model::{Caller, Share},
    store::{EffectiveBudget, Store, error::EngineError},
    telemetry::{
        Metrics, Telemetry,
        metrics::{BudgetReading, LanesReading, PassReading, StreamsReading},
    },
    upkeep::{PassCounts, Upkeep},
};

/// What cut calls may take to let go.
const LAST_BREATH: Duration = Duration::from_millis(300);

/// A broker that serves.
pub struct App {
    grpc: SocketAddr,
    http: SocketAddr,
    store: Store,
    dispatch: Dispatch,
    upkeep: Upkeep,
    telemetry: Telemetry,
    watching: Watching,
    /// Cancelled when the drain begins.
    draining: CancellationToken,
    /// Cuts the calls that are left.
    kill: CancellationToken,
    /// The gRPC server; ends after its last call.
    calls: JoinSet<()>,
    /// The second port and what keeps readiness up to date. They answer until the end.
    probes: JoinSet<()>,
    /// For all but the last telemetry, which has a bound of its own.
    drain_timeout: Duration,
}

/// Why a broker did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A socket cannot be had.
    #[error("{option} {address} cannot be used: {source}")]
    Bind {
        /// The option that asked for it.
        option: &'static str,
        /// Where.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The database cannot be used as it is configured.
    #[error(transparent)]
    Database(#[from] EngineError),
}

impl App {
    /// Starts a broker. Does not wait for a database server.
    pub async fn start(config: &Config, telemetry: Telemetry) -> Result<Self, StartError> {
        let metrics = telemetry.metrics().clone();
        let (server, grpc) = bind_grpc(config).await?;
        let (second, http) = bind_http(config).await?;
        let store = Store::start(database::open(config).await?, options::store(config, &telemetry));
        let dispatch = Dispatch::start(store.clone(), options::dispatch(config), database::replica_name(config));
        let upkeep = Upkeep::start(store.clone(), dispatch.clone(), options::upkeep(config));
        let (observer, watching) = Observer::start(&store, options::sampler(config));
        watch(&metrics, &store, &dispatch, &upkeep, &observer);

        let (draining, kill, ready) = (CancellationToken::new(), CancellationToken::new(), store.availability());
        let (api, health) =
            Api::new(store.clone(), dispatch.clone(), observer, options::api(config, &telemetry), ready.clone()).await;
        let (mut calls, mut probes) = (JoinSet::new(), JoinSet::new());
        calls.spawn(server.run(api, draining.clone(), kill.clone()));
        probes.spawn(health.run(draining.clone()));
        probes.spawn(readiness::tell(ready.clone(), draining.clone()));
        let answers = Probes { ready, draining: draining.clone(), registry: metrics.registry().clone() };
        probes.spawn(second.run(answers, kill.clone()));
        let drain_timeout = options::for_jobs(config);
        Ok(Self {
            grpc,
            http,
            store,
            dispatch,
            upkeep,
            telemetry,
            watching,
            draining,
            kill,
            calls,
            probes,
            drain_timeout,
        })
    }

    /// Where gRPC is served.
    pub fn grpc_address(&self) -> SocketAddr {
        self.grpc
    }

    /// Where probes and metrics are served.
    pub fn http_address(&self) -> SocketAddr {
        self.http
    }

    /// Ends the broker: politely, or at once where `hurry` is cancelled or the drain's time is over. Says whether everything
    /// that was under way ended by itself.
    pub async fn drain(mut self, hurry: CancellationToken) -> bool {
        self.draining.cancel();
        tracing::info!("draining");
        let politely = async {
            // streams end with the dispatcher, unary calls with the server, and both need the lanes
            tokio::join!(self.dispatch.drain(), async { while self.calls.join_next().await.is_some() {} });
            tokio::join!(self.upkeep.stop(), self.watching.stop());
            self.store.drain().await;
        };
        let drained = tokio::select! {
            ended = timeout(self.drain_timeout, politely) => ended.is_ok(),
            () = hurry.cancelled() => false,
        };
        self.kill.cancel();
        if !drained {
            tracing::warn!("the drain was cut short; jobs that were sent come back when their leases expire");
        }
        let last = async { while self.probes.join_next().await.is_some() {} };
        tokio::select! { () = last => {} () = sleep(LAST_BREATH) => {} }
        if drained {
            tracing::info!("drained");
        }
        tokio::select! { () = self.telemetry.flush() => {} () = hurry.cancelled() => {} }
        drained
    }
}

async fn bind_grpc(config: &Config) -> Result<(Server, SocketAddr), StartError> {
    let refused = |source| StartError::Bind { option: "listen", address: config.broker.listen, source };
    let server = Server::bind(options::server(config)).await.map_err(refused)?;
    let address = server.local_addr().map_err(refused)?;
    Ok((server, address))
}

async fn bind_http(config: &Config) -> Result<(HttpServer, SocketAddr), StartError> {
    let refused = |source| StartError::Bind { option: "http_listen", address: config.broker.http_listen, source };
    let server = HttpServer::bind(options::http(config)).await.map_err(refused)?;
    let address = server.local_addr().map_err(refused)?;
    Ok((server, address))
}

/// Lets metrics read what the parts know.
fn watch(metrics: &Metrics, store: &Store, dispatch: &Dispatch, upkeep: &Upkeep, observer: &Observer) {
    let observer = observer.clone();
    metrics.watch_database(move || observer.reading());
    metrics.watch_queues(upkeep.queues());
    let budgets = store.budgets();
    metrics.watch_budgets(move || {
        let reading = |(caller, held): (&Caller, &EffectiveBudget)| BudgetReading {
            caller: caller.clone(),
            lanes: held.budget.max_lanes,
            share: held.budget.share.map(Share::part),
        };
        budgets.borrow().iter().map(reading).collect()
    });
    let passes = upkeep.reader();
    metrics.watch_upkeep(move || {
        let reading = |(pass, counts): (_, PassCounts)| PassReading {
            pass,
            steps: counts.steps,
            failures: counts.failures,
            rows: counts.rows,
        };
        passes().into_iter().map(reading).collect()
    });
    let switches = store.clone();
    metrics.watch_stock_switches(move || switches.stock_switches_in_use());
    let (store, dispatch) = (store.clone(), dispatch.clone());
    metrics.watch_lanes(move || {
        let (used, idle) = store.lanes();
        let waiting = store.waiting_by_caller().into_iter().map(|(caller, count)| (caller, count as u64)).collect();
        LanesReading { used: used as u64, idle: idle as u64, max: store.lanes_at_most() as u64, waiting }
    });
    metrics.watch_streams(move || {
        let streams = dispatch.streams();
        StreamsReading {
            streams: streams.streams as u64,
            credit: streams.credit as u64,
            outstanding: streams.outstanding as u64,
            unsent_bytes: streams.unsent_bytes as u64,
        }
    });
}
