//! Jobs and their leases.

use opentelemetry::{KeyValue, metrics::Counter};

use super::{Maker, Metrics};
use crate::{
    model::NackAction,
    telemetry::names::{
        CLAIMED, CLAIMS, DEAD, DELIVERED, DUPLICATES, ENQUEUED, LOST, REAPED, REDELIVERED, SETTLED, key,
    },
};

pub(super) struct JobInstruments {
    enqueued: Counter<u64>,
    duplicates: Counter<u64>,
    claims: Counter<u64>,
    claimed: Counter<u64>,
    delivered: Counter<u64>,
    redelivered: Counter<u64>,
    settled: Counter<u64>,
    lost: Counter<u64>,
    reaped: Counter<u64>,
    dead: Counter<u64>,
}

impl JobInstruments {
    pub(super) fn new(maker: &Maker) -> Self {
        let made = Self {
            enqueued: maker.counter(&ENQUEUED),
            duplicates: maker.counter(&DUPLICATES),
            claims: maker.counter(&CLAIMS),
            claimed: maker.counter(&CLAIMED),
            delivered: maker.counter(&DELIVERED),
            redelivered: maker.counter(&REDELIVERED),
            settled: maker.counter(&SETTLED),
            lost: maker.counter(&LOST),
            reaped: maker.counter(&REAPED),
            dead: maker.counter(&DEAD),
        };
        made.begin();
        made
    }

    /// Begins every series at 0: a rate cannot see the first step of one that begins with its first event.
    fn begin(&self) {
        for counter in [
            &self.enqueued,
            &self.duplicates,
            &self.claimed,
            &self.delivered,
            &self.redelivered,
            &self.reaped,
            &self.dead,
        ] {
            counter.add(0, &[]);
        }
        for action in ["ack", "retry", "release", "reject"] {
            self.settled.add(0, &[KeyValue::new(key::ACTION, action)]);
        }
        for act in ["ack", "nack", "extend"] {
            self.lost.add(0, &[KeyValue::new(key::ACTION, act)]);
        }
        for result in ["jobs", "nothing", "failure"] {
            self.claims.add(0, &[KeyValue::new(key::RESULT, result)]);
        }
    }
}

impl Metrics {
    /// Jobs were stored; `duplicates` of further ones were known by their key.
    pub fn enqueued(&self, jobs: usize, duplicates: usize) {
        self.0.jobs.enqueued.add(jobs as u64, &[]);
        self.0.jobs.duplicates.add(duplicates as u64, &[]);
    }

    /// A claim ended: with so many leases, or not at all.
    pub fn claimed(&self, leases: Option<usize>) {
        let result = match leases {
            Some(0) => "nothing",
            Some(_) => "jobs",
            None => "failure",
        };
        self.0.jobs.claims.add(1, &[KeyValue::new(key::RESULT, result)]);
        self.0.jobs.claimed.add(leases.unwrap_or(0) as u64, &[]);
    }

    /// Jobs were sent, `again` of them not for the first time.
    pub fn delivered(&self, jobs: usize, again: usize) {
        self.0.jobs.delivered.add(jobs as u64, &[]);
        self.0.jobs.redelivered.add(again as u64, &[]);
    }

    /// Jobs were acked.
    pub fn acked(&self, jobs: usize) {
        self.0.jobs.settled.add(jobs as u64, &[KeyValue::new(key::ACTION, "ack")]);
    }

    /// Jobs were nacked, `dead` of them for good.
    pub fn nacked(&self, action: NackAction, jobs: usize, dead: usize) {
        let action = match action {
            NackAction::Retry => "retry",
            NackAction::Release => "release",
            NackAction::Reject => "reject",
        };
        self.0.jobs.settled.add(jobs as u64, &[KeyValue::new(key::ACTION, action)]);
        self.0.jobs.dead.add(dead as u64, &[]);
    }

    /// An `ack`, `nack` or `extend` came too late for so many leases.
    pub fn leases_lost(&self, act: &'static str, leases: usize) {
        if leases > 0 {
            self.0.jobs.lost.add(leases as u64, &[KeyValue::new(key::ACTION, act)]);
        }
    }

    /// Expired leases were taken away, `dead` of their jobs are dead.
    pub fn reaped(&self, leases: usize, dead: usize) {
        self.0.jobs.reaped.add(leases as u64, &[]);
        self.0.jobs.dead.add(dead as u64, &[]);
    }

    /// Jobs are dead that nobody leased within their queue's time to live.
    pub fn expired(&self, jobs: usize) {
        self.0.jobs.dead.add(jobs as u64, &[]);
    }
}
