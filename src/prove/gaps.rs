//! What `InnoDB`'s gap locks do to an empty table.
//!
//! Workers look for a unit in an empty pool as a claim does, and refill it where they find none; an inserter refills it as well.
//! At REPEATABLE READ the look locks the gap in which the refill would go: inserts wait for every look's transaction, and two
//! looks that both refill deadlock. At READ COMMITTED there is no gap to lock.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use serde::Serialize;
use tokio::{sync::Barrier, task::JoinSet};

use super::{
    ProveOptions, Refused,
    database::{Connection, Target, Trouble},
    rows::Tables,
};

/// What came of one isolation level.
#[derive(Debug, Clone, Serialize)]
pub struct GapRun {
    /// Which one.
    pub isolation: &'static str,
    /// How long it was tried.
    #[serde(rename = "wall_seconds", serialize_with = "super::seconds")]
    pub wall: Duration,
    /// Looks that ended with a commit.
    pub looks: usize,
    /// Transactions that the server ended since they waited for each other.
    pub deadlocks: usize,
    /// Units that the inserter put there.
    pub inserts: usize,
    /// Inserts that waited for longer than half of a look's transaction, or for too long.
    pub blocked_inserts: usize,
}

#[derive(Default)]
struct Tally {
    done: usize,
    deadlocks: usize,
    blocked: usize,
}

/// Tries both levels.
pub(super) async fn run(options: &ProveOptions, target: &Target, tables: &Tables) -> Result<Vec<GapRun>, Refused> {
    let mut runs = Vec::new();
    for isolation in ["repeatable read", "read committed"] {
        target.connect().await?.must(&format!("delete from {}", tables.unit)).await?;
        runs.push(one(options, target, tables, isolation).await?);
    }
    Ok(runs)
}

async fn one(
    options: &ProveOptions,
    target: &Target,
    tables: &Tables,
    isolation: &'static str,
) -> Result<GapRun, Refused> {
    let start = Arc::new(Barrier::new(options.workers + 2));
    let next = Arc::new(AtomicI64::new(1));
    let (work, lasts) = (options.work, options.gaps_for);
    let mut looking = JoinSet::new();
    for _ in 0..options.workers {
        let mut connection = target.connect_at(isolation).await?;
        let (start, tables, next) = (Arc::clone(&start), tables.clone(), Arc::clone(&next));
        looking.spawn(async move {
            start.wait().await;
            let (end, mut tally) = (Instant::now() + lasts, Tally::default());
            while Instant::now() < end {
                match look(&mut connection, &tables, &next, work).await {
                    Ok(()) => tally.done += 1,
                    Err(Trouble::Deadlock) => tally.deadlocks += 1,
                    Err(Trouble::Locked) => connection.must("rollback").await?,
                    Err(Trouble::Other(refused)) => return Err(refused),
                }
            }
            Ok(tally)
        });
    }
    let mut connection = target.connect_at(isolation).await?;
    let (tables, begin) = (tables.clone(), Arc::clone(&start));
    let inserting = tokio::spawn(async move {
        begin.wait().await;
        let (end, mut tally) = (Instant::now() + lasts, Tally::default());
        while Instant::now() < end {
            let begun = Instant::now();
            let insert = format!("insert into {} (item, unit) values (1, {})", tables.unit, next.fetch_add(1, Relaxed));
            match connection.run(&insert).await {
                Ok(()) => tally.done += 1,
                Err(Trouble::Deadlock) => tally.deadlocks += 1,
                Err(Trouble::Locked) => {}
                Err(Trouble::Other(refused)) => return Err(refused),
            }
            tally.blocked += usize::from(begun.elapsed() > work / 2);
            tokio::time::sleep(work / 4).await;
        }
        Ok(tally)
    });
    start.wait().await;
    let begun = Instant::now();
    let ended = |error: tokio::task::JoinError| Refused(error.to_string());
    let inserted = inserting.await.map_err(ended)??;
    let mut looks = Tally::default();
    while let Some(tally) = looking.join_next().await {
        let tally = tally.map_err(ended)??;
        looks.done += tally.done;
        looks.deadlocks += tally.deadlocks;
    }
    Ok(GapRun {
        isolation,
        wall: begun.elapsed(),
        looks: looks.done,
        deadlocks: looks.deadlocks + inserted.deadlocks,
        inserts: inserted.done,
        blocked_inserts: inserted.blocked,
    })
}

/// Takes all units there are, and where there is none, puts one there.
async fn look(connection: &mut Connection, tables: &Tables, next: &AtomicI64, work: Duration) -> Result<(), Trouble> {
    let unit = &tables.unit;
    connection.run("begin").await?;
    let select = format!("select unit from {unit} where item = 1 order by unit limit 1 for update skip locked");
    if let Some(taken) = connection.numbers(&select).await?.first() {
        connection.run(&format!("delete from {unit} where item = 1 and unit = {taken}")).await?;
    } else {
        tokio::time::sleep(work).await;
        connection.run(&format!("insert into {unit} (item, unit) values (1, {})", next.fetch_add(1, Relaxed))).await?;
    }
    connection.run("commit").await
}
