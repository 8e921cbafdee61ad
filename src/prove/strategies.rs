//! What a lock outside of the database does beside it.
//!
//! The same jobs are worked on by the same number of workers in three ways: under a Redis lock that is released before the
//! commit, under one that is released after it with the job looked at again inside, and by SKIP LOCKED alone.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use redis::{AsyncCommands, ExistenceCheck, SetExpiry, SetOptions, aio::MultiplexedConnection};
use secrecy::ExposeSecret;
use serde::Serialize;
use tokio::{sync::Barrier, task::JoinSet};

use super::{
    ProveOptions, Refused,
    database::{Connection, Target, Trouble},
    rows::Tables,
};

/// A lock that its holder lost is free again after this long.
const LOCK_LASTS_MS: u64 = 30_000;
/// A worker that did not get a job looks for another one after this long.
const PAUSE: Duration = Duration::from_millis(1);

/// How a job gets its one worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// A Redis lock around the work, released before the commit.
    RedisLock,
    /// A Redis lock released after the commit; under it the job is looked at again.
    RedisLockCheckedTwice,
    /// The row's own lock.
    SkipLocked,
}

impl Strategy {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::RedisLock, Self::RedisLockCheckedTwice, Self::SkipLocked];

    fn needs_redis(self) -> bool {
        self != Self::SkipLocked
    }
}

/// What came of one strategy.
#[derive(Debug, Clone, Serialize)]
pub struct StrategyRun {
    /// Which one.
    pub strategy: Strategy,
    /// From the first look to the last commit.
    #[serde(rename = "wall_seconds", serialize_with = "super::seconds")]
    pub wall: Duration,
    /// Times that a job's work took effect.
    pub processed: usize,
    /// Of these, those that took effect before.
    pub duplicates: usize,
    /// Looks at a job that somebody else had, or had done; with SKIP LOCKED, looks that found none.
    pub skipped: usize,
}

/// Tries every strategy that the options allow.
pub(super) async fn run(options: &ProveOptions, target: &Target, tables: &Tables) -> Result<Vec<StrategyRun>, Refused> {
    let redis = match &options.redis {
        Some(url) => Some(redis::Client::open(url.expose_secret()).map_err(|error| away(&error))?),
        None => None,
    };
    let mut runs = Vec::new();
    for strategy in Strategy::ALL {
        if strategy.needs_redis() && redis.is_none() {
            continue;
        }
        tables.fill(&mut target.connect().await?, options.jobs).await?;
        runs.push(one(options, target, tables, redis.as_ref(), strategy).await?);
    }
    Ok(runs)
}

fn away(error: &redis::RedisError) -> Refused {
    Refused(format!("Redis: {error}"))
}

async fn one(
    options: &ProveOptions,
    target: &Target,
    tables: &Tables,
    redis: Option<&redis::Client>,
    strategy: Strategy,
) -> Result<StrategyRun, Refused> {
    let mut workers = JoinSet::new();
    let start = Arc::new(Barrier::new(options.job_workers + 1));
    for worker in 0..options.job_workers {
        let locks = match redis {
            Some(client) => Some(client.get_multiplexed_async_connection().await.map_err(|error| away(&error))?),
            None => None,
        };
        let mut worker = Worker {
            number: worker,
            connection: target.connect().await?,
            locks,
            tables: tables.clone(),
            work: options.job_work,
        };
        let start = Arc::clone(&start);
        workers.spawn(async move {
            start.wait().await;
            worker.run(strategy).await
        });
    }
    start.wait().await;
    let begun = Instant::now();
    let mut skipped = 0;
    while let Some(worker) = workers.join_next().await {
        skipped += worker.map_err(|error| Refused(error.to_string()))??;
    }
    let wall = begun.elapsed();
    let effects = target.connect().await?.numbers(&format!("select job_id from {}", tables.effect)).await;
    let mut effects = effects.map_err(refused)?;
    let processed = effects.len();
    effects.sort_unstable();
    effects.dedup();
    Ok(StrategyRun { strategy, wall, processed, duplicates: processed - effects.len(), skipped })
}

fn refused(trouble: Trouble) -> Refused {
    match trouble {
        Trouble::Other(refused) => refused,
        Trouble::Locked => Refused("a row stayed locked".into()),
        Trouble::Deadlock => Refused("a deadlock".into()),
    }
}

struct Worker {
    number: usize,
    connection: Connection,
    locks: Option<MultiplexedConnection>,
    tables: Tables,
    work: Duration,
}

impl Worker {
    /// Works until no job is left; says how many looks were in vain.
    async fn run(&mut self, strategy: Strategy) -> Result<usize, Refused> {
        let mut skipped = 0;
        loop {
            let found = match strategy {
                Strategy::RedisLock => self.lock_then_work(false).await?,
                Strategy::RedisLockCheckedTwice => self.lock_then_work(true).await?,
                Strategy::SkipLocked => self.claim_then_work().await?,
            };
            match found {
                Found::Worked => {}
                Found::Taken => {
                    skipped += 1;
                    tokio::time::sleep(PAUSE).await;
                }
                Found::Nothing => return Ok(skipped + usize::from(strategy == Strategy::SkipLocked)),
            }
        }
    }

    async fn claim_then_work(&mut self) -> Result<Found, Refused> {
        self.run_sql("begin").await?;
        let select =
            format!("select id from {} where done = 0 order by id limit 1 for update skip locked", self.tables.job);
        let Some(id) = self.first(&select).await? else {
            self.run_sql("commit").await?;
            return Ok(Found::Nothing);
        };
        self.take_effect(id).await?;
        self.run_sql("commit").await?;
        Ok(Found::Worked)
    }

    async fn lock_then_work(&mut self, check_twice: bool) -> Result<Found, Refused> {
        let job = self.tables.job.clone();
        self.run_sql("begin").await?;
        let Some(id) = self.first(&format!("select id from {job} where done = 0 order by id limit 1")).await? else {
            self.run_sql("commit").await?;
            return Ok(Found::Nothing);
        };
        let lock = format!("{job}:{id}");
        if !self.lock(&lock).await? {
            self.run_sql("commit").await?;
            return Ok(Found::Taken);
        }
        let open =
            !check_twice || self.first(&format!("select id from {job} where id = {id} and done = 0")).await?.is_some();
        if open {
            self.take_effect(id).await?;
        }
        if check_twice {
            self.run_sql("commit").await?;
            self.unlock(&lock).await?;
        } else {
            self.unlock(&lock).await?;
            self.run_sql("commit").await?;
        }
        Ok(if open { Found::Worked } else { Found::Taken })
    }

    async fn take_effect(&mut self, id: i64) -> Result<(), Refused> {
        tokio::time::sleep(self.work).await;
        let Tables { job, effect, .. } = self.tables.clone();
        self.run_sql(&format!("insert into {effect} (job_id, worker) values ({id}, {})", self.number)).await?;
        self.run_sql(&format!("update {job} set done = 1 where id = {id}")).await
    }

    async fn run_sql(&mut self, sql: &str) -> Result<(), Refused> {
        self.connection.run(sql).await.map_err(refused)
    }

    async fn first(&mut self, sql: &str) -> Result<Option<i64>, Refused> {
        Ok(self.connection.numbers(sql).await.map_err(refused)?.first().copied())
    }

    async fn lock(&mut self, name: &str) -> Result<bool, Refused> {
        let Some(locks) = &mut self.locks else { return Ok(true) };
        let options =
            SetOptions::default().conditional_set(ExistenceCheck::NX).with_expiration(SetExpiry::PX(LOCK_LASTS_MS));
        let set: Option<String> = locks.set_options(name, self.number, options).await.map_err(|error| away(&error))?;
        Ok(set.is_some())
    }

    async fn unlock(&mut self, name: &str) -> Result<(), Refused> {
        let Some(locks) = &mut self.locks else { return Ok(()) };
        locks.del::<_, ()>(name).await.map_err(|error| away(&error))
    }
}

enum Found {
    Worked,
    Taken,
    Nothing,
}
