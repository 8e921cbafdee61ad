//! What a collector costs the calls: their latency without telemetry, and with every call traced to a collector that is not
//! there, or that takes connections and never answers. The broker has one thread for all its tasks, where an exporter that
//! blocked its thread would hold up everything.

#![allow(clippy::print_stdout, reason = "a measurement's table is its purpose")]

mod stand;

use std::{
    net::TcpListener,
    process::ExitCode,
    time::{Duration, Instant},
};

use leasehold::v1::{EnqueueRequest, NewJob};
use stand::{
    Options, Outcome,
    broker::Broker,
    clients::{PAYLOAD, connect, from_caller},
    figures::{self, Table, median, quantile},
    postgres::{Postgres, free_port},
    process,
};
use tokio::{
    task::JoinSet,
    time::{MissedTickBehavior, interval},
};

/// One call is begun so often, whether or not those before it have ended.
const BEAT: Duration = Duration::from_millis(2);

fn main() -> ExitCode {
    let seconds = ("seconds", "15", "Length of each case");
    let rounds = ("rounds", "3", "Rounds of all cases, of which the medians count");
    let options = Options::parse("Measures what a collector that takes nothing costs the calls", &[seconds, rounds]);
    options.run(measure(&options))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Collector {
    Off,
    Absent,
    Silent,
}

impl Collector {
    fn name(self) -> &'static str {
        match self {
            Self::Off => "telemetry off",
            Self::Absent => "nobody listens",
            Self::Silent => "takes connections, never answers",
        }
    }
}

/// Of one case, by round.
#[derive(Default)]
struct Figures {
    p50: Vec<f64>,
    p99: Vec<f64>,
    /// p99 to that without telemetry in the same round.
    ratio: Vec<f64>,
    grown: Vec<f64>,
    stopped: Vec<f64>,
}

async fn measure(options: &Options) -> Outcome<()> {
    let postgres = Postgres::start(options.bindir(), &["shared_buffers=512MB", "max_wal_size=8GB"]).await?;
    postgres.age_log().await?;
    println!("{}", figures::machine());
    println!("{}, fsync on; one Enqueue each {} ms, all traced", postgres.version().await?, BEAT.as_millis());
    let cases = [Collector::Off, Collector::Absent, Collector::Silent];
    let mut all = cases.map(|_| Figures::default());
    for round in 0..options.number("rounds").max(1) {
        let mut without = f64::NAN;
        for (case, figures) in cases.iter().zip(&mut all) {
            let url = postgres.create_database(&format!("exporter_{round}_{}", *case as u8))?;
            postgres.checkpoint().await?;
            let p99 = take(options, &url, *case, figures).await?;
            if *case == Collector::Off {
                without = p99;
            }
            figures.ratio.push(p99 / without);
        }
    }
    let mut table = Table::new(["collector", "p50 ms", "p99 ms", "p99 to off", "memory grown, MB", "stopped after, s"]);
    for (case, figures) in cases.iter().zip(&all) {
        table.row([
            case.name().to_owned(),
            format!("{:.2}", median(&figures.p50)),
            format!("{:.2}", median(&figures.p99)),
            format!("{:.2}", median(&figures.ratio)),
            format!("{:.1}", median(&figures.grown)),
            format!("{:.2}", median(&figures.stopped)),
        ]);
    }
    table.print();
    Ok(())
}

/// Answers the 99th percentile.
async fn take(options: &Options, url: &str, collector: Collector, figures: &mut Figures) -> Outcome<f64> {
    let silent = TcpListener::bind(("127.0.0.1", 0))?;
    let port = if collector == Collector::Silent { silent.local_addr()?.port() } else { free_port()? };
    let endpoint = format!("http://127.0.0.1:{port}");
    let mut settings = vec![("TOKIO_WORKER_THREADS", "1")];
    if collector != Collector::Off {
        settings
            .extend([("LEASEHOLD_TELEMETRY_OTLP_ENDPOINT", endpoint.as_str()), ("LEASEHOLD_TELEMETRY_SAMPLE", "1")]);
    }
    let broker = Broker::start(options.broker(), url, &settings).await?;
    calls(&broker, Duration::from_secs(2)).await?;
    let before = process::resident(broker.pid())?;
    let taken = calls(&broker, Duration::from_secs(options.number("seconds"))).await?;
    #[allow(clippy::cast_precision_loss, reason = "shown in megabytes")]
    figures.grown.push(process::resident(broker.pid())?.saturating_sub(before) as f64 / 1e6);
    let asked = Instant::now();
    drop(broker);
    figures.stopped.push(asked.elapsed().as_secs_f64());
    figures.p50.push(median(&taken));
    figures.p99.push(quantile(&taken, 0.99));
    println!("  {}: p99 {:.2} ms of {} calls", collector.name(), quantile(&taken, 0.99), taken.len());
    Ok(quantile(&taken, 0.99))
}

/// Latencies in milliseconds.
async fn calls(broker: &Broker, length: Duration) -> Outcome<Vec<f64>> {
    let client = connect(broker.address()).await?;
    let (started, mut ticks, mut running) = (Instant::now(), interval(BEAT), JoinSet::new());
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    while started.elapsed() < length {
        let due = ticks.tick().await;
        let mut client = client.clone();
        running.spawn(async move {
            let job = NewJob { queue: "beat".to_owned(), payload: vec![b'x'; PAYLOAD].into(), ..NewJob::default() };
            client.enqueue(from_caller("producer", EnqueueRequest { jobs: vec![job] })?).await?;
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>(due.elapsed().as_secs_f64() * 1e3)
        });
    }
    let mut taken = Vec::new();
    while let Some(call) = running.join_next().await {
        taken.push(call??);
    }
    Ok(taken)
}
