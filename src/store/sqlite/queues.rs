//! Queues as such.

use std::time::Duration;

use async_trait::async_trait;
use sqlx::sqlite::SqliteRow;

use super::session::{SqliteSession, column, list, narrow};
use crate::{
    model::{Backoff, Caller, QueueId, QueueName, QueueSettings, time::micros},
    store::{
        engine::{Backlog, Governing, NewQueues, QueueRow},
        error::EngineError,
    },
};

#[async_trait]
impl Governing for SqliteSession {
    async fn find_queues(
        &mut self,
        caller: &Caller,
        names: &[QueueName],
        create: Option<&NewQueues>,
    ) -> Result<Vec<QueueRow>, EngineError> {
        let found = self.named_queues(caller, names).await?;
        let Some(new) = create else {
            return Ok(found);
        };
        let missing: Vec<&str> =
            names.iter().filter(|name| found.iter().all(|queue| queue.name != **name)).map(QueueName::as_str).collect();
        if missing.is_empty() {
            return Ok(found); // the common case takes no lock and uses up no number
        }
        let now = self.begin(caller).await?;
        let created = match self.create_queues(caller, &missing, new).await {
            Ok(()) => self.named_queues(caller, names).await,
            Err(error) => Err(error),
        };
        self.end(caller, now, created).await
    }

    async fn measure_backlog(
        &mut self,
        caller: &Caller,
        queue: QueueId,
        jobs_at_most: u64,
    ) -> Result<Backlog, EngineError> {
        let measure = self
            .statement(caller, include_str!("sql/measure_backlog.sql"))
            .bind(queue.0)
            .bind(i64::try_from(jobs_at_most).unwrap_or(i64::MAX));
        let rows = self.read(measure).await?;
        let row = rows.first().ok_or_else(|| EngineError::Bug("no count".to_owned()))?;
        Ok(Backlog { jobs: narrow(row, "jobs")?, bytes: narrow(row, "bytes")? })
    }
}

impl SqliteSession {
    async fn named_queues(&mut self, caller: &Caller, names: &[QueueName]) -> Result<Vec<QueueRow>, EngineError> {
        let names: Vec<&str> = names.iter().map(QueueName::as_str).collect();
        let find = self.statement(caller, include_str!("sql/find_queues.sql")).bind(list(&names)?);
        self.read(find).await?.iter().map(queue_row).collect()
    }

    async fn create_queues(&mut self, caller: &Caller, names: &[&str], new: &NewQueues) -> Result<(), EngineError> {
        let settings = &new.settings;
        let bound = |bound: Option<u64>| bound.map(|bound| i64::try_from(bound).unwrap_or(i64::MAX));
        let insert = self
            .statement(caller, include_str!("sql/create_queues.sql"))
            .bind(list(names)?)
            .bind(micros(settings.lease_duration))
            .bind(settings.max_attempts)
            .bind(micros(settings.backoff.base))
            .bind(micros(settings.backoff.cap))
            .bind(micros(settings.idempotency_retention))
            .bind(micros(settings.dead_retention))
            .bind(bound(settings.max_backlog_jobs))
            .bind(bound(settings.max_backlog_bytes))
            .bind(bound(Some(new.at_most)));
        self.change(insert).await.map(drop)
    }
}

fn queue_row(row: &SqliteRow) -> Result<QueueRow, EngineError> {
    let duration = |name| Ok::<_, EngineError>(Duration::from_micros(narrow(row, name)?));
    let bound =
        |name| Ok::<_, EngineError>(column::<Option<i64>>(row, name)?.map(|bound| u64::try_from(bound).unwrap_or(0)));
    let name: String = column(row, "name")?;
    Ok(QueueRow {
        id: QueueId(narrow(row, "id")?),
        name: QueueName::parse("name", &name)
            .map_err(|_| EngineError::Bug("a stored name is no queue's".to_owned()))?,
        settings: QueueSettings {
            lease_duration: duration("lease_duration")?,
            max_attempts: narrow(row, "max_attempts")?,
            backoff: Backoff { base: duration("backoff_base")?, cap: duration("backoff_cap")? },
            idempotency_retention: duration("idempotency_retention")?,
            dead_retention: duration("dead_retention")?,
            max_backlog_jobs: bound("max_backlog_jobs")?,
            max_backlog_bytes: bound("max_backlog_bytes")?,
        },
    })
}
