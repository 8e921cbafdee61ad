//! Storing jobs.

use async_trait::async_trait;

use super::{
    session::{Args, PgSession},
    value::{Moment, get, one_each},
};
use crate::{
    model::{Caller, Headers, JobId, Key, Start, Timestamp, TraceContext, time::micros},
    store::{
        engine::{EnqueuedRow, Enqueueing, JobRow, LockWait},
        error::EngineError,
    },
};

const ENQUEUE: &str = include_str!("sql/enqueue.sql");
const ENQUEUE_KEYED: &str = include_str!("sql/enqueue_keyed.sql");

#[async_trait]
impl Enqueueing for PgSession {
    async fn enqueue(
        &mut self,
        caller: &Caller,
        jobs: &[JobRow],
        wait: LockWait,
    ) -> Result<Vec<EnqueuedRow>, EngineError> {
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        // Without keys there is nothing to wait for, and one insert does it.
        let keyed = jobs.iter().any(|row| row.job.idempotency_key.is_some() || row.job.ordering_key.is_some());
        if keyed {
            let rows = self
                .rows(
                    caller,
                    ENQUEUE_KEYED,
                    with_jobs(Args::new(), jobs)?
                        .with(wait == LockWait::Short)
                        .with(queues(jobs))
                        .with(caller.as_str()),
                )
                .await?;
            let [row] = &rows[..] else { return Err(EngineError::QueueClosed) };
            let duplicates: Vec<bool> = get(row, "enqueue_keyed", "duplicates")?;
            stored(row, "enqueue_keyed", &one_each(duplicates, jobs.len(), "enqueue_keyed", "duplicates")?)
        } else {
            let row = self.row(caller, ENQUEUE, arguments(jobs)?.with(queues(jobs)).with(caller.as_str())).await?;
            if get::<Option<Vec<i64>>>(&row, "enqueue", "ids")?.is_none() {
                return Err(EngineError::QueueClosed);
            }
            stored(&row, "enqueue", &vec![false; jobs.len()])
        }
    }
}

/// Each queue once.
fn queues(jobs: &[JobRow]) -> Vec<i32> {
    let mut queues = column(jobs, |row| row.queue.0);
    queues.sort_unstable();
    queues.dedup();
    queues
}

/// Jobs as a statement answered with them, in the columns of this act's.
pub(super) fn stored(
    row: &sqlx::postgres::PgRow,
    act: &str,
    duplicates: &[bool],
) -> Result<Vec<EnqueuedRow>, EngineError> {
    let asked = duplicates.len();
    let ids: Vec<i64> = one_each(get(row, act, "ids")?, asked, act, "ids")?;
    let ready_ats: Vec<Option<Moment>> = one_each(get(row, act, "ready_ats")?, asked, act, "ready_ats")?;
    let stored_at: Timestamp = get::<Moment>(row, act, "stored_at")?.0;
    let rows = ids.into_iter().zip(ready_ats).zip(duplicates);
    Ok(rows
        .map(|((id, ready_at), &duplicate)| EnqueuedRow {
            job: JobId(id),
            duplicate,
            ready_in: ready_at.map(|ready_at| ready_at.0.since(stored_at)),
        })
        .collect())
}

fn column<'a, T>(jobs: &'a [JobRow], of: impl Fn(&'a JobRow) -> T) -> Vec<T> {
    jobs.iter().map(of).collect()
}

fn arguments(jobs: &[JobRow]) -> Result<Args, EngineError> {
    Ok(common(Args::new(), jobs)?.with(column(jobs, traceparent)).with(column(jobs, tracestate)))
}

/// The fourteen columns of jobs that may have keys.
pub(super) fn with_jobs(arguments: Args, jobs: &[JobRow]) -> Result<Args, EngineError> {
    let contents = column(jobs, |row| row.job.idempotency_key.is_some().then(|| row.job.content_hash()));
    Ok(common(arguments, jobs)?
        .with(column(jobs, |row| row.job.ordering_key.as_ref().map(Key::as_str)))
        .with(column(jobs, |row| row.job.idempotency_key.as_ref().map(Key::as_str)))
        .with(contents.iter().map(|content| content.as_ref().map(<[u8; 32]>::as_slice)).collect::<Vec<_>>())
        .with(column(jobs, |row| row.job.idempotency_key.is_some().then(|| micros(row.idempotency_retention))))
        .with(column(jobs, traceparent))
        .with(column(jobs, tracestate)))
}

/// The ten columns of jobs that are kept with a reservation.
pub(super) fn with_later_jobs(arguments: Args, jobs: &[JobRow]) -> Result<Args, EngineError> {
    Ok(contents(arguments, jobs)?
        .with(column(jobs, |row| i32::from(row.max_attempts)))
        .with(column(jobs, |row| row.job.ordering_key.as_ref().map(Key::as_str)))
        .with(column(jobs, traceparent))
        .with(column(jobs, tracestate)))
}

/// What all of them begin with.
fn contents(arguments: Args, jobs: &[JobRow]) -> Result<Args, EngineError> {
    let headers = jobs.iter().map(|row| headers_text(&row.job.headers)).collect::<Result<Vec<_>, _>>()?;
    Ok(arguments
        .with(column(jobs, |row| row.queue.0))
        .with(column(jobs, |row| &row.job.payload[..]))
        .with(column(jobs, |row| row.job.content_type.as_str()))
        .with(headers)
        .with(column(jobs, |row| i16::from(row.job.priority.level())))
        .with(column(jobs, |row| match row.job.start {
            Start::After(delay) => Some(micros(delay)),
            Start::Now | Start::At(_) => None,
        })))
}

/// What both statements of Enqueue begin with.
fn common(arguments: Args, jobs: &[JobRow]) -> Result<Args, EngineError> {
    Ok(contents(arguments, jobs)?
        .with(column(jobs, |row| match row.job.start {
            Start::At(instant) => Some(Moment(instant)),
            Start::Now | Start::After(_) => None,
        }))
        .with(column(jobs, |row| i32::from(row.max_attempts))))
}

/// A JSON object; nothing where there are none, which most jobs have.
fn headers_text(headers: &Headers) -> Result<Option<String>, EngineError> {
    if headers.is_empty() {
        return Ok(None);
    }
    serde_json::to_string(headers).map(Some).map_err(|_| EngineError::Bug("headers cannot be written as JSON".into()))
}

fn traceparent(row: &JobRow) -> Option<&str> {
    row.job.trace.as_ref().map(|trace: &TraceContext| trace.traceparent.as_str())
}

fn tracestate(row: &JobRow) -> Option<&str> {
    let state = row.job.trace.as_ref().map(|trace: &TraceContext| trace.tracestate.as_str());
    state.filter(|state| !state.is_empty())
}
