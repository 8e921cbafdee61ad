//! Passes over the tables.

use async_trait::async_trait;
use sqlx::types::Uuid;

use super::{
    session::{Args, PgSession},
    value::{Moment, get, narrow, one_each},
};
use crate::{
    model::{Caller, JobId, LeaseId, QueueId, Timestamp},
    store::{
        engine::{Adopted, Expired, LeaseRef, Maintaining, Pruned, Reaped, ReapedLease},
        error::EngineError,
    },
};

const ADOPT_ARRIVALS: &str = include_str!("sql/adopt_arrivals.sql");
const REAP: &str = include_str!("sql/reap.sql");
const PRUNE_DEAD: &str = include_str!("sql/prune_dead.sql");
const PRUNE_ACKED: &str = include_str!("sql/prune_acked.sql");
const EXPIRING_QUEUES: &str = include_str!("sql/expiring_queues.sql");
const EXPIRE: &str = include_str!("sql/expire.sql");
const PRUNE_KEYS: &str = include_str!("sql/prune_keys.sql");

#[async_trait]
impl Maintaining for PgSession {
    /// The floor is the number of a transaction.
    async fn adopt_arrivals(&mut self, caller: &Caller, floor: i64, limit: usize) -> Result<Adopted, EngineError> {
        let arguments = Args::new().with(floor).with(narrow::<i32, _>(limit, "adopt_arrivals", "limit")?);
        let row = self.row(caller, ADOPT_ARRIVALS, arguments).await?;
        let mut readied: Vec<i32> = get(&row, "adopt_arrivals", "readied")?;
        readied.sort_unstable();
        readied.dedup();
        Ok(Adopted {
            rows: narrow(get::<i64>(&row, "adopt_arrivals", "adopted")?, "adopt_arrivals", "adopted")?,
            readied: readied.into_iter().map(QueueId).collect(),
            floor: get(&row, "adopt_arrivals", "next_floor")?,
        })
    }

    async fn reap(
        &mut self,
        caller: &Caller,
        floor: Timestamp,
        arrivals: i64,
        limit: usize,
    ) -> Result<Reaped, EngineError> {
        let row = self.row(caller, REAP, walk(floor, limit, "reap")?.with(arrivals)).await?;
        if get(&row, "reap", "read_only")? {
            return Err(EngineError::Unavailable("the database is read-only".into()));
        }
        let jobs: Vec<i64> = get(&row, "reap", "jobs")?;
        let leases: Vec<Uuid> = one_each(get(&row, "reap", "leases")?, jobs.len(), "reap", "leases")?;
        let queues: Vec<i32> = one_each(get(&row, "reap", "queues")?, jobs.len(), "reap", "queues")?;
        let deads: Vec<bool> = one_each(get(&row, "reap", "deads")?, jobs.len(), "reap", "deads")?;
        let readied: Vec<i32> = get(&row, "reap", "readied")?;
        let rows = jobs.into_iter().zip(leases).zip(queues).zip(deads);
        Ok(Reaped {
            leases: rows
                .map(|(((job, lease), queue), dead)| ReapedLease {
                    lease: LeaseRef { job: JobId(job), lease: LeaseId(lease.as_u128()) },
                    queue: QueueId(queue),
                    dead,
                })
                .collect(),
            readied: readied.into_iter().map(QueueId).collect(),
            floor: get::<Moment>(&row, "reap", "next_floor")?.0,
            arrived: get(&row, "reap", "arrived")?,
        })
    }

    async fn prune_dead(&mut self, caller: &Caller, floor: Timestamp, limit: usize) -> Result<Pruned, EngineError> {
        self.prune(caller, PRUNE_DEAD, floor, limit).await
    }

    async fn prune_keys(&mut self, caller: &Caller, floor: Timestamp, limit: usize) -> Result<Pruned, EngineError> {
        self.prune(caller, PRUNE_KEYS, floor, limit).await
    }

    async fn prune_acked(&mut self, caller: &Caller, floor: Timestamp, limit: usize) -> Result<Pruned, EngineError> {
        self.prune(caller, PRUNE_ACKED, floor, limit).await
    }

    async fn expiring_queues(
        &mut self,
        caller: &Caller,
        after: QueueId,
        limit: usize,
    ) -> Result<Vec<QueueId>, EngineError> {
        let limit: i64 = narrow(limit, "expiring_queues", "limit")?;
        let rows = self.rows(caller, EXPIRING_QUEUES, Args::new().with(after.0).with(limit)).await?;
        rows.iter().map(|row| get(row, "expiring_queues", "id").map(QueueId)).collect()
    }

    async fn expire(
        &mut self,
        caller: &Caller,
        queues: &[(QueueId, Timestamp)],
        limit: usize,
    ) -> Result<Expired, EngineError> {
        let (ids, floors): (Vec<i32>, Vec<Moment>) =
            queues.iter().map(|(queue, floor)| (queue.0, Moment(*floor))).unzip();
        let arguments = Args::new().with(ids).with(floors).with(narrow::<i32, _>(limit, "expire", "limit")?);
        let row = self.row(caller, EXPIRE, arguments).await?;
        let readied: Vec<i32> = get(&row, "expire", "readied")?;
        let floors: Option<Vec<Moment>> = get(&row, "expire", "next_floors")?;
        let floors = one_each(floors.unwrap_or_default(), queues.len(), "expire", "next_floors")?;
        Ok(Expired {
            jobs: narrow(get::<i64>(&row, "expire", "dead")?, "expire", "dead")?,
            readied: readied.into_iter().map(QueueId).collect(),
            floors: floors.into_iter().map(|floor| floor.0).collect(),
        })
    }
}

impl PgSession {
    async fn prune(
        &mut self,
        caller: &Caller,
        statement: &'static str,
        floor: Timestamp,
        limit: usize,
    ) -> Result<Pruned, EngineError> {
        let row = self.row(caller, statement, walk(floor, limit, "prune")?).await?;
        Ok(Pruned {
            rows: narrow(get::<i64>(&row, "prune", "removed")?, "prune", "removed")?,
            floor: get::<Moment>(&row, "prune", "next_floor")?.0,
        })
    }
}

fn walk(floor: Timestamp, limit: usize, act: &str) -> Result<Args, EngineError> {
    Ok(Args::new().with(Moment(floor)).with(narrow::<i32, _>(limit, act, "limit")?))
}
