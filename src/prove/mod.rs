//! Why the broker claims as it does, shown on the user's own database.
//!
//! Three experiments, each with tables of its own that are gone afterwards: what a lock clause does to workers that share
//! one table ([`clauses`]), what a lock outside of the database does beside it ([`strategies`]), and what `InnoDB`'s gap locks
//! do to an empty table ([`gaps`]). They talk to the database by themselves, past the store: what they show is not how the
//! broker works but why.

pub mod clauses;
mod database;
pub mod gaps;
mod rows;
pub mod strategies;

use std::{future::Future, time::Duration};

use secrecy::SecretString;
use serde::{Serialize, Serializer};

pub use self::database::Refused;
use self::{
    clauses::ClauseRun,
    database::{Dialect, Target},
    gaps::GapRun,
    strategies::StrategyRun,
};

/// What is tried, and how much of it.
#[derive(Debug, Clone)]
pub struct ProveOptions {
    /// A `PostgreSQL`, `MySQL` or `MariaDB` database in which tables may be made.
    pub database: SecretString,
    /// A Redis server for the lock outside of the database; without one, these strategies are left out.
    pub redis: Option<SecretString>,
    /// Workers of the lock clauses, and of the gap locks.
    pub workers: usize,
    /// Rows that they share.
    pub rows: usize,
    /// What one row's work takes, in the transaction that claimed it.
    pub work: Duration,
    /// Jobs of the strategies.
    pub jobs: usize,
    /// Workers of the strategies.
    pub job_workers: usize,
    /// What one job's work takes.
    pub job_work: Duration,
    /// How long the gap locks are tried at each isolation level.
    pub gaps_for: Duration,
}

/// What came out.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// What the database says it is.
    pub database: String,
    /// The lock clauses.
    pub clauses: Vec<ClauseRun>,
    /// The strategies.
    pub strategies: Vec<StrategyRun>,
    /// The gap locks; empty where the database has none.
    pub gaps: Vec<GapRun>,
}

/// Runs all experiments, one after the other; `note` is told of each before it begins. Where `stop` ends first, so does
/// the experiment; the tables are dropped either way.
///
/// # Errors
///
/// [`Refused`] where a server cannot be reached or does not let the experiment make its tables.
pub async fn run(
    options: &ProveOptions,
    stop: impl Future<Output = ()> + Send,
    note: impl Fn(&str) + Send,
) -> Result<Option<Report>, Refused> {
    let target = Target::parse(&options.database)?;
    let mut keeper = target.connect().await?;
    let database = keeper.version().await?;
    let tables = rows::Tables::create(&mut keeper).await?;
    let report = tokio::select! {
        report = experiments(options, &target, &tables, database, note) => report.map(Some),
        () = stop => Ok(None),
    };
    // On a connection of its own: a worker that was stopped in the middle leaves its locks when its connection closes.
    tables.drop_all(&mut keeper).await?;
    report
}

async fn experiments(
    options: &ProveOptions,
    target: &Target,
    tables: &rows::Tables,
    database: String,
    note: impl Fn(&str) + Send,
) -> Result<Report, Refused> {
    note("lock clauses");
    let clauses = clauses::run(options, target, tables).await?;
    note("a lock outside of the database against SKIP LOCKED");
    let strategies = strategies::run(options, target, tables).await?;
    let gaps = if target.dialect() == Dialect::Mysql {
        note("gap locks on an empty table");
        gaps::run(options, target, tables).await?
    } else {
        Vec::new()
    };
    Ok(Report { database, clauses, strategies, gaps })
}

/// Lengths of time are seconds, as everywhere in the program's JSON.
fn seconds<S: Serializer>(length: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(length.as_secs_f64())
}
