//! The connection as such, the schema behind it, and what replicas tell each other.

use async_trait::async_trait;

use crate::{
    model::{Caller, JobId, QueueId, ReplicaId},
    store::error::EngineError,
};

/// The connection as such, and the schema behind it.
#[async_trait]
pub trait Linking: Send {
    /// The database's version, as it says it.
    async fn version(&mut self, caller: &Caller) -> Result<String, EngineError>;

    /// Asks the database for nothing, to see that it answers.
    async fn ping(&mut self, caller: &Caller) -> Result<(), EngineError>;

    /// Sends wake-ups. They are hints: nothing depends on their arrival.
    async fn notify(&mut self, caller: &Caller, wakes: &[Wake]) -> Result<(), EngineError>;

    /// Migrations that the database has, lowest first; empty for a database without our schema.
    async fn migrations(&mut self, caller: &Caller) -> Result<Vec<AppliedMigration>, EngineError>;

    /// Applies the next missing migration, if any, in one transaction that no two processes run at once. Says which.
    async fn migrate_one(&mut self, caller: &Caller) -> Result<Option<AppliedMigration>, EngineError>;
}

/// A hint from one replica to others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wake {
    /// To the replica that leased them: these jobs were settled elsewhere. Empty: read yourself.
    Settled {
        /// Who leased them.
        replica: ReplicaId,
        /// Which jobs.
        jobs: Vec<JobId>,
    },
    /// To all: jobs became ready in these queues.
    Ready {
        /// Which queues.
        queues: Vec<QueueId>,
    },
    /// From the listener to its own replica: anything may have been missed; look at everything.
    Everything,
}

/// An ear for other replicas' wake-ups.
#[async_trait]
pub trait Listener: Send {
    /// The next wake-up. An error means that the ear is deaf: open a new one, then look at everything.
    async fn next(&mut self) -> Result<Wake, EngineError>;
}

/// A step of the schema's growth.
#[derive(Debug, Clone, Copy)]
pub struct Migration {
    /// Its number; they rise by one.
    pub number: i32,
    /// Its name, the same for all engines.
    pub name: &'static str,
    /// Its statements in this engine's dialect.
    pub sql: &'static str,
}

/// A migration that was applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedMigration {
    /// Its number; they rise by one.
    pub number: i32,
    /// Its name.
    pub name: String,
}
