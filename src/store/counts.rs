//! What the store counts: each act once, where its answer is known.

use std::time::Duration;

use super::{
    engine::{AckedRow, ClaimedJob, EnqueuedRow, Held, NackedRow, Reaped},
    error::EngineError,
};
use crate::{
    model::{Caller, NackAction},
    telemetry::Metrics,
};

/// Counts, where somebody wants to know.
#[derive(Debug, Clone, Default)]
pub(super) struct Counts(Option<Metrics>);

impl Counts {
    pub(super) fn new(metrics: Option<Metrics>) -> Self {
        Self(metrics)
    }

    /// A lane ran a statement of one kind with so many jobs or tokens.
    pub(super) fn ran(&self, caller: &Caller, kind: &'static str, items: usize, wait: Duration, hold: Duration) {
        if let Some(metrics) = &self.0 {
            metrics.lane_held(caller, kind, wait, hold);
            metrics.batch(kind, items);
        }
    }

    pub(super) fn failed(&self, error: &EngineError) {
        if let Some(metrics) = &self.0 {
            metrics.statement_failed(error.class());
        }
    }

    pub(super) fn enqueued(&self, rows: &[EnqueuedRow]) {
        if let Some(metrics) = &self.0 {
            let duplicates = rows.iter().filter(|row| row.duplicate).count();
            metrics.enqueued(rows.len() - duplicates, duplicates);
        }
    }

    pub(super) fn claimed(&self, jobs: &[ClaimedJob]) {
        if let Some(metrics) = &self.0 {
            metrics.claimed(jobs.len());
        }
    }

    pub(super) fn acked(&self, rows: &[AckedRow]) {
        if let Some(metrics) = &self.0 {
            metrics.acked(rows.iter().filter(|row| row.held == Held::Ok).count());
        }
    }

    /// `actions` in the order of `rows`.
    pub(super) fn nacked(&self, actions: &[NackAction], rows: &[NackedRow]) {
        if let Some(metrics) = &self.0 {
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
        if let Some(metrics) = &self.0 {
            metrics.reaped(reaped.leases.len(), reaped.leases.iter().filter(|lease| lease.dead).count());
        }
    }

    /// Jobs died that nobody leased within their queue's time to live.
    pub(super) fn expired(&self, jobs: usize) {
        if let Some(metrics) = &self.0 {
            metrics.expired(jobs);
        }
    }
}
