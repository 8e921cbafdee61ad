//! Passes over the tables.

use std::time::Duration;

use async_trait::async_trait;
use sqlx::sqlite::SqliteRow;

use super::{
    fate::{Burial, FreedKey, Return},
    session::{SqliteSession, column, lease, list, narrow, place},
};
use crate::{
    model::{Caller, JobId, QueueId, Timestamp},
    store::{
        engine::{Adopted, Expired, LeaseRef, Maintaining, Pruned, Reaped, ReapedLease},
        error::EngineError,
    },
};

/// Why an attempt ended whose worker never said anything.
const EXPIRED: &str = "lease expired";
/// Why a job died that nobody leased in time.
const TOO_OLD: &str = "time to live is over";

#[async_trait]
impl Maintaining for SqliteSession {
    async fn adopt_arrivals(&mut self, _caller: &Caller, floor: i64, _limit: usize) -> Result<Adopted, EngineError> {
        Ok(Adopted { floor, ..Adopted::default() }) // no service writes to this file
    }

    async fn reap(
        &mut self,
        caller: &Caller,
        floor: Timestamp,
        _arrivals: i64,
        limit: usize,
    ) -> Result<Reaped, EngineError> {
        let now = self.begin(caller).await?;
        let reaped = self.reap_expired(caller, floor, limit, now).await;
        let reaped = self.end(caller, now, reaped).await?;
        if reaped.leases.is_empty() {
            // The reaper passes every second, and an empty pass is a good moment.
            self.empty_log_when_quiet(caller).await?;
        }
        Ok(reaped)
    }

    async fn prune_dead(&mut self, caller: &Caller, floor: Timestamp, limit: usize) -> Result<Pruned, EngineError> {
        self.prune(caller, include_str!("sql/prune_dead.sql"), floor, limit).await
    }

    async fn prune_keys(&mut self, caller: &Caller, floor: Timestamp, limit: usize) -> Result<Pruned, EngineError> {
        self.prune(caller, include_str!("sql/prune_keys.sql"), floor, limit).await
    }

    async fn prune_acked(&mut self, caller: &Caller, floor: Timestamp, limit: usize) -> Result<Pruned, EngineError> {
        self.prune(caller, include_str!("sql/prune_acked.sql"), floor, limit).await
    }

    async fn expiring_queues(
        &mut self,
        caller: &Caller,
        after: QueueId,
        limit: usize,
    ) -> Result<Vec<QueueId>, EngineError> {
        let find = self.statement(caller, include_str!("sql/expiring_queues.sql")).bind(after.0).bind(count(limit));
        self.read(find).await?.iter().map(|row| narrow(row, "id").map(QueueId)).collect()
    }

    async fn expire(
        &mut self,
        caller: &Caller,
        queues: &[(QueueId, Timestamp)],
        limit: usize,
    ) -> Result<Expired, EngineError> {
        let now = self.begin(caller).await?;
        let expired = self.bury_old(caller, queues, limit, now).await;
        self.end(caller, now, expired).await
    }
}

impl SqliteSession {
    async fn reap_expired(
        &mut self,
        caller: &Caller,
        floor: Timestamp,
        limit: usize,
        now: Timestamp,
    ) -> Result<Reaped, EngineError> {
        let find = self.statement(caller, include_str!("sql/reap.sql"));
        let rows = self.read(find.bind(floor.0).bind(now.0).bind(count(limit))).await?;
        let mut leases = Vec::with_capacity(rows.len());
        let mut returns: Vec<Return> = Vec::new();
        let mut burials: Vec<Burial> = Vec::new();
        let mut going: Vec<i64> = Vec::new();
        let mut freed: Vec<FreedKey> = Vec::new();
        for row in &rows {
            let job = JobId(column(row, "id")?);
            let queue = QueueId(narrow(row, "queue_id")?);
            let goes = column::<i64>(row, "cancel_requested")? != 0;
            let dead = !goes && column::<i64>(row, "attempt")? >= column::<i64>(row, "max_attempts")?;
            if dead || goes {
                freed.extend(column::<Option<String>>(row, "ordering_key")?.map(|key| (queue, key)));
            }
            if goes {
                going.push(job.0);
            } else if dead {
                burials.push((job.0, Some(EXPIRED)));
            } else {
                returns.push((job.0, now.0, true, Some(EXPIRED)));
            }
            leases.push(ReapedLease { lease: LeaseRef { job, lease: lease(row, "lease_id")? }, queue, dead });
        }
        self.return_jobs(caller, &returns).await?;
        self.bury(caller, &burials, now).await?;
        self.remove(caller, &going).await?;
        let mut readied: Vec<QueueId> =
            self.advance(caller, &freed, now).await?.into_iter().map(|(queue, _)| queue).collect();
        readied.dedup(); // in the order of queues already
        Ok(Reaped { leases, readied, floor: next_floor(&rows, "lease_until", limit, now)?, arrived: false })
    }

    async fn bury_old(
        &mut self,
        caller: &Caller,
        queues: &[(QueueId, Timestamp)],
        limit: usize,
        now: Timestamp,
    ) -> Result<Expired, EngineError> {
        let ids: Vec<i32> = queues.iter().map(|(queue, _)| queue.0).collect();
        let find = self.statement(caller, include_str!("sql/times_to_live.sql")).bind(list(&ids)?);
        let mut floors: Vec<Timestamp> = queues.iter().map(|(_, floor)| *floor).collect();
        let mut burials: Vec<Burial> = Vec::new();
        let mut freed: Vec<FreedKey> = Vec::new();
        for row in self.read(find).await? {
            let n = place(&row, queues.len())?;
            let cutoff = now.minus(Duration::from_micros(narrow(&row, "time_to_live")?));
            let room = limit - burials.len();
            let (queue, floor) = queues[n];
            let old = self.statement(caller, include_str!("sql/expire.sql"));
            let old = self.read(old.bind(queue.0).bind(floor.0).bind(cutoff.0).bind(count(room))).await?;
            for job in &old {
                burials.push((column(job, "id")?, Some(TOO_OLD)));
                freed.extend(column::<Option<String>>(job, "ordering_key")?.map(|key| (queue, key)));
            }
            if old.len() < room {
                floors[n] = floor.max(cutoff.minus(Duration::from_micros(1)));
            }
        }
        self.bury(caller, &burials, now).await?;
        let mut readied: Vec<QueueId> =
            self.advance(caller, &freed, now).await?.into_iter().map(|(queue, _)| queue).collect();
        readied.dedup(); // in the order of queues already
        Ok(Expired { jobs: burials.len(), readied, floors })
    }

    async fn prune(
        &mut self,
        caller: &Caller,
        sql: &'static str,
        floor: Timestamp,
        limit: usize,
    ) -> Result<Pruned, EngineError> {
        let now = self.begin(caller).await?;
        let delete = self.statement(caller, sql).bind(floor.0).bind(now.0).bind(count(limit));
        let pruned = match self.change_returning(delete).await {
            Ok(rows) => next_floor(&rows, "expires_at", limit, now).map(|floor| Pruned { rows: rows.len(), floor }),
            Err(error) => Err(error),
        };
        self.end(caller, now, pruned).await
    }
}

fn count(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// Where the next pass begins: just before the last row of a full pass, since others may share its instant; just before now
/// after one that found everything.
pub(super) fn next_floor(
    rows: &[SqliteRow],
    name: &str,
    limit: usize,
    now: Timestamp,
) -> Result<Timestamp, EngineError> {
    let mut last = now;
    if rows.len() >= limit {
        let instants = rows.iter().map(|row| column::<i64>(row, name)).collect::<Result<Vec<_>, _>>()?;
        last = instants.into_iter().max().map_or(now, Timestamp);
    }
    Ok(last.minus(Duration::from_micros(1)))
}
