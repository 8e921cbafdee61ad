//! `leasehold prove`: the experiments that show why claims are as they are, on the user's own database.

mod tables;

use std::time::Duration;

use clap::{ArgMatches, Args, Command, FromArgMatches as _};
use secrecy::SecretString;

use super::{Exit, broker::Failed, exit, flag, output::Output, signals::Signals};
use crate::prove::{self, ProveOptions};

/// `leasehold prove`.
#[derive(Debug, Args)]
struct Prove {
    /// The database: `postgres://…`, `mysql://…` or `mariadb://…`. The experiment makes three tables of its own in it, and drops
    /// them
    #[arg(long, value_name = "URL", env = "LEASEHOLD_DATABASE_URL", hide_env_values = true)]
    database_url: String,
    /// A Redis server to try a lock outside of the database with: `redis://…`. Without one, this part is left out
    #[arg(long, value_name = "URL")]
    redis_url: Option<String>,
    /// Workers that share the rows
    #[arg(long, value_name = "COUNT", default_value_t = 4, value_parser = count(64))]
    workers: u16,
    /// Rows
    #[arg(long, value_name = "COUNT", default_value_t = 12, value_parser = count(10_000))]
    rows: u16,
    /// What the work of one row takes
    #[arg(long, value_name = "TIME", default_value = "150ms", value_parser = flag::timeout)]
    work: Duration,
    /// Jobs of the comparison with a lock outside of the database
    #[arg(long, value_name = "COUNT", default_value_t = 100, value_parser = count(10_000))]
    jobs: u16,
    /// Its workers
    #[arg(long, value_name = "COUNT", default_value_t = 10, value_parser = count(64))]
    job_workers: u16,
    /// What the work of one job takes
    #[arg(long, value_name = "TIME", default_value = "10ms", value_parser = flag::timeout)]
    job_work: Duration,
    /// How long gap locks are tried at each isolation level (`MySQL` and `MariaDB`)
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = flag::timeout)]
    gaps_for: Duration,
    #[command(flatten)]
    output: Output,
}

fn count(most: i64) -> clap::builder::RangedI64ValueParser<u16> {
    clap::value_parser!(u16).range(1..=most)
}

/// The command.
pub(super) fn command() -> Command {
    Prove::augment_args(Command::new("prove"))
        .about("Show on your own database what lock clauses, locks outside of it, and gap locks do to workers")
}

/// Runs it.
pub(super) fn run(matches: &ArgMatches) -> Exit {
    match Prove::from_arg_matches(matches) {
        Ok(prove) => super::run_to_end(async move { prove.run().await.unwrap_or_else(|failed| failed.tell()) }),
        Err(error) => {
            exit::note(&error);
            Exit::BadConfiguration
        }
    }
}

impl Prove {
    async fn run(self) -> Result<Exit, Failed> {
        let options = ProveOptions {
            database: SecretString::from(self.database_url),
            redis: self.redis_url.map(SecretString::from),
            workers: self.workers.into(),
            rows: self.rows.into(),
            work: self.work,
            jobs: self.jobs.into(),
            job_workers: self.job_workers.into(),
            job_work: self.job_work,
            gaps_for: self.gaps_for,
        };
        let mut signals = Signals::listen()?;
        let stop = async move {
            signals.next().await;
        };
        let report = prove::run(&options, stop, |what| exit::note(&format_args!("trying: {what}")))
            .await
            .map_err(|refused| Failed::new(Exit::Failure, refused.0))?;
        let Some(report) = report else {
            return Err(Failed::new(Exit::Failure, "stopped before the end; the experiment's tables are gone"));
        };
        if self.output.json {
            Output::object(&report)?;
        } else {
            tables::print(&report, &options)?;
        }
        Ok(Exit::Ok)
    }
}
