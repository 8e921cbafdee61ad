//! What a flood by one caller does to another one's Acks: their latency without it, with it, and with it under a budget.
//!
//! The flood's clients have a runtime of their own and run at the lowest priority: elsewhere they have machines of their own, and
//! what they take of the processor here is not the broker's doing.

#![allow(clippy::print_stdout, reason = "a measurement's table is its purpose")]

mod stand;

use std::{
    net::SocketAddr,
    process::ExitCode,
    time::{Duration, Instant},
};

use leasehold::v1::{
    AckRequest, CallerBudget, CallerWindow, EnqueueRequest, LeaseRequest, ListCallersRequest, NewJob,
    SetCallerBudgetRequest, SettleStatus, connection_service_client::ConnectionServiceClient, lease_response::Frame,
};
use stand::{
    Options, Outcome,
    broker::Broker,
    clients::{Client, PAYLOAD, connect, from_caller, tokens},
    figures::{self, Table, quantile, rate, thousands},
    postgres::Postgres,
};
use tokio::{
    runtime::{Builder, Runtime},
    task::JoinSet,
    time::{MissedTickBehavior, interval},
};
use tokio_util::sync::CancellationToken;

/// Who acks, and who floods.
const QUIET: &str = "checkout";
const FLOOD: &str = "bulk_import";
/// Between two Acks of the quiet caller.
const PAUSE: Duration = Duration::from_millis(5);

fn main() -> ExitCode {
    let seconds = ("seconds", "12", "Length of each phase; the broker's own figures are of its last 10 to 12 seconds");
    let clients = ("clients", "64", "Clients that flood, each with one Enqueue after the other");
    let batch = ("batch", "10", "Jobs of one of their Enqueues");
    let rounds = ("rounds", "3", "Rounds of all phases, of which the medians count");
    let commit =
        ("commit", "0", "Microseconds that the server waits with each commit, as for a slower disk or a standby");
    let about = "Measures one caller's Acks while another one floods the broker with Enqueues";
    let options = Options::parse(about, &[seconds, clients, batch, rounds, commit]);
    options.run(measure(&options))
}

/// Latencies of Acks in milliseconds as the client saw them, the part of them in the line and on the lane, and what the flood
/// got through meanwhile.
#[derive(Default, Clone)]
struct Phase {
    p50: Vec<f64>,
    p99: Vec<f64>,
    wait: Vec<f64>,
    hold: Vec<f64>,
    flooded: Vec<f64>,
}

async fn measure(options: &Options) -> Outcome<()> {
    let commit = format!("commit_delay={}", options.number("commit"));
    let settings = [
        "min_wal_size=4GB",
        "max_wal_size=8GB",
        "checkpoint_timeout=1h",
        "shared_buffers=512MB",
        "max_connections=200",
        // With nobody else in a transaction too.
        "commit_siblings=0",
        commit.as_str(),
    ];
    let postgres = Postgres::start(options.bindir(), &settings).await?;
    postgres.age_log().await?;
    println!("{}", figures::machine());
    println!(
        "{}, fsync on, each commit {} µs later; one Ack each {} ms, medians of rounds",
        postgres.version().await?,
        options.number("commit"),
        PAUSE.as_millis()
    );
    let phases = [("alone", None, false), ("flood", None, true), ("flood, one lane", Some(1), true)];
    let broker = Broker::start(options.broker(), &postgres.create_database("flood")?, &[]).await?;
    let mut results = vec![Phase::default(); phases.len()];
    for _ in 0..options.number("rounds") {
        for ((_, lanes, floods), result) in phases.iter().zip(&mut results) {
            set_budget(&broker, *lanes).await?;
            postgres.checkpoint().await?;
            let (latencies, flooded) = phase(&broker, options, *floods).await?;
            result.add(&latencies, flooded, in_the_broker(&broker).await?);
        }
    }
    let mut table = Table::new([
        "phase",
        "Ack p50, ms",
        "Ack p99, ms",
        "p99 to alone",
        "in the line p99, ms",
        "on the lane p99, ms",
        "flood, jobs/s",
    ]);
    for ((name, ..), result) in phases.iter().zip(&results) {
        let middle = |values: &[f64]| quantile(values, 0.5);
        table.row([
            (*name).to_owned(),
            format!("{:.1}", middle(&result.p50)),
            format!("{:.1}", middle(&result.p99)),
            format!("{:.2}", middle(&result.p99) / middle(&results[0].p99)),
            format!("{:.1}", middle(&result.wait)),
            format!("{:.1}", middle(&result.hold)),
            thousands(middle(&result.flooded)),
        ]);
    }
    table.print();
    for line in broker.trouble()? {
        println!("  broker: {line}");
    }
    Ok(())
}

impl Phase {
    fn add(&mut self, latencies: &[f64], flooded: f64, (wait, hold): (f64, f64)) {
        self.p50.push(quantile(latencies, 0.5));
        self.p99.push(quantile(latencies, 0.99));
        self.wait.push(wait);
        self.hold.push(hold);
        self.flooded.push(flooded);
    }
}

async fn set_budget(broker: &Broker, lanes: Option<u32>) -> Outcome<()> {
    let mut client = ConnectionServiceClient::connect(format!("http://{}", broker.address())).await?;
    let budget = lanes.map(|max_lanes| CallerBudget {
        max_lanes,
        max_wait: Some(prost_types::Duration { seconds: 60, nanos: 0 }),
        ..CallerBudget::default()
    });
    client.set_caller_budget(SetCallerBudgetRequest { caller: FLOOD.to_owned(), budget }).await?;
    Ok(())
}

/// What the broker says of the quiet caller's Acks in the last ten seconds: 99 of 100 waited no longer for a lane, and held it no
/// longer, in milliseconds.
async fn in_the_broker(broker: &Broker) -> Outcome<(f64, f64)> {
    let mut client = ConnectionServiceClient::connect(format!("http://{}", broker.address())).await?;
    let request = ListCallersRequest { window: CallerWindow::TenSeconds.into(), include_statements: true };
    let snapshot = client.list_callers(request).await?.into_inner().snapshot.unwrap_or_default();
    let quiet = snapshot.callers.iter().find(|caller| caller.caller == QUIET);
    let acks = quiet.and_then(|caller| caller.statements.iter().find(|statement| statement.statement == "ack"));
    let lanes = acks.and_then(|acks| acks.r#use).unwrap_or_default();
    let millis = |length: Option<prost_types::Duration>| {
        Duration::try_from(length.unwrap_or_default()).map(|length| length.as_secs_f64() * 1e3)
    };
    Ok((millis(lanes.wait_p99)?, millis(lanes.hold_p99)?))
}

async fn phase(broker: &Broker, options: &Options, floods: bool) -> Outcome<(Vec<f64>, f64)> {
    let (length, stop) = (Duration::from_secs(options.number("seconds")), CancellationToken::new());
    let acks = usize::try_from(length.as_millis() / PAUSE.as_millis())?;
    let mut quiet = connect(broker.address()).await?;
    let leased = lease(&mut quiet, acks).await?;
    let (mut flood, clients) = (JoinSet::new(), behind()?);
    if floods {
        for _ in 0..options.number("clients") {
            flood.spawn_on(pour(broker.address(), options.number("batch"), stop.clone()), clients.handle());
        }
    }
    let (started, mut latencies) = (Instant::now(), Vec::new());
    let mut ticks = interval(PAUSE);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    for token in leased {
        if started.elapsed() > length {
            break;
        }
        ticks.tick().await;
        let sent = Instant::now();
        let answer = quiet.ack(from_caller(QUIET, AckRequest { lease_tokens: vec![token] })?).await?.into_inner();
        latencies.push(sent.elapsed().as_secs_f64() * 1e3);
        if answer.results.iter().any(|result| result.status() != SettleStatus::Ok) {
            return Err("an Ack was refused".into());
        }
    }
    let took = started.elapsed();
    stop.cancel();
    let mut flooded = 0;
    while let Some(poured) = flood.join_next().await {
        flooded += poured??;
    }
    clients.shutdown_background();
    Ok((latencies, rate(flooded, took)))
}

/// A runtime whose threads give way to everybody else's.
fn behind() -> Outcome<Runtime> {
    let give_way = || {
        rustix::process::nice(19).expect("anybody may lower the own priority");
    };
    Ok(Builder::new_multi_thread().worker_threads(2).on_thread_start(give_way).enable_all().build()?)
}

/// Jobs for the quiet caller, leased beforehand; their tokens.
async fn lease(client: &mut Client, count: usize) -> Outcome<Vec<String>> {
    let job = NewJob { queue: "quiet".to_owned(), payload: vec![b'x'; PAYLOAD].into(), ..NewJob::default() };
    for part in (0..count).collect::<Vec<_>>().chunks(1_000) {
        client.enqueue(from_caller(QUIET, EnqueueRequest { jobs: vec![job.clone(); part.len()] })?).await?;
    }
    let request = LeaseRequest {
        queues: vec!["quiet".to_owned()],
        max_in_flight: u32::try_from(count)?,
        lease_duration: Some(prost_types::Duration { seconds: 300, nanos: 0 }),
        ..LeaseRequest::default()
    };
    let mut frames = client.lease(from_caller(QUIET, request)?).await?.into_inner();
    let mut leased = Vec::new();
    while leased.len() < count {
        match frames.message().await?.and_then(|response| response.frame) {
            Some(Frame::Jobs(jobs)) => leased.extend(tokens(&jobs.jobs)),
            Some(_) => {}
            None => return Err("the stream ended".into()),
        }
    }
    // Sent is leased: the stream is not needed any more.
    Ok(leased)
}

/// One Enqueue after the other until `stop`; answers how many jobs.
async fn pour(broker: SocketAddr, batch: u64, stop: CancellationToken) -> Outcome<u64> {
    let mut client = connect(broker).await?;
    let job = NewJob { queue: "flood".to_owned(), payload: vec![b'x'; PAYLOAD].into(), ..NewJob::default() };
    let mut sent = 0;
    while !stop.is_cancelled() {
        let jobs = vec![job.clone(); usize::try_from(batch)?];
        client.enqueue(from_caller(FLOOD, EnqueueRequest { jobs })?).await?;
        sent += batch;
    }
    Ok(sent)
}
