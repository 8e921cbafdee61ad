//! Rules between options, looked at when each of them is fine by itself.

use super::{Config, Database, layers::Layers};

/// Bytes that a job's names, keys and framing take beside payload and headers.
const ROOM: usize = 4 << 10;

/// Notes every rule that does not hold.
pub(super) fn check(config: &Config, layers: &mut Layers) {
    let broker = &config.broker;
    for (key, address) in [("listen", broker.listen), ("http_listen", broker.http_listen)] {
        layers.require(
            address.ip().is_loopback() || broker.insecure_plaintext,
            &[key],
            "must be a loopback address, since there is no TLS; insecure_plaintext (--insecure-plaintext) lifts this",
        );
    }
    layers.require(
        broker.listen != broker.http_listen || broker.listen.port() == 0,
        &["listen", "http_listen"],
        "must be different",
    );

    check_database(config, layers);
    let (lanes, limits, queues) = (&config.lanes, &config.limits, &config.queues);
    layers.require(
        lanes.lock_timeout <= lanes.statement_timeout,
        &["lanes.lock_timeout", "lanes.statement_timeout"],
        "the first must not be longer than the second",
    );
    layers.require(
        lanes.statement_timeout < lanes.commit_timeout,
        &["lanes.statement_timeout", "lanes.commit_timeout"],
        "the first must be shorter than the second, or statements that the database ends count as unknown",
    );
    layers.require(
        config.server.request_bytes <= lanes.waiting_bytes,
        &["server.request_bytes", "lanes.waiting_bytes"],
        "the first must not be larger than the second",
    );
    layers.require(
        limits.payload_bytes + limits.header_bytes + ROOM <= config.server.request_bytes,
        &["limits.payload_bytes", "limits.header_bytes", "server.request_bytes"],
        "the last must hold the two before it and 4 KiB more",
    );
    layers.require(
        limits.lease_min <= limits.lease_max,
        &["limits.lease_min", "limits.lease_max"],
        "the first must not be longer than the second",
    );
    layers.require(
        (limits.lease_min..=limits.lease_max).contains(&queues.lease_duration),
        &["queues.lease_duration", "limits.lease_min", "limits.lease_max"],
        "the first must lie between the two others",
    );
    layers.require(
        queues.max_attempts <= limits.max_attempts,
        &["queues.max_attempts", "limits.max_attempts"],
        "the first must not be larger than the second",
    );
    layers.require(
        queues.backoff_base <= queues.backoff_cap,
        &["queues.backoff_base", "queues.backoff_cap"],
        "the first must not be longer than the second",
    );
    layers.require(
        config.streams.per_connection <= config.server.connection_streams as usize,
        &["streams.per_connection", "server.connection_streams"],
        "the first must not be larger than the second, or clients wait where they would be told",
    );
    layers.require(
        config.upkeep.presence_interval * 2 <= config.upkeep.presence_absent,
        &["upkeep.presence_interval", "upkeep.presence_absent"],
        "the second must be at least twice the first, or replicas that are there are taken for gone",
    );
    layers.require(
        config.sampler.interval <= config.sampler.quiet_interval,
        &["sampler.interval", "sampler.quiet_interval"],
        "the first must not be longer than the second",
    );
    layers.require(
        config.named_callers().len() <= config.callers.with_text,
        &["callers.names", "callers.with_text"],
        "the first, with the callers that have a section of their own, must not name more than the second allows",
    );
    check_stock(config, layers);
    check_telemetry(config, layers);
}

fn check_telemetry(config: &Config, layers: &mut Layers) {
    let telemetry = &config.telemetry;
    layers.require(
        telemetry.otlp_endpoint.is_none() || telemetry.flush_timeout * 2 <= config.server.drain_timeout,
        &["telemetry.flush_timeout", "server.drain_timeout"],
        "the first must be half of the second at most, or nothing is left of the drain for jobs and calls",
    );
    layers.require(
        telemetry.otlp_ca_file.is_none()
            || telemetry.otlp_endpoint.as_ref().is_some_and(|endpoint| endpoint.starts_with("https:")),
        &["telemetry.otlp_ca_file", "telemetry.otlp_endpoint"],
        "the first is for an https collector alone, which the second does not name",
    );
    layers.require(
        telemetry.batch <= telemetry.queue,
        &["telemetry.batch", "telemetry.queue"],
        "the first must not be larger than the second",
    );
}

/// What is for one kind of database alone.
fn check_database(config: &Config, layers: &mut Layers) {
    let broker = &config.broker;
    layers.require(
        matches!(broker.database_url, Database::Postgres(_)) || broker.database_schema == "leasehold",
        &["database_schema", "database_url"],
        "the first is for PostgreSQL alone, which the second does not name",
    );
    layers.require(
        matches!(broker.database_url, Database::Mysql(_)) || broker.database_table_prefix == "leasehold_",
        &["database_table_prefix", "database_url"],
        "the first is for MySQL and MariaDB alone, which the second does not name",
    );

    layers.require(
        matches!(broker.database_url, Database::Postgres(_)) || !config.lanes.unflushed_claims,
        &["lanes.unflushed_claims", "database_url"],
        "the first is for PostgreSQL alone, which the second does not name: MySQL and MariaDB flush for the whole server, and the \
         embedded database for the whole connection",
    );
}

fn check_stock(config: &Config, layers: &mut Layers) {
    let stock = &config.stock;
    layers.require(
        (stock.time_to_live_min..=stock.time_to_live_max).contains(&stock.time_to_live),
        &["stock.time_to_live", "stock.time_to_live_min", "stock.time_to_live_max"],
        "the first must lie between the two others",
    );
}
