//! The shape of a workload.

use std::{fmt, time::Duration};

use serde::Serialize;

use super::BenchError;

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Act {
    /// Jobs go in.
    Enqueue,
    /// Jobs that wait are leased and acked; how they got there is not measured.
    Drain,
    /// Jobs go in and out, by producers and workers at once.
    All,
    /// Jobs go in at a fixed rate, a batch at a time, and idle workers pick them up.
    Latency {
        /// Jobs a second.
        rate: u32,
        /// Length of a round.
        length: Duration,
    },
}

impl Act {
    /// One word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Enqueue => "enqueue",
            Self::Drain => "drain",
            Self::All => "all",
            Self::Latency { .. } => "latency",
        }
    }

    /// What its latencies are the time of.
    pub fn timed(self) -> &'static str {
        match self {
            Self::Enqueue => "Enqueue calls",
            Self::Drain => "Ack calls",
            Self::All => "jobs, from before their Enqueue call until a worker has them",
            Self::Latency { .. } => "jobs, from when they were to be sent until a worker has them",
        }
    }

    /// Jobs of a round.
    pub(super) fn jobs(self, shape: &Shape) -> u64 {
        match self {
            Self::Latency { rate, length } => {
                // the last batch of a round may be whole where the rate is no multiple of it
                let jobs = u64::from(rate) * u64::try_from(length.as_millis()).unwrap_or(u64::MAX) / 1_000;
                jobs.max(1).div_ceil(shape.batch) * shape.batch
            }
            _ => shape.jobs,
        }
    }

    /// Whether workers are a part of it.
    pub(super) fn has_workers(self) -> bool {
        self != Self::Enqueue
    }
}

/// Which jobs, and how many clients of which kind.
#[derive(Debug, Clone, Serialize)]
pub struct Shape {
    /// Jobs of a round.
    pub jobs: u64,
    /// Jobs of one Enqueue, and tokens of one Ack at most.
    pub batch: u64,
    /// Producers, each with one Enqueue under way.
    pub producers: u32,
    /// Lease streams.
    pub streams: u32,
    /// HTTP/2 connections that all share.
    pub connections: u32,
    /// Jobs outstanding on a stream at most.
    pub credit: u32,
    /// Ack calls that one stream has under way at most; its next frame waits.
    pub acks: u32,
    /// Bytes of a job's payload.
    pub payload_bytes: usize,
    /// Business processes that call.
    pub callers: u32,
    /// Queues that jobs and streams are spread over.
    pub queues: u32,
    /// Ordering keys; jobs have none where 0.
    pub ordering_keys: u64,
    /// Priorities that jobs are spread over.
    pub priorities: u32,
    /// Ready jobs that wait in front of those that are measured, all the time.
    pub backlog: u64,
    /// Jobs that are due only much later.
    pub scheduled: u64,
    /// Jobs that wait for an earlier one of their ordering key, all the time.
    pub blocked: u64,
    /// What jobs are leased for.
    #[serde(rename = "lease_seconds", serialize_with = "seconds")]
    pub lease: Duration,
}

/// Bytes of the smallest payload: what tells jobs apart has to fit.
pub const SMALLEST_PAYLOAD: usize = super::stamp::SIZE;
/// Queues that one stream may name.
pub(super) const QUEUES_OF_A_STREAM: u32 = 32;

impl Shape {
    pub(super) fn check(&self, act: Act) -> Result<(), BenchError> {
        let spread = self.streams.saturating_mul(QUEUES_OF_A_STREAM);
        if act.has_workers() && spread < self.queues {
            return Err(BenchError::Wrong(format!(
                "{} streams can serve {spread} queues at most, {QUEUES_OF_A_STREAM} each: give more --streams",
                self.streams
            )));
        }
        if self.backlog > 0 && matches!(act, Act::Latency { .. }) {
            return Err(BenchError::Wrong("latency is measured from idle workers: leave --backlog out".to_owned()));
        }
        Ok(())
    }

    /// Names of the queues that stream number `stream` serves.
    pub(super) fn queues_of(&self, stream: u32, names: &[String]) -> Vec<String> {
        let queues = self.queues.max(1);
        if self.streams >= queues {
            let mine = names.get(index(u64::from(stream % queues)));
            return mine.cloned().into_iter().collect();
        }
        let mine = (0..queues).filter(|queue| queue % self.streams.max(1) == stream);
        mine.filter_map(|queue| names.get(index(u64::from(queue))).cloned()).collect()
    }
}

/// A number as an index.
pub(super) fn index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// Lengths of time are seconds, as everywhere in the program's JSON.
fn seconds<S: serde::Serializer>(length: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(length.as_secs_f64())
}

impl fmt::Display for Shape {
    /// One line, without what is not there.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { batch, producers, streams, connections, credit, acks, payload_bytes, callers, queues, .. } = self;
        write!(
            f,
            "payload {payload_bytes} bytes, batches of {batch}, {producers} producers, {streams} streams of credit {credit} "
        )?;
        write!(f, "with {acks} acks each, {connections} connections, {callers} callers, {queues} queues")?;
        for (count, what) in [
            (self.ordering_keys, "ordering keys"),
            (self.backlog, "ready jobs in front"),
            (self.scheduled, "scheduled jobs"),
            (self.blocked, "blocked jobs"),
        ] {
            if count > 0 {
                write!(f, ", {count} {what}")?;
            }
        }
        if self.priorities > 1 {
            write!(f, ", {} priorities", self.priorities)?;
        }
        write!(f, ", leases of {} s", self.lease.as_secs_f64())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeSet;

    use super::*;

    pub(in crate::bench) fn shape() -> Shape {
        Shape {
            jobs: 1_000,
            batch: 100,
            producers: 4,
            streams: 4,
            connections: 2,
            credit: 500,
            acks: 4,
            payload_bytes: 100,
            callers: 1,
            queues: 1,
            ordering_keys: 0,
            priorities: 1,
            backlog: 0,
            scheduled: 0,
            blocked: 0,
            lease: Duration::from_secs(60),
        }
    }

    #[test]
    fn streams_serve_every_queue_whether_there_are_more_of_these_or_of_those() {
        for (streams, queues) in [(1, 1), (4, 1), (4, 3), (3, 4), (2, 64), (64, 1000)] {
            let shape = Shape { streams, queues, ..shape() };
            let names: Vec<String> = (0..queues).map(|n| n.to_string()).collect();
            let served: Vec<Vec<String>> = (0..streams).map(|stream| shape.queues_of(stream, &names)).collect();
            assert!(served.iter().all(|mine| (1..=32).contains(&mine.len())), "{streams} {queues}: {served:?}");
            let all: BTreeSet<String> = served.into_iter().flatten().collect();
            assert_eq!(all, names.into_iter().collect(), "{streams} {queues}");
        }
    }

    #[test]
    fn queues_that_no_stream_could_serve_are_refused() {
        let shape = Shape { streams: 1, queues: 33, ..shape() };
        assert!(shape.check(Act::Drain).is_err());
        assert!(shape.check(Act::Enqueue).is_ok());
    }

    #[test]
    fn a_line_for_people_leaves_out_what_is_not_there() {
        assert!(!shape().to_string().contains("scheduled"));
        assert!(Shape { scheduled: 7, ..shape() }.to_string().contains("7 scheduled jobs"));
    }

    #[test]
    fn a_round_at_a_fixed_rate_is_whole_batches() {
        let act = Act::Latency { rate: 50, length: Duration::from_millis(1_500) };
        assert_eq!(act.jobs(&Shape { batch: 1, ..shape() }), 75);
        assert_eq!(act.jobs(&Shape { batch: 10, ..shape() }), 80);
    }
}
