//! Queues as such: their settings, and what is in them.

use std::time::Duration;

use async_trait::async_trait;

use crate::{
    model::{Caller, Count, Priority, QueueId, QueueName, QueueSettings, Timestamp},
    store::error::EngineError,
};

/// Queues as such.
#[async_trait]
pub trait Governing: Send {
    /// The named queues, in no particular order. Those that do not exist come into being where `create` is given and leaves
    /// room for all of them, and are left out otherwise. Acts of the same moment may pass its bound by what each creates.
    async fn find_queues(
        &mut self,
        caller: &Caller,
        names: &[QueueName],
        create: Option<&NewQueues>,
    ) -> Result<Vec<QueueRow>, EngineError>;

    /// Queues whose names begin with `prefix` and come after `after`, by name, byte for byte; `limit` at most. Those that are
    /// being deleted are among them. Reads alone.
    async fn list_queues(
        &mut self,
        caller: &Caller,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<QueueRow>, EngineError>;

    /// Gives a queue these settings, where it still is of this version and not being deleted; `None` and nothing changed
    /// otherwise.
    async fn change_queue(
        &mut self,
        caller: &Caller,
        queue: QueueId,
        version: i64,
        settings: &QueueSettings,
    ) -> Result<Option<QueueRow>, EngineError>;

    /// What is in each of these queues, in their order. Each of the five counts reads at most [`Count::BOUND`] + 1 rows of
    /// an index. Reads alone.
    async fn count_jobs(&mut self, caller: &Caller, spots: &[CountSpot]) -> Result<Vec<QueueCounts>, EngineError>;

    /// Live jobs of a queue and their payload bytes, counted up to `jobs_at_most` jobs.
    async fn measure_backlog(
        &mut self,
        caller: &Caller,
        queue: QueueId,
        jobs_at_most: u64,
    ) -> Result<Backlog, EngineError>;
}

/// A queue as the database knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueRow {
    /// Its number.
    pub id: QueueId,
    /// Its name.
    pub name: QueueName,
    /// How it treats its jobs.
    pub settings: QueueSettings,
    /// Rises with each change.
    pub version: i64,
    /// It is being deleted: as if paused and disabled.
    pub closing: bool,
}

impl QueueRow {
    /// Whether no job of it is to be leased.
    pub fn is_paused(&self) -> bool {
        self.settings.paused || self.closing
    }
}

/// Under which terms queues come into being.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewQueues {
    /// Their settings.
    pub settings: QueueSettings,
    /// Queues that there may be, old and new together.
    pub at_most: u64,
}

impl Default for NewQueues {
    fn default() -> Self {
        Self { settings: QueueSettings::default(), at_most: 10_000 }
    }
}

/// What waits in a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backlog {
    /// Live jobs.
    pub jobs: u64,
    /// Their payload bytes.
    pub bytes: u64,
}

/// What to count, and where to begin.
#[derive(Debug, Clone, Copy)]
pub struct CountSpot {
    /// Which queue.
    pub queue: QueueId,
    /// By priority level: no ready job became ready at or before this instant.
    pub floors: [Timestamp; Priority::LEVELS],
    /// No lease ended at or before this instant.
    pub lease_floor: Timestamp,
}

/// What is in a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueCounts {
    /// Jobs that wait for a claim.
    pub ready: Count,
    /// Jobs that are due later.
    pub scheduled: Count,
    /// Jobs behind others of their ordering key.
    pub blocked: Count,
    /// Jobs under a lease.
    pub leased: Count,
    /// Jobs that are dead.
    pub dead: Count,
    /// When the oldest ready job became so, and how long ago that is.
    pub oldest_ready: Option<(Timestamp, Duration)>,
}
