//! What the dispatcher is told at its start.

use std::time::Duration;

/// Bounds and intervals. The defaults are those that the documentation states.
#[derive(Debug, Clone, PartialEq)]
pub struct DispatchOptions {
    /// A quiet stream hears a heartbeat after this long.
    pub heartbeat_interval: Duration,
    /// A stream gets its Drain frame after about this long.
    pub stream_age: Duration,
    /// How far a stream's age may lie from [`DispatchOptions::stream_age`], as a part of it, so that streams opened together
    /// do not end together.
    pub stream_age_jitter: f64,
    /// Streams open at once; further ones are refused.
    pub max_streams: usize,
    /// Leases outstanding on all streams together.
    pub max_outstanding: usize,
    /// Statements that claim, under way at once, for all callers together; one queue and caller are never in more than one.
    pub max_claims: usize,
    /// How often to look for work while nothing is known to be ready.
    pub look_interval: Duration,
    /// Queues in one look; more than these take turns.
    pub look_queues: usize,
    /// How far before the cursor a look begins.
    pub look_back: Duration,
    /// How often a look begins before everything that the database can hold.
    pub full_look_interval: Duration,
    /// Payload bytes that the claims of one statement should bring at most, by the queue's recent average.
    pub claim_bytes: u64,
    /// Jobs that the claims of one statement ask for at most.
    pub claim_jobs: usize,
    /// Queues that one statement claims from at most, all for one caller.
    pub claim_queues: usize,
    /// A job waits at most this long in front of a reader who does not read, and at most half of its lease.
    pub max_unsent: Duration,
    /// Bytes of jobs in front of all readers together, beyond which nothing more is claimed.
    pub max_unsent_bytes: usize,
    /// Bytes of one frame; a single job may be larger.
    pub frame_bytes: usize,
    /// Whether claims and looks begin at what is remembered, and not before everything.
    pub claim_cursor: bool,
    /// How often leases of streams without credit are compared with the database.
    pub reconcile_interval: Duration,
    /// How often the settings of queues that streams ask for are read.
    pub settings_interval: Duration,
    /// How long [`super::Dispatch::drain`] waits for streams to be read to their end.
    pub drain_limit: Duration,
}

impl Default for DispatchOptions {
    fn default() -> Self {
        Self {
            heartbeat_interval: Duration::from_secs(15),
            stream_age: Duration::from_mins(5),
            stream_age_jitter: 0.2,
            max_streams: 20_000,
            max_outstanding: 1_000_000,
            max_claims: 64,
            look_interval: Duration::from_secs(1),
            look_queues: 1_000,
            look_back: Duration::from_mins(1),
            full_look_interval: Duration::from_mins(10),
            claim_bytes: 8 << 20,
            claim_jobs: 1_000,
            claim_queues: 32,
            max_unsent: Duration::from_mins(1),
            max_unsent_bytes: 256 << 20,
            frame_bytes: 1 << 20,
            claim_cursor: true,
            reconcile_interval: Duration::from_secs(1),
            settings_interval: Duration::from_secs(5),
            drain_limit: Duration::from_secs(10),
        }
    }
}
