//! What a held snapshot does to the rate at which jobs are drained, with the claim cursor and without it.
//!
//! While somebody's transaction keeps an old snapshot, vacuum may not remove what finished jobs leave behind: the table and
//! the left ends of its indexes fill with dead entries. A claim that begins at the index's end walks over all of them.

#![allow(clippy::print_stdout, reason = "a measurement's table is its purpose")]

mod stand;

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use tokio_util::sync::CancellationToken;

use stand::{
    Options, Outcome,
    broker::Broker,
    clients::{Due, Producers, Workers},
    figures::{self, Table, median, micros_each, rate, thousands},
    process,
    server::Server,
    statements::Statement,
};

const QUEUE: &str = "snapshot";
/// Jobs that are stored, then drained, in one round.
const ROUND: &str = "50000";
/// Rounds before the snapshot, and at the end under it; the median counts.
const ROUNDS: usize = 3;
/// Jobs that find the server's caches, the plans and the table's first pages cold.
const WARM_UP: u64 = 20_000;
const LEASE: Duration = Duration::from_secs(5);
/// The broker must notice that a round's streams are gone: what the next round stores would else be sent to one of them, and
/// come back only with the end of its lease.
const PARTING: Duration = Duration::from_millis(250);
/// How long the statements of the idle broker are watched.
const WATCHED: Duration = Duration::from_secs(15);

fn main() -> ExitCode {
    let jobs = ("jobs", "300000", "Jobs that go through under the snapshot before the rate is taken");
    let round = ("round", ROUND, "Jobs of a round");
    let options = Options::parse_on(
        &["postgres", "mariadb"],
        "Drains jobs before and while a snapshot is held; shows how the rates relate",
        &[jobs, round],
    );
    options.run(measure(&options))
}

struct Case {
    name: &'static str,
    database: &'static str,
    cursor: bool,
    due: Due,
    held: bool,
}

const CASES: [Case; 5] = [
    Case { name: "nobody holds a snapshot", database: "control", cursor: true, due: Due::Unset, held: false },
    Case { name: "held, cursor", database: "cursor_on", cursor: true, due: Due::Unset, held: true },
    Case { name: "held, no cursor", database: "cursor_off", cursor: false, due: Due::Unset, held: true },
    Case { name: "held, cursor, past times", database: "past_on", cursor: true, due: Due::Past, held: true },
    Case { name: "held, no cursor, past times", database: "past_off", cursor: false, due: Due::Past, held: true },
];

async fn measure(options: &Options) -> Outcome<()> {
    let server = Server::start(options).await?;
    println!("{}", figures::machine());
    println!(
        "{}, fsync on; jobs of {} bytes; {} rounds of {} jobs stored by {} producers in batches of {}, then leased and",
        server.version().await?,
        stand::clients::PAYLOAD,
        ROUNDS,
        options.number("round"),
        producers(Due::Unset).clients,
        producers(Due::Unset).batch,
    );
    println!(
        "acked over {} streams of credit {} in batches of at most {}; leases of {} s; {} jobs under the snapshot before 'after'",
        workers().streams,
        workers().max_in_flight,
        workers().batch,
        LEASE.as_secs(),
        options.number("jobs"),
    );
    println!("past times: due within the last hour, and 1,000 such jobs a second more arrive while draining");

    let mut rates = Table::new([
        "case",
        "drained/s before",
        "after",
        "ratio",
        "server CPU µs/job before",
        "after",
        "broker CPU µs/job before",
        "after",
        "refused acks",
    ]);
    let mut reaper =
        Table::new(["empty reaper pass", "passes", "median ms", "worst ms", "ms of all upkeep and looks per s"]);
    for case in &CASES {
        let (before, after, passes) = case.run(&server, options).await?;
        rates.row([
            case.name.to_owned(),
            thousands(before.rate),
            thousands(after.rate),
            format!("{:.2}", after.rate / before.rate),
            format!("{:.1}", before.server),
            format!("{:.1}", after.server),
            format!("{:.1}", before.broker),
            format!("{:.1}", after.broker),
            (before.refused + after.refused).to_string(),
        ]);
        reaper.row(passes.cells(case.name));
    }
    rates.print();
    println!("after the drains, with nothing left to do, for {} s:", WATCHED.as_secs());
    reaper.print();
    Ok(())
}

fn producers(due: Due) -> Producers {
    Producers { queue: QUEUE.to_owned(), due, clients: 4, connections: 4, batch: 100 }
}

fn workers() -> Workers {
    Workers {
        queue: QUEUE.to_owned(),
        streams: 8,
        connections: 4,
        max_in_flight: 500,
        batch: 100,
        acks: 4,
        lease: LEASE,
    }
}

impl Case {
    async fn run(&self, server: &Server, options: &Options) -> Outcome<(Figures, Figures, Passes)> {
        let url = server.create_database(self.database).await?;
        let broker = Broker::start(
            options.broker(),
            &url,
            &[("LEASEHOLD_CLAIM_CURSOR", if self.cursor { "true" } else { "false" })],
        )
        .await?;
        let measured = self.compare(server, &broker, options).await;
        for line in broker.trouble()? {
            println!("  broker: {line}");
        }
        measured
    }

    async fn compare(
        &self,
        server: &Server,
        broker: &Broker,
        options: &Options,
    ) -> Outcome<(Figures, Figures, Passes)> {
        let (jobs, each) = (options.number("jobs"), options.number("round"));
        self.round(server, broker, WARM_UP.min(each)).await?;
        let before = self.rounds(server, broker, each).await?;

        let holder = if self.held { Some(server.hold_snapshot(self.database).await?) } else { None };
        let (started, mut through) = (Instant::now(), 0);
        while through < jobs || started.elapsed() < LEASE * 2 {
            let round = self.round(server, broker, each).await?;
            through += each;
            println!("  {}: {} jobs/s at {through} jobs", self.name, thousands(round.rate));
        }
        let after = self.rounds(server, broker, each).await?;
        let passes = Passes(server.watch(WATCHED).await?);
        if let Some(mut holder) = holder
            && !holder.is_held().await?
        {
            return Err("the snapshot was lost on the way".into());
        }
        Ok((before, after, passes))
    }

    async fn rounds(&self, server: &Server, broker: &Broker, each: u64) -> Outcome<Figures> {
        let mut rounds = Vec::new();
        for _ in 0..ROUNDS {
            rounds.push(self.round(server, broker, each).await?);
        }
        let middle = |of: fn(&Figures) -> f64| median(&rounds.iter().map(of).collect::<Vec<_>>());
        Ok(Figures {
            rate: middle(|round| round.rate),
            server: middle(|round| round.server),
            broker: middle(|round| round.broker),
            refused: rounds.iter().map(|round| round.refused).sum(),
        })
    }

    /// Stores jobs, then drains them; the figures are those of draining.
    async fn round(&self, server: &Server, broker: &Broker, jobs: u64) -> Outcome<Figures> {
        producers(self.due).enqueue(broker.address(), jobs).await?;
        let (stop, more) = (CancellationToken::new(), Producers { batch: 50, ..producers(self.due) });
        let (address, ends) = (broker.address(), stop.clone());
        let trickle = (self.due == Due::Past)
            .then(|| tokio::spawn(async move { more.trickle(address, Duration::from_millis(50), ends).await }));
        let usage = || {
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>((
                server.processor_time()?,
                process::processor_time(broker.pid())?,
            ))
        };
        let (of_server, own) = usage()?;
        let drained = workers().drain(address, jobs).await?;
        let (server_after, own_after) = usage()?;
        tokio::time::sleep(PARTING).await;
        stop.cancel();
        if let Some(trickle) = trickle {
            trickle.await??;
        }
        Ok(Figures {
            rate: rate(drained.acked, drained.elapsed),
            server: micros_each(server_after.saturating_sub(of_server), drained.acked),
            broker: micros_each(own_after.saturating_sub(own), drained.acked),
            refused: drained.refused,
        })
    }
}

struct Figures {
    rate: f64,
    /// Microseconds of processor time per job.
    server: f64,
    broker: f64,
    refused: u64,
}

/// Statements of a broker with nothing to do.
struct Passes(Vec<Statement>);

impl Passes {
    fn cells(&self, name: &str) -> [String; 5] {
        let of_reaper = self.0.iter().filter(|statement| statement.caller == "leasehold.reaper");
        let millis: Vec<f64> = of_reaper.map(|statement| statement.millis).collect();
        let all: f64 = self.0.iter().map(|statement| statement.millis).sum();
        [
            name.to_owned(),
            millis.len().to_string(),
            format!("{:.2}", median(&millis)),
            format!("{:.2}", figures::quantile(&millis, 1.0)),
            format!("{:.1}", all / WATCHED.as_secs_f64()),
        ]
    }
}
