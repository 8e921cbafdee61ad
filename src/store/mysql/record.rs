//! Jobs as rows show them.

use sqlx::mysql::MySqlRow;

use super::value::{column, name, narrow};
use crate::{
    model::{Headers, JobId, JobState, Key, Priority, QueueId, QueueName, StreamId, Timestamp, TraceContext},
    store::{engine::JobRecord, error::EngineError},
};

/// The place of a priority in the ready table's order.
pub(super) fn tier(priority: Priority) -> u8 {
    9 - priority.level()
}

/// As the job's own table has it.
pub(super) fn priority(level: i64) -> Result<Priority, EngineError> {
    let level = i32::try_from(level).ok().and_then(Priority::new);
    level.ok_or_else(|| EngineError::Bug("a priority that is no level".into()))
}

pub(super) fn key(row: &MySqlRow, column_name: &str) -> Result<Option<Key>, EngineError> {
    name(row, column_name)?
        .map(|text| {
            Key::parse(column_name, &text).map_err(|_| EngineError::Bug(format!("column {column_name} is no key")))
        })
        .transpose()
}

/// As enqueued.
pub(super) fn headers(row: &MySqlRow) -> Result<Headers, EngineError> {
    let Some(json) = column::<Option<&str>>(row, "headers")? else { return Ok(Headers::new()) };
    serde_json::from_str(json).map_err(|_| EngineError::Bug("headers that are no JSON".into()))
}

/// The producer's trace context.
pub(super) fn trace(row: &MySqlRow) -> Result<Option<TraceContext>, EngineError> {
    let Some(traceparent) = column::<Option<String>>(row, "traceparent")? else { return Ok(None) };
    let tracestate = column::<Option<String>>(row, "tracestate")?.unwrap_or_default();
    Ok(Some(TraceContext { traceparent, tracestate }))
}

/// A job as operators see it.
pub(super) fn record(row: &MySqlRow) -> Result<JobRecord, EngineError> {
    let instant = |name: &str| column::<Option<i64>>(row, name).map(|instant| instant.map(Timestamp));
    Ok(JobRecord {
        job: JobId(column(row, "id")?),
        queue: QueueId(narrow(row, "queue_id")?),
        queue_name: name(row, "queue_name")?.as_deref().map(queue_name).transpose()?,
        state: state(column(row, "state")?)?,
        payload: column::<Option<Vec<u8>>>(row, "payload")?.map(Into::into),
        payload_bytes: narrow(row, "payload_bytes")?,
        content_type: column(row, "content_type")?,
        headers: headers(row)?,
        priority: priority(column(row, "priority")?)?,
        attempt: narrow(row, "attempt")?,
        max_attempts: narrow(row, "max_attempts")?,
        lease_number: column(row, "lease_number")?,
        enqueued_at: Timestamp(column(row, "enqueued_at")?),
        available_at: Timestamp(column(row, "available_at")?),
        ready_at: instant("ready_at")?,
        lease_until: instant("lease_until")?,
        lease_stream: column::<Option<i64>>(row, "lease_stream")?.map(StreamId::from_bits),
        cancel_requested: column::<i64>(row, "cancel_requested")? != 0,
        ordering_key: key(row, "ordering_key")?,
        idempotency_key: key(row, "idempotency_key")?,
        last_error: column(row, "last_error")?,
        dead_at: instant("dead_at")?,
        expires_at: instant("expires_at")?,
        acked_at: instant("acked_at")?,
        trace: trace(row)?,
        caller: column(row, "caller")?,
    })
}

/// A queue's name.
pub(super) fn queue_name(name: &str) -> Result<QueueName, EngineError> {
    QueueName::parse("name", name).map_err(|_| EngineError::Bug("a queue with another kind of name".into()))
}

/// A state by its code.
pub(super) fn state(code: i64) -> Result<JobState, EngineError> {
    match code {
        1 => Ok(JobState::Ready),
        2 => Ok(JobState::Scheduled),
        3 => Ok(JobState::Blocked),
        4 => Ok(JobState::Leased),
        5 => Ok(JobState::Dead),
        6 => Ok(JobState::Acked),
        _ => Err(EngineError::Bug(format!("state {code}"))),
    }
}
