//! What becomes of jobs whose leases end: they live on, die or go, and with them their ordering keys.

use std::collections::BTreeSet;

use super::session::{SqliteSession, column, list, narrow};
use crate::{
    model::{Caller, QueueId, Timestamp},
    store::error::EngineError,
};

/// The ordering key of a job that is gone from it.
pub(super) type FreedKey = (QueueId, String);

/// How a job goes on living after a lease: its id, when it is ready, whether the attempt counts, and the error to keep:
/// none for the one that it has, an empty one for nothing.
pub(super) type Return<'a> = (i64, i64, bool, Option<&'a str>);

/// A job to be buried, with the error to keep, as in [`Return`].
pub(super) type Burial<'a> = (i64, Option<&'a str>);

impl SqliteSession {
    /// Takes the leases off jobs that live on.
    pub(super) async fn return_jobs(&mut self, caller: &Caller, returns: &[Return<'_>]) -> Result<(), EngineError> {
        if !returns.is_empty() {
            let update = self.statement(caller, include_str!("sql/return.sql")).bind(list(returns)?);
            self.change(update).await?;
        }
        Ok(())
    }

    /// Moves jobs to the dead ones.
    pub(super) async fn bury(
        &mut self,
        caller: &Caller,
        burials: &[Burial<'_>],
        now: Timestamp,
    ) -> Result<(), EngineError> {
        if burials.is_empty() {
            return Ok(());
        }
        let copy = self.statement(caller, include_str!("sql/bury.sql")).bind(list(burials)?).bind(now.0);
        let copied = self.change(copy).await?;
        let jobs: Vec<i64> = burials.iter().map(|(job, _)| *job).collect();
        let removed = self.remove(caller, &jobs).await?;
        if copied == removed {
            Ok(())
        } else {
            Err(EngineError::Bug(format!("{copied} jobs died and {removed} were removed")))
        }
    }

    /// Removes jobs; says how many.
    pub(super) async fn remove(&mut self, caller: &Caller, jobs: &[i64]) -> Result<u64, EngineError> {
        if jobs.is_empty() {
            return Ok(0);
        }
        let delete = self.statement(caller, include_str!("sql/remove.sql")).bind(list(jobs)?);
        self.change(delete).await
    }

    /// Makes the next job of each freed key ready. Says which keys had one.
    pub(super) async fn advance(
        &mut self,
        caller: &Caller,
        freed: &[FreedKey],
        now: Timestamp,
    ) -> Result<BTreeSet<FreedKey>, EngineError> {
        if freed.is_empty() {
            return Ok(BTreeSet::new());
        }
        let keys: Vec<(i32, &str)> = freed.iter().map(|(queue, key)| (queue.0, key.as_str())).collect();
        let update = self.statement(caller, include_str!("sql/advance.sql")).bind(list(&keys)?).bind(now.0);
        let rows = self.change_returning(update).await?;
        rows.iter().map(|row| Ok((QueueId(narrow(row, "queue_id")?), column(row, "ordering_key")?))).collect()
    }
}
