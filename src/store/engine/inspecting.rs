//! Looking at jobs and at who works on them.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::{
    model::{Caller, Headers, JobId, JobState, Key, Priority, QueueId, QueueName, StreamId, Timestamp, TraceContext},
    store::error::EngineError,
};

/// What operators ask for. Reads alone; every walk is bounded in rows, and says where the next one goes on.
#[async_trait]
pub trait Inspecting: Send {
    /// The jobs of these ids, live, dead or acked and still kept, in no particular order; what is not there is left out.
    async fn find_jobs(
        &mut self,
        caller: &Caller,
        jobs: &[JobId],
        payloads: bool,
    ) -> Result<Vec<JobRecord>, EngineError>;

    /// Jobs of a queue in the order of their ids.
    async fn list_jobs(&mut self, caller: &Caller, walk: &JobsWalk) -> Result<Page<JobRecord, JobId>, EngineError>;

    /// Dead jobs of a queue, the ones that died last first.
    async fn list_dead(&mut self, caller: &Caller, walk: &DeadWalk) -> Result<Page<JobRecord, DeadPlace>, EngineError>;

    /// How many of the next `rows` dead jobs of a queue pass the filter, those that died first first, up to `until`.
    async fn count_dead(&mut self, caller: &Caller, walk: &CountWalk) -> Result<CountedDead, EngineError>;

    /// A job and all that may keep it from running. Replicas not seen for `absent` are as if they were not. Also says
    /// whether somebody's transaction holds the row, without waiting for it.
    async fn explain_job(
        &mut self,
        caller: &Caller,
        job: JobId,
        absent: Duration,
    ) -> Result<Option<Circumstances>, EngineError>;

    /// Lease streams of all replicas seen within `absent`, in the order of their ids.
    async fn list_streams(
        &mut self,
        caller: &Caller,
        walk: &StreamsWalk,
    ) -> Result<Page<StreamRecord, StreamId>, EngineError>;

    /// What replicas seen within `absent` wrote about these queues, summed; one for each, in order.
    async fn attendance(
        &mut self,
        caller: &Caller,
        queues: &[QueueName],
        absent: Duration,
    ) -> Result<Vec<Attendance>, EngineError>;
}

/// Rows of a walk and where the next one begins.
#[derive(Debug, Clone, PartialEq)]
pub struct Page<T, P> {
    /// What fits, in the walk's order.
    pub rows: Vec<T>,
    /// Behind the last row that was looked at; `None` where there is nothing behind it.
    pub next: Option<P>,
}

/// A job as operators see it.
#[derive(Debug, Clone, PartialEq)]
pub struct JobRecord {
    /// Which job.
    pub job: JobId,
    /// Its queue; 0 for a moment where a service enqueued it to one that does not exist yet.
    pub queue: QueueId,
    /// Its queue's name, where the queue exists.
    pub queue_name: Option<QueueName>,
    /// What it is doing.
    pub state: JobState,
    /// As enqueued, where it was asked for.
    pub payload: Option<Bytes>,
    /// Its length.
    pub payload_bytes: u64,
    /// As enqueued.
    pub content_type: String,
    /// As enqueued.
    pub headers: Headers,
    /// As enqueued.
    pub priority: Priority,
    /// Leases that counted so far.
    pub attempt: u32,
    /// Leases granted before it is dead.
    pub max_attempts: u32,
    /// Grows with every lease.
    pub lease_number: i64,
    /// When it was stored.
    pub enqueued_at: Timestamp,
    /// When it was first due.
    pub available_at: Timestamp,
    /// When it became ready or becomes so; absent where blocked, dead or acked.
    pub ready_at: Option<Timestamp>,
    /// Where leased.
    pub lease_until: Option<Timestamp>,
    /// Where leased, and known: the stream that it was claimed for.
    pub lease_stream: Option<StreamId>,
    /// Somebody asked for it to be cancelled.
    pub cancel_requested: bool,
    /// As enqueued.
    pub ordering_key: Option<Key>,
    /// As enqueued.
    pub idempotency_key: Option<Key>,
    /// Why the last attempt ended, where it did.
    pub last_error: Option<String>,
    /// Where dead.
    pub dead_at: Option<Timestamp>,
    /// Where dead or acked: when it is removed.
    pub expires_at: Option<Timestamp>,
    /// Where acked.
    pub acked_at: Option<Timestamp>,
    /// The producer's trace context.
    pub trace: Option<TraceContext>,
    /// The business process that enqueued it, where the broker kept it.
    pub caller: Option<String>,
}

/// How much one walk may look at and bring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Rows looked at.
    pub rows: usize,
    /// Rows brought.
    pub found: usize,
    /// Payload, header and error bytes brought, but for those of a single row.
    pub bytes: u64,
    /// Whether to bring payloads.
    pub payloads: bool,
}

/// A walk over jobs of a queue.
#[derive(Debug, Clone, PartialEq)]
pub struct JobsWalk {
    /// Which queue.
    pub queue: QueueId,
    /// Some of the live states, or one of the others.
    pub states: Vec<JobState>,
    /// Only those of this key.
    pub ordering_key: Option<Key>,
    /// Only those that this business process enqueued.
    pub caller: Option<String>,
    /// Behind this one.
    pub after: JobId,
    /// How far.
    pub bounds: Bounds,
}

/// What a dead job must be like; everything that is given holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeadFilter {
    /// Died later than this.
    pub died_after: Option<Timestamp>,
    /// Died earlier than this.
    pub died_before: Option<Timestamp>,
    /// Its last error contains this, byte for byte.
    pub error_contains: Option<String>,
    /// It has this ordering key.
    pub ordering_key: Option<Key>,
    /// This business process enqueued it.
    pub caller: Option<String>,
}

/// A dead job's place among those of its queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeadPlace {
    /// When it died.
    pub dead_at: Timestamp,
    /// Which one.
    pub job: JobId,
}

/// A walk over dead jobs of a queue.
#[derive(Debug, Clone, PartialEq)]
pub struct DeadWalk {
    /// Which queue.
    pub queue: QueueId,
    /// Which of them.
    pub filter: DeadFilter,
    /// Before this one; from the last one on where absent.
    pub before: Option<DeadPlace>,
    /// How far.
    pub bounds: Bounds,
}

/// A walk that counts.
#[derive(Debug, Clone, PartialEq)]
pub struct CountWalk {
    /// Which queue.
    pub queue: QueueId,
    /// Which of its dead jobs.
    pub filter: DeadFilter,
    /// Behind this one; from the first one on where absent.
    pub after: Option<DeadPlace>,
    /// Rows looked at.
    pub rows: usize,
}

/// What it found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountedDead {
    /// Those that pass the filter.
    pub jobs: u64,
    /// Where the next walk begins; `None` at the end.
    pub next: Option<DeadPlace>,
}

/// A job and what is around it at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Circumstances {
    /// The job, without its payload.
    pub job: JobRecord,
    /// The database's time.
    pub now: Timestamp,
    /// Somebody's open transaction holds its row.
    pub held: bool,
    /// Where blocked by its key: the job that is not blocked.
    pub head: Option<JobId>,
    /// Jobs of its key that come before it, up to one more than [`crate::model::Count::BOUND`].
    pub ahead_in_key: u64,
    /// Where ready: ready jobs that go first, up to one more than the bound.
    pub ahead: u64,
    /// Nothing of its queue is leased.
    pub paused: bool,
    /// Lease streams that ask for its queue.
    pub streams: u64,
    /// Their credit that is free.
    pub free_credit: u64,
    /// Where leased: the stream that holds it, where its replica has written it down.
    pub holder: Option<StreamRecord>,
}

/// What replicas wrote about a queue, summed.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Attendance {
    /// Lease streams that ask for it.
    pub streams: u64,
    /// Their credit that is free.
    pub free_credit: u64,
    /// What became of its jobs lately.
    pub rates: Rates,
}

/// Jobs per second, over the last minute.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Rates {
    /// Stored.
    pub enqueued: f64,
    /// Leased.
    pub leased: f64,
    /// Acked through the broker.
    pub acked: f64,
    /// Nacked, to come back.
    pub retried: f64,
    /// Leases that ended by themselves.
    pub expired: f64,
    /// Dead.
    pub dead: f64,
}

/// A walk over Lease streams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamsWalk {
    /// Only those that ask for this queue.
    pub queue: Option<QueueName>,
    /// Behind this one.
    pub after: Option<StreamId>,
    /// Replicas not seen for so long are as if they were not.
    pub absent: Duration,
    /// Rows looked at.
    pub rows: usize,
    /// Rows brought.
    pub found: usize,
}

/// A Lease stream as its replica wrote it down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamRecord {
    /// Which stream.
    pub stream: StreamId,
    /// Its replica's name.
    pub replica: String,
    /// As it named itself.
    pub consumer: String,
    /// Address of the other end.
    pub peer: String,
    /// The business process that its claims run for.
    pub caller: String,
    /// What it asks for.
    pub queues: Vec<QueueName>,
    /// Leases that it may hold.
    pub max_in_flight: u32,
    /// Leases that it holds.
    pub in_flight: u32,
    /// Age of the oldest of these.
    pub oldest_lease: Option<Duration>,
    /// When it was opened.
    pub opened_at: Timestamp,
    /// When its replica was last heard of.
    pub seen_at: Timestamp,
}
