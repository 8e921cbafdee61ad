//! The flags that say what is measured.

use std::time::Duration;

use clap::{Args, builder::RangedU64ValueParser, value_parser};

use crate::{
    bench::{SMALLEST_PAYLOAD, Shape},
    cli::flag,
};

/// Which jobs, and how many clients of which kind.
#[derive(Debug, Args)]
#[command(next_help_heading = "Workload")]
pub(super) struct Workload {
    /// Rounds; figures are medians of them
    #[arg(long, value_name = "COUNT", default_value_t = 5, value_parser = value_parser!(u32).range(1..=1_000))]
    pub(super) rounds: u32,
    /// Jobs of a round (not for latency, where rate and time say it)
    #[arg(long, value_name = "COUNT", default_value_t = 100_000, value_parser = value_parser!(u64).range(1..=100_000_000))]
    jobs: u64,
    /// Jobs of one Enqueue, and tokens of one Ack at most [default: 100; 1 for latency]
    #[arg(long, value_name = "COUNT", value_parser = value_parser!(u64).range(1..=1_000))]
    batch: Option<u64>,
    /// Producers, each with one Enqueue under way [default: 8, or 64 where the batch is 1]
    #[arg(long, value_name = "COUNT", value_parser = clients())]
    producers: Option<u64>,
    /// Lease streams [default: 8, or 64 where the batch is 1]
    #[arg(long, value_name = "COUNT", value_parser = clients())]
    streams: Option<u64>,
    /// HTTP/2 connections that all of them share
    #[arg(long, value_name = "COUNT", default_value_t = 8, value_parser = value_parser!(u32).range(1..=1_000))]
    connections: u32,
    /// Jobs outstanding on a stream at most [default: five batches, or 8 where the batch is 1]
    #[arg(long, value_name = "COUNT", value_parser = value_parser!(u32).range(1..=10_000))]
    credit: Option<u32>,
    /// Ack calls that one stream has under way at most [default: 4, or 8 where the batch is 1]
    #[arg(long, value_name = "COUNT", value_parser = value_parser!(u32).range(1..=10_000))]
    acks: Option<u32>,
    /// Bytes of a payload, at least 24
    #[arg(long, value_name = "BYTES", default_value_t = 100, value_parser = payload())]
    payload: u64,
    /// Business processes that call
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = value_parser!(u32).range(1..=1_000))]
    callers: u32,
    /// Queues that jobs and streams are spread over
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = value_parser!(u32).range(1..=100_000))]
    queues: u32,
    /// Ordering keys of each queue that jobs are spread over; none where 0
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    ordering_keys: u64,
    /// Priorities that jobs are spread over
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = value_parser!(u32).range(1..=10))]
    priorities: u32,
    /// Ready jobs that wait in front all the time
    #[arg(long, value_name = "COUNT", default_value_t = 0, value_parser = waiting())]
    backlog: u64,
    /// Jobs that are due only much later, all the time
    #[arg(long, value_name = "COUNT", default_value_t = 0, value_parser = waiting())]
    scheduled: u64,
    /// Jobs that wait for an earlier one of their ordering key, all the time
    #[arg(long, value_name = "COUNT", default_value_t = 0, value_parser = waiting())]
    blocked: u64,
    /// What jobs are leased for
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = flag::span)]
    lease: Duration,
}

fn clients() -> RangedU64ValueParser<u64> {
    value_parser!(u64).range(1..=100_000)
}

fn waiting() -> RangedU64ValueParser<u64> {
    value_parser!(u64).range(0..=1_000_000_000)
}

fn payload() -> RangedU64ValueParser<u64> {
    value_parser!(u64).range(SMALLEST_PAYLOAD as u64..=1 << 20)
}

/// What is not said.
#[derive(Debug, Clone, Copy)]
pub(super) struct Defaults {
    batch: u64,
}

/// Whatever goes fast goes in batches.
pub(super) const BATCHES: Defaults = Defaults { batch: 100 };
/// Whatever should come soon goes alone.
pub(super) const SINGLES: Defaults = Defaults { batch: 1 };

impl Workload {
    /// What was said, and for the rest what goes well with it.
    pub(super) fn shape(&self, defaults: Defaults) -> Shape {
        let batch = self.batch.unwrap_or(defaults.batch);
        let (clients, credit, acks) = if batch == 1 { (64, 8, 8) } else { (8, batch * 5, 4) };
        let count = |said: Option<u64>| u32::try_from(said.unwrap_or(clients)).unwrap_or(u32::MAX);
        Shape {
            jobs: self.jobs,
            batch,
            producers: count(self.producers),
            streams: count(self.streams),
            connections: self.connections,
            credit: self.credit.unwrap_or(u32::try_from(credit).unwrap_or(u32::MAX)),
            acks: self.acks.unwrap_or(acks),
            payload_bytes: usize::try_from(self.payload).unwrap_or(usize::MAX),
            callers: self.callers,
            queues: self.queues,
            ordering_keys: self.ordering_keys,
            priorities: self.priorities,
            backlog: self.backlog,
            scheduled: self.scheduled,
            blocked: self.blocked,
            lease: self.lease,
        }
    }
}
