//! The configuration as values of the model.

use std::collections::BTreeSet;

use super::Config;
use crate::model::{Backoff, Caller, Limits, QueueSettings, StockLimits};

impl Config {
    /// Bounds on what one request may hold.
    pub fn request_limits(&self) -> Limits {
        let (limits, stock) = (&self.limits, &self.stock);
        Limits {
            payload_bytes: limits.payload_bytes,
            header_entries: limits.header_entries,
            header_bytes: limits.header_bytes,
            batch: limits.batch,
            queues_per_stream: limits.queues_per_stream,
            max_in_flight: limits.max_in_flight,
            delay: limits.delay,
            lease_min: limits.lease_min,
            lease_max: limits.lease_max,
            max_attempts: limits.max_attempts,
            error_bytes: limits.error_bytes,
            stock: StockLimits {
                lines: stock.lines,
                quantity: stock.quantity,
                jobs: stock.jobs,
                adjustments: stock.adjustments,
                usual_time_to_live: stock.time_to_live,
                shortest_time_to_live: stock.time_to_live_min,
                longest_time_to_live: stock.time_to_live_max,
            },
        }
    }

    /// Callers that somebody named, for their series or for their budget: they always have a comment text, a place in the
    /// ledger and series of their own.
    pub fn named_callers(&self) -> Vec<Caller> {
        let with_budget =
            self.budgets.iter().map(|(caller, _)| caller).filter(|caller| **caller != Caller::unattributed());
        let named: BTreeSet<&Caller> = self.callers.names.iter().chain(with_budget).collect();
        named.into_iter().cloned().collect()
    }

    /// Settings of a queue that comes into being with its first job.
    pub fn queue_settings(&self) -> QueueSettings {
        let queues = &self.queues;
        QueueSettings {
            lease_duration: queues.lease_duration,
            max_attempts: queues.max_attempts,
            backoff: Backoff { base: queues.backoff_base, cap: queues.backoff_cap },
            idempotency_retention: queues.idempotency_retention,
            dead_retention: queues.dead_retention,
            max_backlog_jobs: queues.max_backlog_jobs,
            max_backlog_bytes: queues.max_backlog_bytes.map(|bytes| bytes as u64),
            ..QueueSettings::default()
        }
    }
}
