//! What the experiments showed, for people.

use std::time::Duration;

use crate::{
    cli::{
        broker::Failed,
        output::{Output, table::Table},
    },
    prove::{
        ProveOptions, Report,
        clauses::{Clause, ClauseRun},
        gaps::GapRun,
        strategies::{Strategy, StrategyRun},
    },
};

/// Prints a table for each experiment that ran.
pub(super) fn print(report: &Report, options: &ProveOptions) -> Result<(), Failed> {
    let ProveOptions { workers, rows, work, jobs, job_workers, job_work, .. } = options;
    Output::line(&report.database)?;
    Output::line(&format!("\n{workers} workers share {rows} rows; the work of each takes {work:?}"))?;
    Output::table(&clauses(&report.clauses), "")?;
    Output::line(&format!("\n{job_workers} workers share {jobs} jobs; the work of each takes {job_work:?}"))?;
    Output::table(&strategies(&report.strategies), "")?;
    if !report.gaps.is_empty() {
        Output::line(&format!("\n{workers} workers look into an empty pool and refill it, and so does an inserter"))?;
        Output::table(&gaps(&report.gaps), "")?;
    }
    Ok(())
}

fn clauses(runs: &[ClauseRun]) -> Table {
    let mut table = Table::new(&[
        "CLAUSE",
        ">TIME",
        ">CLAIMS",
        ">DUPLICATES",
        ">LEFT",
        ">WORKERS STOPPED BY AN ERROR",
        "PER WORKER",
    ]);
    for run in runs {
        let per_worker: Vec<String> = run.per_worker.iter().map(ToString::to_string).collect();
        table.row([
            match run.clause {
                Clause::None => "(none)".into(),
                clause => clause.sql().into(),
            },
            time(run.wall),
            run.claims.to_string(),
            run.duplicates.to_string(),
            run.left.to_string(),
            run.errors.to_string(),
            per_worker.join(" "),
        ]);
    }
    table
}

fn strategies(runs: &[StrategyRun]) -> Table {
    let mut table = Table::new(&["ONE WORKER A JOB BY", ">TIME", ">PROCESSED", ">DUPLICATES", ">SKIPPED ATTEMPTS"]);
    for run in runs {
        table.row([
            match run.strategy {
                Strategy::RedisLock => "Redis lock, released before the commit".into(),
                Strategy::RedisLockCheckedTwice => "Redis lock, released after it, checked twice".into(),
                Strategy::SkipLocked => "SKIP LOCKED".into(),
            },
            time(run.wall),
            run.processed.to_string(),
            run.duplicates.to_string(),
            run.skipped.to_string(),
        ]);
    }
    table
}

fn gaps(runs: &[GapRun]) -> Table {
    let mut table = Table::new(&["ISOLATION", ">TIME", ">LOOKS", ">DEADLOCKS", ">INSERTS", ">OF THEM BLOCKED"]);
    for run in runs {
        table.row([
            run.isolation.into(),
            time(run.wall),
            run.looks.to_string(),
            run.deadlocks.to_string(),
            run.inserts.to_string(),
            run.blocked_inserts.to_string(),
        ]);
    }
    table
}

fn time(length: Duration) -> String {
    format!("{:.2} s", length.as_secs_f64())
}
