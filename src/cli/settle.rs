//! `leasehold ack`, `nack` and `extend`: by lease token, from a shell.

use std::{
    io::{BufRead as _, IsTerminal as _},
    time::Duration,
};

use clap::{Args, ValueEnum};
use serde::Serialize;

use super::{
    Exit,
    broker::{Broker, Failed, Target},
    flag,
    output::{Output, table::Table, time},
};
use crate::v1::{AckRequest, ExtendRequest, NackAction, NackItem, NackRequest, SettleStatus};

/// Tokens of one call.
const BATCH: usize = 1_000;
/// A line of stdin that is longer is no token.
const MAX_TOKEN: usize = 256;

/// Which leases.
#[derive(Debug, Args)]
struct Tokens {
    /// Lease tokens, as 'leasehold lease' prints them; read from stdin, one from each line, where there is none
    #[arg(value_name = "LEASE_TOKEN")]
    tokens: Vec<String>,
}

impl Tokens {
    /// All of them, in calls' shares.
    fn batches(self) -> Result<Vec<Vec<String>>, Failed> {
        let mut tokens = self.tokens;
        if tokens.is_empty() {
            let stdin = std::io::stdin();
            if stdin.is_terminal() {
                super::exit::note(&"lease tokens, one a line, until Ctrl-D:");
            }
            for line in stdin.lock().lines() {
                let line = line.map_err(|error| Failed::new(Exit::Failure, format!("stdin: {error}")))?;
                // a whole line as 'leasehold lease' prints it will do: its token comes first
                let Some(token) = line.split_whitespace().next() else { continue };
                if token.len() > MAX_TOKEN {
                    return Err(Failed::new(Exit::Invalid, "stdin: a line does not begin with a lease token"));
                }
                tokens.push(token.to_owned());
            }
        }
        if tokens.is_empty() {
            return Err(Failed::new(Exit::BadConfiguration, "no lease token was given"));
        }
        Ok(tokens.chunks(BATCH).map(<[String]>::to_vec).collect())
    }
}

/// `leasehold ack`.
#[derive(Debug, Args)]
pub(super) struct Ack {
    #[command(flatten)]
    tokens: Tokens,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    target: Target,
}

/// `leasehold nack`.
#[derive(Debug, Args)]
pub(super) struct Nack {
    #[command(flatten)]
    tokens: Tokens,
    /// What becomes of the jobs
    #[arg(long = "as", value_enum, default_value_t = Action::Retry)]
    action: Action,
    /// When they are ready again, for retry and release; the queue's back-off for retry and at once for release, where it is
    /// not given
    #[arg(long, value_name = "TIME", value_parser = flag::span)]
    delay: Option<Duration>,
    /// Why, kept with the job
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    error: String,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Action {
    /// Failed: try again later
    Retry,
    /// Not started: the attempt is not counted
    Release,
    /// Will never succeed: dead now
    Reject,
}

impl From<Action> for NackAction {
    fn from(action: Action) -> Self {
        match action {
            Action::Retry => Self::Retry,
            Action::Release => Self::Release,
            Action::Reject => Self::Reject,
        }
    }
}

/// `leasehold extend`.
#[derive(Debug, Args)]
pub(super) struct Extend {
    #[command(flatten)]
    tokens: Tokens,
    /// How long the leases last from now on; what each was granted for, where it is not given
    #[arg(long, value_name = "TIME", value_parser = flag::span)]
    lease: Option<Duration>,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    target: Target,
}

/// The answer for one token.
#[derive(Serialize)]
struct Settled {
    lease_token: String,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    dead: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    available_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lease_expires_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lease_remaining_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cancel_requested: Option<bool>,
}

impl Settled {
    fn new(lease_token: String, status: SettleStatus) -> Self {
        Self {
            lease_token,
            status: word(status),
            dead: None,
            available_at: None,
            lease_expires_at: None,
            lease_remaining_seconds: None,
            cancel_requested: None,
        }
    }

    /// What else is to be said, for people.
    fn remarks(&self) -> String {
        let mut remarks = Vec::new();
        if self.dead == Some(true) {
            remarks.push("the job is dead now".to_owned());
        }
        if let Some(at) = &self.available_at {
            remarks.push(format!("ready again at {at}"));
        }
        if let Some(at) = &self.lease_expires_at {
            remarks.push(format!("until {at}"));
        }
        if self.cancel_requested == Some(true) {
            remarks.push("somebody asked for it to be cancelled: stop, then ack or nack".to_owned());
        }
        remarks.join(", ")
    }
}

fn word(status: SettleStatus) -> &'static str {
    match status {
        SettleStatus::Unspecified => "unknown",
        SettleStatus::Ok => "ok",
        SettleStatus::Gone => "gone",
        SettleStatus::LeaseLost => "lease_lost",
        SettleStatus::InvalidToken => "invalid_token",
        SettleStatus::Busy => "busy",
    }
}

/// How the program ends where this is the worst answer.
fn exit_of(status: SettleStatus) -> Exit {
    match status {
        SettleStatus::Ok => Exit::Ok,
        SettleStatus::Gone => Exit::NotFound,
        SettleStatus::LeaseLost => Exit::Refused,
        SettleStatus::InvalidToken => Exit::Invalid,
        SettleStatus::Busy => Exit::TryLater,
        SettleStatus::Unspecified => Exit::Failure,
    }
}

/// Answers, as they are printed, and the worst of them.
struct Answers {
    output: Output,
    table: Table,
    worst: Exit,
}

impl Answers {
    fn new(output: Output) -> Self {
        Self { output, table: Table::new(&["LEASE", "STATUS", "REMARKS"]), worst: Exit::Ok }
    }

    fn add(&mut self, status: SettleStatus, settled: &Settled) -> Result<(), Failed> {
        // of several failures the one that says most decides: a later try is worth less than a lost lease
        let rank = |exit: Exit| [Exit::Ok, Exit::NotFound, Exit::TryLater].iter().position(|one| *one == exit);
        let exit = exit_of(status);
        if rank(exit).unwrap_or(usize::MAX) > rank(self.worst).unwrap_or(usize::MAX) {
            self.worst = exit;
        }
        if self.output.json {
            return Output::object(settled);
        }
        self.table.row([settled.lease_token.clone(), settled.status.replace('_', " "), settled.remarks()]);
        Ok(())
    }

    fn finish(self) -> Result<Exit, Failed> {
        if !self.output.json {
            Output::table(&self.table, "nothing was answered")?;
        }
        Ok(self.worst)
    }
}

impl Ack {
    pub(super) async fn run(self) -> Result<Exit, Failed> {
        let batches = self.tokens.batches()?;
        let broker = self.target.connect().await?;
        let mut answers = Answers::new(self.output);
        for tokens in batches {
            let request = broker.call(AckRequest { lease_tokens: tokens.clone() });
            let results = broker.queue().ack(request).await?.into_inner().results;
            for (token, result) in tokens.into_iter().zip(results) {
                answers.add(result.status(), &Settled::new(token, result.status()))?;
            }
        }
        answers.finish()
    }
}

impl Nack {
    pub(super) async fn run(self) -> Result<Exit, Failed> {
        let batches = self.tokens.batches()?;
        let broker = self.target.connect().await?;
        let mut answers = Answers::new(self.output);
        for tokens in batches {
            let item = |token: &String| NackItem {
                lease_token: token.clone(),
                action: NackAction::from(self.action).into(),
                delay: self.delay.map(flag::wire),
                error: self.error.clone(),
            };
            let request = broker.call(NackRequest { items: tokens.iter().map(item).collect() });
            let results = broker.queue().nack(request).await?.into_inner().results;
            for (token, result) in tokens.into_iter().zip(results) {
                let ok = result.status() == SettleStatus::Ok;
                let settled = Settled {
                    dead: ok.then_some(result.dead),
                    available_at: time::maybe(result.available_at),
                    ..Settled::new(token, result.status())
                };
                answers.add(result.status(), &settled)?;
            }
        }
        answers.finish()
    }
}

impl Extend {
    pub(super) async fn run(self) -> Result<Exit, Failed> {
        let batches = self.tokens.batches()?;
        let broker = self.target.connect().await?;
        let mut answers = Answers::new(self.output);
        for tokens in batches {
            extend(&broker, tokens, self.lease, &mut answers).await?;
        }
        answers.finish()
    }
}

async fn extend(
    broker: &Broker,
    tokens: Vec<String>,
    lease: Option<Duration>,
    answers: &mut Answers,
) -> Result<(), Failed> {
    let request = ExtendRequest { lease_tokens: tokens.clone(), lease_duration: lease.map(flag::wire) };
    let results = broker.queue().extend(broker.call(request)).await?.into_inner().results;
    for (token, result) in tokens.into_iter().zip(results) {
        let ok = result.status() == SettleStatus::Ok;
        let settled = Settled {
            lease_expires_at: time::maybe(result.lease_expires_at),
            lease_remaining_seconds: result.lease_remaining.map(time::seconds),
            cancel_requested: ok.then_some(result.cancel_requested),
            ..Settled::new(token, result.status())
        };
        answers.add(result.status(), &settled)?;
    }
    Ok(())
}
