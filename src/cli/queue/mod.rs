//! `leasehold queue`.

mod remove;
mod see;
mod settings;
mod steer;

use clap::Subcommand;

use self::{
    remove::{Delete, Purge},
    see::{List, Show},
    steer::{Create, Disable, Enable, Pause, Resume, Update},
};
use super::{Exit, broker::Failed};

#[derive(Debug, Subcommand)]
pub(super) enum QueueCommand {
    /// List queues with what waits in them
    List(List),
    /// Show one queue: counts, rates, settings
    Show(Show),
    /// Create a queue
    Create(Create),
    /// Change a queue's settings
    Update(Update),
    /// Lease no job of a queue until it is resumed; jobs are still let in
    Pause(Pause),
    /// Lease jobs of a queue again
    Resume(Resume),
    /// Let no job into a queue until it is enabled; those that are there are still leased
    Disable(Disable),
    /// Let jobs into a queue again
    Enable(Enable),
    /// Remove jobs of a queue; leased ones stay
    Purge(Purge),
    /// Remove a queue with its settings, idempotency keys and dead jobs
    Delete(Delete),
}

impl QueueCommand {
    pub(super) async fn run(self) -> Result<Exit, Failed> {
        match self {
            Self::List(list) => list.run().await,
            Self::Show(show) => show.run().await,
            Self::Create(create) => create.run().await,
            Self::Update(update) => update.run().await,
            Self::Pause(pause) => pause.run().await,
            Self::Resume(resume) => resume.run().await,
            Self::Disable(disable) => disable.run().await,
            Self::Enable(enable) => enable.run().await,
            Self::Purge(purge) => purge.run().await,
            Self::Delete(delete) => delete.run().await,
        }
    }
}
