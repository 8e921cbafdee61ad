//! Taking away what a queue holds, and the queue.

use std::time::Duration;

use async_trait::async_trait;
use sqlx::postgres::PgRow;

use super::{
    session::{Args, PgSession},
    value::{Moment, get, narrow},
};
use crate::{
    model::{Caller, Count, JobState, QueueId, time::micros},
    store::{
        engine::{PurgeCount, PurgePlace, PurgeStep, Purged, Purging},
        error::EngineError,
    },
};

const PURGE_WAITING: &str = include_str!("sql/purge_waiting.sql");
const PURGE_BLOCKED: &str = include_str!("sql/purge_blocked.sql");
const PURGE_DEAD: &str = include_str!("sql/purge_dead.sql");
const PURGE_ACKED: &str = include_str!("sql/purge_acked.sql");
const COUNT_PURGEABLE: &str = include_str!("sql/count_purgeable.sql");
const CLOSE_QUEUE: &str = include_str!("sql/close_queue.sql");
const REOPEN_QUEUE: &str = include_str!("sql/reopen_queue.sql");
const CLEAR_QUEUE: &str = include_str!("sql/clear_queue.sql");
const REMOVE_QUEUE: &str = include_str!("sql/remove_queue.sql");

#[async_trait]
impl Purging for PgSession {
    async fn purge(&mut self, caller: &Caller, step: &PurgeStep) -> Result<Purged, EngineError> {
        let (before, limit) = (step.before.map(Moment), narrow::<i32, _>(step.limit, "purge", "limit")?);
        let after = &step.after;
        let queue = Args::new().with(step.queue.0);
        let (text, arguments) = match step.state {
            JobState::Ready | JobState::Scheduled => {
                let due = step.state == JobState::Ready;
                let place = queue.with(due).with(before).with(Moment(after.at)).with(after.number);
                (PURGE_WAITING, place.with(limit))
            }
            JobState::Blocked => {
                (PURGE_BLOCKED, queue.with(before).with(after.key.as_str()).with(after.number).with(limit))
            }
            JobState::Dead => (PURGE_DEAD, queue.with(before).with(Moment(after.at)).with(after.number).with(limit)),
            JobState::Acked => (PURGE_ACKED, queue.with(before).with(after.number).with(limit)),
            JobState::Leased => return Err(EngineError::Bug("leased jobs are not purged".into())),
        };
        let row = self.row(caller, text, arguments).await?;
        let after = match step.state {
            JobState::Blocked => PurgePlace {
                key: get(&row, "purge", "last_key")?,
                number: get(&row, "purge", "last_position")?,
                ..PurgePlace::default()
            },
            JobState::Acked => PurgePlace { number: get(&row, "purge", "last_id")?, ..PurgePlace::default() },
            _ => PurgePlace {
                at: get::<Moment>(&row, "purge", "last_at")?.0,
                number: get(&row, "purge", "last_id")?,
                ..PurgePlace::default()
            },
        };
        let waited = matches!(step.state, JobState::Ready | JobState::Scheduled);
        Ok(Purged {
            removed: number(&row, "removed")?,
            walked: number(&row, "walked")?,
            after,
            before: get::<Moment>(&row, "purge", "before")?.0,
            readied: waited && get(&row, "purge", "readied")?,
        })
    }

    async fn count_purgeable(&mut self, caller: &Caller, what: &PurgeCount) -> Result<Count, EngineError> {
        let asked = |state| what.states.contains(&state);
        let arguments = Args::new()
            .with(what.queue.0)
            .with(asked(JobState::Ready))
            .with(asked(JobState::Scheduled))
            .with(asked(JobState::Blocked))
            .with(asked(JobState::Dead))
            .with(asked(JobState::Acked))
            .with(what.before.map(Moment))
            .with(narrow::<i64, _>(Count::BOUND + 1, "count_purgeable", "bound")?);
        let rows = self.rows(caller, COUNT_PURGEABLE, arguments).await?;
        let arms = rows
            .iter()
            .map(|row| Ok((number(row, "walked")? as u64, number(row, "found")? as u64)))
            .collect::<Result<Vec<_>, EngineError>>()?;
        Ok(Count::of_walks(&arms))
    }

    async fn close_queue(&mut self, caller: &Caller, queue: QueueId) -> Result<bool, EngineError> {
        Ok(!self.rows(caller, CLOSE_QUEUE, Args::new().with(queue.0)).await?.is_empty())
    }

    async fn reopen_queue(&mut self, caller: &Caller, queue: QueueId) -> Result<bool, EngineError> {
        Ok(!self.rows(caller, REOPEN_QUEUE, Args::new().with(queue.0)).await?.is_empty())
    }

    async fn clear_queue(&mut self, caller: &Caller, queue: QueueId, limit: usize) -> Result<usize, EngineError> {
        let limit: i32 = narrow(limit, "clear_queue", "limit")?;
        let row = self.row(caller, CLEAR_QUEUE, Args::new().with(queue.0).with(limit)).await?;
        number(&row, "cleared")
    }

    async fn remove_queue(&mut self, caller: &Caller, queue: QueueId, settled: Duration) -> Result<bool, EngineError> {
        let arguments = Args::new().with(queue.0).with(micros(settled));
        Ok(!self.rows(caller, REMOVE_QUEUE, arguments).await?.is_empty())
    }
}

fn number(row: &PgRow, column: &str) -> Result<usize, EngineError> {
    narrow(get::<i64>(row, "purge", column)?, "purge", column)
}
