//! The broker's throughput beside that of bare SQL of the same shape, on the same server, in turns.

#![allow(clippy::print_stdout, reason = "a measurement's table is its purpose")]

mod stand;

use std::{process::ExitCode, time::Duration};

use stand::{
    Options, Outcome, bare,
    broker::Broker,
    clients::{Due, PAYLOAD, Producers, Workers},
    figures::{self, Table, median, micros_each, rate, thousands},
    postgres::Postgres,
    process,
};

const QUEUE: &str = "throughput";
const BROKER: &str = "broker";
const BARE: &str = "bare";
const LEASE: Duration = Duration::from_secs(30);

fn main() -> ExitCode {
    let rounds = ("rounds", "5", "Rounds, of which the medians count");
    let jobs = ("jobs", "100000", "Jobs of a round in batches");
    let singles = ("singles", "20000", "Jobs of a round with one job per call");
    let bare = ("bare", "1", "0 leaves bare SQL out, for a profiler");
    let about = "Runs jobs through the broker and through bare SQL; shows rates and their ratios";
    let options = Options::parse(about, &[rounds, jobs, singles, bare]);
    options.run(measure(&options))
}

/// How many jobs a call or statement carries, and who sends them.
struct Shape {
    name: &'static str,
    batch: u64,
    clients: u64,
    jobs: u64,
    bare_connections: u64,
}

async fn measure(options: &Options) -> Outcome<()> {
    let settings = ["max_wal_size=8GB", "checkpoint_timeout=1h", "shared_buffers=512MB", "max_connections=200"];
    let postgres = Postgres::start(options.bindir(), &settings).await?;
    println!("{}", figures::machine());
    println!(
        "{}, fsync on; jobs of {PAYLOAD} bytes; medians of {} rounds",
        postgres.version().await?,
        options.number("rounds")
    );
    let broker = Broker::start(options.broker(), &postgres.create_database(BROKER)?, &[]).await?;
    postgres.create_database(BARE)?;
    bare::prepare(&mut postgres.connect(BARE).await?).await?;

    let shapes = [
        // Bare SQL was not faster with more connections on two cores, and with 64 much slower.
        Shape { name: "batches of 100", batch: 100, clients: 8, jobs: options.number("jobs"), bare_connections: 4 },
        Shape { name: "one job per call", batch: 1, clients: 64, jobs: options.number("singles"), bare_connections: 8 },
    ];
    let mut table = Table::new([
        "shape",
        "act",
        "broker jobs/s",
        "bare SQL jobs/s",
        "ratio",
        "broker CPU µs/job",
        "server CPU µs/job",
        "bare: server CPU µs/job",
    ]);
    for shape in &shapes {
        let mut runs = Runs::default();
        // The first round warms up and does not count.
        for round in 0..=options.number("rounds") {
            let ours = shape.through_broker(&postgres, &broker).await?;
            let bare = if options.number("bare") == 0 { ours } else { shape.by_bare_sql(&postgres).await? };
            if round > 0 {
                runs.0.push((ours, bare));
            }
        }
        runs.rows(shape.name, &mut table);
        println!("  {}: {} clients; bare SQL: {} connections", shape.name, shape.clients, shape.bare_connections);
    }
    table.print();
    for line in broker.trouble()? {
        println!("  broker: {line}");
    }
    Ok(())
}

/// One act on all jobs of a round.
#[derive(Debug, Clone, Copy)]
struct Act {
    elapsed: Duration,
    server: Duration,
    broker: Duration,
    jobs: u64,
}

#[derive(Debug, Clone, Copy)]
struct Life {
    store: Act,
    drain: Act,
}

impl Shape {
    async fn through_broker(&self, postgres: &Postgres, broker: &Broker) -> Outcome<Life> {
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
            lease: LEASE,
        };
        let mut meter = Meter::start(postgres, Some(broker))?;
        let elapsed = producers.enqueue(broker.address(), self.jobs).await?;
        let store = meter.read(elapsed, self.jobs)?;
        let drained = workers.drain(broker.address(), self.jobs).await?;
        let drain = meter.read(drained.elapsed, drained.acked)?;
        if drained.refused > 0 {
            return Err(format!("{} acks were refused", drained.refused).into());
        }
        Ok(Life { store, drain })
    }

    async fn by_bare_sql(&self, postgres: &Postgres) -> Outcome<Life> {
        let mut connections = Vec::new();
        for _ in 0..self.bare_connections {
            connections.push(bare::connect(postgres.connect(BARE).await?).await?);
        }
        let mut meter = Meter::start(postgres, None)?;
        let elapsed = bare::run(&mut connections, bare::Act::Insert, self.jobs, self.batch).await?;
        let store = meter.read(elapsed, self.jobs)?;
        let elapsed = bare::run(&mut connections, bare::Act::ClaimAndDelete, self.jobs, self.batch).await?;
        Ok(Life { store, drain: meter.read(elapsed, self.jobs)? })
    }
}

/// Reads processor times between acts.
struct Meter<'a> {
    postgres: &'a Postgres,
    broker: Option<&'a Broker>,
    server_before: Duration,
    broker_before: Duration,
}

impl<'a> Meter<'a> {
    fn start(postgres: &'a Postgres, broker: Option<&'a Broker>) -> Outcome<Self> {
        let mut meter = Self { postgres, broker, server_before: Duration::ZERO, broker_before: Duration::ZERO };
        (meter.server_before, meter.broker_before) = meter.now()?;
        Ok(meter)
    }

    fn now(&self) -> Outcome<(Duration, Duration)> {
        let broker = self.broker.map_or(Ok(Duration::ZERO), |broker| process::processor_time(broker.pid()))?;
        Ok((process::processor_time_of_family(self.postgres.pid())?, broker))
    }

    fn read(&mut self, elapsed: Duration, jobs: u64) -> Outcome<Act> {
        let (server, broker) = self.now()?;
        let act = Act {
            elapsed,
            jobs,
            server: server.saturating_sub(self.server_before),
            broker: broker.saturating_sub(self.broker_before),
        };
        (self.server_before, self.broker_before) = (server, broker);
        Ok(act)
    }
}

/// Each round's lives: through the broker, and by bare SQL.
#[derive(Default)]
struct Runs(Vec<(Life, Life)>);

type Part = fn(&Life) -> Act;

impl Runs {
    fn rows(&self, shape: &str, table: &mut Table) {
        let acts: [(&str, Part); 3] =
            [("enqueue", |life| life.store), ("lease + ack", |life| life.drain), ("both", Life::whole)];
        for (name, act) in acts {
            let middle = |figure: &dyn Fn(&(Life, Life)) -> f64| median(&self.0.iter().map(figure).collect::<Vec<_>>());
            let per_second = |act: Act| rate(act.jobs, act.elapsed);
            table.row([
                shape.to_owned(),
                name.to_owned(),
                thousands(middle(&|(ours, _)| per_second(act(ours)))),
                thousands(middle(&|(_, bare)| per_second(act(bare)))),
                format!("{:.2}", middle(&|(ours, bare)| per_second(act(ours)) / per_second(act(bare)))),
                format!("{:.1}", middle(&|(ours, _)| micros_each(act(ours).broker, act(ours).jobs))),
                format!("{:.1}", middle(&|(ours, _)| micros_each(act(ours).server, act(ours).jobs))),
                format!("{:.1}", middle(&|(_, bare)| micros_each(act(bare).server, act(bare).jobs))),
            ]);
        }
    }
}

impl Life {
    fn whole(&self) -> Act {
        Act {
            elapsed: self.store.elapsed + self.drain.elapsed,
            server: self.store.server + self.drain.server,
            broker: self.store.broker + self.drain.broker,
            jobs: self.store.jobs,
        }
    }
}
