//! `leasehold dead`.

use clap::{Args, Subcommand};
use prost_types::Timestamp;
use serde::Serialize;

use super::{
    Exit,
    broker::{Failed, Target},
    flag,
    output::{Output, job, queue},
    pages,
    steps::Steps,
};
use crate::v1::{
    DeadFilter, DeadJobsOfQueue, ListDeadJobsRequest, RedriveDeadJobsRequest, redrive_dead_jobs_request::Which,
};

#[derive(Debug, Subcommand)]
pub(super) enum Dead {
    /// List dead jobs of a queue, the ones that died last first
    List(List),
    /// Make dead jobs live again: attempts start anew, all else stays
    Redrive(Redrive),
}

/// Which dead jobs; all that is given must hold.
#[derive(Debug, Args)]
#[command(next_help_heading = "Filter")]
struct Filter {
    /// Only jobs that died after this instant, or less long ago than this
    #[arg(long, value_name = "WHEN", value_parser = flag::instant)]
    died_after: Option<Timestamp>,
    /// Only jobs that died before this instant, or longer ago than this
    #[arg(long, value_name = "WHEN", value_parser = flag::instant)]
    died_before: Option<Timestamp>,
    /// Only jobs whose last error contains this text
    #[arg(long, value_name = "TEXT")]
    error_contains: Option<String>,
    /// Only jobs of this ordering key
    #[arg(long, value_name = "KEY")]
    ordering_key: Option<String>,
    /// Only jobs that this business process enqueued
    #[arg(long, value_name = "NAME")]
    enqueued_by: Option<String>,
}

impl Filter {
    fn wire(self) -> DeadFilter {
        DeadFilter {
            died_after: self.died_after,
            died_before: self.died_before,
            error_contains: self.error_contains.unwrap_or_default(),
            ordering_key: self.ordering_key.unwrap_or_default(),
            caller: self.enqueued_by.unwrap_or_default(),
        }
    }
}

/// `leasehold dead list`.
#[derive(Debug, Args)]
pub(super) struct List {
    /// The queue
    queue: String,
    #[command(flatten)]
    filter: Filter,
    #[command(flatten)]
    show: Shown,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
struct Shown {
    /// Show payloads as well
    #[arg(long)]
    payload: bool,
    /// Print at most so many
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    limit: u32,
}

/// `leasehold dead redrive`.
#[derive(Debug, Args)]
pub(super) struct Redrive {
    /// The queue whose dead jobs are meant
    #[arg(required_unless_present = "job", conflicts_with = "job")]
    queue: Option<String>,
    /// One job only
    #[arg(long, value_name = "JOB_ID", conflicts_with_all = ["died_after", "died_before", "error_contains", "ordering_key", "enqueued_by", "limit"])]
    job: Option<String>,
    /// Jobs at most, the ones that died first go first
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// Jobs a second at most
    #[arg(long, value_name = "COUNT", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    rate: u32,
    /// Count, change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    filter: Filter,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    target: Target,
}

#[derive(Serialize)]
struct RedrivenJson {
    redriven: u64,
    done: bool,
}

#[derive(Serialize)]
struct WouldRedriveJson {
    would_redrive: i64,
    at_least: bool,
}

impl Dead {
    pub(super) async fn run(self) -> Result<Exit, Failed> {
        match self {
            Self::List(list) => list.run().await,
            Self::Redrive(redrive) => redrive.run().await,
        }
    }
}

impl List {
    async fn run(self) -> Result<Exit, Failed> {
        let broker = self.target.connect().await?;
        let payload = self.show.payload;
        let request = ListDeadJobsRequest {
            queue: self.queue,
            filter: Some(self.filter.wire()),
            include_payload: payload,
            ..ListDeadJobsRequest::default()
        };
        let ask = async |page_size, page_token| {
            let request = ListDeadJobsRequest { page_size, page_token, ..request.clone() };
            let page = broker.admin().list_dead_jobs(broker.call(request)).await?.into_inner();
            Ok((page.jobs, page.next_page_token))
        };
        let mut all = Vec::new();
        pages::walk(self.show.limit, pages::PAGE, ask, |jobs| {
            if self.output.json {
                return jobs.iter().try_for_each(|job| Output::object(&job::json(job, payload)));
            }
            all.extend(jobs);
            Ok(())
        })
        .await?;
        if !self.output.json {
            Output::table(&job::dead_table(&all, payload), "no such dead job")?;
        }
        Ok(Exit::Ok)
    }
}

impl Redrive {
    async fn run(self) -> Result<Exit, Failed> {
        let broker = self.target.connect().await?;
        let which = match self.job {
            Some(job) => Which::JobId(job),
            None => Which::OfQueue(DeadJobsOfQueue {
                queue: self.queue.unwrap_or_default(),
                filter: Some(self.filter.wire()),
            }),
        };
        let request = RedriveDeadJobsRequest {
            which: Some(which),
            limit: self.limit.unwrap_or(0),
            rate: self.rate,
            dry_run: self.dry_run,
        };
        let (mut redriven, mut done, mut would) = (0, false, None);
        let frames = broker.admin().redrive_dead_jobs(broker.stream(request)).await?.into_inner();
        let mut steps = Steps::of(frames, "redriven", "jobs redriven")?;
        while let Some(frame) = steps.next(|frame| frame.redriven).await? {
            (redriven, done) = (frame.redriven, frame.done);
            would = frame.would_redrive.or(would);
        }
        drop(steps);
        match (self.dry_run.then(|| would.unwrap_or_default()), self.output.json) {
            (Some(count), true) => {
                Output::object(&WouldRedriveJson { would_redrive: count.value, at_least: count.at_least })?;
            }
            (Some(count), false) => Output::line(&format!("would redrive {} jobs", queue::count(Some(&count))))?,
            (None, true) => Output::object(&RedrivenJson { redriven, done })?,
            (None, false) => Output::line(&format!("redrove {redriven} jobs"))?,
        }
        if done || self.dry_run {
            return Ok(Exit::Ok);
        }
        Err(Failed::new(Exit::Unavailable, "the broker ended the call before all was done: run the same command again"))
    }
}
