//! Looking at jobs and at who works on them.

use std::time::Duration;

use async_trait::async_trait;
use sqlx::sqlite::SqliteRow;

use super::{
    record::{queue_name, record, state_code},
    session::{SqliteSession, Statement, column, list, narrow},
};
use crate::{
    model::{Caller, JobId, JobState, Key, QueueName, StreamId, Timestamp},
    store::{
        engine::{
            Attendance, Bounds, Circumstances, CountWalk, CountedDead, DeadFilter, DeadPlace, DeadWalk, Inspecting,
            JobRecord, JobsWalk, Page, Rates, StreamRecord, StreamsWalk,
        },
        error::EngineError,
    },
};

#[async_trait]
impl Inspecting for SqliteSession {
    async fn find_jobs(
        &mut self,
        caller: &Caller,
        jobs: &[JobId],
        payloads: bool,
    ) -> Result<Vec<JobRecord>, EngineError> {
        let now = self.shared.clock.now();
        let ids: Vec<i64> = jobs.iter().map(|job| job.0).collect();
        let find = self.statement(caller, include_str!("sql/find_jobs.sql"));
        self.read(find.bind(list(&ids)?).bind(payloads).bind(now.0)).await?.iter().map(record).collect()
    }

    async fn list_jobs(&mut self, caller: &Caller, walk: &JobsWalk) -> Result<Page<JobRecord, JobId>, EngineError> {
        let now = self.shared.clock.now();
        let rows = match walk.states.as_slice() {
            [state @ (JobState::Dead | JobState::Acked)] => {
                let look = match state {
                    JobState::Dead => self.statement(caller, include_str!("sql/list_dead_by_id.sql")),
                    _ => self.statement(caller, include_str!("sql/list_acked.sql")),
                };
                let look = look.bind(walk.queue.0).bind(walk.after.0).bind(text(walk.ordering_key.as_ref()));
                self.read(bounded(look.bind(walk.caller.clone()), &walk.bounds)).await?
            }
            states => {
                let states: Vec<i32> = states.iter().copied().map(state_code).collect();
                let look = self.statement(caller, include_str!("sql/list_jobs.sql"));
                let look = look.bind(walk.queue.0).bind(walk.after.0).bind(list(&states)?);
                let look = look.bind(text(walk.ordering_key.as_ref())).bind(walk.caller.clone());
                self.read(bounded(look, &walk.bounds).bind(now.0)).await?
            }
        };
        page(&rows, "id", record, |row| Ok(column::<Option<i64>>(row, "next_id")?.map(JobId)))
    }

    async fn list_dead(&mut self, caller: &Caller, walk: &DeadWalk) -> Result<Page<JobRecord, DeadPlace>, EngineError> {
        let look = self.statement(caller, include_str!("sql/list_dead.sql")).bind(walk.queue.0);
        let look = bounded(filter(place(look, walk.before), &walk.filter), &walk.bounds);
        page(&self.read(look).await?, "id", record, next_place)
    }

    async fn count_dead(&mut self, caller: &Caller, walk: &CountWalk) -> Result<CountedDead, EngineError> {
        let look = self.statement(caller, include_str!("sql/count_dead.sql")).bind(walk.queue.0);
        let look = filter(place(look, walk.after), &walk.filter).bind(number(walk.rows));
        let rows = self.read(look).await?;
        let row = rows.first().ok_or_else(|| EngineError::Bug("a count without a row".to_owned()))?;
        Ok(CountedDead { jobs: narrow(row, "jobs")?, next: next_place(row)? })
    }

    async fn explain_job(
        &mut self,
        caller: &Caller,
        job: JobId,
        absent: Duration,
    ) -> Result<Option<Circumstances>, EngineError> {
        let now = self.shared.clock.now();
        let look = self.statement(caller, include_str!("sql/explain_job.sql"));
        let rows = self.read(look.bind(job.0).bind(now.0).bind(now.minus(absent).0)).await?;
        rows.first().map(|row| circumstances(row, now)).transpose()
    }

    async fn list_streams(
        &mut self,
        caller: &Caller,
        walk: &StreamsWalk,
    ) -> Result<Page<StreamRecord, StreamId>, EngineError> {
        let now = self.shared.clock.now();
        let look = self
            .statement(caller, include_str!("sql/list_streams.sql"))
            .bind(walk.after.map_or(i64::MIN, StreamId::to_bits))
            .bind(now.0)
            .bind(now.minus(walk.absent).0)
            .bind(walk.queue.as_ref().map(|queue| queue.as_str().to_owned()))
            .bind(number(walk.rows))
            .bind(number(walk.found));
        page(&self.read(look).await?, "stream", stream, |row| {
            Ok(column::<Option<i64>>(row, "next_id")?.map(StreamId::from_bits))
        })
    }

    async fn attendance(
        &mut self,
        caller: &Caller,
        queues: &[QueueName],
        absent: Duration,
    ) -> Result<Vec<Attendance>, EngineError> {
        let now = self.shared.clock.now();
        let names: Vec<&str> = queues.iter().map(QueueName::as_str).collect();
        let look = self.statement(caller, include_str!("sql/attendance.sql"));
        let rows = self.read(look.bind(list(&names)?).bind(now.minus(absent).0)).await?;
        rows.iter().map(attendance).collect()
    }
}

/// A number that a bound keeps small.
pub(super) fn number(small: usize) -> i64 {
    i64::try_from(small).unwrap_or(i64::MAX)
}

fn text(key: Option<&Key>) -> Option<String> {
    key.map(|key| key.as_str().to_owned())
}

/// A place among dead jobs.
pub(super) fn place(statement: Statement, place: Option<DeadPlace>) -> Statement {
    statement.bind(place.map(|place| place.dead_at.0)).bind(place.map(|place| place.job.0))
}

pub(super) fn filter(statement: Statement, filter: &DeadFilter) -> Statement {
    statement
        .bind(filter.died_after.map(|at| at.0))
        .bind(filter.died_before.map(|at| at.0))
        .bind(filter.error_contains.clone())
        .bind(text(filter.ordering_key.as_ref()))
        .bind(filter.caller.clone())
}

pub(super) fn next_place(row: &SqliteRow) -> Result<Option<DeadPlace>, EngineError> {
    let (at, id): (Option<i64>, Option<i64>) = (column(row, "next_at")?, column(row, "next_id")?);
    Ok(at.zip(id).map(|(at, id)| DeadPlace { dead_at: Timestamp(at), job: JobId(id) }))
}

fn bounded(statement: Statement, bounds: &Bounds) -> Statement {
    statement
        .bind(number(bounds.rows))
        .bind(number(bounds.found))
        .bind(i64::try_from(bounds.bytes).unwrap_or(i64::MAX))
        .bind(bounds.payloads)
}

/// Rows of which each says where the next walk begins, and of which one alone may hold nothing else, in column `id`.
fn page<T, P>(
    rows: &[SqliteRow],
    id: &str,
    read: impl Fn(&SqliteRow) -> Result<T, EngineError>,
    next: impl Fn(&SqliteRow) -> Result<Option<P>, EngineError>,
) -> Result<Page<T, P>, EngineError> {
    let first = rows.first().ok_or_else(|| EngineError::Bug("a page without a row".to_owned()))?;
    let mut found = Vec::with_capacity(rows.len());
    for row in rows {
        if column::<Option<i64>>(row, id)?.is_some() {
            found.push(read(row)?);
        }
    }
    Ok(Page { rows: found, next: next(first)? })
}

fn circumstances(row: &SqliteRow, now: Timestamp) -> Result<Circumstances, EngineError> {
    let holder = column::<Option<i64>>(row, "stream")?.map(|_| stream(row)).transpose()?;
    Ok(Circumstances {
        job: record(row)?,
        now,
        held: false, // with one writer nobody ever is in the way
        head: column::<Option<i64>>(row, "head")?.map(JobId),
        ahead_in_key: narrow(row, "ahead_in_key")?,
        ahead: narrow(row, "ahead")?,
        paused: column::<i64>(row, "paused")? != 0,
        streams: narrow(row, "streams")?,
        free_credit: narrow(row, "free_credit")?,
        holder,
    })
}

fn attendance(row: &SqliteRow) -> Result<Attendance, EngineError> {
    Ok(Attendance {
        streams: narrow(row, "streams")?,
        free_credit: narrow(row, "free_credit")?,
        rates: Rates {
            enqueued: column(row, "enqueued")?,
            leased: column(row, "leased")?,
            acked: column(row, "acked")?,
            retried: column(row, "retried")?,
            expired: column(row, "expired")?,
            dead: column(row, "dead")?,
        },
    })
}

fn stream(row: &SqliteRow) -> Result<StreamRecord, EngineError> {
    let queues: &str = column(row, "queues")?;
    let oldest: Option<i64> = column(row, "oldest_age")?;
    Ok(StreamRecord {
        stream: StreamId::from_bits(column(row, "stream")?),
        replica: column(row, "replica")?,
        consumer: column(row, "consumer")?,
        peer: column(row, "peer")?,
        caller: column(row, "stream_caller")?,
        queues: queues.split_whitespace().map(queue_name).collect::<Result<_, _>>()?,
        max_in_flight: narrow(row, "max_in_flight")?,
        in_flight: narrow(row, "in_flight")?,
        oldest_lease: oldest.map(|age| Duration::from_micros(u64::try_from(age).unwrap_or_default())),
        opened_at: Timestamp(column(row, "opened_at")?),
        seen_at: Timestamp(column(row, "seen_at")?),
    })
}
