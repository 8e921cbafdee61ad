//! What a stream says to its consumer.

use std::{fmt, time::Duration};

use crate::{
    model::{LeaseToken, QueueName},
    store::engine::ClaimedJob,
};

/// One frame of a Lease stream.
#[derive(Debug)]
pub enum Frame {
    /// The first frame of every stream.
    Opened {
        /// The broker's name.
        broker: String,
        /// The broker's version.
        version: String,
        /// The stream's name, for operators.
        stream_id: String,
        /// How often a quiet stream says something.
        heartbeat_interval: Duration,
        /// When the Drain frame comes.
        max_age: Duration,
    },
    /// Leases.
    Jobs(Vec<SentJob>),
    /// Nothing else was said for a while.
    Heartbeat {
        /// Leases outstanding on this stream.
        in_flight: u32,
        /// Their payload bytes.
        in_flight_bytes: u64,
        /// Silence says nothing about the queues at present.
        claims_failing: bool,
    },
    /// The stream ends now.
    Drain(DrainReason),
    /// Leases whose work should stop.
    Revoked(Vec<RevokedLease>),
}

/// Why a stream ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DrainReason {
    /// It, or its connection, is old.
    Age,
    /// The replica goes away.
    Shutdown,
    /// What its consumer authenticated with is no longer good.
    Credentials,
}

/// A lease that its holder should let go of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RevokedLease {
    /// Which one.
    pub token: LeaseToken,
    /// True: somebody asked for the job to be cancelled and the lease stands. False: the lease is gone.
    pub cancel_requested: bool,
}

/// A job under a lease of this stream.
pub struct SentJob {
    /// Proof of the lease.
    pub token: LeaseToken,
    /// Where it waited.
    pub queue: QueueName,
    /// The job.
    pub job: ClaimedJob,
    /// What is left of the lease, counted from before the claim was sent: never more than the database would say.
    pub remaining: Duration,
}

/// Without the payload: frames may be logged.
impl fmt::Debug for SentJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SentJob")
            .field("job", &self.job.job)
            .field("queue", &self.queue)
            .field("remaining", &self.remaining)
            .finish_non_exhaustive()
    }
}

/// Bytes that a job takes in a frame, near enough to bound frames; never less than on the wire.
pub(super) fn weight(job: &ClaimedJob, queue: &QueueName) -> usize {
    let headers: usize = job.headers.iter().map(|(key, value)| key.len() + value.len() + 16).sum();
    let trace = job.trace.as_ref().map_or(0, |_| 640); // a traceparent has 55 bytes, a tracestate 512 at most
    job.payload.len()
        + job.content_type.len()
        + queue.as_str().len()
        + headers
        + trace
        + job.last_error.as_ref().map_or(0, String::len)
        + job.ordering_key.as_ref().map_or(0, |key| key.as_str().len())
        + job.idempotency_key.as_ref().map_or(0, |key| key.as_str().len())
        + 320
}
