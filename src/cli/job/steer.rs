//! `leasehold job cancel` and `run`.

use clap::Args;
use serde::Serialize;

use super::see;
use crate::{
    cli::{
        Exit,
        broker::{Failed, Target},
        output::{Output, confirm::Confirm, table::Table},
    },
    v1::{CancelJobRequest, CancelStatus, RunJobNowRequest},
};

/// Jobs of one call.
const BATCH: usize = 1_000;

/// `leasehold job cancel`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Cancel {
    /// The jobs
    #[arg(value_name = "JOB_ID", required = true)]
    jobs: Vec<String>,
    #[command(flatten)]
    confirm: Confirm,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    target: Target,
}

#[derive(Serialize)]
struct CancelledJson<'a> {
    job_id: &'a str,
    status: &'static str,
}

impl Cancel {
    pub(super) async fn run(self) -> Result<Exit, Failed> {
        let broker = self.target.connect().await?;
        self.confirm.ask(&format!(
            "Cancel {}",
            match &self.jobs[..] {
                [only] => format!("job {}", crate::cli::output::escape::text(only)),
                many => format!("{} jobs", many.len()),
            }
        ))?;
        let mut table = Table::new(&["JOB", "STATUS", "REMARKS"]);
        let mut worst = Exit::Ok;
        for jobs in self.jobs.chunks(BATCH) {
            let request = broker.call(CancelJobRequest { job_ids: jobs.to_vec() });
            let results = broker.admin().cancel_job(request).await?.into_inner().results;
            for (job, result) in jobs.iter().zip(results) {
                let (status, remarks, exit) = words(result.status());
                if worst != Exit::NotFound && exit != Exit::Ok {
                    worst = exit;
                }
                if self.output.json {
                    Output::object(&CancelledJson { job_id: job, status })?;
                } else {
                    table.row([job.clone(), status.to_owned(), remarks.to_owned()]);
                }
            }
        }
        if !self.output.json {
            Output::table(&table, "nothing was answered")?;
        }
        Ok(worst)
    }
}

/// A status for programs, what it means, and how the program ends.
fn words(status: CancelStatus) -> (&'static str, &'static str, Exit) {
    match status {
        CancelStatus::Cancelled => ("cancelled", "it is gone", Exit::Ok),
        CancelStatus::Requested => {
            ("requested", "it is leased: its consumer is told, and it does not come back", Exit::Ok)
        }
        CancelStatus::Gone => ("gone", "there is no such live job", Exit::NotFound),
        CancelStatus::Busy => ("busy", "somebody's open transaction holds it: ask again", Exit::TryLater),
        CancelStatus::Unspecified => ("unknown", "the broker is newer than this program", Exit::Failure),
    }
}

/// `leasehold job run`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Run {
    /// The job
    #[arg(value_name = "JOB_ID")]
    job: String,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    target: Target,
}

impl Run {
    pub(super) async fn run(self) -> Result<Exit, Failed> {
        let broker = self.target.connect().await?;
        let request = RunJobNowRequest { job_id: self.job };
        see::print(self.output, broker.admin().run_job_now(broker.call(request)).await?.into_inner().job, false)
    }
}
