//! Jobs as rows show them.

use bytes::Bytes;
use sqlx::postgres::PgRow;

use super::value::{Moment, get, narrow};
use crate::{
    model::{Headers, JobId, JobState, Key, Priority, QueueId, QueueName, StreamId, Timestamp, TraceContext},
    store::{engine::JobRecord, error::EngineError},
};

pub(super) fn priority(row: &PgRow, act: &str) -> Result<Priority, EngineError> {
    level(get(row, act, "priority")?, act)
}

/// A priority as it is stored.
pub(super) fn level(level: i16, act: &str) -> Result<Priority, EngineError> {
    Priority::new(level.into()).ok_or_else(|| EngineError::Bug(format!("{act}: column priority is out of range")))
}

/// A key, where the job has one.
pub(super) fn key(row: &PgRow, column: &str) -> Result<Option<Key>, EngineError> {
    key_of(get(row, "job", column)?, column)
}

/// A key as it is stored in `column`.
pub(super) fn key_of(text: Option<&str>, column: &str) -> Result<Option<Key>, EngineError> {
    let Some(text) = text else { return Ok(None) };
    let key = Key::parse(column, text);
    key.map(Some).map_err(|_| EngineError::Bug(format!("job: column {column} is no key")))
}

/// The producer's trace context.
pub(super) fn trace(row: &PgRow) -> Result<Option<TraceContext>, EngineError> {
    Ok(trace_of(get(row, "job", "traceparent")?, get(row, "job", "tracestate")?))
}

/// A trace context as it is stored.
pub(super) fn trace_of(traceparent: Option<String>, tracestate: Option<String>) -> Option<TraceContext> {
    Some(TraceContext { traceparent: traceparent?, tracestate: tracestate.unwrap_or_default() })
}

/// As enqueued.
pub(super) fn headers(row: &PgRow) -> Result<Headers, EngineError> {
    headers_of(get(row, "job", "headers")?)
}

/// Headers as they are stored.
pub(super) fn headers_of(text: Option<&str>) -> Result<Headers, EngineError> {
    let Some(text) = text else { return Ok(Headers::new()) };
    serde_json::from_str(text).map_err(|_| EngineError::Bug("job: column headers is no JSON object of texts".into()))
}

/// An instant, where there is one.
pub(super) fn moment(row: &PgRow, column: &str) -> Result<Option<Timestamp>, EngineError> {
    Ok(get::<Option<Moment>>(row, "job", column)?.map(|moment| moment.0))
}

/// A job as operators see it.
pub(super) fn record(row: &PgRow) -> Result<JobRecord, EngineError> {
    let instant = |column: &str| get::<Moment>(row, "job", column).map(|moment| moment.0);
    let queue_name = get::<Option<&str>>(row, "job", "queue_name")?.map(queue_name).transpose()?;
    Ok(JobRecord {
        job: JobId(get(row, "job", "id")?),
        queue: QueueId(get(row, "job", "queue_id")?),
        queue_name,
        state: state(get(row, "job", "state")?)?,
        payload: get::<Option<&[u8]>>(row, "job", "payload")?.map(Bytes::copy_from_slice),
        payload_bytes: narrow(get::<i64>(row, "job", "payload_bytes")?, "job", "payload_bytes")?,
        content_type: get(row, "job", "content_type")?,
        headers: headers(row)?,
        priority: priority(row, "job")?,
        attempt: narrow(get::<i32>(row, "job", "attempt")?, "job", "attempt")?,
        max_attempts: narrow(get::<i32>(row, "job", "max_attempts")?, "job", "max_attempts")?,
        lease_number: get(row, "job", "lease_number")?,
        enqueued_at: instant("enqueued_at")?,
        available_at: instant("available_at")?,
        ready_at: moment(row, "ready_at")?,
        lease_until: moment(row, "lease_until")?,
        lease_stream: get::<Option<i64>>(row, "job", "lease_stream")?.map(StreamId::from_bits),
        cancel_requested: get(row, "job", "cancel_requested")?,
        ordering_key: key(row, "ordering_key")?,
        idempotency_key: key(row, "idempotency_key")?,
        last_error: get(row, "job", "last_error")?,
        dead_at: moment(row, "dead_at")?,
        expires_at: moment(row, "expires_at")?,
        acked_at: moment(row, "acked_at")?,
        trace: trace(row)?,
        caller: get(row, "job", "caller")?,
    })
}

/// A queue's name.
pub(super) fn queue_name(name: &str) -> Result<QueueName, EngineError> {
    QueueName::parse("name", name).map_err(|_| EngineError::Bug("queue: column name is no queue name".into()))
}

fn state(code: i16) -> Result<JobState, EngineError> {
    match code {
        1 => Ok(JobState::Ready),
        2 => Ok(JobState::Scheduled),
        3 => Ok(JobState::Blocked),
        4 => Ok(JobState::Leased),
        5 => Ok(JobState::Dead),
        6 => Ok(JobState::Acked),
        _ => Err(EngineError::Bug(format!("job: state {code}"))),
    }
}

/// A state as statements have it.
pub(super) fn state_code(state: JobState) -> i32 {
    match state {
        JobState::Ready => 1,
        JobState::Scheduled => 2,
        JobState::Blocked => 3,
        JobState::Leased => 4,
        JobState::Dead => 5,
        JobState::Acked => 6,
    }
}
