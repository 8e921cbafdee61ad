//! `leasehold enqueue`.

mod lines;
mod sender;

use std::{path::PathBuf, time::Duration};

use clap::{ArgGroup, Args};
use prost_types::Timestamp;

use self::{
    lines::{Line, Lines},
    sender::{Sender, Stored},
};
use super::{
    Exit,
    broker::{Failed, Target},
    exit::note,
    flag,
    output::{Output, progress::Progress},
    signals::Signals,
};
use crate::v1::{NewJob, new_job::Start};

/// `leasehold enqueue`.
#[derive(Debug, Args)]
#[command(
    after_help = "Where neither a payload nor a file is given, every line of stdin is the payload of one job, without its line \
end. Lines leave in batches as they come; a batch is stored whole or not at all.\n\nCalls that were refused for the moment are tried \
again. A call whose outcome is unknown is repeated only where jobs have idempotency keys; without them the command ends with exit \
code 76 and says from which line on."
)]
#[command(group = ArgGroup::new("source").args(["payload", "file"]))]
pub(super) struct Enqueue {
    /// The queue; it comes into being where it does not exist
    queue: String,
    /// The payload of one job
    payload: Option<String>,
    /// The payload of one job is this file, or all of stdin for '-'
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Jobs of one call at most, where they come from stdin
    #[arg(long, value_name = "COUNT", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1_000), conflicts_with = "source")]
    batch: u16,
    /// Do not print job ids
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    job: JobFlags,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    target: Target,
}

/// What holds for each job.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Jobs")]
struct JobFlags {
    /// Media type of the payload
    #[arg(long, value_name = "TYPE", default_value = "", hide_default_value = true)]
    content_type: String,
    /// A header; may be given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = flag::header)]
    header: Vec<(String, String)>,
    /// 0 to 9, 9 is served first; 4 where it is not given
    #[arg(long, value_name = "NUMBER")]
    priority: Option<i32>,
    /// How long from now the job becomes ready
    #[arg(long, value_name = "TIME", value_parser = flag::span, conflicts_with = "at")]
    delay: Option<Duration>,
    /// When the job becomes ready
    #[arg(long, value_name = "INSTANT", value_parser = flag::moment)]
    at: Option<Timestamp>,
    /// Leases granted before the job is dead; the queue's setting where it is not given
    #[arg(long, value_name = "COUNT")]
    max_attempts: Option<u32>,
    /// Jobs of one key are leased one at a time, in order
    #[arg(long, value_name = "KEY", default_value = "", hide_default_value = true)]
    ordering_key: String,
    /// Same queue and key within the queue's retention: one job. For lines of stdin the line's number is added, KEY:1, KEY:2, so
    /// that the same command on the same lines may be run again
    #[arg(long, value_name = "KEY", conflicts_with = "generate_keys")]
    idempotency_key: Option<String>,
    /// Give each job a random idempotency key, so that calls whose outcome is unknown can be repeated
    #[arg(long)]
    generate_keys: bool,
}

impl JobFlags {
    fn has_keys(&self) -> bool {
        self.generate_keys || self.idempotency_key.is_some()
    }

    /// The job with this payload, from line `number` of stdin where it is from there.
    fn job(&self, queue: &str, payload: Vec<u8>, number: Option<u64>) -> NewJob {
        let start = match (self.delay, self.at) {
            (Some(delay), _) => Some(Start::Delay(flag::wire(delay))),
            (None, at) => at.map(Start::AvailableAt),
        };
        let idempotency_key = match (&self.idempotency_key, number) {
            (Some(key), Some(number)) => format!("{key}:{number}"),
            (Some(key), None) => key.clone(),
            (None, _) if self.generate_keys => format!("cli-{:032x}", rand::random::<u128>()),
            (None, _) => String::new(),
        };
        NewJob {
            queue: queue.to_owned(),
            payload: payload.into(),
            content_type: self.content_type.clone(),
            headers: self.header.iter().cloned().collect(),
            priority: self.priority,
            start,
            max_attempts: self.max_attempts,
            idempotency_key,
            ordering_key: self.ordering_key.clone(),
        }
    }
}

impl Enqueue {
    pub(super) async fn run(self) -> Result<Exit, Failed> {
        let payload = match (&self.payload, &self.file) {
            (Some(text), _) => Some(text.clone().into_bytes()),
            (None, Some(path)) => Some(lines::whole(path)?),
            (None, None) => None,
        };
        let broker = self.target.connect().await?;
        let sender = Sender::new(broker, self.job.has_keys());
        match payload {
            Some(payload) => {
                let stored = sender.send(vec![self.job.job(&self.queue, payload, None)]).await?;
                self.print(&stored, None)?;
                Ok(Exit::Ok)
            }
            None => self.all_lines(&sender).await,
        }
    }

    async fn all_lines(&self, sender: &Sender) -> Result<Exit, Failed> {
        let mut signals = Signals::listen()?;
        let mut lines = Lines::read()?;
        let progress = Progress::new(lines.bytes(), if lines.bytes().is_some() { "bytes" } else { "jobs" });
        let (mut jobs, mut bytes, mut duplicates) = (0_u64, 0_u64, 0_u64);
        loop {
            let batch = tokio::select! {
                batch = lines.batch(usize::from(self.batch)) => batch,
                signal = signals.next() => Err(Failed::new(Exit::Interrupted, format!("ended by {signal}"))),
            };
            let batch = batch.map_err(|failed| failed.after(&stored_so_far(jobs)))?;
            if batch.is_empty() {
                break;
            }
            let (first, last) = (jobs + 1, jobs + batch.len() as u64);
            bytes += batch.iter().map(|line| line.0.len() as u64 + 1).sum::<u64>();
            let new =
                (first..).zip(batch).map(|(n, Line(payload))| self.job.job(&self.queue, payload, Some(n))).collect();
            let stored = tokio::select! {
                stored = sender.send(new) => stored,
                signal = signals.next() => Err(Failed::new(
                    Exit::Interrupted,
                    format!("ended by {signal} while a call was under way: lines {first} to {last} may be stored as well"),
                )),
            };
            let stored = stored.map_err(|failed| failed.after(&stored_so_far(jobs)))?;
            jobs += stored.len() as u64;
            duplicates += stored.iter().filter(|job| job.duplicate).count() as u64;
            progress.at(if lines.bytes().is_some() { bytes } else { jobs });
            progress.say(format!("{jobs} jobs"));
            self.print(&stored, Some(first))?;
        }
        drop(progress);
        let twice = if duplicates > 0 { format!(", {duplicates} of them known already") } else { String::new() };
        note(&format_args!("enqueued {jobs} jobs{twice}"));
        Ok(Exit::Ok)
    }

    /// Prints ids: one on each line, and a word where the job was known already.
    fn print(&self, stored: &[Stored], first_line: Option<u64>) -> Result<(), Failed> {
        if self.quiet {
            return Ok(());
        }
        for (n, job) in (0..).zip(stored) {
            if self.output.json {
                Output::object(&job.json(first_line.map(|first| first + n)))?;
            } else {
                Output::line(&job.line())?;
            }
        }
        Ok(())
    }
}

fn stored_so_far(jobs: u64) -> String {
    match jobs {
        0 => "no line was stored".to_owned(),
        jobs => format!("lines 1 to {jobs} were stored"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(key: Option<&str>, generate_keys: bool) -> JobFlags {
        JobFlags {
            content_type: String::new(),
            header: Vec::new(),
            priority: None,
            delay: None,
            at: None,
            max_attempts: None,
            ordering_key: String::new(),
            idempotency_key: key.map(str::to_owned),
            generate_keys,
        }
    }

    #[test]
    fn a_key_gets_the_lines_number_and_a_generated_one_is_new_each_time() {
        let job = |flags: &JobFlags, number| flags.job("q", Vec::new(), number).idempotency_key;
        assert_eq!(job(&flags(Some("import-7"), false), Some(12)), "import-7:12");
        assert_eq!(job(&flags(Some("import-7"), false), None), "import-7");
        assert_eq!(job(&flags(None, false), Some(1)), "");
        let drawn = flags(None, true);
        assert_ne!(job(&drawn, Some(1)), job(&drawn, Some(1)));
        assert_eq!(job(&drawn, None).len(), 36);
    }
}
