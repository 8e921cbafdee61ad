//! Adopting what services left by SQL in their own transactions.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use sqlx::mysql::MySqlRow;

use super::{
    error::Step,
    keys::OrderingKey,
    record::{priority, tier},
    session::MysqlSession,
    value::{Maybe, column, count, list, moment, name, narrow},
};
use crate::{
    model::{Caller, QueueId, QueueName, Timestamp},
    store::{engine::Adopted, error::EngineError},
};

/// A number is drawn a moment before its row is there. Within this time it is.
const DRAWN: Duration = Duration::from_secs(1);

/// One row.
struct Arrival {
    number: i64,
    stored_at: Timestamp,
    job: Option<i64>,
    queue: QueueId,
    ordering_key: Option<String>,
    /// Where the queue did not exist.
    queue_name: Option<QueueName>,
}

impl MysqlSession {
    pub(super) async fn adopt(&mut self, caller: &Caller, floor: i64, limit: usize) -> Result<Adopted, EngineError> {
        // Mostly there is nothing, and no transaction is needed to see that.
        let look = self.statement(caller, include_str!("sql/first_arrival.sql")).bind(floor);
        if self.read_alone(look, caller).await?.is_empty() {
            return Ok(Adopted { floor, ..Adopted::default() });
        }
        let now = self.begin(caller).await?;
        let adopted = self.adopt_committed(caller, floor, limit, now).await;
        let (mut adopted, settled) = self.end(caller, adopted).await?;
        if let Some(settled) = settled {
            // Rows of transactions that are still open lie before some that were adopted: the floor must not pass them.
            let first = include_str!("sql/first_arrival.sql").replace('?', &floor.to_string());
            let dirty = "set transaction isolation level read uncommitted";
            let rows = self.run(caller, &[dirty, &first], Step::First).await?;
            let first: Option<i64> = rows.first().map(|row| column(row, "id")).transpose()?;
            adopted.floor = first.map_or(settled, |first| first.min(settled)).max(floor);
        }
        Ok(adopted)
    }

    /// The rows adopted, and the last of those numbers before which none is drawn any more.
    async fn adopt_committed(
        &mut self,
        caller: &Caller,
        floor: i64,
        limit: usize,
        now: Timestamp,
    ) -> Result<(Adopted, Option<i64>), EngineError> {
        let take = self.statement(caller, include_str!("sql/take_arrivals.sql")).bind(floor).bind(count(limit));
        let arrivals: Vec<Arrival> = self.read(take).await?.iter().map(Arrival::from_row).collect::<Result<_, _>>()?;
        let mut adopted = Adopted { rows: arrivals.len(), floor, ..Adopted::default() };
        if arrivals.is_empty() {
            return Ok((adopted, None));
        }
        let numbers: Vec<i64> = arrivals.iter().map(|arrival| arrival.number).collect();
        let leave = self.statement(caller, include_str!("sql/leave_arrivals.sql")).bind(list(&numbers)?);
        self.change(leave).await?;

        let mut keys: BTreeSet<OrderingKey> = self.place_named(caller, &arrivals).await?;
        let mut keyless = BTreeSet::new();
        for arrival in &arrivals {
            match &arrival.ordering_key {
                Some(key) if arrival.queue_name.is_none() => drop(keys.insert((arrival.queue, key.clone()))),
                Some(_) => {}
                None => keyless.extend(arrival.job),
            }
        }
        let mut readied = self.adopt_keyless(caller, &keyless).await?;
        self.place_strays(caller, &keys).await?;
        readied.extend(self.advance(caller, keys).await?.into_iter().map(|(queue, _)| queue));
        adopted.readied = readied.into_iter().collect();
        let settled = arrivals.iter().filter(|arrival| arrival.stored_at <= now.minus(DRAWN));
        Ok((adopted, settled.map(|arrival| arrival.number).max()))
    }

    /// Brings the queues into being that did not exist. In the service's transaction that would have kept everybody else who
    /// needs them waiting. The ordering keys that got jobs by this.
    async fn place_named(
        &mut self,
        caller: &Caller,
        arrivals: &[Arrival],
    ) -> Result<BTreeSet<OrderingKey>, EngineError> {
        let names: BTreeSet<&QueueName> = arrivals.iter().filter_map(|arrival| arrival.queue_name.as_ref()).collect();
        if names.is_empty() {
            return Ok(BTreeSet::new());
        }
        let names: Vec<QueueName> = names.into_iter().cloned().collect();
        let queues = self.usual_queues(caller, &names).await?;
        let mut targets = BTreeMap::new();
        let mut keys = BTreeSet::new();
        for arrival in arrivals {
            let queue = queues.iter().find(|queue| arrival.queue_name.as_ref() == Some(&queue.name));
            if let (Some(job), Some(queue)) = (arrival.job, queue) {
                targets.insert(job, queue.id);
                // Moved already by an Enqueue of the same key, perhaps: it goes on all the same.
                keys.extend(arrival.ordering_key.clone().map(|key| (queue.id, key)));
            }
        }
        self.move_strays(caller, &targets).await?;
        Ok(keys)
    }

    /// Makes jobs ready that have no key and are still there.
    async fn adopt_keyless(&mut self, caller: &Caller, jobs: &BTreeSet<i64>) -> Result<BTreeSet<QueueId>, EngineError> {
        if jobs.is_empty() {
            return Ok(BTreeSet::new());
        }
        let lock = self.statement(caller, include_str!("sql/adopt_jobs.sql")).bind(list(jobs)?);
        let mut rows = Vec::new();
        let mut notes = Vec::new();
        let mut queues = BTreeSet::new();
        for row in self.read(lock).await? {
            let queue: i32 = narrow(&row, "queue_id")?;
            let ready_at = moment(&row, "available_at")?.max(moment(&row, "now")?);
            let tier = tier(priority(column(&row, "priority")?)?);
            let id: i64 = column(&row, "id")?;
            rows.push((id, queue, tier, ready_at.0, 0, 0));
            notes.push((id, ready_at.0, 1, Maybe(None::<&str>)));
            queues.insert(QueueId(queue));
        }
        if !rows.is_empty() {
            let ready = self.statement(caller, include_str!("sql/make_ready.sql")).bind(list(&rows)?);
            self.change(ready).await?;
            let note = self.statement(caller, include_str!("sql/return_jobs.sql")).bind(list(&notes)?);
            self.change(note).await?;
        }
        Ok(queues)
    }
}

impl Arrival {
    fn from_row(row: &MySqlRow) -> Result<Self, EngineError> {
        let queue_name = name(row, "queue_name")?
            .map(|text| QueueName::parse("queue_name", &text))
            .transpose()
            .map_err(|_| EngineError::Bug("a stored name is no queue's".into()))?;
        Ok(Self {
            number: column(row, "id")?,
            stored_at: moment(row, "stored_at")?,
            job: column(row, "job_id")?,
            queue: QueueId(narrow(row, "queue_id")?),
            ordering_key: name(row, "ordering_key")?,
            queue_name,
        })
    }
}
