//! Looking at jobs and at who works on them.

use std::time::Duration;

use async_trait::async_trait;
use sqlx::postgres::PgRow;

use super::{
    record::{moment, queue_name, record, state_code},
    session::{Args, PgSession},
    value::{Moment, get, narrow},
};
use crate::{
    model::{Caller, JobId, JobState, Key, QueueName, StreamId, time::micros},
    store::{
        engine::{
            Attendance, Bounds, Circumstances, CountWalk, CountedDead, DeadFilter, DeadPlace, DeadWalk, Inspecting,
            JobRecord, JobsWalk, Page, Rates, StreamRecord, StreamsWalk,
        },
        error::EngineError,
    },
};

const FIND_JOBS: &str = include_str!("sql/find_jobs.sql");
const LIST_JOBS: &str = include_str!("sql/list_jobs.sql");
const LIST_DEAD_BY_ID: &str = include_str!("sql/list_dead_by_id.sql");
const LIST_ACKED: &str = include_str!("sql/list_acked.sql");
const LIST_DEAD: &str = include_str!("sql/list_dead.sql");
const COUNT_DEAD: &str = include_str!("sql/count_dead.sql");
const EXPLAIN_JOB: &str = include_str!("sql/explain_job.sql");
const LIST_STREAMS: &str = include_str!("sql/list_streams.sql");
const ATTENDANCE: &str = include_str!("sql/attendance.sql");

#[async_trait]
impl Inspecting for PgSession {
    async fn find_jobs(
        &mut self,
        caller: &Caller,
        jobs: &[JobId],
        payloads: bool,
    ) -> Result<Vec<JobRecord>, EngineError> {
        let arguments = Args::new().with(jobs.iter().map(|job| job.0).collect::<Vec<_>>()).with(payloads);
        self.rows(caller, FIND_JOBS, arguments).await?.iter().map(record).collect()
    }

    async fn list_jobs(&mut self, caller: &Caller, walk: &JobsWalk) -> Result<Page<JobRecord, JobId>, EngineError> {
        let begin = Args::new().with(walk.queue.0).with(walk.after.0);
        let rows = match walk.states.as_slice() {
            [state @ (JobState::Dead | JobState::Acked)] => {
                let statement = if *state == JobState::Dead { LIST_DEAD_BY_ID } else { LIST_ACKED };
                let arguments = begin.with(text(walk.ordering_key.as_ref())).with(walk.caller.as_deref());
                self.rows(caller, statement, bounded(arguments, &walk.bounds)?).await?
            }
            states => {
                let states: Vec<i32> = states.iter().copied().map(state_code).collect();
                let arguments = begin.with(states).with(text(walk.ordering_key.as_ref())).with(walk.caller.as_deref());
                self.rows(caller, LIST_JOBS, bounded(arguments, &walk.bounds)?).await?
            }
        };
        page(&rows, "id", record, |row| Ok(get::<Option<i64>>(row, "list_jobs", "next_id")?.map(JobId)))
    }

    async fn list_dead(&mut self, caller: &Caller, walk: &DeadWalk) -> Result<Page<JobRecord, DeadPlace>, EngineError> {
        let arguments = place(Args::new().with(walk.queue.0), walk.before);
        let arguments = bounded(filter(arguments, &walk.filter), &walk.bounds)?;
        let rows = self.rows(caller, LIST_DEAD, arguments).await?;
        page(&rows, "id", record, next_place)
    }

    async fn count_dead(&mut self, caller: &Caller, walk: &CountWalk) -> Result<CountedDead, EngineError> {
        let arguments = filter(place(Args::new().with(walk.queue.0), walk.after), &walk.filter);
        let row =
            self.row(caller, COUNT_DEAD, arguments.with(narrow::<i64, _>(walk.rows, "count_dead", "rows")?)).await?;
        let jobs = narrow(get::<i64>(&row, "count_dead", "jobs")?, "count_dead", "jobs")?;
        Ok(CountedDead { jobs, next: next_place(&row)? })
    }

    async fn explain_job(
        &mut self,
        caller: &Caller,
        job: JobId,
        absent: Duration,
    ) -> Result<Option<Circumstances>, EngineError> {
        let arguments = Args::new().with(job.0).with(micros(absent));
        self.rows(caller, EXPLAIN_JOB, arguments).await?.first().map(circumstances).transpose()
    }

    async fn list_streams(
        &mut self,
        caller: &Caller,
        walk: &StreamsWalk,
    ) -> Result<Page<StreamRecord, StreamId>, EngineError> {
        let arguments = Args::new()
            .with(walk.after.map_or(i64::MIN, StreamId::to_bits))
            .with(micros(walk.absent))
            .with(walk.queue.as_ref().map(QueueName::as_str))
            .with(narrow::<i64, _>(walk.rows, "list_streams", "rows")?)
            .with(narrow::<i64, _>(walk.found, "list_streams", "found")?);
        let rows = self.rows(caller, LIST_STREAMS, arguments).await?;
        page(&rows, "stream", stream, |row| {
            Ok(get::<Option<i64>>(row, "list_streams", "next_id")?.map(StreamId::from_bits))
        })
    }

    async fn attendance(
        &mut self,
        caller: &Caller,
        queues: &[QueueName],
        absent: Duration,
    ) -> Result<Vec<Attendance>, EngineError> {
        let names: Vec<&str> = queues.iter().map(QueueName::as_str).collect();
        let rows = self.rows(caller, ATTENDANCE, Args::new().with(names).with(micros(absent))).await?;
        if rows.len() != queues.len() {
            return Err(EngineError::Bug(format!("attendance: {} of {} queues", rows.len(), queues.len())));
        }
        rows.iter().map(attendance).collect()
    }
}

pub(super) fn text(key: Option<&Key>) -> Option<&str> {
    key.map(Key::as_str)
}

/// A place among dead jobs.
pub(super) fn place(arguments: Args, place: Option<DeadPlace>) -> Args {
    arguments.with(place.map(|place| Moment(place.dead_at))).with(place.map(|place| place.job.0))
}

pub(super) fn filter(arguments: Args, filter: &DeadFilter) -> Args {
    arguments
        .with(filter.died_after.map(Moment))
        .with(filter.died_before.map(Moment))
        .with(filter.error_contains.as_deref())
        .with(text(filter.ordering_key.as_ref()))
        .with(filter.caller.as_deref())
}

pub(super) fn next_place(row: &PgRow) -> Result<Option<DeadPlace>, EngineError> {
    let id: Option<i64> = get(row, "dead", "next_id")?;
    Ok(moment(row, "next_at")?.zip(id).map(|(dead_at, id)| DeadPlace { dead_at, job: JobId(id) }))
}

fn bounded(arguments: Args, bounds: &Bounds) -> Result<Args, EngineError> {
    Ok(arguments
        .with(narrow::<i64, _>(bounds.rows, "walk", "rows")?)
        .with(narrow::<i64, _>(bounds.found, "walk", "found")?)
        .with(narrow::<i64, _>(bounds.bytes, "walk", "bytes")?)
        .with(bounds.payloads))
}

/// Rows of which each says where the next walk begins, and of which one alone may hold nothing else, in column `id`.
fn page<T, P>(
    rows: &[PgRow],
    id: &str,
    read: impl Fn(&PgRow) -> Result<T, EngineError>,
    next: impl Fn(&PgRow) -> Result<Option<P>, EngineError>,
) -> Result<Page<T, P>, EngineError> {
    let first = rows.first().ok_or_else(|| EngineError::Bug("a page without a row".into()))?;
    let mut found = Vec::with_capacity(rows.len());
    for row in rows {
        if get::<Option<i64>>(row, "page", id)?.is_some() {
            found.push(read(row)?);
        }
    }
    Ok(Page { rows: found, next: next(first)? })
}

fn circumstances(row: &PgRow) -> Result<Circumstances, EngineError> {
    let count = |column| narrow(get::<i64>(row, "explain_job", column)?, "explain_job", column);
    let holder = get::<Option<i64>>(row, "explain_job", "stream")?.map(|_| stream(row)).transpose()?;
    Ok(Circumstances {
        job: record(row)?,
        now: get::<Moment>(row, "explain_job", "looked_at")?.0,
        held: get(row, "explain_job", "held")?,
        head: get::<Option<i64>>(row, "explain_job", "head")?.map(JobId),
        ahead_in_key: count("ahead_in_key")?,
        ahead: count("ahead")?,
        paused: get(row, "explain_job", "paused")?,
        streams: count("streams")?,
        free_credit: count("free_credit")?,
        holder,
    })
}

fn attendance(row: &PgRow) -> Result<Attendance, EngineError> {
    let count = |column| narrow(get::<i64>(row, "attendance", column)?, "attendance", column);
    let rate = |column| get::<f64>(row, "attendance", column);
    Ok(Attendance {
        streams: count("streams")?,
        free_credit: count("free_credit")?,
        rates: Rates {
            enqueued: rate("enqueued")?,
            leased: rate("leased")?,
            acked: rate("acked")?,
            retried: rate("retried")?,
            expired: rate("expired")?,
            dead: rate("dead")?,
        },
    })
}

fn stream(row: &PgRow) -> Result<StreamRecord, EngineError> {
    let number = |column| narrow(get::<i32>(row, "stream", column)?, "stream", column);
    let queues: &str = get(row, "stream", "queues")?;
    let oldest: Option<i64> = get(row, "stream", "oldest_age")?;
    Ok(StreamRecord {
        stream: StreamId::from_bits(get(row, "stream", "stream")?),
        replica: get(row, "stream", "replica")?,
        consumer: get(row, "stream", "consumer")?,
        peer: get(row, "stream", "peer")?,
        caller: get(row, "stream", "stream_caller")?,
        queues: queues.split_whitespace().map(queue_name).collect::<Result<_, _>>()?,
        max_in_flight: number("max_in_flight")?,
        in_flight: number("in_flight")?,
        oldest_lease: oldest.map(|age| Duration::from_micros(u64::try_from(age).unwrap_or_default())),
        opened_at: get::<Moment>(row, "stream", "opened_at")?.0,
        seen_at: get::<Moment>(row, "stream", "seen_at")?.0,
    })
}
