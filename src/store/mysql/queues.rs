//! Queues as such.

use std::time::Duration;

use async_trait::async_trait;
use sqlx::mysql::MySqlRow;

use super::{
    literal::filled,
    session::{MysqlSession, Statement, only},
    value::{column, count, list, name, narrow},
};
use crate::{
    model::{Backoff, Caller, Count, QueueId, QueueName, QueueSettings, Timestamp, time::micros},
    store::{
        engine::{Backlog, CountSpot, Governing, NewQueues, QueueCounts, QueueRow},
        error::EngineError,
        hex::hex,
    },
};

/// Queues that one statement counts: each is some thirty walks.
const COUNTED_AT_ONCE: usize = 32;

#[async_trait]
impl Governing for MysqlSession {
    async fn find_queues(
        &mut self,
        caller: &Caller,
        names: &[QueueName],
        create: Option<&NewQueues>,
    ) -> Result<Vec<QueueRow>, EngineError> {
        let find = self.statement(caller, include_str!("sql/find_queues.sql")).bind(hex_list(names.iter())?);
        let found = queue_rows(&self.read_alone(find, caller).await?)?;
        let Some(new) = create.filter(|_| missing(names, &found).next().is_some()) else {
            return Ok(found); // the common case takes no lock and uses up no number
        };
        self.begin(caller).await?;
        let created = self.create_missing(caller, names, new).await;
        self.end(caller, created).await
    }

    async fn list_queues(
        &mut self,
        caller: &Caller,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<QueueRow>, EngineError> {
        // No character of a name comes after ~.
        let list = self
            .statement(caller, include_str!("sql/list_queues.sql"))
            .bind(after.as_bytes().to_vec())
            .bind(prefix.as_bytes().to_vec())
            .bind(format!("{prefix}~").into_bytes())
            .bind(count(limit));
        queue_rows(&self.read_alone(list, caller).await?)
    }

    async fn change_queue(
        &mut self,
        caller: &Caller,
        queue: QueueId,
        version: i64,
        settings: &QueueSettings,
    ) -> Result<Option<QueueRow>, EngineError> {
        self.begin(caller).await?;
        let changed = self.change_settings(caller, queue, version, settings).await;
        self.end(caller, changed).await
    }

    /// One statement for some queues: each count is of one moment.
    async fn count_jobs(&mut self, caller: &Caller, spots: &[CountSpot]) -> Result<Vec<QueueCounts>, EngineError> {
        let now = self.now(caller).await?;
        let mut counts = Vec::with_capacity(spots.len());
        for some in spots.chunks(COUNTED_AT_ONCE) {
            let texts = some.iter().enumerate().map(|(n, spot)| count_text(n, spot, now));
            let texts: Vec<String> = texts.collect::<Result<_, _>>()?;
            let mut rows = self.run_alone(caller, &texts.join("\nunion all\n")).await?;
            rows.sort_by_key(|row| column::<i64>(row, "n").unwrap_or(i64::MAX));
            if rows.len() != some.len() {
                return Err(EngineError::Bug(format!("{} counts of {} queues", rows.len(), some.len())));
            }
            for row in &rows {
                counts.push(counts_in(row, now)?);
            }
        }
        Ok(counts)
    }

    async fn measure_backlog(
        &mut self,
        caller: &Caller,
        queue: QueueId,
        jobs_at_most: u64,
    ) -> Result<Backlog, EngineError> {
        let at_most = i64::try_from(jobs_at_most).unwrap_or(i64::MAX);
        let mut measure = self.statement(caller, include_str!("sql/measure_backlog.sql"));
        for _ in 0..3 {
            measure = measure.bind(queue.0).bind(at_most);
        }
        let row = only(self.read_alone(measure.bind(at_most), caller).await?)?;
        Ok(Backlog { jobs: narrow(&row, "jobs")?, bytes: narrow(&row, "bytes")? })
    }
}

impl MysqlSession {
    async fn create_missing(
        &mut self,
        caller: &Caller,
        names: &[QueueName],
        new: &NewQueues,
    ) -> Result<Vec<QueueRow>, EngineError> {
        let lock = self.statement(caller, include_str!("sql/lock_queues.sql"));
        self.read(lock).await?;
        let mut found = self.named_queues(caller, names).await?;
        let missing: Vec<QueueName> = missing(names, &found).cloned().collect();
        if missing.is_empty() || !self.has_room(caller, missing.len(), new.at_most).await? {
            return Ok(found);
        }
        let create = with_settings(self.statement(caller, include_str!("sql/create_queues.sql")), &new.settings);
        self.change(create.bind(hex_list(missing.iter())?)).await?;
        found.extend(self.named_queues(caller, &missing).await?);
        Ok(found)
    }

    async fn has_room(&mut self, caller: &Caller, more: usize, at_most: u64) -> Result<bool, EngineError> {
        let at_most = i64::try_from(at_most).unwrap_or(i64::MAX);
        let count = self.statement(caller, include_str!("sql/count_queues.sql")).bind(at_most);
        let there: i64 = column(&only(self.read(count).await?)?, "queues")?;
        Ok(i64::try_from(more).is_ok_and(|more| there.saturating_add(more) <= at_most))
    }

    async fn change_settings(
        &mut self,
        caller: &Caller,
        queue: QueueId,
        version: i64,
        settings: &QueueSettings,
    ) -> Result<Option<QueueRow>, EngineError> {
        let update = with_settings(self.statement(caller, include_str!("sql/change_queue.sql")), settings);
        if self.change(update.bind(queue.0).bind(version)).await? == 0 {
            return Ok(None);
        }
        let read = self.statement(caller, include_str!("sql/read_queue.sql")).bind(queue.0);
        queue_row(&only(self.read(read).await?)?).map(Some)
    }

    /// Within a transaction that holds the lock on queues.
    async fn named_queues(&mut self, caller: &Caller, names: &[QueueName]) -> Result<Vec<QueueRow>, EngineError> {
        let find = self.statement(caller, include_str!("sql/find_queues.sql")).bind(hex_list(names.iter())?);
        queue_rows(&self.read(find).await?)
    }

    /// The queues of these names, in a transaction that another act has begun; those that are missing come into being with
    /// the usual settings.
    pub(super) async fn usual_queues(
        &mut self,
        caller: &Caller,
        names: &[QueueName],
    ) -> Result<Vec<QueueRow>, EngineError> {
        let lock = self.statement(caller, include_str!("sql/lock_queues.sql"));
        self.read(lock).await?;
        let mut found = self.named_queues(caller, names).await?;
        let missing: Vec<QueueName> = missing(names, &found).cloned().collect();
        if !missing.is_empty() {
            let create = self.statement(caller, include_str!("sql/create_usual_queues.sql"));
            self.change(create.bind(hex_list(missing.iter())?)).await?;
            found.extend(self.named_queues(caller, &missing).await?);
        }
        Ok(found)
    }
}

fn missing<'n>(names: &'n [QueueName], found: &[QueueRow]) -> impl Iterator<Item = &'n QueueName> {
    names.iter().filter(|name| found.iter().all(|queue| queue.name != **name))
}

fn hex_list<'n>(names: impl Iterator<Item = &'n QueueName>) -> Result<String, EngineError> {
    list(&names.map(|name| hex(name.as_str().as_bytes())).collect::<Vec<_>>())
}

fn queue_rows(rows: &[MySqlRow]) -> Result<Vec<QueueRow>, EngineError> {
    rows.iter().map(queue_row).collect()
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

fn queue_row(row: &MySqlRow) -> Result<QueueRow, EngineError> {
    let duration = |name| Ok::<_, EngineError>(Duration::from_micros(narrow(row, name)?));
    let bound =
        |name| Ok::<_, EngineError>(column::<Option<i64>>(row, name)?.map(|bound| u64::try_from(bound).unwrap_or(0)));
    let span = |name| Ok::<_, EngineError>(bound(name)?.map(Duration::from_micros));
    let is = |name| Ok::<_, EngineError>(column::<i64>(row, name)? != 0);
    let text = name(row, "name")?.unwrap_or_default();
    Ok(QueueRow {
        version: column(row, "version")?,
        closing: is("closing")?,
        id: QueueId(narrow(row, "id")?),
        name: QueueName::parse("name", &text).map_err(|_| EngineError::Bug("a stored name is no queue's".into()))?,
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

/// The count of a queue, the `n`th of a statement.
fn count_text(n: usize, spot: &CountSpot, now: Timestamp) -> Result<String, EngineError> {
    let most = (Count::BOUND + 1).to_string();
    let (n, queue, now, lease_floor) =
        (n.to_string(), spot.queue.0.to_string(), now.0.to_string(), spot.lease_floor.0.to_string());
    let floors: Vec<String> = spot.floors.iter().rev().map(|floor| floor.0.to_string()).collect();
    let mut values: Vec<&str> = vec![&n];
    values.extend(floors.iter().flat_map(|floor| [queue.as_str(), floor, &now, &most]));
    values.extend(floors.iter().flat_map(|floor| [queue.as_str(), floor, &now]));
    values.extend(floors.iter().flat_map(|_| [queue.as_str(), &now, &most]));
    values.extend([queue.as_str(), &most, &queue, &lease_floor, &most, &queue, &most]);
    filled(include_str!("sql/count_jobs.sql"), &values)
}

fn counts_in(row: &MySqlRow, now: Timestamp) -> Result<QueueCounts, EngineError> {
    let of = |name| Ok::<_, EngineError>(Count::of(narrow(row, name)?));
    let oldest = column::<Option<i64>>(row, "oldest")?.map(Timestamp);
    Ok(QueueCounts {
        ready: of("ready")?,
        scheduled: of("scheduled")?,
        blocked: of("blocked")?,
        leased: of("leased")?,
        dead: of("dead")?,
        oldest_ready: oldest.map(|oldest| (oldest, now.since(oldest))),
    })
}
