//! Who uses the database: every connection of it, this broker's and anybody else's, by the business process that its
//! statements name; and who keeps the database from removing dead rows.
//!
//! [`Observer`] looks, one statement at a time on a lane, as `leasehold.sampler`. [`attribution`] reads names from other
//! people's statements, [`window`] says what samples are worth. Statements are read and dropped: they are neither kept nor
//! shown.

pub mod attribution;
mod comments;
mod horizon;
mod lookout;
pub mod name;
mod pairs;
mod places;
mod sampler;
mod tally;
mod view;
mod window;

use std::{sync::Arc, time::Duration};

use tokio::{task::JoinSet, time::timeout_at};
use tokio_util::sync::CancellationToken;

pub use self::{
    horizon::{Horizon, HorizonHolder},
    places::Holder,
    sampler::Looks,
    view::{CallerTotals, SessionView, View},
    window::Estimate,
};
use self::{lookout::Lookout, sampler::Sampler};
use crate::{
    model::{Caller, Failure, Reason},
    store::{Call, Store},
    telemetry::database::{DatabaseReading, HeldReading, HorizonReading, SessionsReading, TableReading},
};

/// How the database's users are looked at. The defaults are those that the documentation states.
#[derive(Debug, Clone)]
pub struct SamplerOptions {
    /// Look without being asked.
    pub enabled: bool,
    /// Between two samples, on average.
    pub interval: Duration,
    /// The same while nobody but brokers at their own work holds a connection; reached by doubling.
    pub quiet_interval: Duration,
    /// Sessions that a sample reads.
    pub sessions: usize,
    /// Names told apart beside those of the configuration; the rest are `other`.
    pub names: usize,
    /// Callers that always have their own name.
    pub configured: Vec<Caller>,
    /// Between two looks at who holds back the removal of dead rows.
    pub horizon_interval: Duration,
    /// A snapshot with so many transactions begun since is warned of.
    pub horizon_transactions: u64,
    /// So is a transaction that is so old.
    pub horizon_age: Duration,
}

impl Default for SamplerOptions {
    fn default() -> Self {
        Self {
            enabled: true,
            interval: Duration::from_secs(1),
            quiet_interval: Duration::from_secs(10),
            sessions: 1_000,
            names: 200,
            configured: Vec::new(),
            horizon_interval: Duration::from_secs(30),
            horizon_transactions: 1_000_000,
            horizon_age: Duration::from_mins(10),
        }
    }
}

/// Handle to the looks at the database; cheap to clone.
#[derive(Clone)]
pub struct Observer {
    sampler: Arc<Sampler>,
    lookout: Arc<Lookout>,
}

/// The loops that look without being asked.
#[derive(Debug)]
pub struct Watching {
    stop: CancellationToken,
    loops: JoinSet<()>,
}

impl Observer {
    /// Starts to look, where the options say so.
    pub fn start(store: &Store, options: SamplerOptions) -> (Self, Watching) {
        let lookout = Arc::new(Lookout::new(store.clone(), &options));
        let mut watching = Watching { stop: CancellationToken::new(), loops: JoinSet::new() };
        let enabled = options.enabled;
        let sampler = Arc::new(Sampler::new(store.clone(), options));
        if enabled {
            watching.loops.spawn(Arc::clone(&sampler).run(watching.stop.clone()));
            watching.loops.spawn(Arc::clone(&lookout).run(watching.stop.clone()));
        }
        (Self { sampler, lookout }, watching)
    }

    /// The database's sessions, as of an interval ago at most.
    pub async fn sessions(&self, call: &Call) -> Result<Arc<View>, Failure> {
        // A task of its own: when this asker leaves, the look goes on, and nobody else begins one beside it.
        let looking = tokio::spawn(Arc::clone(&self.sampler).view());
        in_time(call, looking).await
    }

    /// Who keeps dead rows from being removed, as of a second ago at most.
    pub async fn horizon(&self, call: &Call) -> Result<Arc<Horizon>, Failure> {
        let looking = tokio::spawn(Arc::clone(&self.lookout).horizon());
        in_time(call, looking).await
    }

    /// What is known by now, for metrics. Asks nobody.
    pub fn reading(&self) -> DatabaseReading {
        let known = self.sampler.known();
        let label = |holder: &Holder| (holder.name.as_str().to_owned(), holder.broker);
        let horizon = self.lookout.known();
        DatabaseReading {
            sessions: known.view.as_ref().map(|view| SessionsReading {
                connections: view.connections.into(),
                max_connections: view.max_connections.into(),
                callers: view
                    .callers
                    .iter()
                    .map(|caller| {
                        let idle = caller.sessions - caller.active - caller.idle_in_transaction - caller.hidden;
                        HeldReading {
                            caller: label(&caller.holder),
                            states: [
                                ("active", caller.active.into()),
                                ("idle_in_transaction", caller.idle_in_transaction.into()),
                                ("idle", idle.into()),
                                ("hidden", caller.hidden.into()),
                            ],
                            waiting: caller.waiting_on_lock.into(),
                        }
                    })
                    .collect(),
            }),
            held: known.held.iter().map(|(holder, held)| (label(holder), held.as_secs_f64())).collect(),
            looks: [("taken", known.looks.taken), ("skipped", known.looks.skipped), ("failed", known.looks.failed)],
            horizon: horizon.map(|horizon| HorizonReading {
                past_limit: horizon.past_limit,
                oldest: oldest(&horizon),
                tables: horizon
                    .tables
                    .iter()
                    .map(|table| TableReading {
                        table: table.table.clone(),
                        live_rows: table.live_rows,
                        dead_rows: table.dead_rows,
                    })
                    .collect(),
            }),
        }
    }
}

/// Transactions and age of the oldest holder of each kind that there is.
fn oldest(horizon: &Horizon) -> Vec<(&'static str, u64, Option<f64>)> {
    let mut kinds: Vec<_> = horizon.holders.iter().map(|holder| holder.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let of_kind = |kind| horizon.holders.iter().filter(move |holder| holder.kind == kind && !holder.catalogs_only);
    kinds
        .into_iter()
        .filter(|kind| of_kind(*kind).next().is_some())
        .map(|kind| {
            let transactions = of_kind(kind).map(|holder| holder.transactions).max().unwrap_or(0);
            let age = of_kind(kind).filter_map(|holder| holder.age).max();
            (horizon::kind(kind), transactions, age.map(|age| age.as_secs_f64()))
        })
        .collect()
}

async fn in_time<T>(call: &Call, looking: tokio::task::JoinHandle<Result<T, Failure>>) -> Result<T, Failure> {
    match timeout_at(call.deadline.into(), looking).await {
        Ok(Ok(looked)) => looked,
        Ok(Err(_)) => Err(Failure::unknown("the look at the database was cut off")),
        Err(_) => Err(Failure::not_applied(Reason::Deadline, "the database did not answer before the deadline")),
    }
}

impl Watching {
    /// Ends the loops after the look that each is at.
    pub async fn stop(mut self) {
        self.stop.cancel();
        while let Some(ended) = self.loops.join_next().await {
            if let Err(failure) = ended {
                tracing::warn!(%failure, "a look at the database has ended early");
            }
        }
    }
}
