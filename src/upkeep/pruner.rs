//! Dead jobs, acked jobs, idempotency keys and reservations past their retention.

use std::time::Duration;

use async_trait::async_trait;

use super::{Pass, Step};
use crate::{
    model::{Failure, Timestamp},
    store::Store,
};

pub(super) struct DeadJobs {
    store: Store,
    floor: Timestamp,
}

impl DeadJobs {
    pub(super) fn new(store: Store) -> Self {
        Self { store, floor: Timestamp::BEGINNING }
    }
}

#[async_trait]
impl Pass for DeadJobs {
    fn name(&self) -> &'static str {
        "dead jobs"
    }

    fn start_over(&mut self) {
        self.floor = Timestamp::BEGINNING;
    }

    async fn run_once(&mut self, limit: usize) -> Result<Step, Failure> {
        let pruned = self.store.prune_dead(self.floor, limit).await?;
        self.floor = pruned.floor;
        Ok(Step::of(pruned.rows, limit))
    }
}

pub(super) struct IdempotencyKeys {
    store: Store,
    floor: Timestamp,
}

impl IdempotencyKeys {
    pub(super) fn new(store: Store) -> Self {
        Self { store, floor: Timestamp::BEGINNING }
    }
}

#[async_trait]
impl Pass for IdempotencyKeys {
    fn name(&self) -> &'static str {
        "idempotency keys"
    }

    fn start_over(&mut self) {
        self.floor = Timestamp::BEGINNING;
    }

    async fn run_once(&mut self, limit: usize) -> Result<Step, Failure> {
        let pruned = self.store.prune_keys(self.floor, limit).await?;
        self.floor = pruned.floor;
        Ok(Step::of(pruned.rows, limit))
    }
}

pub(super) struct AckedJobs {
    store: Store,
    floor: Timestamp,
}

impl AckedJobs {
    pub(super) fn new(store: Store) -> Self {
        Self { store, floor: Timestamp::BEGINNING }
    }
}

#[async_trait]
impl Pass for AckedJobs {
    fn name(&self) -> &'static str {
        "acked jobs"
    }

    fn start_over(&mut self) {
        self.floor = Timestamp::BEGINNING;
    }

    async fn run_once(&mut self, limit: usize) -> Result<Step, Failure> {
        let pruned = self.store.prune_acked(self.floor, limit).await?;
        self.floor = pruned.floor;
        Ok(Step::of(pruned.rows, limit))
    }
}

pub(super) struct EndedReservations {
    store: Store,
    retention: Duration,
    floor: Timestamp,
}

impl EndedReservations {
    pub(super) fn new(store: Store, retention: Duration) -> Self {
        Self { store, retention, floor: Timestamp::BEGINNING }
    }
}

#[async_trait]
impl Pass for EndedReservations {
    fn name(&self) -> &'static str {
        "ended reservations"
    }

    fn start_over(&mut self) {
        self.floor = Timestamp::BEGINNING;
    }

    async fn run_once(&mut self, limit: usize) -> Result<Step, Failure> {
        let pruned = self.store.prune_reservations(self.floor, self.retention, limit).await?;
        self.floor = pruned.floor;
        Ok(Step::of(pruned.rows, limit))
    }
}
