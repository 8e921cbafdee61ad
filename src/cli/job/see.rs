//! `leasehold job show` and `list`.

use clap::{Args, ValueEnum};

use crate::{
    cli::{
        Exit,
        broker::{Failed, Target},
        output::{Output, escape, job},
        pages,
    },
    v1::{GetJobRequest, Job, JobState, ListJobsRequest},
};

/// `leasehold job show`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Show {
    /// The job
    #[arg(value_name = "JOB_ID")]
    job: String,
    /// Show its payload as well
    #[arg(long)]
    payload: bool,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    target: Target,
}

impl Show {
    pub(super) async fn run(self) -> Result<Exit, Failed> {
        let broker = self.target.connect().await?;
        let request = GetJobRequest { job_id: self.job, include_payload: self.payload };
        print(self.output, broker.admin().get_job(broker.call(request)).await?.into_inner().job, self.payload)
    }
}

/// Prints one job.
pub(super) fn print(output: Output, job: Option<Job>, with_payload: bool) -> Result<Exit, Failed> {
    let job = job.ok_or_else(|| Failed::new(Exit::Bug, "the broker's answer holds no job"))?;
    if output.json {
        Output::object(&job::json(&job, with_payload))?;
        return Ok(Exit::Ok);
    }
    job::facts(&job).print()?;
    if with_payload {
        Output::line(&format!("\n{}", escape::bytes(&job.payload)))?;
    }
    Ok(Exit::Ok)
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Listed {
    Ready,
    Scheduled,
    Blocked,
    Leased,
    Dead,
    Acked,
}

impl From<Listed> for JobState {
    fn from(state: Listed) -> Self {
        match state {
            Listed::Ready => Self::Ready,
            Listed::Scheduled => Self::Scheduled,
            Listed::Blocked => Self::Blocked,
            Listed::Leased => Self::Leased,
            Listed::Dead => Self::Dead,
            Listed::Acked => Self::Acked,
        }
    }
}

/// `leasehold job list`.
#[derive(Debug, Args)]
pub(in crate::cli) struct List {
    /// The queue
    queue: String,
    /// Only jobs in these states; all live ones where it is not given. Dead and acked only on their own
    #[arg(long, value_name = "STATE", value_enum, value_delimiter = ',')]
    state: Vec<Listed>,
    /// Only jobs of this ordering key
    #[arg(long, value_name = "KEY")]
    ordering_key: Option<String>,
    /// Only jobs that this business process enqueued
    #[arg(long, value_name = "NAME")]
    enqueued_by: Option<String>,
    /// Show payloads as well
    #[arg(long)]
    payload: bool,
    /// Print at most so many
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    limit: u32,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    target: Target,
}

impl List {
    pub(super) async fn run(self) -> Result<Exit, Failed> {
        let broker = self.target.connect().await?;
        let request = ListJobsRequest {
            queue: self.queue,
            states: self.state.iter().map(|state| JobState::from(*state).into()).collect(),
            ordering_key: self.ordering_key.unwrap_or_default(),
            caller: self.enqueued_by.unwrap_or_default(),
            include_payload: self.payload,
            ..ListJobsRequest::default()
        };
        let ask = async |page_size, page_token| {
            let request = ListJobsRequest { page_size, page_token, ..request.clone() };
            let page = broker.admin().list_jobs(broker.call(request)).await?.into_inner();
            Ok((page.jobs, page.next_page_token))
        };
        let mut all = Vec::new();
        pages::walk(self.limit, pages::PAGE, ask, |jobs| {
            if self.output.json {
                return jobs.iter().try_for_each(|job| Output::object(&job::json(job, self.payload)));
            }
            all.extend(jobs);
            Ok(())
        })
        .await?;
        if !self.output.json {
            Output::table(&job::table(&all, self.payload), "no such job")?;
        }
        Ok(Exit::Ok)
    }
}
