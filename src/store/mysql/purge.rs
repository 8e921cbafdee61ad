//! Taking away what a queue holds, and the queue.
//!
//! A step walks rows by a plain read, locks those of them that are to go where nobody else holds them, and looks again.

use std::{collections::BTreeSet, time::Duration};

use async_trait::async_trait;
use sqlx::mysql::MySqlRow;

use super::{
    maintain::Ended,
    session::{MysqlSession, Statement, only},
    value::{column, count, list, moment, name, narrow},
};
use crate::{
    model::{Caller, Count, JobState, Priority, QueueId, Timestamp},
    store::{
        engine::{PurgeCount, PurgePlace, PurgeStep, Purged, Purging},
        error::EngineError,
        hex::hex,
    },
};

#[async_trait]
impl Purging for MysqlSession {
    async fn purge(&mut self, caller: &Caller, step: &PurgeStep) -> Result<Purged, EngineError> {
        let now = self.begin(caller).await?;
        let purged = self.take_step(caller, step, now).await;
        self.end(caller, purged).await
    }

    async fn count_purgeable(&mut self, caller: &Caller, what: &PurgeCount) -> Result<Count, EngineError> {
        let now = self.now(caller).await?;
        let most = i64::try_from(Count::BOUND + 1).unwrap_or(i64::MAX);
        let before = what.before.map_or(i64::MAX, |before| before.0);
        let mut walks: Vec<(u64, u64)> = Vec::new();
        for state in &what.states {
            let of_queue = match state {
                JobState::Ready => {
                    walks.extend(self.count_waiting(caller, what.queue, (0, now.0), before).await?);
                    continue;
                }
                JobState::Scheduled => {
                    walks.extend(self.count_waiting(caller, what.queue, (now.0, i64::MAX), before).await?);
                    continue;
                }
                JobState::Blocked => include_str!("sql/count_blocked.sql"),
                JobState::Dead => include_str!("sql/count_dead.sql"),
                JobState::Acked => include_str!("sql/count_acked.sql"),
                JobState::Leased => continue,
            };
            let look = self.statement(caller, of_queue).bind(before).bind(what.queue.0).bind(most);
            let row = only(self.read_alone(look, caller).await?)?;
            walks.push((narrow(&row, "walked")?, narrow(&row, "found")?));
        }
        Ok(Count::of_walks(&walks))
    }

    async fn close_queue(&mut self, caller: &Caller, queue: QueueId) -> Result<bool, EngineError> {
        self.mark(caller, include_str!("sql/close_queue.sql"), queue).await
    }

    async fn reopen_queue(&mut self, caller: &Caller, queue: QueueId) -> Result<bool, EngineError> {
        self.mark(caller, include_str!("sql/reopen_queue.sql"), queue).await
    }

    async fn clear_queue(&mut self, caller: &Caller, queue: QueueId, limit: usize) -> Result<usize, EngineError> {
        self.begin(caller).await?;
        let cleared = self.clear_keys(caller, queue, limit).await;
        self.end(caller, cleared).await
    }

    /// Plain reads of this transaction see what others have stored and not committed: a service's job, say. What was not
    /// stored yet when the mark was `settled` old is stored by statements that see the mark.
    async fn remove_queue(&mut self, caller: &Caller, queue: QueueId, settled: Duration) -> Result<bool, EngineError> {
        let now = self.begin_dirty(caller).await?;
        let removed = self.remove_empty(caller, queue, now.minus(settled)).await;
        self.end(caller, removed).await
    }
}

impl MysqlSession {
    async fn take_step(&mut self, caller: &Caller, step: &PurgeStep, now: Timestamp) -> Result<Purged, EngineError> {
        let before = step.before.unwrap_or(now.plus(Duration::from_micros(1)));
        let rows = self.walk(caller, step, now).await?;
        let after = rows.last().map_or_else(|| step.after.clone(), |(place, _)| place.clone());
        let going: BTreeSet<i64> =
            rows.iter().filter(|(_, (_, enqueued_at))| *enqueued_at < before).map(|(_, (job, _))| *job).collect();
        let jobs: Vec<i64> = going.iter().copied().collect();
        let mut readied = false;
        let removed = match step.state {
            JobState::Ready | JobState::Scheduled => {
                let taken = self.take_waiting(caller, &going).await?;
                let jobs: Vec<i64> = taken.iter().map(|(job, _)| job.id).collect();
                self.remove_jobs(caller, &jobs).await?;
                readied = !self.advance(caller, taken.iter().filter_map(|(job, _)| job.key())).await?.is_empty();
                jobs.len()
            }
            JobState::Blocked => {
                let locked = self.lock_jobs(caller, &going).await?;
                let taken: Vec<i64> = self.take_places(caller, &locked).await?.into_iter().collect();
                self.remove_jobs(caller, &taken).await?;
                taken.len()
            }
            JobState::Dead => self.remove_ended(caller, Ended::Dead, &jobs).await?.len(),
            JobState::Acked => self.remove_ended(caller, Ended::Acked, &jobs).await?.len(),
            JobState::Leased => return Err(EngineError::Bug("leased jobs are not purged".into())),
        };
        Ok(Purged { removed, walked: rows.len(), after, before, readied })
    }

    /// The step's rows, in the order in which jobs of its state are walked: the place, the job, when it was enqueued.
    async fn walk(
        &mut self,
        caller: &Caller,
        step: &PurgeStep,
        now: Timestamp,
    ) -> Result<Vec<(PurgePlace, (i64, Timestamp))>, EngineError> {
        let (after, limit, end) = (&step.after, count(step.limit), Timestamp(i64::MAX));
        let from = (after.at, after.number);
        let (from, until) = match step.state {
            JobState::Ready => (from, now),
            JobState::Scheduled if after.at < now => ((now, i64::MAX), end),
            JobState::Scheduled => (from, end),
            JobState::Blocked => return self.walk_blocked(caller, step).await,
            JobState::Dead => {
                let walk = self.statement(caller, include_str!("sql/walk_dead.sql")).bind(step.queue.0);
                let walk = walk.bind(after.at.0).bind(after.at.0).bind(after.number).bind(limit);
                return places(&self.read(walk).await?, step.state);
            }
            JobState::Acked => {
                let walk = self.statement(caller, include_str!("sql/walk_acked.sql")).bind(step.queue.0);
                return places(&self.read(walk.bind(after.number).bind(limit)).await?, step.state);
            }
            JobState::Leased => return Ok(Vec::new()),
        };
        let waiting = self.walk_waiting(caller, step.queue, from, until, step.limit).await?;
        let place = |at, number| PurgePlace { at, number, ..PurgePlace::default() };
        Ok(waiting.iter().map(|job| (place(job.ready_at, job.job), (job.job, job.enqueued_at))).collect())
    }

    /// First the rest of the key in which the last step ended, then the keys behind it: two ranges of the index.
    async fn walk_blocked(
        &mut self,
        caller: &Caller,
        step: &PurgeStep,
    ) -> Result<Vec<(PurgePlace, (i64, Timestamp))>, EngineError> {
        let key = step.after.key.as_bytes().to_vec();
        let rest = self.statement(caller, include_str!("sql/walk_key.sql")).bind(step.queue.0).bind(key.clone());
        let mut rows = self.read(rest.bind(step.after.number).bind(count(step.limit))).await?;
        if rows.len() < step.limit {
            let more = self.statement(caller, include_str!("sql/walk_keys.sql")).bind(step.queue.0).bind(key);
            rows.extend(self.read(more.bind(count(step.limit - rows.len()))).await?);
        }
        places(&rows, step.state)
    }

    async fn count_waiting(
        &mut self,
        caller: &Caller,
        queue: QueueId,
        (after, until): (i64, i64),
        before: i64,
    ) -> Result<Vec<(u64, u64)>, EngineError> {
        let most = i64::try_from(Count::BOUND + 1).unwrap_or(i64::MAX);
        let mut walks = Vec::new();
        for tier in 0..Priority::LEVELS {
            let look = self.statement(caller, include_str!("sql/count_waiting.sql")).bind(before).bind(queue.0);
            let look = look.bind(count(tier)).bind(after).bind(until).bind(most);
            let row = only(self.read_alone(look, caller).await?)?;
            walks.push((narrow(&row, "walked")?, narrow(&row, "found")?));
        }
        Ok(walks)
    }

    async fn mark(&mut self, caller: &Caller, sql: &'static str, queue: QueueId) -> Result<bool, EngineError> {
        self.begin(caller).await?;
        let mark = self.statement(caller, sql).bind(queue.0);
        let marked = self.change(mark).await.map(|rows| rows > 0);
        self.end(caller, marked).await
    }

    /// Idempotency keys first; where none is left, ordering keys whose jobs are gone.
    async fn clear_keys(&mut self, caller: &Caller, queue: QueueId, limit: usize) -> Result<usize, EngineError> {
        let find = self.statement(caller, include_str!("sql/find_names.sql")).bind(queue.0).bind(count(limit));
        let found: BTreeSet<(i32, String)> =
            self.read(find).await?.iter().map(|row| queue_and(row, "name")).collect::<Result<_, _>>()?;
        if !found.is_empty() {
            let lock = self.statement(caller, include_str!("sql/lock_names.sql")).bind(list(&found)?);
            let locked: BTreeSet<(i32, String)> =
                self.read(lock).await?.iter().map(|row| queue_and(row, "name")).collect::<Result<_, _>>()?;
            let remove = self.statement(caller, include_str!("sql/remove_keys.sql")).bind(list(&locked)?);
            let removed = self.change(remove).await?;
            return Ok(usize::try_from(removed).unwrap_or(usize::MAX));
        }
        let find = self.statement(caller, include_str!("sql/find_idle_keys.sql")).bind(queue.0).bind(count(limit));
        let mut keys = BTreeSet::new();
        for row in self.read(find).await? {
            keys.extend(name(&row, "ordering_key")?.map(|key| (queue, key)));
        }
        let found = keys.len();
        // Looked at again with the key had; one whose jobs are gone goes.
        self.advance(caller, keys).await?;
        Ok(found)
    }

    async fn remove_empty(
        &mut self,
        caller: &Caller,
        queue: QueueId,
        marked_by: Timestamp,
    ) -> Result<bool, EngineError> {
        let lock = self.statement(caller, include_str!("sql/lock_queue.sql")).bind(queue.0).bind(marked_by.0);
        let Some(row) = self.read(lock).await?.into_iter().next() else { return Ok(false) };
        let queue_name: Vec<u8> = column(&row, "name")?;
        let mut look: Statement = self.statement(caller, include_str!("sql/left_in_queue.sql"));
        for _ in 0..8 {
            look = look.bind(queue.0);
        }
        if !self.read(look.bind(queue_name)).await?.is_empty() {
            return Ok(false);
        }
        let remove = self.statement(caller, include_str!("sql/remove_queue.sql")).bind(queue.0);
        self.change(remove).await.map(|rows| rows > 0)
    }
}

fn queue_and(row: &MySqlRow, column_name: &str) -> Result<(i32, String), EngineError> {
    Ok((narrow(row, "queue_id")?, hex(&column::<Vec<u8>>(row, column_name)?)))
}

/// Where a job stands in the walk, its id, and when it was enqueued.
type Placed = (PurgePlace, (i64, Timestamp));

fn places(rows: &[MySqlRow], state: JobState) -> Result<Vec<Placed>, EngineError> {
    rows.iter()
        .map(|row| {
            let job: i64 = column(row, "id")?;
            let place = match state {
                JobState::Blocked => PurgePlace {
                    key: name(row, "ordering_key")?.unwrap_or_default(),
                    number: column(row, "position")?,
                    ..PurgePlace::default()
                },
                JobState::Dead => PurgePlace { at: moment(row, "dead_at")?, number: job, ..PurgePlace::default() },
                _ => PurgePlace { number: job, ..PurgePlace::default() },
            };
            Ok((place, (job, moment(row, "enqueued_at")?)))
        })
        .collect()
}
