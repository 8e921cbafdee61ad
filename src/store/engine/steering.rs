//! Changing what becomes of jobs, at an operator's wish.

use async_trait::async_trait;

use super::{DeadFilter, DeadPlace};
use crate::{
    model::{Caller, JobId, QueueId, StreamId, Timestamp},
    store::error::EngineError,
};

/// Acts of operators. None waits for a job's row that somebody's transaction holds.
#[async_trait]
pub trait Steering: Send {
    /// Removes jobs that are not leased, dead and acked ones left alone. A leased one is marked: it does not come back,
    /// since whatever ends its lease, other than an ack, removes it; its replica finds it in [`super::Attending::attend`].
    /// An ordering key goes on in the same transaction. Each id comes once.
    async fn cancel(&mut self, caller: &Caller, jobs: &[JobId]) -> Result<CancelledJobs, EngineError>;

    /// Makes a scheduled job ready now; a blocked one is due as soon as its key is free. A ready or leased job stays as it
    /// is.
    async fn run_now(&mut self, caller: &Caller, job: JobId) -> Result<RunNow, EngineError>;

    /// Makes dead jobs live again, those that died first first: payload, headers, settings and lease numbers as they were,
    /// attempts from 0. A job with an ordering key joins at the end of its key. Rows that others hold are passed over, as are
    /// single ones of a queue that is being deleted or gone; a whole queue that is answers [`EngineError::QueueClosed`].
    async fn redrive(&mut self, caller: &Caller, step: &RedriveStep) -> Result<Redriven, EngineError>;
}

/// What became of jobs that were to be cancelled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CancelledJobs {
    /// Of each, in order.
    pub jobs: Vec<Cancelled>,
    /// Queues in which the next job of a freed ordering key became ready.
    pub readied: Vec<QueueId>,
}

/// What became of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancelled {
    /// It is removed.
    Removed,
    /// It is leased, by this stream where that is known, and does not come back.
    Requested(Option<StreamId>),
    /// There is no such live job.
    Gone,
    /// Somebody's open transaction holds it; unchanged.
    Busy,
}

/// What became of a job that was to run now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunNow {
    /// It is ready, here.
    Readied(QueueId),
    /// It is blocked, and due.
    Blocked,
    /// It was ready or leased already.
    Unchanged,
    /// There is no such live job.
    Gone,
    /// Somebody's open transaction holds it; unchanged.
    Busy,
}

/// One step over dead jobs.
#[derive(Debug, Clone, PartialEq)]
pub struct RedriveStep {
    /// Which of them.
    pub which: DeadJobs,
    /// Redriven at most.
    pub limit: usize,
}

/// Dead jobs to be redriven.
#[derive(Debug, Clone, PartialEq)]
pub enum DeadJobs {
    /// These.
    Ids(Vec<JobId>),
    /// Those of a queue.
    OfQueue {
        /// Which queue.
        queue: QueueId,
        /// Which of them.
        filter: DeadFilter,
        /// Behind this one; from the first one on where absent.
        after: Option<DeadPlace>,
        /// Those that died until then; until now where absent. A job that dies again is not met again.
        until: Option<Timestamp>,
        /// Rows looked at.
        rows: usize,
    },
}

impl DeadJobs {
    /// The queue that was named, where one was.
    pub fn queue(&self) -> Option<QueueId> {
        match self {
            Self::Ids(_) => None,
            Self::OfQueue { queue, .. } => Some(*queue),
        }
    }
}

/// What a step did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redriven {
    /// Jobs that live again.
    pub jobs: Vec<JobId>,
    /// Queues in which jobs became ready.
    pub readied: Vec<QueueId>,
    /// Until when jobs must have died in the next step.
    pub until: Timestamp,
    /// Where the next step begins; `None` where there is none.
    pub next: Option<DeadPlace>,
}
