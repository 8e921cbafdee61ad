//! Changing what becomes of jobs, at an operator's wish.

use async_trait::async_trait;

use super::{
    inspect::{filter, next_place, place},
    session::{Args, PgSession},
    value::{Moment, get, narrow, one_each},
};
use crate::{
    model::{Caller, JobId, QueueId, StreamId},
    store::{
        engine::{Cancelled, CancelledJobs, DeadJobs, RedriveStep, Redriven, RunNow, Steering},
        error::EngineError,
    },
};

const CANCEL: &str = include_str!("sql/cancel.sql");
const RUN_NOW: &str = include_str!("sql/run_now.sql");
const REDRIVE_JOBS: &str = include_str!("sql/redrive_jobs.sql");
const REDRIVE_QUEUE: &str = include_str!("sql/redrive_queue.sql");

#[async_trait]
impl Steering for PgSession {
    async fn cancel(&mut self, caller: &Caller, jobs: &[JobId]) -> Result<CancelledJobs, EngineError> {
        if jobs.is_empty() {
            return Ok(CancelledJobs { jobs: Vec::new(), readied: Vec::new() });
        }
        let ids: Vec<i64> = jobs.iter().map(|job| job.0).collect();
        let row = self.row(caller, CANCEL, Args::new().with(ids)).await?;
        let outcomes: Vec<i16> = one_each(get(&row, "cancel", "outcomes")?, jobs.len(), "cancel", "outcomes")?;
        let streams: Vec<Option<i64>> = one_each(get(&row, "cancel", "streams")?, jobs.len(), "cancel", "streams")?;
        let cancelled = |(code, stream): (i16, Option<i64>)| match code {
            1 => Ok(Cancelled::Removed),
            2 => Ok(Cancelled::Requested(stream.map(StreamId::from_bits))),
            3 => Ok(Cancelled::Gone),
            4 => Ok(Cancelled::Busy),
            _ => Err(EngineError::Bug(format!("cancel: outcome {code}"))),
        };
        Ok(CancelledJobs {
            jobs: outcomes.into_iter().zip(streams).map(cancelled).collect::<Result<_, _>>()?,
            readied: get::<Vec<i32>>(&row, "cancel", "readied")?.into_iter().map(QueueId).collect(),
        })
    }

    async fn run_now(&mut self, caller: &Caller, job: JobId) -> Result<RunNow, EngineError> {
        let row = self.row(caller, RUN_NOW, Args::new().with(job.0)).await?;
        match (get::<i16>(&row, "run_now", "outcome")?, get::<Option<i32>>(&row, "run_now", "queue")?) {
            (1, Some(queue)) => Ok(RunNow::Readied(QueueId(queue))),
            (2, _) => Ok(RunNow::Blocked),
            (3, _) => Ok(RunNow::Unchanged),
            (4, _) => Ok(RunNow::Gone),
            (5, _) => Ok(RunNow::Busy),
            (code, _) => Err(EngineError::Bug(format!("run_now: outcome {code}"))),
        }
    }

    async fn redrive(&mut self, caller: &Caller, step: &RedriveStep) -> Result<Redriven, EngineError> {
        let row = match &step.which {
            DeadJobs::Ids(jobs) => {
                let ids: Vec<i64> = jobs.iter().take(step.limit).map(|job| job.0).collect();
                self.row(caller, REDRIVE_JOBS, Args::new().with(ids)).await?
            }
            DeadJobs::OfQueue { queue, filter: wanted, after, until, rows } => {
                let arguments = place(Args::new().with(queue.0), *after)
                    .with(until.map(Moment))
                    .with(narrow::<i32, _>(*rows, "redrive", "rows")?)
                    .with(narrow::<i32, _>(step.limit, "redrive", "limit")?);
                self.row(caller, REDRIVE_QUEUE, filter(arguments, wanted)).await?
            }
        };
        let Some(until) = get::<Option<Moment>>(&row, "redrive", "redriven_until")? else {
            return Err(EngineError::QueueClosed);
        };
        Ok(Redriven {
            jobs: get::<Vec<i64>>(&row, "redrive", "jobs")?.into_iter().map(JobId).collect(),
            readied: get::<Vec<i32>>(&row, "redrive", "readied")?.into_iter().map(QueueId).collect(),
            until: until.0,
            next: next_place(&row)?,
        })
    }
}
