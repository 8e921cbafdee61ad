//! The only door to the database.

pub mod engine;
pub mod error;

use std::time::Instant;

use tokio::sync::{mpsc, watch};

use self::engine::{
    AckedRow, Adopted, AppliedMigration, Claim, ClaimedJob, EnqueuedRow, ExtendRow, ExtendedRow, LeaseRef, LeaseState,
    LookSpot, NackRow, NackedRow, Pruned, QueueRow, Reaped, Sighting, Wake,
};
use crate::model::{Caller, Failure, NewJob, QueueId, QueueName, ReplicaId, Timestamp};

/// For whom and until when a request runs.
#[derive(Debug, Clone)]
pub struct Call {
    /// The business process.
    pub caller: Caller,
    /// When its asker stops waiting.
    pub deadline: Instant,
}

/// A stored job and the queue it went to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// The job.
    pub row: EnqueuedRow,
    /// Its queue.
    pub queue: QueueId,
}

/// Handle to the store; cheap to clone.
#[derive(Clone)]
pub struct Store {}

#[allow(unused_variables, clippy::unused_async)]
impl Store {
    /// Stores all jobs or none.
    pub async fn enqueue(&self, call: &Call, jobs: Vec<NewJob>) -> Result<Vec<Stored>, Failure> {
        unimplemented!()
    }
    /// Ends jobs. Items that stay busy for a second, or until the deadline, are answered as busy.
    pub async fn ack(&self, call: &Call, leases: Vec<LeaseRef>) -> Result<Vec<AckedRow>, Failure> {
        unimplemented!()
    }
    /// Gives jobs back.
    pub async fn nack(&self, call: &Call, items: Vec<NackRow>) -> Result<Vec<NackedRow>, Failure> {
        unimplemented!()
    }
    /// Moves the ends of leases.
    pub async fn extend(&self, call: &Call, items: Vec<ExtendRow>) -> Result<Vec<ExtendedRow>, Failure> {
        unimplemented!()
    }
    /// Claims for the streams of one caller. Where the outcome is unknown, the store itself gives back whatever the claim
    /// may have leased, at once and again after 5, 30 and 60 s.
    pub async fn claim(&self, caller: &Caller, claim: Claim) -> Result<Vec<ClaimedJob>, Failure> {
        unimplemented!()
    }
    /// Gives back what was never sent. Runs on a settling lane. Tries until it is done or the database has been away too long.
    pub async fn give_back(&self, leases: Vec<LeaseRef>) -> Result<Vec<bool>, Failure> {
        unimplemented!()
    }
    /// First waiting job of each queue and priority (caller `leasehold.dispatcher`).
    pub async fn look(&self, spots: Vec<LookSpot>) -> Result<Vec<Sighting>, Failure> {
        unimplemented!()
    }
    /// Which leases still hold (caller `leasehold.dispatcher`).
    pub async fn inspect(&self, leases: Vec<LeaseRef>) -> Result<Vec<LeaseState>, Failure> {
        unimplemented!()
    }
    /// See [`engine::Maintaining::adopt_arrivals`] (caller `leasehold.dispatcher`).
    pub async fn adopt_arrivals(&self, floor: i64, limit: usize) -> Result<Adopted, Failure> {
        unimplemented!()
    }
    /// See [`engine::Maintaining::reap`] (caller `leasehold.reaper`).
    pub async fn reap(&self, floor: Timestamp, limit: usize) -> Result<Reaped, Failure> {
        unimplemented!()
    }
    /// See [`engine::Maintaining::prune_dead`] (caller `leasehold.pruner`).
    pub async fn prune_dead(&self, floor: Timestamp, limit: usize) -> Result<Pruned, Failure> {
        unimplemented!()
    }
    /// See [`engine::Maintaining::prune_keys`] (caller `leasehold.pruner`).
    pub async fn prune_keys(&self, floor: Timestamp, limit: usize) -> Result<Pruned, Failure> {
        unimplemented!()
    }
    /// A queue by its name, from memory where it was seen lately; `None` where it does not exist yet. Never creates one.
    pub async fn queue(&self, name: &QueueName) -> Result<Option<QueueRow>, Failure> {
        unimplemented!()
    }
    /// Sends a hint to other replicas, gathered for 10 ms; never fails, may be lost.
    pub fn notify(&self, wake: Wake) {
        unimplemented!()
    }
    /// Wake-ups from other replicas, and [`Wake::Everything`] after a lane or the listener was lost and came back. The
    /// receiver exists once.
    pub fn take_wakes(&self) -> Option<mpsc::Receiver<Wake>> {
        unimplemented!()
    }
    /// Who this process is in lease tokens.
    pub fn replica(&self) -> ReplicaId {
        unimplemented!()
    }
    /// True while at least one lane that takes all work is connected.
    pub fn availability(&self) -> watch::Receiver<bool> {
        unimplemented!()
    }
    /// Migrations that the database has.
    pub async fn migrations(&self) -> Result<Vec<AppliedMigration>, Failure> {
        unimplemented!()
    }
    /// Applies the next missing migration, if any (caller `leasehold.migrate`).
    pub async fn migrate_one(&self) -> Result<Option<AppliedMigration>, Failure> {
        unimplemented!()
    }
    /// Takes no new work and returns when what was handed over has ended.
    pub async fn drain(&self) {
        unimplemented!()
    }
}
