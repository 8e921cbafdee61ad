//! `leasehold queue create`, `update`, `pause`, `resume`, `disable` and `enable`.

use clap::Args;
use prost_types::FieldMask;

use super::{see, settings::Settings};
use crate::{
    cli::{
        Exit,
        broker::{Failed, Target},
        exit::note,
        output::Output,
    },
    v1::{QueueSettings, UpdateQueueRequest},
};

/// A queue that is to be changed.
#[derive(Debug, Args)]
struct Which {
    /// The queue
    queue: String,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    target: Target,
}

impl Which {
    /// Sends the change and prints the queue as it is now.
    async fn update(self, settings: QueueSettings, mask: FieldMask, create: bool) -> Result<Exit, Failed> {
        let broker = self.target.connect().await?;
        let request =
            UpdateQueueRequest { queue: self.queue.clone(), settings: Some(settings), update_mask: Some(mask), create };
        let answer = broker.admin().update_queue(broker.call(request)).await?.into_inner();
        note(&format_args!("{} queue {}", if answer.created { "created" } else { "updated" }, self.queue));
        see::print(self.output, answer.queue)
    }

    async fn set(self, field: &str, settings: QueueSettings) -> Result<Exit, Failed> {
        self.update(settings, FieldMask { paths: vec![field.to_owned()] }, false).await
    }
}

/// `leasehold queue create`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Create {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    settings: Settings,
}

/// `leasehold queue update`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Update {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    settings: Settings,
}

/// `leasehold queue pause`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Pause {
    #[command(flatten)]
    which: Which,
}

/// `leasehold queue resume`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Resume {
    #[command(flatten)]
    which: Which,
}

/// `leasehold queue disable`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Disable {
    /// Why: told to everybody who enqueues
    #[arg(long, value_name = "TEXT", required = true)]
    reason: String,
    #[command(flatten)]
    which: Which,
}

/// `leasehold queue enable`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Enable {
    #[command(flatten)]
    which: Which,
}

impl Create {
    pub(super) async fn run(self) -> Result<Exit, Failed> {
        let (settings, mask) = wire(&self.settings)?;
        self.which.update(settings, mask, true).await
    }
}

impl Update {
    pub(super) async fn run(self) -> Result<Exit, Failed> {
        let (settings, mask) = wire(&self.settings)?;
        if mask.paths.is_empty() {
            return Err(Failed::new(Exit::BadConfiguration, "no setting was given: --help names them"));
        }
        self.which.update(settings, mask, false).await
    }
}

impl Pause {
    pub(super) async fn run(self) -> Result<Exit, Failed> {
        self.which.set("paused", QueueSettings { paused: Some(true), ..QueueSettings::default() }).await
    }
}

impl Resume {
    pub(super) async fn run(self) -> Result<Exit, Failed> {
        self.which.set("paused", QueueSettings { paused: Some(false), ..QueueSettings::default() }).await
    }
}

impl Disable {
    pub(super) async fn run(self) -> Result<Exit, Failed> {
        if self.reason.is_empty() {
            return Err(Failed::new(Exit::BadConfiguration, "--reason must not be empty"));
        }
        let disabled_reason = Some(self.reason);
        self.which.set("disabled_reason", QueueSettings { disabled_reason, ..QueueSettings::default() }).await
    }
}

impl Enable {
    pub(super) async fn run(self) -> Result<Exit, Failed> {
        let disabled_reason = Some(String::new());
        self.which.set("disabled_reason", QueueSettings { disabled_reason, ..QueueSettings::default() }).await
    }
}

fn wire(settings: &Settings) -> Result<(QueueSettings, FieldMask), Failed> {
    settings.wire().map_err(|why| Failed::new(Exit::BadConfiguration, why))
}
