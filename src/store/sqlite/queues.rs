//! Queues as such.

use std::time::Duration;

use async_trait::async_trait;
use sqlx::sqlite::SqliteRow;

use super::session::{SqliteSession, Statement, column, list, narrow};
use crate::{
    model::{Backoff, Caller, Count, QueueId, QueueName, QueueSettings, Timestamp, time::micros},
    store::{
        engine::{Backlog, CountSpot, Governing, NewQueues, QueueCounts, QueueRow},
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

    async fn list_queues(
        &mut self,
        caller: &Caller,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<QueueRow>, EngineError> {
        let list = self
            .statement(caller, include_str!("sql/list_queues.sql"))
            .bind(prefix.to_owned())
            .bind(after.to_owned())
            .bind(i64::try_from(limit).unwrap_or(i64::MAX));
        self.read(list).await?.iter().map(queue_row).collect()
    }

    async fn change_queue(
        &mut self,
        caller: &Caller,
        queue: QueueId,
        version: i64,
        settings: &QueueSettings,
    ) -> Result<Option<QueueRow>, EngineError> {
        let now = self.begin(caller).await?;
        let update = with_settings(self.statement(caller, include_str!("sql/change_queue.sql")), settings);
        let changed = match self.change_returning(update.bind(queue.0).bind(version)).await {
            Ok(rows) => rows.first().map(queue_row).transpose(),
            Err(error) => Err(error),
        };
        self.end(caller, now, changed).await
    }

    /// One statement for each queue: nobody else is kept waiting by it, and each count is of one moment.
    async fn count_jobs(&mut self, caller: &Caller, spots: &[CountSpot]) -> Result<Vec<QueueCounts>, EngineError> {
        let mut counts = Vec::with_capacity(spots.len());
        for spot in spots {
            let now = self.shared.clock.now();
            let count = self
                .statement(caller, include_str!("sql/count_jobs.sql"))
                .bind(spot.queue.0)
                .bind(list(&spot.floors.map(|floor| floor.0))?)
                .bind(now.0)
                .bind(i64::try_from(Count::BOUND + 1).unwrap_or(i64::MAX))
                .bind(spot.lease_floor.0);
            let rows = self.read(count).await?;
            let row = rows.first().ok_or_else(|| EngineError::Bug("no count".to_owned()))?;
            let of = |name| Ok::<_, EngineError>(Count::of(narrow(row, name)?));
            let oldest = column::<Option<i64>>(row, "oldest")?.map(Timestamp);
            counts.push(QueueCounts {
                ready: of("ready")?,
                scheduled: of("scheduled")?,
                blocked: of("blocked")?,
                leased: of("leased")?,
                dead: of("dead")?,
                oldest_ready: oldest.map(|oldest| (oldest, now.since(oldest))),
            });
        }
        Ok(counts)
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
        let insert = with_settings(self.statement(caller, include_str!("sql/create_queues.sql")), &new.settings)
            .bind(list(names)?)
            .bind(i64::try_from(new.at_most).unwrap_or(i64::MAX));
        self.change(insert).await.map(drop)
    }
}

/// All settings, in the order of both statements that write them.
fn with_settings(statement: Statement, settings: &QueueSettings) -> Statement {
    let bound = |bound: Option<u64>| bound.map(|bound| i64::try_from(bound).unwrap_or(i64::MAX));
    statement
        .bind(settings.paused)
        .bind(settings.disabled_reason.clone())
        .bind(micros(settings.lease_duration))
        .bind(settings.max_attempts)
        .bind(micros(settings.backoff.base))
        .bind(micros(settings.backoff.cap))
        .bind(micros(settings.idempotency_retention))
        .bind(micros(settings.dead_retention))
        .bind(bound(settings.max_backlog_jobs))
        .bind(bound(settings.max_backlog_bytes))
        .bind(settings.time_to_live.map(micros))
        .bind(settings.acked_retention.map(micros))
}

fn queue_row(row: &SqliteRow) -> Result<QueueRow, EngineError> {
    let duration = |name| Ok::<_, EngineError>(Duration::from_micros(narrow(row, name)?));
    let bound =
        |name| Ok::<_, EngineError>(column::<Option<i64>>(row, name)?.map(|bound| u64::try_from(bound).unwrap_or(0)));
    let span = |name| Ok::<_, EngineError>(bound(name)?.map(Duration::from_micros));
    let is = |name| Ok::<_, EngineError>(column::<i64>(row, name)? != 0);
    let name: String = column(row, "name")?;
    Ok(QueueRow {
        version: column(row, "version")?,
        closing: is("closing")?,
        id: QueueId(narrow(row, "id")?),
        name: QueueName::parse("name", &name)
            .map_err(|_| EngineError::Bug("a stored name is no queue's".to_owned()))?,
        settings: QueueSettings {
            paused: is("paused")?,
            disabled_reason: column(row, "disabled_reason")?,
            lease_duration: duration("lease_duration")?,
            max_attempts: narrow(row, "max_attempts")?,
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
