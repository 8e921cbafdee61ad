//! The parts' options, from the configuration.

use std::time::Duration;

use super::database;
use crate::{
    config::{Config, Database},
    connections::SamplerOptions,
    dispatch::DispatchOptions,
    grpc::{ApiOptions, ServerOptions},
    http::HttpOptions,
    store::{LaneOptions, LineOptions, Pace, StockOptions, StoreOptions, engine::NewQueues},
    telemetry::Telemetry,
    upkeep::UpkeepOptions,
};

/// What is kept of the drain's time for what comes after calls and streams: the broker's own work and the lanes.
const FOR_THE_LANES: Duration = Duration::from_secs(1);

/// The store's. The embedded database migrates itself.
pub(super) fn store(config: &Config, telemetry: &Telemetry) -> StoreOptions {
    let lanes = &config.lanes;
    let embedded = matches!(config.broker.database_url, Database::Embedded | Database::File(_));
    StoreOptions {
        lanes: LaneOptions {
            lanes: lanes.count,
            connect_timeout: lanes.connect_timeout,
            statement_deadline: lanes.commit_timeout,
            idle_use: lanes.idle_use,
            migrate: config.broker.migrate || embedded,
            ..LaneOptions::default()
        },
        line: LineOptions {
            max_requests: lanes.waiting_requests,
            max_bytes: lanes.waiting_bytes,
            merged_items: lanes.merged_jobs,
            merged_bytes: lanes.merged_bytes,
            ..LineOptions::default()
        },
        acquire_timeout: lanes.acquire_timeout,
        auto_create_queues: config.broker.auto_create_queues,
        new_queues: NewQueues { settings: config.queue_settings(), at_most: config.queues.at_most },
        queue_refresh: config.queues.refresh_interval,
        purge_step: config.queues.purge_step,
        pace: pace(config),
        count_age: config.queues.count_age,
        ledger_callers: config.callers.in_ledger,
        named_callers: config.named_callers(),
        budgets: config.budgets.clone(),
        budgets_at_most: config.callers.with_budget,
        absent_after: config.upkeep.presence_absent,
        metrics: Some(telemetry.metrics().clone()),
        spans: telemetry.spans().clone(),
        slow_hold: config.telemetry.slow_hold,
        stock: StockOptions { pool: config.stock.pool, switches_at_most: config.stock.switches },
        ..StoreOptions::default()
    }
}

/// The dispatcher's.
pub(super) fn dispatch(config: &Config) -> DispatchOptions {
    let streams = &config.streams;
    DispatchOptions {
        heartbeat_interval: streams.heartbeat,
        stream_age: streams.max_age,
        max_streams: streams.per_replica,
        max_outstanding: streams.outstanding,
        look_interval: streams.look_interval,
        claim_bytes: streams.claim_bytes as u64,
        frame_bytes: streams.frame_bytes,
        claim_cursor: config.broker.claim_cursor,
        reconcile_interval: streams.reconcile_interval,
        settings_interval: config.queues.refresh_interval,
        drain_limit: for_calls(config),
        ..DispatchOptions::default()
    }
}

/// How fast maintenance goes.
fn pace(config: &Config) -> Pace {
    Pace { step: config.upkeep.step_time, share: config.upkeep.share }
}

/// Those of the broker's own work.
pub(super) fn upkeep(config: &Config) -> UpkeepOptions {
    let upkeep = &config.upkeep;
    UpkeepOptions {
        reaper_interval: upkeep.reaper_interval,
        arrivals_interval: upkeep.arrivals_interval,
        expiry_interval: upkeep.expiry_interval,
        pruner_interval: upkeep.prune_interval,
        sweeper_interval: config.stock.sweeper_interval,
        refill_interval: config.stock.refill_interval,
        reservation_retention: config.stock.retention,
        switch_interval: config.stock.switch_refresh,
        budget_interval: config.callers.budget_refresh,
        census_interval: config.telemetry.queues_interval,
        census_queues: config.telemetry.queues,
        presence_interval: upkeep.presence_interval,
        step: upkeep.batch,
        pace: pace(config),
        floors: config.broker.claim_cursor,
        ..UpkeepOptions::default()
    }
}

/// Those of the look at the database's connections.
pub(super) fn sampler(config: &Config) -> SamplerOptions {
    let sampler = &config.sampler;
    SamplerOptions {
        enabled: sampler.enabled,
        interval: sampler.interval,
        quiet_interval: sampler.quiet_interval,
        sessions: sampler.sessions,
        names: sampler.names,
        configured: config.callers.names.clone(),
        horizon_interval: sampler.horizon_interval,
        horizon_transactions: sampler.horizon_transactions,
        horizon_age: sampler.horizon_age,
    }
}

/// Those of calls.
pub(super) fn api(config: &Config, telemetry: &Telemetry) -> ApiOptions {
    let server = &config.server;
    ApiOptions {
        limits: config.request_limits(),
        request_deadline: server.request_deadline,
        request_bytes: server.request_bytes,
        replica: database::replica_name(config),
        watchers: config.callers.watchers,
        scaler_streams: config.scaler.streams,
        scaler_interval: config.scaler.interval,
        metrics: Some(telemetry.metrics().clone()),
        spans: telemetry.spans().clone(),
        ..ApiOptions::default()
    }
}

/// Those of the gRPC server's connections.
pub(super) fn server(config: &Config) -> ServerOptions {
    let server = &config.server;
    ServerOptions {
        listen: config.broker.listen,
        connections: server.connections,
        preface: server.preface_timeout,
        connection_age: server.connection_age,
        connection_grace: server.connection_grace,
        http2_streams: server.connection_streams,
        lease_streams_per_connection: config.streams.per_connection,
        keepalive_interval: server.keepalive_interval,
        keepalive_timeout: server.keepalive_timeout,
        drain: for_calls(config),
        ..ServerOptions::default()
    }
}

/// Those of the second port.
pub(super) fn http(config: &Config) -> HttpOptions {
    HttpOptions { listen: config.broker.http_listen, ..HttpOptions::default() }
}

fn for_calls(config: &Config) -> Duration {
    for_jobs(config).saturating_sub(FOR_THE_LANES)
}

/// What of the drain's time is for everything but telemetry.
pub(super) fn for_jobs(config: &Config) -> Duration {
    let flush = config.telemetry.otlp_endpoint.as_ref().map_or(Duration::ZERO, |_| config.telemetry.flush_timeout);
    config.server.drain_timeout.saturating_sub(flush)
}
