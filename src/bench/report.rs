//! What came out.

use serde::Serialize;

use super::{
    BenchOptions, Latency, Shape,
    figures::{Times, median},
    meter::Costs,
    tally::Tally,
};
use crate::v1::GetBrokerInfoResponse;

/// What came out. Fields are only ever added.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// `enqueue`, `drain`, `all` or `latency`.
    pub act: &'static str,
    /// What latencies are the time of.
    pub latency_of: &'static str,
    /// The broker's version.
    pub broker: String,
    /// The engine, and the version of the database.
    pub engine: String,
    /// The workload.
    pub shape: Shape,
    /// Whether a transaction held a snapshot all the time.
    pub held_snapshot: bool,
    /// Each round that was done.
    pub rounds: Vec<Figures>,
    /// Medians of the rounds; latencies are of all rounds together. Absent where no round was done.
    pub median: Option<Figures>,
    /// Jobs that were stored and neither acked nor found in the queues at the end. Absent where it was stopped before the end.
    pub lost: Option<u64>,
    /// Jobs that came again although somebody had them or had acked them.
    pub twice: u64,
    /// Jobs that came and that nobody had enqueued, or that should have waited.
    pub strange: u64,
    /// Acks that were answered with anything but OK.
    pub refused_acks: u64,
    /// Whether it was stopped before its end.
    pub stopped: bool,
    /// What is not known, and why.
    pub unknown: Vec<String>,
    #[serde(skip)]
    times: Times,
}

/// Figures of a round. What is not known is absent.
#[derive(Debug, Clone, Serialize)]
pub struct Figures {
    /// From the first call until the last answer.
    pub seconds: f64,
    /// Jobs a second.
    pub jobs_per_second: f64,
    /// Of what [`Report::latency_of`] says.
    pub latency_seconds: Option<Latency>,
    /// Processor time of the producers and workers.
    pub client_cpu_seconds_per_job: Option<f64>,
    /// Processor time of the broker.
    pub broker_cpu_seconds_per_job: Option<f64>,
    /// Processor time of the database, all its processes together.
    pub database_cpu_seconds_per_job: Option<f64>,
    /// Bytes that the database's log grew by.
    pub wal_bytes_per_job: Option<f64>,
}

impl Report {
    pub(super) fn begin(options: &BenchOptions, info: &GetBrokerInfoResponse, unknown: Vec<String>) -> Self {
        Self {
            act: options.act.name(),
            latency_of: options.act.timed(),
            broker: info.version.clone(),
            engine: format!("{} {}", info.engine, info.engine_version),
            shape: options.shape.clone(),
            held_snapshot: options.held_snapshot,
            rounds: Vec::new(),
            median: None,
            lost: None,
            twice: 0,
            strange: 0,
            refused_acks: 0,
            stopped: false,
            unknown,
            times: Times::default(),
        }
    }

    /// A round is over.
    #[allow(clippy::cast_precision_loss, reason = "figures are shown with three digits")]
    pub(super) fn add(&mut self, jobs: u64, costs: &Costs, times: &Times) {
        let each = |time: Option<std::time::Duration>| time.map(|time| time.as_secs_f64() / jobs as f64);
        self.times.add(times);
        self.rounds.push(Figures {
            seconds: costs.elapsed.as_secs_f64(),
            jobs_per_second: jobs as f64 / costs.elapsed.as_secs_f64(),
            latency_seconds: times.latency(),
            client_cpu_seconds_per_job: each(costs.client),
            broker_cpu_seconds_per_job: each(costs.broker),
            database_cpu_seconds_per_job: each(costs.database),
            wal_bytes_per_job: costs.written.map(|bytes| bytes as f64 / jobs as f64),
        });
        let middle = |of: fn(&Figures) -> Option<f64>| median(self.rounds.iter().map(of));
        self.median = Some(Figures {
            seconds: middle(|round| Some(round.seconds)).unwrap_or_default(),
            jobs_per_second: middle(|round| Some(round.jobs_per_second)).unwrap_or_default(),
            latency_seconds: self.times.latency(),
            client_cpu_seconds_per_job: middle(|round| round.client_cpu_seconds_per_job),
            broker_cpu_seconds_per_job: middle(|round| round.broker_cpu_seconds_per_job),
            database_cpu_seconds_per_job: middle(|round| round.database_cpu_seconds_per_job),
            wal_bytes_per_job: middle(|round| round.wal_bytes_per_job),
        });
    }

    /// All is over, and `removed` jobs were still in the queues.
    pub(super) fn end(&mut self, tally: &Tally, removed: u64, stopped: bool) {
        self.lost = (!stopped).then(|| tally.open().abs_diff(removed));
        self.twice = tally.twice();
        self.strange = tally.strange();
        self.refused_acks = tally.refused();
        self.stopped = stopped;
    }

    /// What the broker did that no broker may do; nothing where all is well.
    pub fn broken(&self) -> Option<String> {
        let counts = [
            (self.lost.unwrap_or_default(), "jobs were lost, or came from nowhere"),
            (self.twice, "jobs were done twice"),
            (self.strange, "jobs came that should not have"),
        ];
        let told: Vec<String> =
            counts.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
        (!told.is_empty()).then(|| told.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio_util::sync::CancellationToken;

    use super::{
        super::{Act, shape::tests::shape},
        *,
    };

    fn report() -> Report {
        let options = BenchOptions {
            act: Act::Drain,
            shape: shape(),
            rounds: 3,
            address: None,
            broker_pid: None,
            database: None,
            settings: Vec::new(),
            held_snapshot: false,
            timeout: Duration::from_secs(1),
            program: "leasehold".into(),
        };
        Report::begin(&options, &GetBrokerInfoResponse::default(), Vec::new())
    }

    fn costs(seconds: u64) -> Costs {
        Costs {
            elapsed: Duration::from_secs(seconds),
            client: Some(Duration::from_secs(1)),
            broker: None,
            database: None,
            written: Some(100_000),
        }
    }

    #[test]
    fn the_middle_round_counts_and_what_is_not_known_stays_so() {
        let mut report = report();
        for seconds in [4, 1, 2] {
            report.add(1_000, &costs(seconds), &Times::default());
        }
        let median = report.median.expect("three rounds");
        assert!((median.jobs_per_second - 500.0).abs() < 1e-9);
        assert_eq!(median.wal_bytes_per_job, Some(100.0));
        assert_eq!(median.broker_cpu_seconds_per_job, None);
        assert_eq!(report.rounds.len(), 3);
    }

    #[test]
    fn a_job_that_is_nowhere_is_lost_and_breaks_the_measurement() {
        let (mut report, tally) = (report(), Tally::new(3));
        tally.store(3);
        tally.ack([0].into_iter(), &CancellationToken::new());
        report.end(&tally, 2, false);
        assert_eq!((report.lost, report.broken()), (Some(0), None));
        report.end(&tally, 1, false);
        assert!(report.broken().expect("one is nowhere").contains("1 jobs were lost"));
        report.end(&tally, 1, true);
        assert_eq!((report.lost, report.broken()), (None, None), "stopped in the middle: nobody can say");
    }

    #[test]
    fn a_job_that_came_twice_breaks_the_measurement() {
        let (mut report, tally) = (report(), Tally::new(1));
        tally.deliver(0);
        tally.deliver(0);
        report.end(&tally, 0, true);
        assert!(report.broken().is_some_and(|why| why.contains("twice")));
    }
}
