//! Settling: ending and moving leases.

use std::time::Duration;

use async_trait::async_trait;

use super::LockWait;
use crate::{
    model::{Caller, JobId, LeaseId, NackAction, QueueId, Timestamp},
    store::error::EngineError,
};

/// A lease to be settled, extended or looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LeaseRef {
    /// Which job.
    pub job: JobId,
    /// Which grant of it.
    pub lease: LeaseId,
}

/// Ending and moving leases. None of these waits for a row that somebody else's transaction holds: such items are
/// [`Held::Busy`] and unchanged. An expired lease that nobody took yet still counts.
#[async_trait]
pub trait Settling: Send {
    /// Ends jobs: done. A freed ordering key's next job becomes ready in the same transaction.
    async fn ack(&mut self, caller: &Caller, leases: &[LeaseRef], wait: LockWait)
    -> Result<Vec<AckedRow>, EngineError>;

    /// Gives jobs back, or moves them to the dead jobs where no attempt is left or [`NackAction::Reject`] asks for it. One
    /// that somebody asked to cancel is removed instead: neither dead nor ready again.
    async fn nack(&mut self, caller: &Caller, items: &[NackRow], wait: LockWait)
    -> Result<Vec<NackedRow>, EngineError>;

    /// Moves each lease's end to the given time from now, or to the time it was granted for; never shortens one.
    async fn extend(&mut self, caller: &Caller, items: &[ExtendRow]) -> Result<Vec<ExtendedRow>, EngineError>;

    /// Which leases still hold. Reads alone.
    async fn inspect(&mut self, caller: &Caller, leases: &[LeaseRef]) -> Result<Vec<LeaseState>, EngineError>;
}

/// Whether a lease decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// Yes: done as asked.
    Ok,
    /// There is no such job any more.
    Gone,
    /// The job has another lease, waits for its next one, or is dead.
    LeaseLost,
    /// Somebody's open transaction holds the job; nothing changed.
    Busy,
}

/// An item of an Ack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AckedRow {
    /// What became of it.
    pub held: Held,
    /// The job's queue, where the lease decided.
    pub queue: Option<QueueId>,
    /// The queue in which the freed ordering key's next job became ready.
    pub readied: Option<QueueId>,
}

/// An item of a Nack.
#[derive(Debug, Clone)]
pub struct NackRow {
    /// Which lease.
    pub lease: LeaseRef,
    /// What to do.
    pub action: NackAction,
    /// How long until the job is ready; for [`NackAction::Retry`] without one, the queue's back-off at this fraction of its
    /// ceiling.
    pub delay: Option<Duration>,
    /// Drawn evenly from 0 to 1.
    pub jitter: f64,
    /// Kept with the job; storable as it is.
    pub error: String,
}

/// What became of a Nack's item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NackedRow {
    /// Whether the lease decided.
    pub held: Held,
    /// The job is dead now.
    pub dead: bool,
    /// The job's queue, where the lease decided.
    pub queue: Option<QueueId>,
    /// When it is ready again, where it lives.
    pub ready_at: Option<Timestamp>,
    /// How long that is from now.
    pub ready_in: Option<Duration>,
    /// The queue in which a job became ready now or later: this one, or the next of the key that its death freed.
    pub readied: Option<QueueId>,
}

/// An item of an Extend.
#[derive(Debug, Clone, Copy)]
pub struct ExtendRow {
    /// Which lease.
    pub lease: LeaseRef,
    /// From now; what the lease was granted for where absent.
    pub duration: Option<Duration>,
}

/// What became of an Extend's item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExtendedRow {
    /// Whether the lease still holds.
    pub held: Held,
    /// Its end, where it holds.
    pub expires_at: Option<Timestamp>,
    /// What is left of it.
    pub remaining: Duration,
    /// Somebody asked for the job to be cancelled.
    pub cancel_requested: bool,
}

/// What a look at a lease shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseState {
    /// It is the job's lease.
    pub holds: bool,
    /// What is left of it; zero where it does not hold.
    pub remaining: Duration,
    /// Somebody asked for the job to be cancelled.
    pub cancel_requested: bool,
}
