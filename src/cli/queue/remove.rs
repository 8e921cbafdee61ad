//! `leasehold queue purge` and `delete`.

use clap::{Args, ValueEnum};
use prost_types::Timestamp;
use serde::Serialize;

use crate::{
    cli::{
        Exit,
        broker::{Broker, Failed, Target},
        flag,
        output::{Output, confirm::Confirm, queue},
        steps::Steps,
    },
    v1::{Count, DeleteQueueRequest, JobState, PurgeQueueRequest},
};

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Removable {
    Ready,
    Scheduled,
    Blocked,
    Dead,
    Acked,
}

impl From<Removable> for JobState {
    fn from(state: Removable) -> Self {
        match state {
            Removable::Ready => Self::Ready,
            Removable::Scheduled => Self::Scheduled,
            Removable::Blocked => Self::Blocked,
            Removable::Dead => Self::Dead,
            Removable::Acked => Self::Acked,
        }
    }
}

/// `leasehold queue purge`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Purge {
    /// The queue
    queue: String,
    /// States of the jobs to remove
    #[arg(long, value_name = "STATE", value_enum, value_delimiter = ',', required = true)]
    state: Vec<Removable>,
    /// Remove at most so many, the oldest first
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// Only jobs enqueued before this instant, or longer ago than this
    #[arg(long, value_name = "WHEN", value_parser = flag::instant)]
    enqueued_before: Option<Timestamp>,
    /// Count, remove nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    confirm: Confirm,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    target: Target,
}

/// `leasehold queue delete`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Delete {
    /// The queue
    queue: String,
    /// Remove its live jobs first; without it a queue that has any is left alone
    #[arg(long)]
    purge: bool,
    #[command(flatten)]
    confirm: Confirm,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    target: Target,
}

#[derive(Serialize)]
struct RemovedJson<'a> {
    queue: &'a str,
    removed: u64,
    done: bool,
}

#[derive(Serialize)]
struct WouldRemoveJson<'a> {
    queue: &'a str,
    would_remove: i64,
    at_least: bool,
}

impl Purge {
    pub(super) async fn run(self) -> Result<Exit, Failed> {
        let broker = self.target.connect().await?;
        if self.dry_run {
            let count = self.count(&broker).await?;
            if self.output.json {
                let (would_remove, at_least) = (count.value, count.at_least);
                Output::object(&WouldRemoveJson { queue: &self.queue, would_remove, at_least })?;
            } else {
                Output::line(&format!("would remove {} jobs", queue::count(Some(&count))))?;
            }
            return Ok(Exit::Ok);
        }
        if !self.confirm.yes {
            let count = queue::count(Some(&self.count(&broker).await?));
            self.confirm.ask(&format!("Remove {count} jobs of queue {}", self.queue))?;
        }
        let (mut removed, mut done) = (0, false);
        let frames = broker.admin().purge_queue(broker.stream(self.request(false))).await?.into_inner();
        let mut steps = Steps::of(frames, "removed", "jobs removed")?;
        while let Some(frame) = steps.next(|frame| frame.removed).await? {
            (removed, done) = (frame.removed, frame.done);
        }
        drop(steps);
        end(self.output, &self.queue, removed, done)
    }

    fn request(&self, dry_run: bool) -> PurgeQueueRequest {
        PurgeQueueRequest {
            queue: self.queue.clone(),
            states: self.state.iter().map(|state| JobState::from(*state).into()).collect(),
            limit: self.limit.unwrap_or(0),
            enqueued_before: self.enqueued_before,
            dry_run,
        }
    }

    async fn count(&self, broker: &Broker) -> Result<Count, Failed> {
        let mut frames = broker.admin().purge_queue(broker.call(self.request(true))).await?.into_inner();
        let mut count = Count::default();
        while let Some(frame) = frames.message().await? {
            count = frame.would_remove.unwrap_or(count);
        }
        Ok(count)
    }
}

impl Delete {
    pub(super) async fn run(self) -> Result<Exit, Failed> {
        let broker = self.target.connect().await?;
        let what = if self.purge { " and all its jobs" } else { " and its dead jobs" };
        self.confirm.ask(&format!("Delete queue {}{what}", self.queue))?;
        let (mut removed, mut done) = (0, false);
        let request = DeleteQueueRequest { queue: self.queue.clone(), purge: self.purge };
        let frames = broker.admin().delete_queue(broker.stream(request)).await?.into_inner();
        let mut steps = Steps::of(frames, "removed", "jobs removed")?;
        while let Some(frame) = steps.next(|frame| frame.removed).await? {
            (removed, done) = (frame.removed, frame.done);
        }
        drop(steps);
        end(self.output, &self.queue, removed, done)
    }
}

/// Prints what was removed. A stream that ends before its last frame has not done all.
fn end(output: Output, queue: &str, removed: u64, done: bool) -> Result<Exit, Failed> {
    if output.json {
        Output::object(&RemovedJson { queue, removed, done })?;
    } else {
        Output::line(&format!("removed {removed} jobs"))?;
    }
    if done {
        return Ok(Exit::Ok);
    }
    Err(Failed::new(Exit::Unavailable, "the broker ended the call before all was done: run the same command again"))
}
