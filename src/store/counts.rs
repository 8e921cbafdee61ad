//! What the store counts: each act once, where its answer is known.

use std::{collections::HashMap, fmt, sync::Arc, time::Duration};

use super::{
    StoreOptions,
    engine::{AckedRow, ClaimedJob, Engine, EnqueuedRow, ExtendedRow, Held as Lease, NackedRow, Reaped},
    error::EngineError,
    rates::{Tally, Totals},
    request::Request,
};
use crate::{
    model::{Caller, NackAction, QueueId},
    telemetry::{
        Metrics, Spans,
        spans::{Origin, Producers, StatementSpan},
    },
};

/// Counts: by queue for operators, and as metrics and spans where somebody wants to know.
#[derive(Debug, Clone)]
pub(super) struct Counts {
    metrics: Option<Metrics>,
    spans: Spans,
    system: System,
    /// A lane that is held for longer is told of in the log.
    slow_hold: Duration,
    tally: Tally,
}

/// How OpenTelemetry names the engine: some learn only from the database itself which one it is.
#[derive(Clone)]
struct System(Arc<dyn Engine>);

impl System {
    fn name(&self) -> &'static str {
        self.0.system()
    }
}

impl fmt::Debug for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A lane was held.
pub(super) struct Held<'a> {
    pub(super) caller: &'a Caller,
    pub(super) act: &'static str,
    /// Jobs or tokens.
    pub(super) items: usize,
    /// How long the oldest request had waited.
    pub(super) wait: Duration,
    pub(super) hold: Duration,
    /// The calls that it was held for.
    pub(super) origins: &'a [Origin],
    /// The class of the failure that it ended with.
    pub(super) failed: Option<&'static str>,
}

impl Counts {
    pub(super) fn new(options: &StoreOptions, engine: Arc<dyn Engine>) -> Self {
        let (metrics, spans) = (options.metrics.clone(), options.spans.clone());
        if let Some(metrics) = &metrics {
            metrics.begin_lanes(&EngineError::CLASSES);
        }
        Self { metrics, spans, system: System(engine), slow_hold: options.slow_hold, tally: Tally::default() }
    }

    pub(super) fn totals(&self) -> HashMap<QueueId, Totals> {
        self.tally.totals()
    }

    /// The call that is being served here.
    pub(super) fn origin(&self) -> Origin {
        self.spans.origin()
    }

    /// The calls that requests are for; none where nobody makes spans of them.
    pub(super) fn origins(&self, requests: &[Request]) -> Vec<Origin> {
        if self.spans.are_made() {
            requests.iter().map(|request| request.origin().clone()).collect()
        } else {
            Vec::new()
        }
    }

    /// Whose jobs a claim got.
    pub(super) fn producers(spans: &Spans, jobs: &[ClaimedJob]) -> Producers {
        spans.producers(jobs.iter().filter_map(|job| job.trace.as_ref().map(|trace| (job.job, trace))))
    }

    /// The maker of spans.
    pub(super) fn spans(&self) -> &Spans {
        &self.spans
    }

    /// A lane was held, and is free again. `producers` are those of a claim's jobs.
    pub(super) fn ran(&self, held: &Held<'_>, producers: Producers) {
        let system = self.system.name();
        let &Held { caller, act, items, wait, hold, origins, failed } = held;
        if let Some(metrics) = &self.metrics {
            metrics.lane_held(caller, (system, act), items, wait, hold);
        }
        let span = StatementSpan { act, system, caller, origins, producers, items, wait, hold, error: failed };
        let span = self.spans.statement(span);
        if hold > self.slow_hold {
            let [hold_ms, wait_ms] = [hold, wait].map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
            let trace_id = span.as_ref().map(|span| tracing::field::display(span.trace()));
            let tell = || {
                tracing::warn!(
                    %caller, statement = act, hold_ms, wait_ms, items, error = failed, trace_id,
                    "a lane was held for long"
                );
            };
            match &span {
                Some(span) => span.within(tell),
                None => tell(),
            }
        }
    }

    /// A request waited for a lane in vain.
    pub(super) fn timed_out(&self, caller: &Caller) {
        if let Some(metrics) = &self.metrics {
            metrics.lane_timed_out(caller);
        }
    }

    /// A request was refused for its caller's budget.
    pub(super) fn refused(&self, caller: &Caller) {
        if let Some(metrics) = &self.metrics {
            metrics.refused_by_budget(caller);
        }
    }

    /// A lane was connected.
    pub(super) fn opened(&self, took: Duration) {
        if let Some(metrics) = &self.metrics {
            metrics.lane_opened(took);
        }
    }

    pub(super) fn failed(&self, error: &EngineError) {
        if let Some(metrics) = &self.metrics {
            metrics.statement_failed(error.class());
        }
    }

    /// Statements ran into others, whether another try mended that or not.
    pub(super) fn met_conflicts(&self, conflicts: u64) {
        if let Some(metrics) = self.metrics.as_ref().filter(|_| conflicts > 0) {
            metrics.conflicts_met(conflicts);
        }
    }

    /// `queues` in the order of `rows`.
    pub(super) fn enqueued(&self, rows: &[EnqueuedRow], queues: &[QueueId]) {
        let stored = queues.iter().zip(rows).filter(|(_, row)| !row.duplicate);
        self.tally.add(stored.map(|(queue, _)| *queue), |sums| &mut sums.enqueued);
        if let Some(metrics) = &self.metrics {
            let duplicates = rows.iter().filter(|row| row.duplicate).count();
            metrics.enqueued(rows.len() - duplicates, duplicates);
        }
    }

    /// What claims of one statement brought, or nothing where it failed.
    pub(super) fn claimed(&self, jobs: Option<&[ClaimedJob]>) {
        self.tally.add(jobs.unwrap_or_default().iter().map(|job| job.queue), |sums| &mut sums.leased);
        if let Some(metrics) = &self.metrics {
            metrics.claimed(jobs.map(<[ClaimedJob]>::len));
        }
    }

    pub(super) fn acked(&self, rows: &[AckedRow]) {
        self.tally.add(rows.iter().filter_map(|row| row.queue), |sums| &mut sums.acked);
        if let Some(metrics) = &self.metrics {
            metrics.acked(rows.iter().filter(|row| row.held == Lease::Ok).count());
            metrics.leases_lost("ack", rows.iter().filter(|row| is_lost(row.held)).count());
        }
    }

    /// `actions` in the order of `rows`.
    pub(super) fn nacked(&self, actions: &[NackAction], rows: &[NackedRow]) {
        let back = rows.iter().filter(|row| row.ready_at.is_some());
        self.tally.add(back.filter_map(|row| row.queue), |sums| &mut sums.retried);
        self.tally.add(rows.iter().filter(|row| row.dead).filter_map(|row| row.queue), |sums| &mut sums.dead);
        if let Some(metrics) = &self.metrics {
            for action in [NackAction::Retry, NackAction::Release, NackAction::Reject] {
                let done = || actions.iter().zip(rows).filter(|(was, row)| **was == action && row.held == Lease::Ok);
                let jobs = done().count();
                if jobs > 0 {
                    metrics.nacked(action, jobs, done().filter(|(_, row)| row.dead).count());
                }
            }
            metrics.leases_lost("nack", rows.iter().filter(|row| is_lost(row.held)).count());
        }
    }

    pub(super) fn extended(&self, rows: &[ExtendedRow]) {
        if let Some(metrics) = &self.metrics {
            metrics.leases_lost("extend", rows.iter().filter(|row| is_lost(row.held)).count());
        }
    }

    pub(super) fn reaped(&self, reaped: &Reaped) {
        self.tally.add(reaped.leases.iter().map(|lease| lease.queue), |sums| &mut sums.expired);
        let dead = reaped.leases.iter().filter(|lease| lease.dead);
        self.tally.add(dead.map(|lease| lease.queue), |sums| &mut sums.dead);
        if let Some(metrics) = &self.metrics {
            metrics.reaped(reaped.leases.len(), reaped.leases.iter().filter(|lease| lease.dead).count());
        }
    }

    /// Jobs died that nobody leased within their queue's time to live.
    pub(super) fn expired(&self, jobs: usize) {
        if let Some(metrics) = &self.metrics {
            metrics.expired(jobs);
        }
    }
}

/// Its holder came too late.
fn is_lost(lease: Lease) -> bool {
    matches!(lease, Lease::LeaseLost | Lease::Gone)
}
