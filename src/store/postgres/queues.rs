//! Queues as such.

use std::time::Duration;

use async_trait::async_trait;
use sqlx::postgres::PgRow;

use super::{
    session::{Args, PgSession},
    value::{get, narrow},
};
use crate::{
    model::{Backoff, Caller, QueueId, QueueName, QueueSettings, time::micros},
    store::{
        engine::{Backlog, Governing, NewQueues, QueueRow},
        error::EngineError,
    },
};

const FIND_QUEUES: &str = include_str!("sql/find_queues.sql");
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
    let settings = &new.settings;
    let bound = |bound: Option<u64>| bound.map(|bound| narrow::<i64, _>(bound, "queue", "max_backlog")).transpose();
    Ok(Args::new()
        .with(names)
        .with(micros(settings.lease_duration))
        .with(i32::from(settings.max_attempts))
        .with(micros(settings.backoff.base))
        .with(micros(settings.backoff.cap))
        .with(micros(settings.idempotency_retention))
        .with(micros(settings.dead_retention))
        .with(bound(settings.max_backlog_jobs)?)
        .with(bound(settings.max_backlog_bytes)?)
        .with(bound(Some(new.at_most))?))
}

fn queue(row: &PgRow) -> Result<QueueRow, EngineError> {
    let duration = |column: &str| -> Result<Duration, EngineError> {
        let micros: u64 = narrow(get::<i64>(row, "queue", column)?, "queue", column)?;
        Ok(Duration::from_micros(micros))
    };
    let bound = |column: &str| -> Result<Option<u64>, EngineError> {
        get::<Option<i64>>(row, "queue", column)?.map(|bound| narrow(bound, "queue", column)).transpose()
    };
    let name: &str = get(row, "queue", "name")?;
    Ok(QueueRow {
        id: QueueId(get(row, "queue", "id")?),
        name: QueueName::parse("name", name)
            .map_err(|_| EngineError::Bug("queue: column name is no queue name".into()))?,
        settings: QueueSettings {
            lease_duration: duration("lease_duration")?,
            max_attempts: narrow(get::<i32>(row, "queue", "max_attempts")?, "queue", "max_attempts")?,
            backoff: Backoff { base: duration("backoff_base")?, cap: duration("backoff_cap")? },
            idempotency_retention: duration("idempotency_retention")?,
            dead_retention: duration("dead_retention")?,
            max_backlog_jobs: bound("max_backlog_jobs")?,
            max_backlog_bytes: bound("max_backlog_bytes")?,
        },
    })
}
