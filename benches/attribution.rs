//! What it costs that every statement has a caller: nanoseconds for each statement in the ledger, and the broker's throughput
//! beside that of a broker without attribution, on the same server, in turns.
//!
//! The other broker is built with no comment on statements, no ledger and one label for all callers:
//! `BENCH_WITHOUT_ATTRIBUTION=1 cargo build --release && cp target/release/leasehold target/without-attribution`, then
//! `cargo bench --bench attribution -- --other target/without-attribution`.

#![allow(clippy::print_stdout, reason = "a measurement's table is its purpose")]

mod stand;

use std::{
    hint::black_box,
    path::Path,
    process::ExitCode,
    time::{Duration, Instant},
};

use leasehold::{
    model::Caller,
    store::ledger::{Ledger, Ran, Spread, Window},
};
use stand::{
    Options, Outcome,
    broker::Broker,
    clients::{Due, PAYLOAD, Producers, Workers},
    figures::{self, Table, median, rate, thousands},
    postgres::Postgres,
    process,
};

const LANES: usize = 8;
const QUEUE: &str = "attribution";

fn main() -> ExitCode {
    let rounds = ("rounds", "9", "Rounds of the two brokers, of which the medians count");
    let jobs = ("jobs", "60000", "Jobs of a round in batches of 100");
    let singles = ("singles", "15000", "Jobs of a round with one job per call");
    let statements = ("statements", "2000000", "Statements put into the ledger");
    let about = "Measures the ledger alone and, with --other, a broker without attribution beside this one";
    let options = Options::parse(about, &[rounds, jobs, singles, statements]);
    options.run(measure(&options))
}

async fn measure(options: &Options) -> Outcome<()> {
    println!("{}", figures::machine());
    ledger(options.number("statements"))?;
    if let Some(other) = options.other() {
        return throughput(options, other).await;
    }
    println!("no --other broker: see the head of benches/attribution.rs");
    Ok(())
}

/// Statements of few and of many callers, one after the other and from four threads at once.
fn ledger(statements: u64) -> Outcome<()> {
    let mut table =
        Table::new(["callers", "threads", "CPU ns per statement", "ns by the clock", "report of 1 min, µs"]);
    for callers in [10, 1_000, 10_000] {
        let callers = (0..callers).map(|n| Caller::parse(&format!("caller-{n}"))).collect::<Result<Vec<_>, _>>();
        let callers = callers.map_err(|invalid| invalid.to_string())?;
        for threads in [1, 4] {
            let ledger = Ledger::new(1_000, [], LANES);
            let (started, before) = (Instant::now(), process::processor_time(std::process::id())?);
            std::thread::scope(|scope| {
                for thread in 0..threads {
                    let (ledger, callers) = (&ledger, &callers);
                    scope.spawn(move || record(ledger, callers, (thread, threads), statements / threads as u64));
                }
            });
            let each = |time: Duration| format!("{:.0}", time.as_secs_f64() * 1e9 / count(statements));
            let (clock, after) = (started.elapsed(), process::processor_time(std::process::id())?);
            let asked = Instant::now();
            black_box(ledger.report(Window::OneMinute, true, Instant::now()));
            let report = asked.elapsed().as_secs_f64() * 1e6;
            let (cpu, report) = (each(after.saturating_sub(before)), format!("{report:.0}"));
            table.row([callers.len().to_string(), threads.to_string(), cpu, each(clock), report]);
        }
    }
    table.print();
    Ok(())
}

/// As lanes do: reading the clock, the begin of a hold, its requests' waits, its end.
fn record(ledger: &Ledger, callers: &[Caller], (thread, threads): (usize, usize), statements: u64) {
    const ACTS: [&str; 4] = ["enqueue", "claim", "ack", "extend"];
    let mine: Vec<usize> = (thread..LANES).step_by(threads).collect();
    for n in 0..usize::try_from(statements).unwrap_or(usize::MAX) {
        let lane = mine[n % mine.len()];
        let began = Instant::now();
        ledger.began(lane, &callers[n.wrapping_mul(7_919) % callers.len()], ACTS[n % ACTS.len()], began);
        let mut waits = Spread::EMPTY;
        waits.add(Duration::from_micros(50));
        ledger.ended(lane, &Ran { waits, statements: 1, rows: 1, errors: 0 }, Instant::now());
    }
}

#[allow(clippy::cast_precision_loss, reason = "millions")]
fn count(statements: u64) -> f64 {
    statements as f64
}

/// How many jobs a call carries, and who sends them.
struct Shape {
    name: &'static str,
    batch: u64,
    clients: u64,
    jobs: u64,
}

async fn throughput(options: &Options, other: &Path) -> Outcome<()> {
    let settings = ["max_wal_size=8GB", "checkpoint_timeout=1h", "shared_buffers=512MB", "max_connections=200"];
    let postgres = Postgres::start(options.bindir(), &settings).await?;
    println!("{}, fsync on; jobs of {PAYLOAD} bytes; enqueue, lease and ack", postgres.version().await?);
    let with = Broker::start(options.broker(), &postgres.create_database("with")?, &[]).await?;
    let without = Broker::start(other, &postgres.create_database("without")?, &[]).await?;
    let mut table =
        Table::new(["shape", "with, jobs/s", "without, jobs/s", "ratio of medians", "median ratio of rounds"]);
    for shape in [
        Shape { name: "batches of 100", batch: 100, clients: 8, jobs: options.number("jobs") },
        Shape { name: "one job per call", batch: 1, clients: 64, jobs: options.number("singles") },
    ] {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        // The first round warms up and does not count. Who goes first changes, so that a drift of the machine favours nobody.
        for round in 0..=options.number("rounds") {
            let (a, b) = if round % 2 == 0 {
                let a = shape.run(&with).await?;
                (a, shape.run(&without).await?)
            } else {
                let b = shape.run(&without).await?;
                (shape.run(&with).await?, b)
            };
            if round > 0 {
                ours.push(a);
                theirs.push(b);
            }
        }
        let rounds: Vec<f64> = ours.iter().zip(&theirs).map(|(a, b)| a / b).collect();
        table.row([
            shape.name.to_owned(),
            thousands(median(&ours)),
            thousands(median(&theirs)),
            format!("{:.3}", median(&ours) / median(&theirs)),
            format!("{:.3}", median(&rounds)),
        ]);
    }
    table.print();
    for line in with.trouble()?.into_iter().chain(without.trouble()?) {
        println!("  broker: {line}");
    }
    Ok(())
}

impl Shape {
    /// Jobs per second through Enqueue, Lease and Ack.
    async fn run(&self, broker: &Broker) -> Outcome<f64> {
        let connections = self.clients.min(8);
        let producers = Producers {
            queue: QUEUE.to_owned(),
            due: Due::Unset,
            clients: self.clients,
            connections,
            batch: self.batch,
        };
        let workers = Workers {
            queue: QUEUE.to_owned(),
            streams: self.clients,
            connections,
            max_in_flight: u32::try_from(self.batch * 5)?,
            batch: usize::try_from(self.batch)?,
            acks: 4,
            lease: Duration::from_secs(30),
        };
        let stored = producers.enqueue(broker.address(), self.jobs).await?;
        let drained = workers.drain(broker.address(), self.jobs).await?;
        Ok(rate(self.jobs, stored + drained.elapsed))
    }
}
