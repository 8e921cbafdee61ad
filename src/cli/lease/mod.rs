//! `leasehold lease`.

mod exec;
mod print;
mod stream;

use std::time::Duration;

use clap::Args;

use self::stream::Ask;
use super::{
    Exit,
    broker::{Failed, Target},
    flag,
    output::Output,
    signals::Signals,
};

/// `leasehold lease`.
#[derive(Debug, Args)]
#[command(
    after_help = "Without --exec jobs are printed: one unless --count, --follow or --ack says otherwise, each on a line: lease token, \
job, queue, attempt, payload. They stay leased until 'leasehold ack' or 'leasehold nack' gets their tokens, or their leases end.\n\n\
With --exec the command gets the payload on stdin and facts in LEASEHOLD_JOB_* variables. Exit code 0 acks the job, 65 rejects it, \
75 releases it, any other one has it tried again later with the end of stderr as its error. The lease is extended while the command runs."
)]
pub(super) struct Lease {
    /// The queues, served in turn
    #[arg(value_name = "QUEUE", required = true)]
    queues: Vec<String>,
    /// Lease at most so many jobs, then end
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Wait for further jobs where there is none; without it the command ends once nothing is ready; a paused queue is
    /// waited for
    #[arg(long)]
    follow: bool,
    /// Ack each job once it is printed
    #[arg(long, conflicts_with = "exec")]
    ack: bool,
    /// Jobs held at once
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    parallel: u32,
    /// How long a lease lasts; the queue's setting where it is not given
    #[arg(long = "lease", value_name = "TIME", value_parser = flag::span)]
    duration: Option<Duration>,
    /// Shown to operators; host name and process number where it is not given
    #[arg(long, value_name = "NAME")]
    consumer: Option<String>,
    #[command(flatten)]
    exec: exec::Flags,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    target: Target,
}

impl Lease {
    pub(super) async fn run(self) -> Result<Exit, Failed> {
        let signals = Signals::listen()
            .map_err(|error| Failed::new(Exit::Failure, format!("signals cannot be heard: {error}")))?;
        let ask = Ask {
            queues: self.queues.clone(),
            consumer: self.consumer.clone().unwrap_or_else(own_name),
            lease: self.duration.map(flag::wire),
            stop_when_empty: !self.follow,
            patience: (!self.follow).then_some(self.target.timeout),
        };
        match self.exec.plan(&self.target, self.output) {
            Some(plan) => exec::work(&self, ask, plan, signals).await,
            None => print::print(&self, ask, signals).await,
        }
    }
}

/// Who this is, for operators.
fn own_name() -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let host: String = host.chars().filter(char::is_ascii_graphic).take(150).collect();
    format!("{host}/{}", std::process::id())
}
