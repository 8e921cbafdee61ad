//! What the store counts: each act once, where its answer is known.

use std::{collections::HashMap, time::Duration};

use super::{
    engine::{AckedRow, ClaimedJob, EnqueuedRow, Held, NackedRow, Reaped},
    error::EngineError,
    rates::{Tally, Totals},
};
use crate::{
    model::{Caller, NackAction, QueueId},
    telemetry::Metrics,
};

/// Counts: by queue for operators, and as metrics where somebody wants to know.
#[derive(Debug, Clone, Default)]
pub(super) struct Counts {
    metrics: Option<Metrics>,
    tally: Tally,
}

impl Counts {
    pub(super) fn new(metrics: Option<Metrics>) -> Self {
        Self { metrics, tally: Tally::default() }
    }

    pub(super) fn totals(&self) -> HashMap<QueueId, Totals> {
        self.tally.totals()
    }

    /// A lane ran a statement of one kind with so many jobs or tokens.
    pub(super) fn ran(&self, caller: &Caller, kind: &'static str, items: usize, wait: Duration, hold: Duration) {
        if let Some(metrics) = &self.metrics {
            metrics.lane_held(caller, kind, wait, hold);
            metrics.batch(kind, items);
        }
    }

    pub(super) fn failed(&self, error: &EngineError) {
        if let Some(metrics) = &self.metrics {
            metrics.statement_failed(error.class());
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

    pub(super) fn claimed(&self, queue: QueueId, jobs: &[ClaimedJob]) {
        self.tally.add(jobs.iter().map(|_| queue), |sums| &mut sums.leased);
        if let Some(metrics) = &self.metrics {
            metrics.claimed(jobs.len());
        }
    }

    pub(super) fn acked(&self, rows: &[AckedRow]) {
        self.tally.add(rows.iter().filter_map(|row| row.queue), |sums| &mut sums.acked);
        if let Some(metrics) = &self.metrics {
            metrics.acked(rows.iter().filter(|row| row.held == Held::Ok).count());
        }
    }

    /// `actions` in the order of `rows`.
    pub(super) fn nacked(&self, actions: &[NackAction], rows: &[NackedRow]) {
        let back = rows.iter().filter(|row| row.ready_at.is_some());
        self.tally.add(back.filter_map(|row| row.queue), |sums| &mut sums.retried);
        self.tally.add(rows.iter().filter(|row| row.dead).filter_map(|row| row.queue), |sums| &mut sums.dead);
        if let Some(metrics) = &self.metrics {
            for action in [NackAction::Retry, NackAction::Release, NackAction::Reject] {
                let done = || actions.iter().zip(rows).filter(|(was, row)| **was == action && row.held == Held::Ok);
                let jobs = done().count();
                if jobs > 0 {
                    metrics.nacked(action, jobs, done().filter(|(_, row)| row.dead).count());
                }
            }
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
