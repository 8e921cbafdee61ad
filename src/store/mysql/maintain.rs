//! Passes over the tables.
//!
//! What is to be done is found by a plain read along an index, then locked by its primary key where nobody else holds it,
//! and looked at again.

use std::{collections::BTreeSet, time::Duration};

use async_trait::async_trait;

use super::{
    fate::{Burial, Return},
    session::{MysqlSession, only},
    value::{column, count, lease, list, moment, narrow},
    walk::Walk,
};
use crate::{
    model::{Caller, JobId, NackAction, QueueId, Timestamp},
    store::{
        engine::{Adopted, Expired, LeaseRef, Maintaining, Pruned, Reaped, ReapedLease},
        error::EngineError,
        hex::hex,
    },
};

/// Why an attempt ended whose worker never said anything.
const EXPIRED: &str = "lease expired";

/// A claim that has not committed yet is not seen. Its lease cannot end earlier than a second after its statement began, so
/// a floor this far in the past misses only one whose commit takes longer; the passes from the beginning find that.
const UNSEEN: Duration = Duration::from_secs(1);

/// The same for what expires after a retention, which may be as short as nothing.
const UNSEEN_RETENTION: Duration = Duration::from_mins(1);

/// Jobs that are kept for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    Dead,
    Acked,
}

impl Ended {
    fn find(self) -> &'static str {
        match self {
            Self::Dead => include_str!("sql/find_expired_dead.sql"),
            Self::Acked => include_str!("sql/find_expired_acked.sql"),
        }
    }

    fn lock(self) -> &'static str {
        match self {
            Self::Dead => include_str!("sql/lock_dead.sql"),
            Self::Acked => include_str!("sql/lock_acked.sql"),
        }
    }

    fn remove(self) -> &'static str {
        match self {
            Self::Dead => include_str!("sql/remove_dead.sql"),
            Self::Acked => include_str!("sql/remove_acked.sql"),
        }
    }
}

#[async_trait]
impl Maintaining for MysqlSession {
    /// The floor is the number of a row.
    async fn adopt_arrivals(&mut self, caller: &Caller, floor: i64, limit: usize) -> Result<Adopted, EngineError> {
        self.adopt(caller, floor, limit).await
    }

    async fn reap(
        &mut self,
        caller: &Caller,
        floor: Timestamp,
        arrivals: i64,
        limit: usize,
    ) -> Result<Reaped, EngineError> {
        // Mostly nothing has expired, and no transaction is needed to see that.
        let look = self.statement(caller, include_str!("sql/any_expired.sql")).bind(floor.0).bind(arrivals);
        let seen = only(self.read_alone(look, caller).await?)?;
        if column::<i64>(&seen, "read_only")? != 0 {
            // As a transaction would have failed.
            return Err(EngineError::Unavailable("the database is read-only".into()));
        }
        let arrived = column::<Option<i64>>(&seen, "arrived")?.is_some();
        if column::<Option<i64>>(&seen, "found")?.is_none() {
            let floor = Walk::new(floor, limit).next(moment(&seen, "now")?.minus(UNSEEN));
            return Ok(Reaped { leases: Vec::new(), readied: Vec::new(), floor, arrived });
        }
        let now = self.begin(caller).await?;
        let reaped = self.reap_expired(caller, floor, limit, now).await;
        let reaped = self.end(caller, reaped).await?;
        Ok(Reaped { arrived, ..reaped })
    }

    async fn prune_dead(&mut self, caller: &Caller, floor: Timestamp, limit: usize) -> Result<Pruned, EngineError> {
        let now = self.begin(caller).await?;
        let pruned = self.prune_jobs(caller, Ended::Dead, floor, (limit, now)).await;
        self.end(caller, pruned).await
    }

    async fn prune_acked(&mut self, caller: &Caller, floor: Timestamp, limit: usize) -> Result<Pruned, EngineError> {
        let now = self.begin(caller).await?;
        let pruned = self.prune_jobs(caller, Ended::Acked, floor, (limit, now)).await;
        self.end(caller, pruned).await
    }

    async fn expiring_queues(
        &mut self,
        caller: &Caller,
        after: QueueId,
        limit: usize,
    ) -> Result<Vec<QueueId>, EngineError> {
        let find = self.statement(caller, include_str!("sql/expiring_queues.sql")).bind(after.0).bind(count(limit));
        self.read_alone(find, caller).await?.iter().map(|row| narrow(row, "id").map(QueueId)).collect()
    }

    async fn expire(
        &mut self,
        caller: &Caller,
        queues: &[(QueueId, Timestamp)],
        limit: usize,
    ) -> Result<Expired, EngineError> {
        let now = self.begin(caller).await?;
        let expired = self.bury_old(caller, queues, limit, now).await;
        self.end(caller, expired).await
    }

    async fn prune_keys(&mut self, caller: &Caller, floor: Timestamp, limit: usize) -> Result<Pruned, EngineError> {
        let now = self.begin(caller).await?;
        let pruned = self.prune_idempotency_keys(caller, floor, limit, now).await;
        self.end(caller, pruned).await
    }
}

impl MysqlSession {
    async fn reap_expired(
        &mut self,
        caller: &Caller,
        floor: Timestamp,
        limit: usize,
        now: Timestamp,
    ) -> Result<Reaped, EngineError> {
        let find = self.statement(caller, include_str!("sql/find_expired.sql"));
        let rows = self.read(find.bind(floor.0).bind(now.0).bind(count(limit))).await?;
        let mut expired = Vec::with_capacity(rows.len());
        let mut walk = Walk::new(floor, limit);
        for row in &rows {
            expired.push(LeaseRef { job: JobId(column(row, "job_id")?), lease: lease(row, "token")? });
            walk.saw(moment(row, "lease_until")?);
        }
        let mut held = self.held(caller, &expired).await?;
        held.retain(|lease| lease.until <= now); // extended meanwhile
        let now = held.iter().map(|lease| lease.now).fold(now, Timestamp::max);
        let mut returns: Vec<Return> = Vec::new();
        let mut burials: Vec<Burial> = Vec::new();
        let mut leases = Vec::new();
        let mut freed = Vec::new();
        let mut going: Vec<i64> = Vec::new();
        for lease in &held {
            let dead = !lease.cancel_requested && lease.dies(NackAction::Retry);
            if dead {
                burials.push((lease.job.0, Some(EXPIRED), lease.attempt, lease.lease_number));
            }
            if dead || lease.cancel_requested {
                going.push(lease.job.0);
                freed.extend(lease.key());
            } else {
                returns.push(Return::of(lease, now.max(lease.available_at), Some(Some(EXPIRED))));
            }
            leases.push(ReapedLease { lease: expired[lease.n], queue: lease.queue, dead });
            walk.took(lease.until);
        }
        self.return_jobs(caller, &returns).await?;
        self.bury(caller, &burials, now).await?;
        self.remove(caller, &going).await?;
        let readied = self.advance(caller, freed).await?;
        let readied: BTreeSet<QueueId> = readied.into_iter().map(|(queue, _)| queue).collect();
        Ok(Reaped {
            leases,
            readied: readied.into_iter().collect(),
            floor: walk.next(now.minus(UNSEEN)),
            arrived: false,
        })
    }

    async fn prune_jobs(
        &mut self,
        caller: &Caller,
        ended: Ended,
        floor: Timestamp,
        (limit, now): (usize, Timestamp),
    ) -> Result<Pruned, EngineError> {
        let find = self.statement(caller, ended.find());
        let rows = self.read(find.bind(floor.0).bind(now.0).bind(count(limit))).await?;
        let mut walk = Walk::new(floor, limit);
        let mut found = Vec::new();
        for row in &rows {
            found.push((column::<i64>(row, "id")?, moment(row, "expires_at")?));
            walk.saw(moment(row, "expires_at")?);
        }
        let jobs: Vec<i64> = found.iter().map(|(job, _)| *job).collect();
        let removed = self.remove_ended(caller, ended, &jobs).await?;
        for (_, at) in found.iter().filter(|(job, _)| removed.contains(job)) {
            walk.took(*at);
        }
        Ok(Pruned { rows: removed.len(), floor: walk.next(now.minus(UNSEEN_RETENTION)) })
    }

    /// Removes those of the jobs that nobody holds; says which.
    pub(super) async fn remove_ended(
        &mut self,
        caller: &Caller,
        ended: Ended,
        jobs: &[i64],
    ) -> Result<BTreeSet<i64>, EngineError> {
        let locked = self.lock_ended(caller, ended, jobs).await?;
        self.remove_locked(caller, ended, &locked).await?;
        Ok(locked)
    }

    /// Locks those of the jobs that nobody holds; says which.
    pub(super) async fn lock_ended(
        &mut self,
        caller: &Caller,
        ended: Ended,
        jobs: &[i64],
    ) -> Result<BTreeSet<i64>, EngineError> {
        if jobs.is_empty() {
            return Ok(BTreeSet::new());
        }
        let lock = self.statement(caller, ended.lock()).bind(list(jobs)?);
        self.read(lock).await?.iter().map(|row| column(row, "id")).collect()
    }

    /// Removes jobs that are locked.
    pub(super) async fn remove_locked(
        &mut self,
        caller: &Caller,
        ended: Ended,
        locked: &BTreeSet<i64>,
    ) -> Result<(), EngineError> {
        if locked.is_empty() {
            return Ok(());
        }
        let remove = self.statement(caller, ended.remove()).bind(list(locked)?);
        self.change(remove).await.map(drop)
    }

    async fn prune_idempotency_keys(
        &mut self,
        caller: &Caller,
        floor: Timestamp,
        limit: usize,
        now: Timestamp,
    ) -> Result<Pruned, EngineError> {
        let find = self.statement(caller, include_str!("sql/find_expired_keys.sql"));
        let rows = self.read(find.bind(floor.0).bind(now.0).bind(count(limit))).await?;
        let mut walk = Walk::new(floor, limit);
        let mut found = Vec::new();
        for row in &rows {
            let key = (narrow::<i32>(row, "queue_id")?, hex(&column::<Vec<u8>>(row, "name")?));
            found.push((key, moment(row, "expires_at")?));
            walk.saw(moment(row, "expires_at")?);
        }
        if found.is_empty() {
            return Ok(Pruned { rows: 0, floor: walk.next(now.minus(UNSEEN_RETENTION)) });
        }
        let names: BTreeSet<_> = found.iter().map(|(key, _)| key).collect();
        let lock = self.statement(caller, include_str!("sql/lock_expired_keys.sql")).bind(list(&names)?).bind(now.0);
        let mut locked = BTreeSet::new();
        for row in self.read(lock).await? {
            locked.insert((narrow::<i32>(&row, "queue_id")?, hex(&column::<Vec<u8>>(&row, "name")?)));
        }
        let remove = self.statement(caller, include_str!("sql/remove_keys.sql")).bind(list(&locked)?);
        let removed = self.change(remove).await?;
        for (_, at) in found.iter().filter(|(key, _)| locked.contains(key)) {
            walk.took(*at);
        }
        let rows = usize::try_from(removed).unwrap_or(usize::MAX);
        Ok(Pruned { rows, floor: walk.next(now.minus(UNSEEN_RETENTION)) })
    }
}
