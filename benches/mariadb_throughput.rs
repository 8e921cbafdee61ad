//! The broker's throughput on `MariaDB` beside that of bare SQL on the same server, in turns.

#![allow(clippy::print_stdout, reason = "a measurement's table is its purpose")]

mod stand;

use std::{
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use tokio::task::JoinSet;

use stand::{
    Options, Outcome,
    broker::Broker,
    clients::{Due, PAYLOAD, Producers, Workers},
    figures::{self, Table, median, rate, thousands},
    mariadb::MariaDb,
    status::StatusTable,
};

const QUEUE: &str = "throughput";
const BARE: &str = "bare";
const LEASE: Duration = Duration::from_secs(30);
/// More were not faster on two cores.
const BARE_CONNECTIONS: usize = 4;

fn main() -> ExitCode {
    let rounds = ("rounds", "5", "Rounds, of which the medians count");
    let jobs = ("jobs", "50000", "Jobs of a round in batches");
    let singles = ("singles", "5000", "Jobs of a round with one job per call");
    let about = "Runs jobs through the broker and through bare SQL on MariaDB; shows rates and their ratios";
    let options = Options::parse(about, &[rounds, jobs, singles]);
    options.run(measure(&options))
}

/// How many jobs a call or statement carries, and who sends them.
struct Shape {
    name: &'static str,
    batch: u64,
    clients: u64,
    jobs: u64,
}

/// How long a round's jobs took to be stored, and to be leased and acked.
struct Life {
    store: Duration,
    drain: Duration,
}

/// The time of an act.
type Part = fn(&Life) -> Duration;

async fn measure(options: &Options) -> Outcome<()> {
    let settings = ["innodb-buffer-pool-size=512M", "innodb-log-file-size=2G", "max-connections=200"];
    let server = MariaDb::start(options.bindir(), &settings).await?;
    println!("{}", figures::machine());
    println!(
        "{}, flushed at each commit; jobs of {PAYLOAD} bytes; medians of {} rounds",
        server.version().await?,
        options.number("rounds")
    );
    let broker = Broker::start(options.broker(), &server.create_database("broker").await?, &[]).await?;
    server.create_database(BARE).await?;
    StatusTable::prepare(&mut server.connect(BARE).await?).await?;
    let shapes = [
        Shape { name: "batches of 100", batch: 100, clients: 8, jobs: options.number("jobs") },
        Shape { name: "one job per call", batch: 1, clients: 64, jobs: options.number("singles") },
    ];
    let mut table = Table::new(["shape", "act", "broker jobs/s", "bare SQL jobs/s", "ratio"]);
    for shape in &shapes {
        let mut runs = Vec::new();
        // The first round warms up and does not count.
        for round in 0..=options.number("rounds") {
            let pair = (shape.through_broker(&broker).await?, shape.by_bare_sql(&server).await?);
            if round > 0 {
                runs.push(pair);
            }
        }
        let acts: [(&str, Part); 3] = [
            ("enqueue", |life| life.store),
            ("lease + ack", |life| life.drain),
            ("both", |life| life.store + life.drain),
        ];
        for (name, act) in acts {
            let middle = |figure: &dyn Fn(&(Life, Life)) -> f64| median(&runs.iter().map(figure).collect::<Vec<_>>());
            let per_second = |life: &Life| rate(shape.jobs, act(life));
            table.row([
                shape.name.to_owned(),
                name.to_owned(),
                thousands(middle(&|(ours, _)| per_second(ours))),
                thousands(middle(&|(_, bare)| per_second(bare))),
                format!("{:.2}", middle(&|(ours, bare)| per_second(ours) / per_second(bare))),
            ]);
        }
        println!("  {}: {} clients; bare SQL: {BARE_CONNECTIONS} connections", shape.name, shape.clients);
    }
    table.print();
    println!("bare SQL: a status and an index on it, READ COMMITTED, claims of as many jobs as the inserts have");
    for line in broker.trouble()? {
        println!("  broker: {line}");
    }
    Ok(())
}

impl Shape {
    async fn through_broker(&self, broker: &Broker) -> Outcome<Life> {
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
        let store = producers.enqueue(broker.address(), self.jobs).await?;
        let drained = workers.drain(broker.address(), self.jobs).await?;
        if drained.refused > 0 {
            return Err(format!("{} acks were refused", drained.refused).into());
        }
        Ok(Life { store, drain: drained.elapsed })
    }

    async fn by_bare_sql(&self, server: &MariaDb) -> Outcome<Life> {
        Ok(Life { store: self.bare(server, insert).await?, drain: self.bare(server, claim_and_ack).await? })
    }

    /// Runs an act on all connections at once until all jobs went through.
    async fn bare<F, A>(&self, server: &MariaDb, act: F) -> Outcome<Duration>
    where
        F: Fn(StatusTable, usize, u64, Arc<AtomicU64>) -> A,
        A: Future<Output = Outcome<()>> + Send + 'static,
    {
        let mut tables = Vec::new();
        for _ in 0..BARE_CONNECTIONS {
            tables.push(StatusTable::at(server.connect(BARE).await?, "read committed").await?);
        }
        let (done, batch) = (Arc::new(AtomicU64::new(0)), usize::try_from(self.batch)?);
        let started = Instant::now();
        let mut running = JoinSet::new();
        for table in tables {
            running.spawn(act(table, batch, self.jobs, Arc::clone(&done)));
        }
        while let Some(ended) = running.join_next().await {
            ended??;
        }
        Ok(started.elapsed())
    }
}

async fn insert(mut table: StatusTable, batch: usize, jobs: u64, done: Arc<AtomicU64>) -> Outcome<()> {
    // Counted before they are stored, so that all connections together store as many as are drained.
    while done.fetch_add(u64::try_from(batch)?, Relaxed) < jobs {
        table.insert(batch).await?.ok_or("a deadlock at READ COMMITTED")?;
    }
    Ok(())
}

async fn claim_and_ack(mut table: StatusTable, batch: usize, jobs: u64, done: Arc<AtomicU64>) -> Outcome<()> {
    while done.load(Relaxed) < jobs {
        let taken = table.claim(batch).await?.ok_or("a deadlock at READ COMMITTED")?;
        if taken.len() > 0 {
            done.fetch_add(table.ack(&taken).await?.ok_or("a deadlock at READ COMMITTED")?, Relaxed);
        }
    }
    Ok(())
}
