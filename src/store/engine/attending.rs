//! Who is there: what each replica writes about itself.

use std::time::Duration;

use async_trait::async_trait;

use super::Rates;
use crate::{
    model::{Caller, JobId, QueueId, QueueName, ReplicaId, StreamId},
    store::error::EngineError,
};

/// Presence of replicas.
#[async_trait]
pub trait Attending: Send {
    /// Writes down what changed since the last report, and takes out replicas not heard of for `report.absent`, with all
    /// that they wrote. One statement, of at most 1,000 streams and 1,000 queues.
    async fn attend(&mut self, caller: &Caller, report: &Report) -> Result<Attended, EngineError>;

    /// Takes out a replica that goes away, with all that it wrote.
    async fn leave(&mut self, caller: &Caller, replica: ReplicaId) -> Result<(), EngineError>;
}

/// What a replica says of itself. Ages are counted from the moment at which the statement runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Who.
    pub replica: ReplicaId,
    /// Its name, for operators.
    pub name: String,
    /// The version that it runs.
    pub version: String,
    /// How long it has been running.
    pub age: Duration,
    /// Forget first what it wrote before.
    pub anew: bool,
    /// Streams that are new or changed.
    pub streams: Vec<StreamReport>,
    /// Streams that are gone.
    pub closed: Vec<StreamId>,
    /// Queues that its streams ask for, new or changed.
    pub demand: Vec<DemandReport>,
    /// Queues that none of them asks for any more.
    pub unasked: Vec<QueueName>,
    /// Queues whose jobs fare differently than before.
    pub rates: Vec<(QueueId, Rates)>,
    /// Queues of whose jobs there is nothing more to say.
    pub quiet: Vec<QueueId>,
    /// Replicas not heard of for so long are gone.
    pub absent: Duration,
}

/// One stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamReport {
    /// Which.
    pub stream: StreamId,
    /// As it named itself.
    pub consumer: String,
    /// Address of the other end.
    pub peer: String,
    /// The business process that its claims run for.
    pub caller: Caller,
    /// What it asks for.
    pub queues: Vec<QueueName>,
    /// Leases that it may hold.
    pub max_in_flight: u32,
    /// Leases that it holds.
    pub in_flight: u32,
    /// Age of the oldest of these.
    pub oldest_lease: Option<Duration>,
    /// Its own age.
    pub age: Duration,
}

/// What a replica's streams ask of one queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DemandReport {
    /// Which; it may not exist.
    pub queue: QueueName,
    /// Streams that ask for it.
    pub streams: u64,
    /// Their credit that is free.
    pub free_credit: u64,
}

/// The answer to a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attended {
    /// Nothing was known of this replica: whatever it said before must be said anew.
    pub unknown_before: bool,
    /// Jobs leased by its streams that somebody asked to cancel since the last report, 1,000 at most. Told once.
    pub to_cancel: Vec<JobId>,
}
