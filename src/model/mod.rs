//! What the broker is about, without I/O and without a clock: names, jobs, leases, limits, back-off.
//!
//! Everything here is a value or a pure function. Nothing of ours is imported; a test reads the `use` lines.

pub mod backoff;
pub mod budget;
pub mod caller;
pub mod count;
pub mod explain;
pub mod failure;
pub mod invalid;
pub mod job;
pub mod key;
pub mod lease;
pub mod limits;
pub mod queue;
pub mod reservation;
pub mod scaling;
pub mod state;
pub mod stock;
pub mod time;
pub mod trace;

pub use backoff::Backoff;
pub use budget::{Budget, BudgetSource, Share};
pub use caller::Caller;
pub use count::Count;
pub use failure::{Failure, Outcome, Reason, Shortage, SoldOut};
pub use invalid::Invalid;
pub use job::{Headers, JobId, NewJob, Priority, Start};
pub use key::Key;
pub use lease::{LeaseId, LeaseToken, NackAction, ReplicaId, StreamId, StreamNumber};
pub use limits::{Limits, StockLimits};
pub use queue::{QueueId, QueueName, QueueSettings};
pub use reservation::{Comparison, ReservationId, ReservationLine, ReservationState};
pub use scaling::{QueueLoad, Scaling, ScalingMetric};
pub use state::JobState;
pub use stock::{Adjustment, Balance, LedgerKind, Movement, StockKey};
pub use time::Timestamp;
pub use trace::TraceContext;
