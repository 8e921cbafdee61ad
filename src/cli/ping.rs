//! `leasehold ping`.

use clap::Args;
use serde::Serialize;
use tokio::time::Instant;

use super::{
    Exit,
    broker::{Failed, Target},
    output::{Output, facts::Facts, time},
};
use crate::v1::{BrokerLimits, GetBrokerInfoRequest, GetBrokerInfoResponse, StockLimits};

/// `leasehold ping`.
#[derive(Debug, Args)]
pub(super) struct Ping {
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    target: Target,
}

#[derive(Serialize)]
struct PingJson<'a> {
    broker: &'a str,
    version: &'a str,
    engine: &'a str,
    engine_version: &'a str,
    schema_version: i32,
    newest_schema_version: i32,
    started_at: Option<String>,
    round_trip_seconds: f64,
    limits: Option<LimitsJson>,
}

#[derive(Serialize)]
struct LimitsJson {
    payload_bytes: u64,
    headers: u32,
    header_bytes: u64,
    batch_jobs: u32,
    request_bytes: u64,
    max_in_flight: u32,
    queues_per_stream: u32,
    shortest_lease_seconds: Option<f64>,
    longest_lease_seconds: Option<f64>,
    longest_delay_seconds: Option<f64>,
    max_attempts: u32,
    request_deadline_seconds: Option<f64>,
    stock: Option<StockLimitsJson>,
}

#[derive(Serialize)]
struct StockLimitsJson {
    lines: u32,
    quantity: u32,
    jobs: u32,
    adjustments: u32,
    usual_time_to_live_seconds: Option<f64>,
    shortest_time_to_live_seconds: Option<f64>,
    longest_time_to_live_seconds: Option<f64>,
}

impl From<&StockLimits> for StockLimitsJson {
    fn from(limits: &StockLimits) -> Self {
        Self {
            lines: limits.lines,
            quantity: limits.quantity,
            jobs: limits.jobs,
            adjustments: limits.adjustments,
            usual_time_to_live_seconds: limits.usual_time_to_live.map(time::seconds),
            shortest_time_to_live_seconds: limits.shortest_time_to_live.map(time::seconds),
            longest_time_to_live_seconds: limits.longest_time_to_live.map(time::seconds),
        }
    }
}

impl From<&BrokerLimits> for LimitsJson {
    fn from(limits: &BrokerLimits) -> Self {
        Self {
            payload_bytes: limits.payload_bytes,
            headers: limits.headers,
            header_bytes: limits.header_bytes,
            batch_jobs: limits.batch_jobs,
            request_bytes: limits.request_bytes,
            max_in_flight: limits.max_in_flight,
            queues_per_stream: limits.queues_per_stream,
            shortest_lease_seconds: limits.shortest_lease.map(time::seconds),
            longest_lease_seconds: limits.longest_lease.map(time::seconds),
            longest_delay_seconds: limits.longest_delay.map(time::seconds),
            max_attempts: limits.max_attempts,
            request_deadline_seconds: limits.request_deadline.map(time::seconds),
            stock: limits.stock.as_ref().map(StockLimitsJson::from),
        }
    }
}

impl Ping {
    pub(super) async fn run(self) -> Result<Exit, Failed> {
        let broker = self.target.connect().await?;
        let asked = Instant::now();
        let info = broker.admin().get_broker_info(broker.call(GetBrokerInfoRequest {})).await?.into_inner();
        let took = asked.elapsed();
        if self.output.json {
            Output::object(&PingJson {
                broker: &info.broker,
                version: &info.version,
                engine: &info.engine,
                engine_version: &info.engine_version,
                schema_version: info.schema_version,
                newest_schema_version: info.newest_schema_version,
                started_at: time::maybe(info.started_at),
                round_trip_seconds: took.as_secs_f64(),
                limits: info.limits.as_ref().map(LimitsJson::from),
            })?;
        } else {
            let mut facts = facts(&info);
            facts.add("round trip", format!("{:.1} ms", took.as_secs_f64() * 1e3));
            facts.print()?;
        }
        Ok(Exit::Ok)
    }
}

fn facts(info: &GetBrokerInfoResponse) -> Facts {
    let mut facts = Facts::default();
    facts.add("broker", &info.broker);
    facts.add("version", &info.version);
    let engine = match info.engine_version.as_str() {
        "" => format!("{} (no connection to it)", info.engine),
        version => format!("{} {version}", info.engine),
    };
    facts.add("engine", engine);
    let schema = if info.schema_version < info.newest_schema_version {
        format!("{}; {} is missing: leasehold migrate up", info.schema_version, info.newest_schema_version)
    } else {
        info.schema_version.to_string()
    };
    facts.add("schema", schema);
    facts.maybe("started", info.started_at.map(|at| format!("{} ({})", time::instant(at), time::from_now(at))));
    facts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::output::Style;

    #[test]
    fn a_schema_that_is_behind_says_what_to_do() {
        let info = GetBrokerInfoResponse {
            engine: "sqlite".into(),
            schema_version: 3,
            newest_schema_version: 4,
            ..GetBrokerInfoResponse::default()
        };
        let shown = facts(&info).render(Style::Plain);
        assert!(shown.contains("migrate up") && shown.contains("no connection"), "{shown}");
    }
}
