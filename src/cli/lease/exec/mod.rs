//! `leasehold lease --exec`: a command for each job.
//!
//! One loop (`worker.rs`) holds all state: the stream, the commands that run, the calls that settle. A job goes through it like
//! this: it comes from the stream, its command runs (`run.rs`: a process, and the lease that is extended meanwhile), its end becomes
//! a verdict (`verdict.rs`), the verdict is told to the broker (`settling.rs`) and counted (`tally.rs`).
//!
//! No job is lost: what was received is settled, or its lease ends and it runs elsewhere. And no more jobs are held than can run:
//! a stream's credit never exceeds the places that are free when it is opened. One whose credit is used up while places are free,
//! since jobs of an earlier stream have ended, is replaced by one with more credit, and by one with less where fewer jobs are wanted;
//! no job can be on its way at that moment.

mod process;
mod relay;
mod run;
mod settling;
mod tally;
mod verdict;
mod worker;

use std::{sync::Arc, time::Duration};

use clap::{Args, builder::NonEmptyStringValueParser};

use self::{relay::Relay, worker::Worker};
use super::{Lease, stream::Ask};
use crate::cli::{
    Exit,
    broker::{Failed, Target},
    flag,
    output::Output,
    signals::Signals,
};

/// How commands are run.
#[derive(Debug, Args)]
#[command(next_help_heading = "Commands")]
pub(super) struct Flags {
    /// Run 'sh -c COMMAND' for each job
    #[arg(long, value_name = "COMMAND", value_parser = NonEmptyStringValueParser::new())]
    exec: Option<String>,
    /// Pause before a job that failed is tried again; the queue's back-off where it is not given
    #[arg(long, value_name = "TIME", value_parser = flag::span, requires = "exec")]
    retry_delay: Option<Duration>,
    /// Pause before a job that was released (exit code 75) is ready again
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = flag::span)]
    release_delay: Duration,
    /// How long commands may go on after SIGTERM
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = flag::span)]
    grace: Duration,
    /// From SIGTERM to SIGKILL for a command that is to stop
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = flag::span)]
    kill_after: Duration,
    /// Say nothing about jobs that were not acked
    #[arg(long)]
    quiet: bool,
}

/// What is to be done for each job, and how.
pub(super) struct Plan {
    command: String,
    /// Of the broker, for commands that call it.
    address: String,
    caller: String,
    retry_delay: Option<Duration>,
    release_delay: Duration,
    grace: Duration,
    kill_after: Duration,
    quiet: bool,
    /// stdout is for our own data.
    json: bool,
    relay: Relay,
}

impl Flags {
    /// The plan, where there is a command.
    pub(super) fn plan(&self, target: &Target, output: Output) -> Option<Plan> {
        Some(Plan {
            command: self.exec.clone()?,
            address: target.address.clone(),
            caller: target.caller.as_str().to_owned(),
            retry_delay: self.retry_delay,
            release_delay: self.release_delay,
            grace: self.grace,
            kill_after: self.kill_after,
            quiet: self.quiet,
            json: output.json,
            relay: Relay::start(),
        })
    }
}

/// Works until there is nothing more to do or a signal comes, and says what became of the jobs.
pub(super) async fn work(lease: &Lease, ask: Ask, plan: Plan, signals: Signals) -> Result<Exit, Failed> {
    // one connection for the stream and one for calls: neither waits for the other
    let (streams, calls) = (lease.target.connect_lazily()?, lease.target.connect_lazily()?);
    let plan = Arc::new(plan);
    let worker = Worker::new(streams, calls, ask, plan.clone(), lease.parallel, lease.count);
    let (tally, ended) = worker.run(signals).await;
    plan.relay.flush().await;
    if lease.output.json {
        Output::object(&tally)?;
    } else {
        crate::cli::exit::note(&tally);
    }
    ended.map(|()| Exit::Ok)
}
