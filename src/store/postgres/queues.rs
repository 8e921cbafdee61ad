//! Queues as such.

use std::time::Duration;

use async_trait::async_trait;
use sqlx::postgres::PgRow;

use super::{
    session::{Args, PgSession},
    value::{Moment, get, narrow},
};
use crate::{
    model::{Backoff, Caller, Count, QueueId, QueueName, QueueSettings, Timestamp, time::micros},
    store::{
        engine::{Backlog, CountSpot, Governing, NewQueues, QueueCounts, QueueRow},
        error::EngineError,
    },
};

const FIND_QUEUES: &str = include_str!("sql/find_queues.sql");
const LIST_QUEUES: &str = include_str!("sql/list_queues.sql");
const CHANGE_QUEUE: &str = include_str!("sql/change_queue.sql");
const COUNT_JOBS: &str = include_str!("sql/count_jobs.sql");
const CREATE_QUEUES: &str = include_str!("sql/create_queues.sql");
const MEASURE_BACKLOG: &str = include_str!("sql/measure_backlog.sql");

#[async_trait]
impl Governing for PgSession {
    async fn find_queues(
        &mut self,
        caller: &Caller,
        names: &[QueueName],
        create: Option<&NewQueues>,
    ) -> Result<Vec<QueueRow>, EngineError> {
        let found = self.existing(caller, names).await?;
        let missing: Vec<&str> =
            names.iter().filter(|name| found.iter().all(|row| row.name != **name)).map(QueueName::as_str).collect();
        let Some(new) = create.filter(|_| !missing.is_empty()) else { return Ok(found) };
        self.rows(caller, CREATE_QUEUES, creation_arguments(missing, new)?).await?;
        self.existing(caller, names).await
    }

    async fn list_queues(
        &mut self,
        caller: &Caller,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<QueueRow>, EngineError> {
        let limit: i64 = narrow(limit, "list_queues", "limit")?;
        let rows = self.rows(caller, LIST_QUEUES, Args::new().with(prefix).with(after).with(limit)).await?;
        rows.iter().map(queue).collect()
    }

    async fn change_queue(
        &mut self,
        caller: &Caller,
        id: QueueId,
        version: i64,
        settings: &QueueSettings,
    ) -> Result<Option<QueueRow>, EngineError> {
        let arguments = with_settings(Args::new().with(id.0).with(version), settings)?;
        let rows = self.rows(caller, CHANGE_QUEUE, arguments).await?;
        rows.first().map(queue).transpose()
    }

    async fn count_jobs(&mut self, caller: &Caller, spots: &[CountSpot]) -> Result<Vec<QueueCounts>, EngineError> {
        let queues: Vec<i32> = spots.iter().map(|spot| spot.queue.0).collect();
        let floors: Vec<Moment> = spots.iter().flat_map(|spot| spot.floors.map(Moment)).collect();
        let at_most: i64 = narrow(Count::BOUND + 1, "count_jobs", "bound")?;
        // One for all: a job in front of a later floor of another queue is only walked in vain.
        let lease_floor = spots.iter().map(|spot| spot.lease_floor).min().unwrap_or(Timestamp::BEGINNING);
        let arguments = Args::new().with(queues).with(floors).with(at_most).with(Moment(lease_floor));
        let rows = self.rows(caller, COUNT_JOBS, arguments).await?;
        if rows.len() != spots.len() {
            return Err(EngineError::Bug(format!("count_jobs: {} answers to {} questions", rows.len(), spots.len())));
        }
        rows.iter().map(counts).collect()
    }

    async fn measure_backlog(
        &mut self,
        caller: &Caller,
        queue: QueueId,
        jobs_at_most: u64,
    ) -> Result<Backlog, EngineError> {
        let at_most = i64::try_from(jobs_at_most).unwrap_or(i64::MAX);
        let row = self.row(caller, MEASURE_BACKLOG, Args::new().with(queue.0).with(at_most)).await?;
        let number = |column| narrow(get::<i64>(&row, "measure_backlog", column)?, "measure_backlog", column);
        Ok(Backlog { jobs: number("jobs")?, bytes: number("bytes")? })
    }
}

impl PgSession {
    async fn existing(&mut self, caller: &Caller, names: &[QueueName]) -> Result<Vec<QueueRow>, EngineError> {
        let names: Vec<&str> = names.iter().map(QueueName::as_str).collect();
        let rows = self.rows(caller, FIND_QUEUES, Args::new().with(names)).await?;
        rows.iter().map(queue).collect()
    }
}

fn creation_arguments(names: Vec<&str>, new: &NewQueues) -> Result<Args, EngineError> {
    let at_most: i64 = narrow(new.at_most, "queue", "at_most")?;
    Ok(with_settings(Args::new().with(names), &new.settings)?.with(at_most))
}

/// All settings, in the order of both statements that write them.
fn with_settings(arguments: Args, settings: &QueueSettings) -> Result<Args, EngineError> {
    let bound = |bound: Option<u64>| bound.map(|bound| narrow::<i64, _>(bound, "queue", "max_backlog")).transpose();
    Ok(arguments
        .with(settings.paused)
        .with(settings.disabled_reason.as_deref())
        .with(micros(settings.lease_duration))
        .with(i32::from(settings.max_attempts))
        .with(micros(settings.backoff.base))
        .with(micros(settings.backoff.cap))
        .with(micros(settings.idempotency_retention))
        .with(micros(settings.dead_retention))
        .with(bound(settings.max_backlog_jobs)?)
        .with(bound(settings.max_backlog_bytes)?)
        .with(settings.time_to_live.map(micros))
        .with(settings.acked_retention.map(micros)))
}

fn counts(row: &PgRow) -> Result<QueueCounts, EngineError> {
    let count = |column: &str| -> Result<Count, EngineError> {
        Ok(Count::of(narrow(get::<i64>(row, "count_jobs", column)?, "count_jobs", column)?))
    };
    let oldest: Option<Moment> = get(row, "count_jobs", "oldest")?;
    let counted_at: Moment = get(row, "count_jobs", "counted_at")?;
    Ok(QueueCounts {
        ready: count("ready")?,
        scheduled: count("scheduled")?,
        blocked: count("blocked")?,
        leased: count("leased")?,
        dead: count("dead")?,
        oldest_ready: oldest.map(|oldest| (oldest.0, counted_at.0.since(oldest.0))),
    })
}

fn queue(row: &PgRow) -> Result<QueueRow, EngineError> {
    let duration = |column: &str| -> Result<Duration, EngineError> {
        let micros: u64 = narrow(get::<i64>(row, "queue", column)?, "queue", column)?;
        Ok(Duration::from_micros(micros))
    };
    let bound = |column: &str| -> Result<Option<u64>, EngineError> {
        get::<Option<i64>>(row, "queue", column)?.map(|bound| narrow(bound, "queue", column)).transpose()
    };
    let span = |column: &str| Ok::<_, EngineError>(bound(column)?.map(Duration::from_micros));
    let name: &str = get(row, "queue", "name")?;
    Ok(QueueRow {
        id: QueueId(get(row, "queue", "id")?),
        name: QueueName::parse("name", name)
            .map_err(|_| EngineError::Bug("queue: column name is no queue name".into()))?,
        version: get(row, "queue", "version")?,
        closing: get(row, "queue", "closing")?,
        settings: QueueSettings {
            paused: get(row, "queue", "paused")?,
            disabled_reason: get(row, "queue", "disabled_reason")?,
            lease_duration: duration("lease_duration")?,
            max_attempts: narrow(get::<i32>(row, "queue", "max_attempts")?, "queue", "max_attempts")?,
            backoff: Backoff { base: duration("backoff_base")?, cap: duration("backoff_cap")? },
            idempotency_retention: duration("idempotency_retention")?,
            dead_retention: duration("dead_retention")?,
            max_backlog_jobs: bound("max_backlog_jobs")?,
            max_backlog_bytes: bound("max_backlog_bytes")?,
            time_to_live: span("time_to_live")?,
            acked_retention: span("acked_retention")?,
        },
    })
}
