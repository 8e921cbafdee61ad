//! What a lock clause does to workers that share one table.
//!
//! Each worker claims the first row that is not done, works on it inside of the transaction, marks it done and commits, until
//! it finds none. A worker whose statement is refused stops, as one would that takes an error for what it is.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde::Serialize;
use tokio::{sync::Barrier, task::JoinSet};

use super::{
    ProveOptions, Refused,
    database::{Connection, Target, Trouble},
    rows::Tables,
};

/// How a worker selects its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Clause {
    /// `for update skip locked`
    SkipLocked,
    /// `for update`
    ForUpdate,
    /// `for update nowait`
    NoWait,
    /// No clause.
    None,
}

impl Clause {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::SkipLocked, Self::ForUpdate, Self::NoWait, Self::None];

    /// As SQL has it.
    #[must_use]
    pub fn sql(self) -> &'static str {
        match self {
            Self::SkipLocked => "for update skip locked",
            Self::ForUpdate => "for update",
            Self::NoWait => "for update nowait",
            Self::None => "",
        }
    }
}

/// What came of one clause.
#[derive(Debug, Clone, Serialize)]
pub struct ClauseRun {
    /// Which one.
    pub clause: Clause,
    /// From the first claim to the last commit.
    #[serde(rename = "wall_seconds", serialize_with = "super::seconds")]
    pub wall: Duration,
    /// Rows whose work was done, as often as it was.
    pub claims: usize,
    /// Of these, those whose work had been done already.
    pub duplicates: usize,
    /// Rows that nobody worked on.
    pub left: usize,
    /// Statements that were refused since a row was locked, or to end a deadlock.
    pub errors: usize,
    /// Claims of each worker.
    pub per_worker: Vec<usize>,
}

/// Tries every clause.
pub(super) async fn run(options: &ProveOptions, target: &Target, tables: &Tables) -> Result<Vec<ClauseRun>, Refused> {
    let mut runs = Vec::new();
    for clause in Clause::ALL {
        tables.fill(&mut target.connect().await?, options.rows).await?;
        runs.push(one(options, target, tables, clause).await?);
    }
    Ok(runs)
}

struct Worked {
    worker: usize,
    claimed: Vec<i64>,
    refused: bool,
}

async fn one(options: &ProveOptions, target: &Target, tables: &Tables, clause: Clause) -> Result<ClauseRun, Refused> {
    let mut workers = JoinSet::new();
    let start = Arc::new(Barrier::new(options.workers + 1));
    for worker in 0..options.workers {
        let mut connection = target.connect().await?;
        let (start, tables, work) = (Arc::clone(&start), tables.clone(), options.work);
        workers.spawn(async move {
            start.wait().await;
            let mut worked = Worked { worker, claimed: Vec::new(), refused: false };
            loop {
                match claim(&mut connection, &tables, clause, work).await {
                    Ok(Some(id)) => worked.claimed.push(id),
                    Ok(None) => return Ok(worked),
                    Err(Trouble::Locked | Trouble::Deadlock) => {
                        worked.refused = true;
                        return Ok(worked);
                    }
                    Err(Trouble::Other(refused)) => return Err(refused),
                }
            }
        });
    }
    start.wait().await;
    let begun = Instant::now();
    let mut per_worker = vec![0; options.workers];
    let (mut claimed, mut errors) = (Vec::new(), 0);
    while let Some(worked) = workers.join_next().await {
        let worked = worked.map_err(|error| Refused(error.to_string()))??;
        per_worker[worked.worker] = worked.claimed.len();
        claimed.extend(worked.claimed);
        errors += usize::from(worked.refused);
    }
    let wall = begun.elapsed();
    let claims = claimed.len();
    claimed.sort_unstable();
    claimed.dedup();
    let (duplicates, left) = (claims - claimed.len(), options.rows - claimed.len());
    Ok(ClauseRun { clause, wall, claims, duplicates, left, errors, per_worker })
}

async fn claim(
    connection: &mut Connection,
    tables: &Tables,
    clause: Clause,
    work: Duration,
) -> Result<Option<i64>, Trouble> {
    let job = &tables.job;
    connection.run("begin").await?;
    let select = format!("select id from {job} where done = 0 order by id limit 1 {}", clause.sql());
    let Some(id) = connection.numbers(&select).await?.first().copied() else {
        connection.run("commit").await?;
        return Ok(None);
    };
    tokio::time::sleep(work).await;
    connection.run(&format!("update {job} set done = 1 where id = {id}")).await?;
    connection.run("commit").await?;
    Ok(Some(id))
}
