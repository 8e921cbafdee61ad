//! `leasehold bench`: how fast a broker is.

mod tables;
mod workload;

use std::time::Duration;

use clap::{ArgMatches, Args, Command, FromArgMatches as _, Subcommand};
use secrecy::SecretString;

use self::workload::{BATCHES, Defaults, SINGLES, Workload};
use super::{Exit, broker::Failed, exit, flag, output::Output, signals::Signals};
use crate::bench::{self, Act, BenchError, BenchOptions};

/// `leasehold bench`.
#[derive(Debug, Args)]
struct Bench {
    #[command(subcommand)]
    act: BenchAct,
}

#[derive(Debug, Subcommand)]
enum BenchAct {
    /// Jobs go in: producers enqueue as fast as answers come
    Enqueue(Measurement),
    /// Jobs that wait are leased and acked; how they got there is not measured
    Drain(Measurement),
    /// Jobs go in and out: producers and workers at once
    All(Measurement),
    /// Jobs go in at a fixed rate, and idle workers pick them up
    Latency(Latency),
}

/// What all of them take.
#[derive(Debug, Args)]
struct Measurement {
    #[command(flatten)]
    workload: Workload,
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    output: Output,
}

#[derive(Debug, Args)]
struct Latency {
    /// Jobs a second
    #[arg(long, value_name = "COUNT", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    rate: u32,
    /// How long a round is
    #[arg(long = "for", value_name = "TIME", default_value = "10s", value_parser = flag::timeout)]
    length: Duration,
    #[command(flatten)]
    measurement: Measurement,
}

/// On what it is measured.
#[derive(Debug, Args)]
#[command(next_help_heading = "Broker")]
struct Place {
    /// A broker that serves already. Without it, bench starts one of its own that is gone afterwards
    #[arg(long, value_name = "URL", value_parser = flag::address)]
    address: Option<String>,
    /// The database that the broker of its own works on: `postgres://…`, `mysql://…` or `mariadb://…`, in a schema of its own that
    /// is dropped afterwards; without it the embedded one. With `--address`, the one that the broker there works on, of which only
    /// counters are read
    #[arg(long, value_name = "URL")]
    database_url: Option<String>,
    /// The process of the broker at `--address`, where it is on this machine, for what jobs cost it
    #[arg(long, value_name = "PID")]
    broker_pid: Option<u32>,
    /// An option of the broker of its own, such as `lanes.count=4`; may be given several times
    #[arg(long = "set", value_name = "OPTION=VALUE", value_parser = flag::header)]
    settings: Vec<(String, String)>,
    /// Hold a snapshot of the database from before the first round to after the last one, as a forgotten transaction does
    #[arg(long)]
    held_snapshot: bool,
    /// Longest that one call may take
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = flag::timeout)]
    timeout: Duration,
}

/// The command.
pub(super) fn command() -> Command {
    Bench::augment_args(Command::new("bench"))
        .about("Measure how fast a broker is, over gRPC, and that it loses nothing meanwhile")
}

/// Runs it.
pub(super) fn run(matches: &ArgMatches) -> Exit {
    match Bench::from_arg_matches(matches) {
        Ok(bench) => super::run_to_end(async move { bench.run().await.unwrap_or_else(|failed| failed.tell()) }),
        Err(error) => {
            exit::note(&error);
            Exit::BadConfiguration
        }
    }
}

impl Bench {
    async fn run(self) -> Result<Exit, Failed> {
        let (act, defaults, measurement) = match self.act {
            BenchAct::Enqueue(measurement) => (Act::Enqueue, BATCHES, measurement),
            BenchAct::Drain(measurement) => (Act::Drain, BATCHES, measurement),
            BenchAct::All(measurement) => (Act::All, BATCHES, measurement),
            BenchAct::Latency(Latency { rate, length, measurement }) => {
                (Act::Latency { rate, length }, SINGLES, measurement)
            }
        };
        measurement.run(act, defaults).await
    }
}

impl Measurement {
    async fn run(self, act: Act, defaults: Defaults) -> Result<Exit, Failed> {
        let Self { workload, place, output } = self;
        let options = BenchOptions {
            act,
            rounds: workload.rounds,
            shape: workload.shape(defaults),
            address: place.address,
            broker_pid: place.broker_pid,
            database: place.database_url.map(SecretString::from),
            settings: place.settings,
            held_snapshot: place.held_snapshot,
            timeout: place.timeout,
            program: std::env::current_exe()?,
        };
        let mut signals = Signals::listen()?;
        let stop = async move {
            signals.next().await;
        };
        let report = bench::run(&options, stop, |what| exit::note(&what)).await?;
        if output.json {
            Output::object(&report)?;
        } else {
            tables::print(&report)?;
        }
        if let Some(why) = report.broken() {
            return Err(Failed::new(Exit::Failure, why));
        }
        if report.stopped {
            return Err(Failed::new(Exit::Failure, "stopped before the end"));
        }
        Ok(Exit::Ok)
    }
}

impl From<BenchError> for Failed {
    fn from(error: BenchError) -> Self {
        match error {
            BenchError::Call(status) => Self::from(*status),
            BenchError::Unreachable(why) => Self::new(Exit::Unavailable, why),
            BenchError::Wrong(why) => Self::new(Exit::BadConfiguration, why),
            BenchError::Other(why) => Self::new(Exit::Failure, why),
        }
    }
}
