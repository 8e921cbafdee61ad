//! The only door to the database.
//!
//! [`Store`] is a handle: each method is one act, run on a lane for a caller. What is the same for all engines is done here,
//! once: lanes, merging, deadlines, retries, the classes of failure, and undoing claims whose outcome is unknown. What
//! differs is in the engines.

mod ask;
mod backlog;
mod blueprint;
mod budgets;
mod census;
mod claims;
pub mod comment;
mod counts;
mod crew;
mod dead;
pub mod engine;
pub mod error;
mod hex;
mod jobs;
mod lane;
mod lanes;
pub mod ledger;
mod line;
mod merged;
pub mod mysql;
mod observe;
mod passes;
mod patience;
pub mod postgres;
mod presence;
mod purging;
mod queues;
mod rates;
mod readings;
mod request;
mod reservations;
mod retry;
pub mod schema;
mod settings;
mod settle;
mod shadows;
mod socket;
pub mod sqlite;
mod statement;
mod stocks;
mod stride;
mod switches;
mod views;
mod wakes;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, atomic::AtomicBool},
    time::{Duration, Instant},
};

use tokio::sync::{mpsc, watch};

use self::{
    backlog::Backlogs,
    budgets::Budgets,
    census::Floors,
    counts::Counts,
    engine::{
        AckedRow, Engine, EnqueuedRow, ExtendRow, ExtendedRow, JobRow, LeaseRef, NackRow, NackedRow, NewQueues,
        QueueRow, Wake,
    },
    lanes::Lanes,
    ledger::Ledger,
    queues::Queues,
    request::Request,
    shadows::Differences,
    stocks::Refills,
    switches::Switches,
    views::Views,
    wakes::Notifier,
};
pub use self::{
    budgets::{BudgetList, EffectiveBudget},
    dead::pace,
    lanes::LaneOptions,
    ledger::{CallerUse, Holds, LaneReport, LaneTime, LaneUse, StatementUse, Window},
    line::LineOptions,
    purging::{Deletion, Progress, Purge},
    rates::Totals,
    reservations::{NewReservation, Reservation},
    shadows::{Expected, Mirrored},
    stocks::{Adjustments, NewAdjustments, StockOptions},
    stride::{Pace, Stride},
};
use crate::{
    model::{Budget, Caller, Failure, NackAction, NewJob, QueueId, QueueName, Reason, ReplicaId},
    telemetry::{Metrics, Spans},
};

/// How the store works.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// The lanes.
    pub lanes: LaneOptions,
    /// The line in front of them.
    pub line: LineOptions,
    /// A request waits at most this long for a lane.
    pub acquire_timeout: Duration,
    /// A settlement of a job that somebody's open transaction holds is tried again for this long, then answered as busy.
    pub busy_for: Duration,
    /// Deadline of the broker's own acts.
    pub own_deadline: Duration,
    /// Whether Enqueue brings queues into being.
    pub auto_create_queues: bool,
    /// Under which terms queues come into being.
    pub new_queues: NewQueues,
    /// What is known of a queue is read anew after this long; a deleted queue goes no earlier.
    pub queue_refresh: Duration,
    /// Rows that one step of a purge walks.
    pub purge_step: usize,
    /// How fast purges, deletions and redrives go.
    pub pace: Pace,
    /// How old counts may be that several viewers share.
    pub count_age: Duration,
    /// Callers that the ledger tells apart.
    pub ledger_callers: usize,
    /// Those of them that it always does; those with a budget are besides them.
    pub named_callers: Vec<Caller>,
    /// Budgets of callers of which the database says nothing.
    pub budgets: Vec<(Caller, Budget)>,
    /// Callers that may have a budget in the database.
    pub budgets_at_most: usize,
    /// Hints to other replicas are gathered this long.
    pub wake_gather: Duration,
    /// Replicas that wrote nothing about themselves for so long are as if they were not.
    pub absent_after: Duration,
    /// What is counted goes there.
    pub metrics: Option<Metrics>,
    /// Makes the spans of statements.
    pub spans: Spans,
    /// A lane that is held for longer is told of in the log.
    pub slow_hold: Duration,
    /// How stock is kept.
    pub stock: StockOptions,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            lanes: LaneOptions::default(),
            line: LineOptions::default(),
            acquire_timeout: Duration::from_secs(2),
            busy_for: Duration::from_secs(1),
            own_deadline: Duration::from_secs(30),
            auto_create_queues: true,
            new_queues: NewQueues::default(),
            queue_refresh: Duration::from_secs(5),
            purge_step: 500,
            pace: Pace::default(),
            count_age: Duration::from_secs(2),
            ledger_callers: 1_000,
            named_callers: Vec::new(),
            budgets: Vec::new(),
            budgets_at_most: 1_000,
            wake_gather: Duration::from_millis(10),
            absent_after: Duration::from_secs(60),
            metrics: None,
            spans: Spans::default(),
            slow_hold: Duration::from_secs(1),
            stock: StockOptions::default(),
        }
    }
}

/// For whom and until when a request runs.
#[derive(Debug, Clone)]
pub struct Call {
    /// The business process.
    pub caller: Caller,
    /// When its asker stops waiting.
    pub deadline: Instant,
}

/// A stored job and the queue it went to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// The job.
    pub row: EnqueuedRow,
    /// Its queue.
    pub queue: QueueId,
}

/// Handle to the store; cheap to clone.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    lanes: Arc<Lanes>,
    options: StoreOptions,
    counts: Counts,
    queues: Queues,
    backlogs: Backlogs,
    budgets: Budgets,
    switches: Switches,
    refills: Refills,
    uses_stock: AtomicBool,
    differences: Differences,
    floors: Floors,
    views: Views,
    notifier: Notifier,
    replica: ReplicaId,
    wakes: Mutex<Option<mpsc::Receiver<Wake>>>,
}

impl Store {
    /// Starts the lanes. Does not wait for the database: until it answers, requests wait and then fail as not applied.
    pub fn start(engine: Arc<dyn Engine>, options: StoreOptions) -> Self {
        let replica = ReplicaId(rand::random());
        let (wakes_in, wakes) = mpsc::channel(1_024);
        let budgets = Budgets::new(options.budgets.iter().cloned(), options.budgets_at_most);
        let with_budget = options.budgets.iter().map(|(caller, _)| caller);
        let named = options.named_callers.iter().chain(with_budget).cloned();
        let ledger = Ledger::new(options.ledger_callers, named, engine.lanes(options.lanes.lanes).len());
        let counts = Counts::new(&options, Arc::clone(&engine));
        let lanes = Lanes::start(
            Arc::clone(&engine),
            options.lanes.clone(),
            options.line.clone(),
            (ledger, counts.clone()),
            wakes_in.clone(),
        );
        lanes.set_caps(budgets::caps(&budgets.holding().borrow()));
        let notifier = Notifier::start(engine, &lanes, replica, options.wake_gather, wakes_in);
        let queues = Queues::new(options.queue_refresh);
        let inner = Inner {
            lanes,
            options,
            counts,
            queues,
            backlogs: Backlogs::default(),
            budgets,
            switches: Switches::default(),
            refills: Refills::default(),
            uses_stock: AtomicBool::new(false),
            differences: Differences::default(),
            floors: Floors::default(),
            views: Views::default(),
            notifier,
            replica,
            wakes: Mutex::new(Some(wakes)),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Stores all jobs or none. Queues come into being where the options let them.
    pub async fn enqueue(&self, call: &Call, jobs: Vec<NewJob>) -> Result<Vec<Stored>, Failure> {
        let nothing_stored = |failure: Failure| no_job_yet(failure, call);
        let rows = self.rows(call, jobs).await.map_err(nothing_stored)?;
        self.keep_backlog_bounds(call, &rows).await.map_err(nothing_stored)?;
        let queues: Vec<QueueId> = rows.iter().map(|row| row.queue).collect();
        let mut names: Vec<QueueName> = rows.iter().map(|row| row.job.queue.clone()).collect();
        names.dedup();
        let bytes = rows.iter().map(|row| row.job.weight()).sum();
        let enqueued = match self.ask(call, rows, bytes, Request::Enqueue).await {
            Err(failure) if failure.reason == Reason::Disabled => return Err(self.why_closed(call, names).await),
            answer => answer?,
        };
        self.inner.counts.enqueued(&enqueued, &queues);
        Ok(enqueued.into_iter().zip(queues).map(|(row, queue)| Stored { row, queue }).collect())
    }

    async fn rows(&self, call: &Call, jobs: Vec<NewJob>) -> Result<Vec<JobRow>, Failure> {
        let names = jobs.iter().map(|job| &job.queue);
        let create = self.inner.options.auto_create_queues.then_some(&self.inner.options.new_queues);
        let queues = self.inner.queues.resolve(self, call, names, create).await?;
        if let Some(closed) = queues.iter().find_map(queues::closed) {
            return Err(closed);
        }
        let rows = jobs.into_iter().zip(queues).map(|(job, queue)| JobRow {
            queue: queue.id,
            max_attempts: job.max_attempts.unwrap_or(queue.settings.max_attempts),
            idempotency_retention: queue.settings.idempotency_retention,
            job,
        });
        Ok(rows.collect())
    }

    async fn keep_backlog_bounds(&self, call: &Call, rows: &[JobRow]) -> Result<(), Failure> {
        for (queue, jobs, bytes) in backlog::additions(rows) {
            if let Some(row) = self.inner.queues.known(queue).filter(backlog::is_bounded) {
                self.inner.backlogs.admit(self, call, &row, jobs, bytes).await?;
            }
        }
        Ok(())
    }

    /// Ends jobs. Items that stay busy for a second, or until the deadline, are answered as busy.
    pub async fn ack(&self, call: &Call, leases: Vec<LeaseRef>) -> Result<Vec<AckedRow>, Failure> {
        let acked = self.settle(call, leases, Request::Ack, |row: &AckedRow| row.held).await?;
        self.inner.counts.acked(&acked);
        Ok(acked)
    }

    /// Gives jobs back, or ends them as dead. Busy items as in [`Store::ack`].
    pub async fn nack(&self, call: &Call, items: Vec<NackRow>) -> Result<Vec<NackedRow>, Failure> {
        let actions: Vec<NackAction> = items.iter().map(|item| item.action).collect();
        let nacked = self.settle(call, items, Request::Nack, |row: &NackedRow| row.held).await?;
        self.inner.counts.nacked(&actions, &nacked);
        Ok(nacked)
    }

    /// Moves the ends of leases. Busy items as in [`Store::ack`].
    pub async fn extend(&self, call: &Call, items: Vec<ExtendRow>) -> Result<Vec<ExtendedRow>, Failure> {
        let extended = self.settle(call, items, Request::Extend, |row: &ExtendedRow| row.held).await?;
        self.inner.counts.extended(&extended);
        Ok(extended)
    }

    /// Gives back what was never sent, once.
    pub async fn give_back(&self, leases: Vec<LeaseRef>) -> Result<Vec<bool>, Failure> {
        let bytes = leases.len() * size_of::<LeaseRef>();
        self.ask(&self.own(Caller::broker("dispatcher")), leases, bytes, Request::GiveBack).await
    }

    /// A queue by its name, from memory where it was seen lately; `None` where it does not exist yet. Never creates one.
    pub async fn queue(&self, name: &QueueName) -> Result<Option<QueueRow>, Failure> {
        let call = self.own(Caller::broker("dispatcher"));
        self.inner.queues.find(self, &call, name).await
    }

    /// Sends a hint to other replicas, gathered for a few milliseconds; never fails, may be lost.
    pub fn notify(&self, wake: Wake) {
        self.inner.notifier.send(wake);
    }

    /// Wake-ups from other replicas, and [`Wake::Everything`] after a lane or the listener was lost and came back. The
    /// receiver exists once.
    pub fn take_wakes(&self) -> Option<mpsc::Receiver<Wake>> {
        self.inner.wakes.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Who this process is in lease tokens.
    pub fn replica(&self) -> ReplicaId {
        self.inner.replica
    }

    /// True while at least one lane that writes is connected to a current schema.
    pub fn availability(&self) -> watch::Receiver<bool> {
        self.inner.lanes.available()
    }

    /// What became of each queue's jobs on this replica since the start.
    pub fn totals(&self) -> HashMap<QueueId, Totals> {
        self.inner.counts.totals()
    }

    /// Takes no new work and returns when what was handed over has ended.
    pub async fn drain(&self) {
        self.inner.notifier.stop().await;
        self.inner.lanes.drain().await;
    }

    /// The broker's own call.
    fn own(&self, caller: Caller) -> Call {
        Call { caller, deadline: Instant::now() + self.inner.options.own_deadline }
    }
}

/// What an Enqueue says of a failure before its jobs were sent: whatever became of the look at its queues, no job is stored.
fn no_job_yet(failure: Failure, call: &Call) -> Failure {
    if failure.reason != Reason::OutcomeUnknown {
        return failure;
    }
    let late = Instant::now() >= call.deadline;
    let reason = if late { Reason::Deadline } else { Reason::DatabaseUnavailable };
    Failure::not_applied(reason, "the database did not say in time what it knows of the queues; no job was stored")
}
