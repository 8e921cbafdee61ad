//! What an engine must be able to do.
//!
//! An [`Engine`] opens [`Session`]s, each on one database connection that one lane owns. Every method of a session is one
//! atomic act: its effects are all there or all not, and no transaction outlives it. The acts are batch-shaped; answers
//! come in the order of the items. Every statement that an act sends, BEGIN and COMMIT included, begins with the comment
//! of the `caller` that it is given. Instants come from the database's clock, inside the statement.
//!
//! Sessions hold no policy: no retries, spans, metrics or merging. Those are in the facade, once for all engines.

mod attending;
mod budgeting;
pub mod examining;
mod governing;
mod inspecting;
mod linking;
mod observing;
mod purging;
mod reserving;
mod settling;
mod steering;
mod stocking;

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

pub use self::{
    attending::{Attended, Attending, DemandReport, Report, StreamReport},
    budgeting::{Budgeting, CallerBudget},
    governing::{Backlog, CountSpot, Governing, NewQueues, QueueCounts, QueueRow},
    inspecting::{
        Attendance, Bounds, Circumstances, CountWalk, CountedDead, DeadFilter, DeadPlace, DeadWalk, Inspecting,
        JobRecord, JobsWalk, Page, Rates, StreamRecord, StreamsWalk,
    },
    linking::{AppliedMigration, Linking, Listener, Migration, Wake},
    observing::{
        HolderKind, HolderRow, HorizonSeen, Observing, Quoting, SessionKind, SessionRow, SessionState, SessionsSeen,
        TableRow,
    },
    purging::{PurgeCount, PurgePlace, PurgeStep, Purged, Purging},
    reserving::{Cart, End, Ended, ReservationRef, ReservationRow, Reserved, Reserving, ShortLine, Swept},
    settling::{AckedRow, ExtendRow, ExtendedRow, Held, LeaseRef, LeaseState, NackRow, NackedRow, Settling},
    steering::{Cancelled, CancelledJobs, DeadJobs, RedriveStep, Redriven, RunNow, Steering},
    stocking::{
        AdjustCall, Adjusted, LedgerRow, Refilled, StockDifference, StockFigure, StockRow, StockSwitch, Stocking,
        SwitchSet, Verified, VerifyWalk,
    },
};
use super::error::EngineError;
use crate::model::{
    Caller, Headers, JobId, Key, LeaseId, NewJob, Priority, QueueId, ReplicaId, StreamId, Timestamp, TraceContext,
};

/// A database of one kind.
#[async_trait]
pub trait Engine: Send + Sync + 'static {
    /// As OpenTelemetry's `db.system.name` has it: `postgresql`, `mysql`, `mariadb`, `sqlite`.
    fn system(&self) -> &'static str;

    /// Whether anybody but this process may write to the database: services by SQL, other replicas.
    fn is_shared(&self) -> bool {
        true
    }

    /// The lanes that this engine works best with, given how many connections it may open (at least 3). The first takes
    /// all work that writes; it looks after the schema before the others connect.
    fn lanes(&self, connections: usize) -> Vec<LaneRole>;

    /// The migrations that this binary knows, lowest number first, without gaps from 1.
    fn migrations(&self) -> &'static [Migration];

    /// Opens a connection and makes it ready for `role`; the caller bounds the time. Checks once per connection that the
    /// database is of a version, with settings, that the promises can stand on.
    async fn connect(&self, role: LaneRole) -> Result<Box<dyn Session>, EngineError>;

    /// Opens the ear for other replicas' wake-ups; `None` where nothing can be heard, be it that this is the only process.
    async fn listen(&self, replica: ReplicaId) -> Result<Option<Box<dyn Listener>>, EngineError>;
}

/// What a lane is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LaneRole {
    /// Takes all work.
    Any,
    /// Takes nothing but settling, so that it always gets through.
    Settle,
    /// Takes all work that writes (one writer).
    Write,
    /// Takes reads alone.
    Read,
    /// Sends wake-ups and nothing else.
    Notify,
}

/// One connection and the acts that run on it.
pub trait Session:
    Enqueueing
    + Claiming
    + Settling
    + Maintaining
    + Governing
    + Purging
    + Inspecting
    + Steering
    + Attending
    + Observing
    + Budgeting
    + Stocking
    + Reserving
    + Linking
{
}

impl<T> Session for T where
    T: Enqueueing
        + Claiming
        + Settling
        + Maintaining
        + Governing
        + Purging
        + Inspecting
        + Steering
        + Attending
        + Observing
        + Budgeting
        + Stocking
        + Reserving
        + Linking
{
}

/// How long a statement may wait for a row that another one holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockWait {
    /// Merged requests: 50 ms, then the statement fails and its requests run in halves.
    Short,
    /// A single request: the session's lock timeout.
    Full,
}

/// Storing jobs.
#[async_trait]
pub trait Enqueueing: Send {
    /// Stores all jobs or none, in the given order: ids rise with it, and within an ordering key so do positions.
    ///
    /// An idempotency key that is known and not expired makes its row a duplicate, which is written to the key's hits; so
    /// does one that comes twice in the batch. Other content under it: [`EngineError::KeyReused`].
    ///
    /// A queue that is disabled, being deleted or gone takes no job: [`EngineError::QueueClosed`].
    async fn enqueue(
        &mut self,
        caller: &Caller,
        jobs: &[JobRow],
        wait: LockWait,
    ) -> Result<Vec<EnqueuedRow>, EngineError>;
}

/// A job to be stored, its queue known.
#[derive(Debug, Clone)]
pub struct JobRow {
    /// As the producer handed it in.
    pub job: NewJob,
    /// The queue's number.
    pub queue: QueueId,
    /// The job's own, else the queue's.
    pub max_attempts: u16,
    /// How long its idempotency key is kept, where it has one.
    pub idempotency_retention: Duration,
}

/// A job that is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnqueuedRow {
    /// Its id, or that of the job enqueued earlier under its key.
    pub job: JobId,
    /// The idempotency key was known and its content equal.
    pub duplicate: bool,
    /// How long until it is ready: zero where it is now, `None` where it is blocked behind its key or a duplicate.
    pub ready_in: Option<Duration>,
}

/// Turning ready jobs into leases.
#[async_trait]
pub trait Claiming: Send {
    /// Leases ready jobs of several queues, each of which comes once, all in one transaction. Of a queue up to as many as its
    /// claim has slots, highest priority first and within it by the moment at which they became ready. Rows that others hold are
    /// passed over; rows that are not taken are not locked. Attempt and lease number rise by one. Each slot is used at most once,
    /// for a job of its claim's queue; the answer comes in no particular order.
    async fn claim(&mut self, caller: &Caller, claims: &[Claim]) -> Result<Vec<ClaimedJob>, EngineError>;

    /// Undoes grants that were never sent: the attempt is not counted, the job is ready again now. Leases that do not hold
    /// any more are passed over, as are rows that others hold. Says for each whether it was undone.
    async fn give_back(&mut self, caller: &Caller, leases: &[LeaseRef]) -> Result<Vec<bool>, EngineError>;

    /// The same for grants whose jobs are not known, since no answer came to their claim. Says whose queues have ready jobs
    /// again.
    async fn give_back_unseen(&mut self, caller: &Caller, leases: &[LeaseId]) -> Result<Vec<QueueId>, EngineError>;

    /// The first claimable or scheduled job of each queue and priority, from each one's floor on. Reads alone. Levels in
    /// which nothing waits are left out.
    async fn look(&mut self, caller: &Caller, spots: &[LookSpot]) -> Result<Vec<Sighting>, EngineError>;
}

/// What is wanted of one queue.
#[derive(Debug, Clone)]
pub struct Claim {
    /// Where from.
    pub queue: QueueId,
    /// By priority level 0 to 9: nothing that became ready at or before this instant is walked.
    pub floors: [Timestamp; Priority::LEVELS],
    /// One for each job wanted, in all claims of one call at most 1,000.
    pub slots: Vec<Slot>,
}

/// Room for one job: the bits of its lease, drawn beforehand, so that a claim whose answer is lost can be undone.
#[derive(Debug, Clone, Copy)]
pub struct Slot {
    /// New random bits.
    pub lease: LeaseId,
    /// The stream that it is for.
    pub stream: StreamId,
    /// How long the lease lasts.
    pub duration: Duration,
}

/// A job under a new lease.
#[derive(Debug, Clone)]
pub struct ClaimedJob {
    /// Which job.
    pub job: JobId,
    /// Whose job it is.
    pub queue: QueueId,
    /// Which slot's lease it has.
    pub lease: LeaseId,
    /// As enqueued.
    pub payload: Bytes,
    /// As enqueued.
    pub content_type: String,
    /// As enqueued.
    pub headers: Headers,
    /// As enqueued.
    pub priority: Priority,
    /// This lease's number among those counted; 1 is the first.
    pub attempt: u32,
    /// Leases granted before the job is dead.
    pub max_attempts: u32,
    /// Grows with every lease of this job.
    pub lease_number: i64,
    /// When it was stored.
    pub enqueued_at: Timestamp,
    /// When the lease ends.
    pub lease_expires_at: Timestamp,
    /// When it was first due.
    pub available_at: Timestamp,
    /// When it became ready: the place in the claim's order.
    pub ready_at: Timestamp,
    /// As enqueued.
    pub ordering_key: Option<Key>,
    /// As enqueued.
    pub idempotency_key: Option<Key>,
    /// Why the last attempt ended, where it did.
    pub last_error: Option<String>,
    /// The producer's trace context.
    pub trace: Option<TraceContext>,
}

/// Where a look begins.
#[derive(Debug, Clone, Copy)]
pub struct LookSpot {
    /// Which queue.
    pub queue: QueueId,
    /// By priority level, as in [`Claim::floors`].
    pub floors: [Timestamp; Priority::LEVELS],
}

/// The first waiting job of a queue and priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sighting {
    /// Which queue.
    pub queue: QueueId,
    /// Which level.
    pub priority: Priority,
    /// Its place in the claim's order.
    pub ready_at: Timestamp,
    /// How long until it is ready; zero where it is now.
    pub ready_in: Duration,
}

/// Passes over the tables. Each call is one bounded statement; the loop around it is not the engine's.
#[async_trait]
pub trait Maintaining: Send {
    /// Adopts what services left by SQL in their own transactions: enqueued jobs become ready, freed keys go on. Looks at
    /// `limit` rows at most, from `floor` (a row's number) on.
    async fn adopt_arrivals(&mut self, caller: &Caller, floor: i64, limit: usize) -> Result<Adopted, EngineError>;

    /// Makes jobs of expired leases ready, or dead where no attempt is left. Walks leases that ended after `floor`, the
    /// longest expired first, `limit` at most; rows that others hold are passed over.
    async fn reap(
        &mut self,
        caller: &Caller,
        floor: Timestamp,
        arrivals: i64,
        limit: usize,
    ) -> Result<Reaped, EngineError>;

    /// Removes dead jobs past their retention, `limit` at most; says how many.
    async fn prune_dead(&mut self, caller: &Caller, floor: Timestamp, limit: usize) -> Result<Pruned, EngineError>;

    /// Removes idempotency keys past their retention, `limit` at most; says how many.
    async fn prune_keys(&mut self, caller: &Caller, floor: Timestamp, limit: usize) -> Result<Pruned, EngineError>;

    /// Removes acked jobs past their retention, `limit` at most; says how many.
    async fn prune_acked(&mut self, caller: &Caller, floor: Timestamp, limit: usize) -> Result<Pruned, EngineError>;

    /// Queues that have a time to live, by their numbers from behind `after` on, `limit` at most. Reads alone.
    async fn expiring_queues(
        &mut self,
        caller: &Caller,
        after: QueueId,
        limit: usize,
    ) -> Result<Vec<QueueId>, EngineError>;

    /// Makes jobs dead that were ready for longer than their queue's time to live: of each of these queues from its floor
    /// on, `limit` at most together; rows that others hold are passed over. A freed ordering key's next job becomes ready.
    async fn expire(
        &mut self,
        caller: &Caller,
        queues: &[(QueueId, Timestamp)],
        limit: usize,
    ) -> Result<Expired, EngineError>;
}

/// What a pass over the arrivals found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Adopted {
    /// Rows adopted.
    pub rows: usize,
    /// Queues in which jobs became ready, now or later.
    pub readied: Vec<QueueId>,
    /// Lowest number among the rows that are left, as seen by this pass; where the next one may begin.
    pub floor: i64,
}

/// What a pass of the reaper found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reaped {
    /// Leases that were taken away.
    pub leases: Vec<ReapedLease>,
    /// Queues in which the next job of a key became ready since its head died.
    pub readied: Vec<QueueId>,
    /// Where the next pass may begin: no lease ended between the floor given and this one is left.
    pub floor: Timestamp,
    /// Whether there is anything for [`Maintaining::adopt_arrivals`] from the arrivals' floor given on. Seen in passing, so that
    /// whoever reaps has no need to ask for that by itself.
    pub arrived: bool,
}

/// A lease taken away by the reaper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReapedLease {
    /// Which lease.
    pub lease: LeaseRef,
    /// The job's queue.
    pub queue: QueueId,
    /// The job is dead now.
    pub dead: bool,
}

/// What a pruning pass did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pruned {
    /// Rows removed.
    pub rows: usize,
    /// Where the next pass may begin.
    pub floor: Timestamp,
}

/// What a pass over jobs past their time to live found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expired {
    /// Jobs that are dead now.
    pub jobs: usize,
    /// Queues in which the next job of a key became ready.
    pub readied: Vec<QueueId>,
    /// For each queue asked about, in order: where the next pass may begin.
    pub floors: Vec<Timestamp>,
}
