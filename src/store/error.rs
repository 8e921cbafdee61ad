//! Failures of an engine, in the classes that the facade acts on.

use crate::model::{Failure, Reason};

/// Why an act failed. All but [`EngineError::Unknown`] and [`EngineError::Bug`] are certain that nothing was applied.
///
/// Messages are for the broker's log; they may name a SQLSTATE but never hold SQL text, a payload or a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// The database refused something in the data, such as a constraint that the team added. Run merged requests in halves.
    #[error("the database refused the data: {0}")]
    Refused(String),
    /// Deadlock, serialization failure, or a lock not had in time. Another try may go through.
    #[error("conflict: {0}")]
    Conflict(String),
    /// The statement ran past its time and was ended by the database.
    #[error("statement ran past its time: {0}")]
    TimedOut(String),
    /// The database is read-only, full, shutting down, out of connections or not reachable, and nothing was committed.
    #[error("database unavailable: {0}")]
    Unavailable(String),
    /// The connection was found dead before anything was sent on it: run the act again as it is, on another one.
    #[error("nothing was sent: {0}")]
    NotSent(String),
    /// The commit, or the one statement that commits by itself, was sent and no answer came. Drop the connection.
    #[error("outcome unknown: {0}")]
    Unknown(String),
    /// An idempotency key came with other content than before. `index` is the job's place in the batch.
    #[error("the idempotency key of job {index} is in use with other content")]
    KeyReused {
        /// Place in the batch.
        index: usize,
    },
    /// A queue of the batch takes no jobs: it is disabled, being deleted or gone. What is remembered of queues is out of date.
    #[error("a queue takes no jobs any more")]
    QueueClosed,
    /// The database cannot carry the promises: version, settings or schema. Says what to change.
    #[error("{0}")]
    Unfit(String),
    /// An answer that makes no sense: a bug of ours.
    #[error("unexpected answer: {0}")]
    Bug(String),
}

impl EngineError {
    /// All classes there are.
    pub const CLASSES: [&'static str; 9] =
        ["refused", "conflict", "timed_out", "unavailable", "not_sent", "unknown", "key_reused", "unfit", "bug"];

    /// Its class, for metrics.
    pub fn class(&self) -> &'static str {
        match self {
            Self::Refused(_) => "refused",
            Self::Conflict(_) => "conflict",
            Self::TimedOut(_) => "timed_out",
            Self::Unavailable(_) => "unavailable",
            Self::NotSent(_) => "not_sent",
            Self::Unknown(_) => "unknown",
            Self::KeyReused { .. } => "key_reused",
            Self::QueueClosed => "queue_closed",
            Self::Unfit(_) => "unfit",
            Self::Bug(_) => "bug",
        }
    }

    /// Whether the connection that it came from must not be used again.
    pub fn poisons_connection(&self) -> bool {
        matches!(self, Self::Unknown(_) | Self::NotSent(_) | Self::Unavailable(_) | Self::Unfit(_) | Self::Bug(_))
    }

    /// Whether merged requests may be run again in halves.
    pub fn may_be_halved(&self) -> bool {
        matches!(
            self,
            Self::Refused(_) | Self::Conflict(_) | Self::TimedOut(_) | Self::KeyReused { .. } | Self::QueueClosed
        )
    }
}

/// What the asker of a single request hears. Details stay in the log.
impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Refused(code) => Failure::not_applied(
                Reason::InvalidField,
                format!("the database refused this request by a rule of its own ({code})"),
            ),
            EngineError::Conflict(_) => {
                Failure::not_applied(Reason::Conflict, "another transaction holds what this request needs; try again")
            }
            EngineError::TimedOut(_) => Failure::not_applied(
                Reason::Overloaded,
                "the statement ran past its time and was ended; try again later",
            ),
            EngineError::Unavailable(_) | EngineError::NotSent(_) => Failure::not_applied(
                Reason::DatabaseUnavailable,
                "the database cannot be reached or does not accept writes",
            ),
            EngineError::Unfit(why) => Failure::not_applied(Reason::DatabaseUnavailable, why),
            EngineError::Unknown(_) => {
                Failure::unknown("the commit was sent and no answer came; repeat with the same key or token")
            }
            EngineError::KeyReused { index } => Failure::not_applied(
                Reason::KeyReused,
                format!("the idempotency key of jobs[{index}] is in use with other content"),
            ),
            EngineError::QueueClosed => Failure::not_applied(
                Reason::Disabled,
                "a queue was switched off or deleted a moment ago; try again to hear which",
            ),
            EngineError::Bug(_) => {
                Failure::internal("the broker met an answer that it cannot explain; its log says more")
            }
        }
    }
}
