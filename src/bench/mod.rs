//! `leasehold bench`: how fast a broker is, measured as its clients see it, over gRPC.
//!
//! A measurement is one [`Act`] on jobs of one [`Shape`], repeated in [`rounds`](BenchOptions::rounds). The broker is one that
//! runs already, or a process of its own that is gone afterwards. Past the store: nothing in here knows how the broker works,
//! and what it does to a database by itself is only to read counters, to hold a snapshot, and to drop what was made.
//!
//! Speed counts for nothing where jobs are lost: every job has a number, and the [`Report`] says how many were lost, how many were
//! done twice, and how many came that nobody had enqueued.

mod backdrop;
mod broker;
mod clients;
mod database;
mod figures;
mod meter;
mod pacer;
pub mod process;
mod producers;
mod report;
mod rounds;
mod shape;
mod stamp;
mod tally;
mod workers;

use std::{future::Future, time::Duration};

use secrecy::SecretString;

use self::{
    broker::Own,
    clients::Clients,
    database::Database,
    meter::{Meter, Sources},
    rounds::Run,
    tally::Tally,
};
pub use self::{
    figures::Latency,
    report::{Figures, Report},
    shape::{Act, SMALLEST_PAYLOAD, Shape},
};

/// What is measured, and on what.
#[derive(Debug, Clone)]
pub struct BenchOptions {
    /// What is done.
    pub act: Act,
    /// With which jobs, by how many clients.
    pub shape: Shape,
    /// How often; figures are medians of the rounds.
    pub rounds: u32,
    /// The broker, a URL; one of its own where absent.
    pub address: Option<String>,
    /// The process of a broker that runs already, where it is on this machine.
    pub broker_pid: Option<u32>,
    /// The database that the broker of its own works on, in a schema of its own; the embedded one where absent. With
    /// `address`, the one that the broker there works on: it is looked at, and nothing is made in it.
    pub database: Option<SecretString>,
    /// Options of the broker of its own, as in its configuration.
    pub settings: Vec<(String, String)>,
    /// Whether a transaction holds a snapshot of the database from before the first round to after the last one.
    pub held_snapshot: bool,
    /// Longest that one call may take.
    pub timeout: Duration,
    /// The program that the broker of its own is.
    pub program: std::path::PathBuf,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The broker cannot be reached, or did not start.
    #[error("{0}")]
    Unreachable(String),
    /// What was asked for does not go together; nothing was begun.
    #[error("{0}")]
    Wrong(String),
    /// A call failed.
    #[error("a call failed: {}", .0.message())]
    Call(Box<tonic::Status>),
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

impl From<tonic::Status> for BenchError {
    fn from(status: tonic::Status) -> Self {
        Self::Call(Box::new(status))
    }
}

impl From<std::io::Error> for BenchError {
    fn from(error: std::io::Error) -> Self {
        Self::Other(error.to_string())
    }
}

/// Measures. `note` is told of each step before it begins; where `stop` ends first, the report has the rounds that were done by
/// then and says so. What was made for the measurement is removed either way.
///
/// # Errors
///
/// [`BenchError`] where there is nothing to report.
pub async fn run(
    options: &BenchOptions,
    stop: impl Future<Output = ()> + Send,
    note: impl Fn(&str) + Send + Sync,
) -> Result<Report, BenchError> {
    options.check()?;
    let mut database = match &options.database {
        Some(url) => Some(Database::connect(url).await?),
        None => None,
    };
    let mut own = None;
    let address = if let Some(address) = &options.address {
        address.clone()
    } else {
        note("starting a broker");
        let started = Own::start(options, database.as_ref()).await?;
        own.insert(started).address().to_owned()
    };
    let ended = measure(options, &address, own.as_ref(), database.as_mut(), stop, &note).await;
    if let Some(own) = own {
        let schema = own.schema().map(str::to_owned);
        own.end().await;
        if let (Some(database), Some(schema)) = (&mut database, schema) {
            database.drop_schema(&schema).await?;
        }
    }
    ended
}

async fn measure(
    options: &BenchOptions,
    address: &str,
    own: Option<&Own>,
    mut database: Option<&mut Database>,
    stop: impl Future<Output = ()> + Send,
    note: &(impl Fn(&str) + Send + Sync),
) -> Result<Report, BenchError> {
    let clients = Clients::connect(address, &options.shape, options.timeout).await?;
    let info = clients.broker_info().await?;
    let snapshot = match &database {
        Some(database) if options.held_snapshot => Some(database.hold_snapshot().await?),
        _ => None,
    };
    let pid = own.map(Own::pid).or(options.broker_pid);
    let sources = Sources::find(pid, own.is_some(), database.as_deref_mut()).await;
    let tally = Tally::new(options.numbers());
    let mut report = Report::begin(options, &info, sources.unknown());
    let mut run = Run::new(options, clients, tally, Meter::new(sources, database));

    let stopped = tokio::select! {
        ended = run.all_rounds(&mut report, own.and_then(Own::schema), note) => { ended?; false }
        () = stop => true,
    };
    drop(snapshot);
    note("removing what is left, and counting it");
    run.settle_accounts(&mut report, own.and_then(Own::schema), stopped).await?;
    Ok(report)
}

impl BenchOptions {
    fn check(&self) -> Result<(), BenchError> {
        let wrong = |why: &str| Err(BenchError::Wrong(why.to_owned()));
        if self.held_snapshot && self.database.is_none() {
            return wrong("--held-snapshot needs --database-url: somebody has to hold it");
        }
        if self.address.is_some() && !self.settings.is_empty() {
            return wrong("--set is for the broker that bench starts itself: leave --address out");
        }
        if self.address.is_none() && self.broker_pid.is_some() {
            return wrong("--broker-pid is for a broker that runs already: give its --address");
        }
        self.shape.check(self.act)
    }

    /// Most jobs that get a number.
    fn numbers(&self) -> usize {
        let rounds = u64::from(self.rounds) * self.act.jobs(&self.shape);
        usize::try_from(self.shape.backlog + rounds).unwrap_or(usize::MAX)
    }
}
