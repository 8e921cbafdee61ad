//! `leasehold job`.

mod explain;
mod see;
mod steer;

use clap::Subcommand;

use self::{
    explain::Explain,
    see::{List, Show},
    steer::{Cancel, Run},
};
use super::{Exit, broker::Failed};

#[derive(Debug, Subcommand)]
pub(super) enum JobCommand {
    /// Show one job
    Show(Show),
    /// List jobs of a queue, oldest first
    List(List),
    /// Say why a job is not running, and what to do about it
    Explain(Explain),
    /// Cancel jobs: a leased one is told to stop and does not come back, others are gone
    Cancel(Cancel),
    /// Make a scheduled job ready now
    Run(Run),
}

impl JobCommand {
    pub(super) async fn run(self) -> Result<Exit, Failed> {
        match self {
            Self::Show(show) => show.run().await,
            Self::List(list) => list.run().await,
            Self::Explain(explain) => explain.run().await,
            Self::Cancel(cancel) => cancel.run().await,
            Self::Run(run) => run.run().await,
        }
    }
}
