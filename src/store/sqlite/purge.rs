//! Taking away what a queue holds, and the queue.
//!
//! A step first reads the rows that it walks, then removes those of them that are to go. The write lock is held all the while.

use std::time::Duration;

use async_trait::async_trait;
use sqlx::sqlite::SqliteRow;

use super::{
    fate::FreedKey,
    session::{SqliteSession, Statement, column, list, narrow},
};
use crate::{
    model::{Caller, Count, JobState, Priority, QueueId, Timestamp},
    store::{
        engine::{PurgeCount, PurgePlace, PurgeStep, Purged, Purging},
        error::EngineError,
    },
};

#[async_trait]
impl Purging for SqliteSession {
    async fn purge(&mut self, caller: &Caller, step: &PurgeStep) -> Result<Purged, EngineError> {
        let now = self.begin(caller).await?;
        let purged = self.take_step(caller, step, now).await;
        self.end(caller, now, purged).await
    }

    async fn count_purgeable(&mut self, caller: &Caller, what: &PurgeCount) -> Result<Count, EngineError> {
        let asked = |state| what.states.contains(&state);
        let count = self
            .statement(caller, include_str!("sql/count_purgeable.sql"))
            .bind(what.queue.0)
            .bind(asked(JobState::Ready))
            .bind(asked(JobState::Scheduled))
            .bind(asked(JobState::Blocked))
            .bind(asked(JobState::Dead))
            .bind(asked(JobState::Acked))
            .bind(what.before.map_or(i64::MAX, |before| before.0))
            .bind(self.shared.clock.now().0)
            .bind(i64::try_from(Count::BOUND + 1).unwrap_or(i64::MAX));
        let rows = self.read(count).await?;
        let walks = rows.iter().map(|row| Ok((narrow(row, "walked")?, narrow(row, "found")?)));
        Ok(Count::of_walks(&walks.collect::<Result<Vec<_>, EngineError>>()?))
    }

    async fn close_queue(&mut self, caller: &Caller, queue: QueueId) -> Result<bool, EngineError> {
        let now = self.begin(caller).await?;
        let close = self.statement(caller, include_str!("sql/close_queue.sql")).bind(queue.0).bind(now.0);
        let closed = self.change(close).await.map(|rows| rows > 0);
        self.end(caller, now, closed).await
    }

    async fn reopen_queue(&mut self, caller: &Caller, queue: QueueId) -> Result<bool, EngineError> {
        let now = self.begin(caller).await?;
        let reopen = self.statement(caller, include_str!("sql/reopen_queue.sql")).bind(queue.0);
        let reopened = self.change(reopen).await.map(|rows| rows > 0);
        self.end(caller, now, reopened).await
    }

    async fn clear_queue(&mut self, caller: &Caller, queue: QueueId, limit: usize) -> Result<usize, EngineError> {
        let now = self.begin(caller).await?;
        let clear = self.statement(caller, include_str!("sql/clear_queue.sql")).bind(queue.0).bind(count(limit));
        let cleared = self.change(clear).await.map(|rows| usize::try_from(rows).unwrap_or(usize::MAX));
        self.end(caller, now, cleared).await
    }

    async fn remove_queue(&mut self, caller: &Caller, queue: QueueId, settled: Duration) -> Result<bool, EngineError> {
        let now = self.begin(caller).await?;
        let remove = self.statement(caller, include_str!("sql/remove_queue.sql"));
        let removed = self.change(remove.bind(queue.0).bind(now.minus(settled).0)).await.map(|rows| rows > 0);
        self.end(caller, now, removed).await
    }
}

impl SqliteSession {
    async fn take_step(&mut self, caller: &Caller, step: &PurgeStep, now: Timestamp) -> Result<Purged, EngineError> {
        let before = step.before.unwrap_or(now.plus(Duration::from_micros(1)));
        let rows = self.walk(caller, step, now).await?;
        let mut going = Vec::new();
        let mut freed: Vec<FreedKey> = Vec::new();
        let mut after = step.after.clone();
        for row in &rows {
            after = place(row, step.state)?;
            if column::<i64>(row, "enqueued_at")? < before.0 {
                going.push(column::<i64>(row, "id")?);
                if matches!(step.state, JobState::Ready | JobState::Scheduled) {
                    freed.extend(column::<Option<String>>(row, "ordering_key")?.map(|key| (step.queue, key)));
                }
            }
        }
        let text = match step.state {
            JobState::Dead => include_str!("sql/remove_dead.sql"),
            JobState::Acked => include_str!("sql/remove_acked.sql"),
            _ => include_str!("sql/remove.sql"),
        };
        let remove = self.statement(caller, text).bind(list(&going)?);
        self.change(remove).await?;
        let readied = !self.advance(caller, &freed, now).await?.is_empty();
        Ok(Purged { removed: going.len(), walked: rows.len(), after, before, readied })
    }

    /// The step's rows, in the order in which jobs of its state are walked.
    async fn walk(&mut self, caller: &Caller, step: &PurgeStep, now: Timestamp) -> Result<Vec<SqliteRow>, EngineError> {
        let (after, limit) = (&step.after, count(step.limit));
        let walk: Statement = match step.state {
            JobState::Ready => return self.walk_waiting(caller, step, (after.at, after.number), now).await,
            JobState::Scheduled if after.at < now => {
                return self.walk_waiting(caller, step, (now, i64::MAX), Timestamp(i64::MAX)).await;
            }
            JobState::Scheduled => {
                return self.walk_waiting(caller, step, (after.at, after.number), Timestamp(i64::MAX)).await;
            }
            JobState::Blocked => self
                .statement(caller, include_str!("sql/purge_blocked.sql"))
                .bind(step.queue.0)
                .bind(after.key.clone())
                .bind(after.number),
            JobState::Dead => self
                .statement(caller, include_str!("sql/purge_dead.sql"))
                .bind(step.queue.0)
                .bind(after.at.0)
                .bind(after.number),
            JobState::Acked => {
                self.statement(caller, include_str!("sql/purge_acked.sql")).bind(step.queue.0).bind(after.number)
            }
            JobState::Leased => return Err(EngineError::Bug("leased jobs are not purged".to_owned())),
        };
        self.read(walk.bind(limit)).await
    }

    /// Waiting jobs of all levels, the oldest first.
    async fn walk_waiting(
        &mut self,
        caller: &Caller,
        step: &PurgeStep,
        after: (Timestamp, i64),
        until: Timestamp,
    ) -> Result<Vec<SqliteRow>, EngineError> {
        let mut found: Vec<(i64, i64, SqliteRow)> = Vec::new();
        for level in 0..Priority::LEVELS {
            let walk = self
                .statement(caller, include_str!("sql/purge_waiting.sql"))
                .bind(step.queue.0)
                .bind(count(level))
                .bind(after.0.0)
                .bind(after.1)
                .bind(until.0)
                .bind(count(step.limit));
            for row in self.read(walk).await? {
                found.push((column(&row, "ready_at")?, column(&row, "id")?, row));
            }
        }
        found.sort_unstable_by_key(|(at, id, _)| (*at, *id));
        found.truncate(step.limit);
        Ok(found.into_iter().map(|(_, _, row)| row).collect())
    }
}

fn place(row: &SqliteRow, state: JobState) -> Result<PurgePlace, EngineError> {
    let at = |name| column::<i64>(row, name).map(Timestamp);
    let number = column(row, "id")?;
    Ok(match state {
        JobState::Blocked => {
            PurgePlace { key: column(row, "ordering_key")?, number: column(row, "position")?, ..PurgePlace::default() }
        }
        JobState::Dead => PurgePlace { at: at("dead_at")?, number, ..PurgePlace::default() },
        JobState::Acked => PurgePlace { number, ..PurgePlace::default() },
        _ => PurgePlace { at: at("ready_at")?, number, ..PurgePlace::default() },
    })
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
