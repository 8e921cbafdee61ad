//! Which leases hold.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    time::Duration,
};

use sqlx::mysql::MySqlRow;

use super::{
    fate::Place,
    keys::OrderingKey,
    literal::{filled, literal},
    record::{priority, tier},
    session::{Answer, MysqlSession},
    value::{column, lease, list, moment, name, narrow, place},
};
use crate::{
    model::{Backoff, Caller, JobId, LeaseId, NackAction, Priority, QueueId, Timestamp},
    store::{
        engine::{Held, LeaseRef},
        error::EngineError,
    },
};

const LOCK_JOBS: &str = include_str!("sql/lock_jobs.sql");
const READ_LEASES: &str = include_str!("sql/read_leases.sql");

/// A job that this transaction has locked.
#[derive(Debug, Clone)]
pub(super) struct LockedJob {
    pub(super) id: i64,
    pub(super) queue: QueueId,
    pub(super) priority: Priority,
    pub(super) max_attempts: u32,
    pub(super) cancel_requested: bool,
    pub(super) available_at: Timestamp,
    pub(super) ready_at: Timestamp,
    pub(super) position: i64,
    pub(super) ordering_key: Option<String>,
}

impl LockedJob {
    /// Where it stands among the ready ones, if it does.
    pub(super) fn place(&self) -> Place {
        (self.queue.0, tier(self.priority), self.ready_at.0, self.id)
    }

    pub(super) fn key(&self) -> Option<OrderingKey> {
        self.ordering_key.clone().map(|key| (self.queue, key))
    }
}

/// A lease that holds, and its job, which is locked.
#[derive(Debug, Clone)]
pub(super) struct HeldLease {
    /// Its place among those asked for.
    pub(super) n: usize,
    pub(super) job: JobId,
    pub(super) queue: QueueId,
    pub(super) priority: Priority,
    pub(super) ordering_key: Option<String>,
    pub(super) available_at: Timestamp,
    pub(super) attempt: u32,
    pub(super) max_attempts: u32,
    pub(super) lease_number: i64,
    pub(super) until: Timestamp,
    /// Microseconds.
    pub(super) granted_for: i64,
    pub(super) cancel_requested: bool,
    /// The stream that it was claimed for.
    pub(super) stream: Option<i64>,
    pub(super) backoff: Backoff,
    /// The queue keeps its acked jobs.
    pub(super) kept: bool,
    /// When this was read.
    pub(super) now: Timestamp,
}

impl MysqlSession {
    /// Those leases that hold, their jobs locked. One that is asked for twice is found once, where it comes first: the act on
    /// it ends it.
    pub(super) async fn held(&mut self, caller: &Caller, leases: &[LeaseRef]) -> Result<Vec<HeldLease>, EngineError> {
        self.find_held(caller, leases).await.map(each_once)
    }

    /// The same with every mention of a lease, in the order of the mentions.
    pub(super) async fn find_held(
        &mut self,
        caller: &Caller,
        leases: &[LeaseRef],
    ) -> Result<Vec<HeldLease>, EngineError> {
        let [lock, read] = held_texts(leases)?;
        let found = self.answers(caller, [&lock, &read]).await?;
        find_held_in(leases, &found)
    }

    /// The leases of jobs that are locked.
    pub(super) async fn leases_of(
        &mut self,
        caller: &Caller,
        locked: &BTreeMap<i64, LockedJob>,
    ) -> Result<HashMap<(JobId, LeaseId), HeldLease>, EngineError> {
        let ids: Vec<i64> = locked.keys().copied().collect();
        let read = self.statement(caller, READ_LEASES).bind(list(&ids)?);
        leases_in(&self.read(read).await?, locked)
    }

    /// Locks those of the jobs that nobody holds.
    pub(super) async fn lock_jobs(
        &mut self,
        caller: &Caller,
        jobs: &BTreeSet<i64>,
    ) -> Result<BTreeMap<i64, LockedJob>, EngineError> {
        if jobs.is_empty() {
            return Ok(BTreeMap::new());
        }
        let lock = self.statement(caller, LOCK_JOBS).bind(list(jobs)?);
        jobs_in(&self.read(lock).await?)
    }

    /// What to answer about jobs whose leases do not hold (and, to no effect, about the others): busy where the lease stands
    /// and the job was locked by somebody else, lost where the job lives under another lease, waits or is dead, gone where
    /// there is none. Looked at after the act, so what it ended has ended.
    pub(super) async fn missed(
        &mut self,
        caller: &Caller,
        leases: &[LeaseRef],
        held: &[HeldLease],
    ) -> Result<Vec<Held>, EngineError> {
        let mut answers = vec![Held::Gone; leases.len()];
        if held.len() == leases.len() {
            return Ok(answers);
        }
        let jobs: Vec<(usize, i64)> = leases.iter().enumerate().map(|(n, lease)| (n, lease.job.0)).collect();
        let find = self.statement(caller, include_str!("sql/misses.sql")).bind(list(&jobs)?);
        for row in self.read(find).await? {
            let n = place(&row, leases.len())?;
            let live = column::<Option<i64>>(&row, "live")?.is_some();
            let dead = column::<Option<i64>>(&row, "dead")?.is_some();
            let stands =
                column::<Option<Vec<u8>>>(&row, "token")?.is_some_and(|token| token == leases[n].lease.0.to_be_bytes());
            answers[n] = match (live && stands, live || dead) {
                (true, _) => Held::Busy,
                (false, true) => Held::LeaseLost,
                (false, false) => Held::Gone,
            };
        }
        Ok(answers)
    }
}

/// Two texts for one trip: locks those of the jobs that nobody holds, and then reads the leases of all.
pub(super) fn held_texts(leases: &[LeaseRef]) -> Result<[String; 2], EngineError> {
    let jobs: BTreeSet<i64> = leases.iter().map(|lease| lease.job.0).collect();
    let jobs = literal(&list(&jobs)?)?;
    Ok([filled(LOCK_JOBS, &[&jobs])?, filled(READ_LEASES, &[&jobs])?])
}

/// What the two texts found, each lease where it comes first: the act on it ends it.
pub(super) fn held_in(leases: &[LeaseRef], found: &[Answer; 2]) -> Result<Vec<HeldLease>, EngineError> {
    find_held_in(leases, found).map(each_once)
}

/// The same with every mention of a lease, in the order of the mentions.
pub(super) fn find_held_in(leases: &[LeaseRef], [locked, read]: &[Answer; 2]) -> Result<Vec<HeldLease>, EngineError> {
    let found = leases_in(&read.rows, &jobs_in(&locked.rows)?)?;
    let of = |(n, lease): (usize, &LeaseRef)| {
        found.get(&(lease.job, lease.lease)).map(|held| HeldLease { n, ..held.clone() })
    };
    Ok(leases.iter().enumerate().filter_map(of).collect())
}

fn each_once(mut held: Vec<HeldLease>) -> Vec<HeldLease> {
    let mut seen = HashSet::new();
    held.retain(|lease| seen.insert(lease.job));
    held
}

fn jobs_in(rows: &[MySqlRow]) -> Result<BTreeMap<i64, LockedJob>, EngineError> {
    let job = |row| {
        let id = column(row, "id")?;
        let job = LockedJob {
            id,
            queue: QueueId(narrow(row, "queue_id")?),
            priority: priority(column(row, "priority")?)?,
            max_attempts: narrow(row, "max_attempts")?,
            cancel_requested: column::<i64>(row, "cancel_requested")? != 0,
            available_at: moment(row, "available_at")?,
            ready_at: moment(row, "ready_at")?,
            position: column(row, "position")?,
            ordering_key: name(row, "ordering_key")?,
        };
        Ok((id, job))
    };
    rows.iter().map(job).collect()
}

fn leases_in(
    rows: &[MySqlRow],
    locked: &BTreeMap<i64, LockedJob>,
) -> Result<HashMap<(JobId, LeaseId), HeldLease>, EngineError> {
    let mut found = HashMap::new();
    for row in rows {
        let job = JobId(column(row, "job_id")?);
        if let Some(locked) = locked.get(&job.0) {
            found.insert((job, lease(row, "token")?), HeldLease::from_row(row, job, locked)?);
        }
    }
    Ok(found)
}

impl HeldLease {
    fn from_row(row: &MySqlRow, job: JobId, locked: &LockedJob) -> Result<Self, EngineError> {
        let duration = |name| Ok::<_, EngineError>(Duration::from_micros(narrow(row, name)?));
        Ok(Self {
            n: 0,
            job,
            queue: locked.queue,
            priority: locked.priority,
            ordering_key: locked.ordering_key.clone(),
            available_at: locked.available_at,
            attempt: narrow(row, "attempt")?,
            max_attempts: locked.max_attempts,
            lease_number: column(row, "lease_number")?,
            until: moment(row, "lease_until")?,
            granted_for: column(row, "duration")?,
            cancel_requested: locked.cancel_requested,
            stream: column(row, "stream")?,
            backoff: Backoff { base: duration("backoff_base")?, cap: duration("backoff_cap")? },
            kept: column::<i64>(row, "kept")? != 0,
            now: moment(row, "now")?,
        })
    }

    pub(super) fn key(&self) -> Option<OrderingKey> {
        self.ordering_key.clone().map(|key| (self.queue, key))
    }

    pub(super) fn dies(&self, action: NackAction) -> bool {
        match action {
            NackAction::Reject => true,
            NackAction::Retry => self.attempt >= self.max_attempts,
            NackAction::Release => false,
        }
    }
}
