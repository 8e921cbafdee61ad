//! Changing what becomes of jobs, at an operator's wish.

use std::collections::BTreeSet;

use async_trait::async_trait;

use super::{
    fate::FreedKey,
    inspect::{filter, next_place, number, place},
    session::{SqliteSession, column, list, narrow, place as at},
};
use crate::{
    model::{Caller, JobId, QueueId, StreamId, Timestamp},
    store::{
        engine::{Cancelled, CancelledJobs, DeadJobs, DeadPlace, RedriveStep, Redriven, RunNow, Steering},
        error::EngineError,
    },
};

#[async_trait]
impl Steering for SqliteSession {
    async fn cancel(&mut self, caller: &Caller, jobs: &[JobId]) -> Result<CancelledJobs, EngineError> {
        let now = self.begin(caller).await?;
        let cancelled = self.cancel_all(caller, jobs, now).await;
        self.end(caller, now, cancelled).await
    }

    async fn run_now(&mut self, caller: &Caller, job: JobId) -> Result<RunNow, EngineError> {
        let now = self.begin(caller).await?;
        let run = self.make_due(caller, job, now).await;
        self.end(caller, now, run).await
    }

    async fn redrive(&mut self, caller: &Caller, step: &RedriveStep) -> Result<Redriven, EngineError> {
        let now = self.begin(caller).await?;
        let redriven = self.redrive_step(caller, step, now).await;
        self.end(caller, now, redriven).await
    }
}

impl SqliteSession {
    async fn cancel_all(
        &mut self,
        caller: &Caller,
        jobs: &[JobId],
        now: Timestamp,
    ) -> Result<CancelledJobs, EngineError> {
        let ids: Vec<i64> = jobs.iter().map(|job| job.0).collect();
        let look = self.statement(caller, include_str!("sql/cancel_look.sql")).bind(list(&ids)?);
        let mut answers = vec![Cancelled::Gone; jobs.len()];
        let (mut removed, mut requested, mut told) = (Vec::new(), Vec::new(), Vec::new());
        let mut freed: Vec<FreedKey> = Vec::new();
        for row in self.read(look).await? {
            let (n, id): (usize, i64) = (at(&row, jobs.len())?, column(&row, "id")?);
            if column::<i64>(&row, "leased")? != 0 {
                let stream: Option<i64> = column(&row, "lease_stream")?;
                answers[n] = Cancelled::Requested(stream.map(StreamId::from_bits));
                requested.push(id);
                told.extend(stream.map(|stream| (stream, id)));
                continue;
            }
            answers[n] = Cancelled::Removed;
            removed.push(id);
            // Where the head stays, so does the key's next job.
            if column::<i64>(&row, "blocked")? == 0 {
                let queue = QueueId(narrow(&row, "queue_id")?);
                freed.extend(column::<Option<String>>(&row, "ordering_key")?.map(|key| (queue, key)));
            }
        }
        self.remove(caller, &removed).await?;
        if !requested.is_empty() {
            let update = self.statement(caller, include_str!("sql/request_cancel.sql"));
            self.change(update.bind(list(&requested)?)).await?;
            let insert = self.statement(caller, include_str!("sql/note_cancellations.sql"));
            self.change(insert.bind(list(&told)?)).await?;
        }
        let readied = self.advance(caller, &freed, now).await?;
        let readied: BTreeSet<QueueId> = readied.into_iter().map(|(queue, _)| queue).collect();
        Ok(CancelledJobs { jobs: answers, readied: readied.into_iter().collect() })
    }

    async fn make_due(&mut self, caller: &Caller, job: JobId, now: Timestamp) -> Result<RunNow, EngineError> {
        let update = self.statement(caller, include_str!("sql/run_now.sql"));
        if let Some(row) = self.change_returning(update.bind(job.0).bind(now.0)).await?.first() {
            let blocked = column::<i64>(row, "blocked")? != 0;
            return Ok(if blocked { RunNow::Blocked } else { RunNow::Readied(QueueId(narrow(row, "queue_id")?)) });
        }
        let look = self.statement(caller, include_str!("sql/cancel_look.sql")).bind(list(&[job.0])?);
        Ok(if self.read(look).await?.is_empty() { RunNow::Gone } else { RunNow::Unchanged })
    }

    async fn redrive_step(
        &mut self,
        caller: &Caller,
        step: &RedriveStep,
        now: Timestamp,
    ) -> Result<Redriven, EngineError> {
        let (ids, until, next) = match &step.which {
            DeadJobs::Ids(jobs) => {
                let ids: Vec<i64> = jobs.iter().take(step.limit).map(|job| job.0).collect();
                let look = self.statement(caller, include_str!("sql/known_dead.sql")).bind(list(&ids)?);
                let found = self.read(look).await?;
                (found.iter().map(|row| column(row, "id")).collect::<Result<Vec<i64>, _>>()?, now, None)
            }
            which @ DeadJobs::OfQueue { until, .. } => {
                let until = until.unwrap_or(now);
                let (ids, next) = self.find_dead(caller, which, until, step.limit).await?;
                (ids, until, next)
            }
        };
        let readied = self.revive(caller, &ids, now).await?;
        Ok(Redriven { jobs: ids.into_iter().map(JobId).collect(), readied, until, next })
    }

    async fn find_dead(
        &mut self,
        caller: &Caller,
        which: &DeadJobs,
        until: Timestamp,
        limit: usize,
    ) -> Result<(Vec<i64>, Option<DeadPlace>), EngineError> {
        let DeadJobs::OfQueue { queue, filter: wanted, after, rows, .. } = which else {
            return Ok((Vec::new(), None));
        };
        let open = self.statement(caller, include_str!("sql/open_queue.sql")).bind(queue.0);
        if self.read(open).await?.is_empty() {
            return Err(EngineError::QueueClosed);
        }
        let look = self.statement(caller, include_str!("sql/find_dead.sql")).bind(queue.0);
        let look = filter(place(look, *after), wanted).bind(number(*rows)).bind(until.0).bind(number(limit));
        let found = self.read(look).await?;
        let first = found.first().ok_or_else(|| EngineError::Bug("a step without a row".to_owned()))?;
        let next = next_place(first)?;
        let ids = found.iter().filter_map(|row| column::<Option<i64>>(row, "id").transpose());
        Ok((ids.collect::<Result<_, _>>()?, next))
    }

    /// Makes dead jobs live again; those with ordering keys stand behind all that are there. Says in which queues one became
    /// ready.
    async fn revive(&mut self, caller: &Caller, jobs: &[i64], now: Timestamp) -> Result<Vec<QueueId>, EngineError> {
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        let count = number(jobs.len());
        let used = self.statement(caller, include_str!("sql/use_ids.sql")).bind(count);
        let used = self.change_returning(used).await?;
        let last: i64 = used.first().map_or(Err(EngineError::Bug("no ids".to_owned())), |row| column(row, "seq"))?;
        let places: Vec<(i64, i64)> = jobs.iter().copied().zip(last - count + 1..).collect();
        let copy = self.statement(caller, include_str!("sql/revive.sql")).bind(list(&places)?).bind(now.0);
        let copied = self.change_returning(copy).await?;
        let delete = self.statement(caller, include_str!("sql/remove_dead.sql")).bind(list(jobs)?);
        let removed = self.change(delete).await?;
        if copied.len() as u64 != removed {
            return Err(EngineError::Bug(format!("{} jobs live again and {removed} were dead", copied.len())));
        }
        let mut readied = BTreeSet::new();
        let mut keys: BTreeSet<FreedKey> = BTreeSet::new();
        for row in &copied {
            let queue = QueueId(narrow(row, "queue_id")?);
            match column::<Option<String>>(row, "ordering_key")? {
                Some(key) => keys.insert((queue, key)),
                None => readied.insert(queue),
            };
        }
        let keys: Vec<FreedKey> = keys.into_iter().collect();
        let free = self.free_keys(caller, keys).await?;
        readied.extend(self.advance(caller, &free, now).await?.into_iter().map(|(queue, _)| queue));
        Ok(readied.into_iter().collect())
    }

    /// Those keys of which no job is anything but blocked.
    async fn free_keys(&mut self, caller: &Caller, keys: Vec<FreedKey>) -> Result<Vec<FreedKey>, EngineError> {
        let names: Vec<(i32, &str)> = keys.iter().map(|(queue, key)| (queue.0, key.as_str())).collect();
        let look = self.statement(caller, include_str!("sql/heads.sql")).bind(list(&names)?);
        let held = self.read(look).await?;
        let held: BTreeSet<usize> = held.iter().map(|row| at(row, keys.len())).collect::<Result<_, _>>()?;
        Ok(keys.into_iter().enumerate().filter(|(n, _)| !held.contains(n)).map(|(_, key)| key).collect())
    }
}
