//! Taking away what a queue holds, and the queue.

use std::time::Duration;

use async_trait::async_trait;

use crate::{
    model::{Caller, Count, JobState, QueueId, Timestamp},
    store::error::EngineError,
};

/// Purging and deletion. Each call is one bounded statement or transaction; the loop around it is not the engine's.
#[async_trait]
pub trait Purging: Send {
    /// Walks `step.limit` rows from `step.after` on and removes those that were enqueued before `step.before`; rows that
    /// others hold are passed over. Where an unblocked job with an ordering key goes, the key's next job becomes ready.
    /// Leased jobs are not purged. Jobs that wait for their adoption are no part of the blocked ones here; they are ready a
    /// moment later.
    async fn purge(&mut self, caller: &Caller, step: &PurgeStep) -> Result<Purged, EngineError>;

    /// How many jobs in one of these states a purge would find, of each state among the first [`Count::BOUND`] rows. Reads
    /// alone.
    async fn count_purgeable(&mut self, caller: &Caller, what: &PurgeCount) -> Result<Count, EngineError>;

    /// Marks a queue as being deleted: no job is stored in it from now on, but for those whose statements had begun. Nothing
    /// changes where it is marked already. False where there is no such queue.
    async fn close_queue(&mut self, caller: &Caller, queue: QueueId) -> Result<bool, EngineError>;

    /// Takes that mark off. False where there is no such queue.
    async fn reopen_queue(&mut self, caller: &Caller, queue: QueueId) -> Result<bool, EngineError>;

    /// Removes what a queue leaves beside jobs (keys), `limit` rows at most; says how many. 0: nothing is left that is not
    /// held by others.
    async fn clear_queue(&mut self, caller: &Caller, queue: QueueId, limit: usize) -> Result<usize, EngineError>;

    /// Removes the queue, where it was marked at least `settled` ago, no statement or transaction can still store a job in
    /// it that did not see the mark, and nothing of it is left; false and nothing changed otherwise. Its number is never
    /// given again.
    async fn remove_queue(&mut self, caller: &Caller, queue: QueueId, settled: Duration) -> Result<bool, EngineError>;
}

/// One step of a purge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PurgeStep {
    /// Which queue.
    pub queue: QueueId,
    /// Which jobs; not the leased ones.
    pub state: JobState,
    /// Only those enqueued before this instant; all that are there at this moment where absent.
    pub before: Option<Timestamp>,
    /// Behind this place.
    pub after: PurgePlace,
    /// Rows to walk at most.
    pub limit: usize,
}

/// Where a step ended, in the order in which jobs of its state are walked. The default is before all of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PurgePlace {
    /// When the last one became ready or died, for states that are walked by that.
    pub at: Timestamp,
    /// Its ordering key, for blocked ones.
    pub key: String,
    /// Its id, or its position within its ordering key.
    pub number: i64,
}

/// What a step did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Purged {
    /// Jobs removed.
    pub removed: usize,
    /// Rows walked: fewer than the limit means that none is left behind them.
    pub walked: usize,
    /// Where the next step goes on.
    pub after: PurgePlace,
    /// The instant that was applied; for the next step.
    pub before: Timestamp,
    /// The next job of a key became ready.
    pub readied: bool,
}

/// What to count before a purge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PurgeCount {
    /// Which queue.
    pub queue: QueueId,
    /// Which jobs; leased ones count for nothing.
    pub states: Vec<JobState>,
    /// As in [`PurgeStep::before`].
    pub before: Option<Timestamp>,
}
