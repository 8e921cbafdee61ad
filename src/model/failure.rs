//! What a failed call says.

use std::{fmt, time::Duration};

use super::{Invalid, JobId, StockKey};

/// Whether anything happened. There is no third kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing happened: forget the call or try it again.
    NotApplied,
    /// The commit was sent and no answer came: repeat with the same key or token.
    Unknown,
}

impl Outcome {
    /// As in the trailer `leasehold-outcome`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotApplied => "not-applied",
            Self::Unknown => "unknown",
        }
    }
}

/// The stable reasons, one for each thing that a client may want to tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// A field is wrong or over its limit.
    InvalidField,
    /// No such queue, job or reservation.
    NotFound,
    /// No such method, or an encoding that the broker does not speak.
    Unimplemented,
    /// An idempotency key came again with other content.
    KeyReused,
    /// The caller is over its budget of lanes.
    CallerBudget,
    /// Too many Lease streams.
    StreamLimit,
    /// The queue holds as much as it may.
    QueueFull,
    /// The queue takes no jobs, or the items no reservations: switched off by an operator, or about to be deleted.
    Disabled,
    /// Too little stock is free.
    SoldOut,
    /// The reservation ended, and not as it was to.
    ReservationEnded,
    /// A queue that is to be deleted has live jobs.
    QueueNotEmpty,
    /// The job, or its queue, is not in a state in which that can be done.
    WrongState,
    /// More work than the lanes can take, or a statement past its time.
    Overloaded,
    /// The replica is going away.
    Draining,
    /// The database cannot be reached or refuses to write.
    DatabaseUnavailable,
    /// A deadlock or a lock not had in time, after tries of our own.
    Conflict,
    /// The deadline passed before anything was sent.
    Deadline,
    /// The commit was sent and no answer came.
    OutcomeUnknown,
    /// A bug of ours.
    Internal,
}

impl Reason {
    /// Every reason there is.
    pub const ALL: [Self; 19] = [
        Self::InvalidField,
        Self::NotFound,
        Self::Unimplemented,
        Self::KeyReused,
        Self::CallerBudget,
        Self::StreamLimit,
        Self::QueueFull,
        Self::Disabled,
        Self::SoldOut,
        Self::ReservationEnded,
        Self::QueueNotEmpty,
        Self::WrongState,
        Self::Overloaded,
        Self::Draining,
        Self::DatabaseUnavailable,
        Self::Conflict,
        Self::Deadline,
        Self::OutcomeUnknown,
        Self::Internal,
    ];

    /// As in `google.rpc.ErrorInfo.reason`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidField => "INVALID_FIELD",
            Self::NotFound => "NOT_FOUND",
            Self::Unimplemented => "UNIMPLEMENTED",
            Self::KeyReused => "KEY_REUSED",
            Self::CallerBudget => "CALLER_BUDGET",
            Self::StreamLimit => "STREAM_LIMIT",
            Self::QueueFull => "QUEUE_FULL",
            Self::Disabled => "DISABLED",
            Self::SoldOut => "SOLD_OUT",
            Self::ReservationEnded => "RESERVATION_ENDED",
            Self::QueueNotEmpty => "QUEUE_NOT_EMPTY",
            Self::WrongState => "WRONG_STATE",
            Self::Overloaded => "OVERLOADED",
            Self::Draining => "DRAINING",
            Self::DatabaseUnavailable => "DATABASE_UNAVAILABLE",
            Self::Conflict => "CONFLICT",
            Self::Deadline => "DEADLINE",
            Self::OutcomeUnknown => "OUTCOME_UNKNOWN",
            Self::Internal => "INTERNAL",
        }
    }
}

/// A failed call: why, whether anything happened, and what the caller can do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The stable reason.
    pub reason: Reason,
    /// Whether anything happened.
    pub outcome: Outcome,
    /// For people; holds no SQL text, secret or payload.
    pub message: String,
    /// The fields at fault, for [`Reason::InvalidField`].
    pub invalid: Vec<Invalid>,
    /// What the failure is about: the queue, job or key at fault, for reasons that name one.
    pub subject: Option<String>,
    /// What kind of thing that is, where it is not a queue or key.
    pub kind: Option<&'static str>,
    /// When another try makes sense, where it does.
    pub retry_after: Option<Duration>,
    /// Of what too little is free, for [`Reason::SoldOut`].
    pub sold_out: Option<Box<SoldOut>>,
}

/// Stocks of which too little was free. Apart from [`Failure`], which every call may answer with and which is to stay small.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SoldOut {
    /// Which.
    pub shortages: Vec<Shortage>,
}

/// A stock of which too little was free.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shortage {
    /// Which.
    pub key: StockKey,
    /// Units that were wanted.
    pub requested: u64,
    /// Units that were free at the instant at which it was decided.
    pub available: i64,
}

impl Failure {
    /// Nothing happened.
    pub fn not_applied(reason: Reason, message: impl Into<String>) -> Self {
        let retry_after = match reason {
            Reason::CallerBudget | Reason::StreamLimit | Reason::Overloaded | Reason::DatabaseUnavailable => {
                Some(Duration::from_secs(1))
            }
            Reason::Conflict | Reason::Draining => Some(Duration::from_millis(100)),
            Reason::QueueFull => Some(Duration::from_secs(5)),
            _ => None,
        };
        Self {
            reason,
            outcome: Outcome::NotApplied,
            message: message.into(),
            invalid: Vec::new(),
            subject: None,
            kind: None,
            retry_after,
            sold_out: None,
        }
    }

    /// Fields at fault; nothing happened.
    pub fn invalid(invalid: Vec<Invalid>) -> Self {
        let message = invalid.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        Self { invalid, ..Self::not_applied(Reason::InvalidField, message) }
    }

    /// The commit was sent and no answer came.
    pub fn unknown(message: impl Into<String>) -> Self {
        Self { outcome: Outcome::Unknown, ..Self::not_applied(Reason::OutcomeUnknown, message) }
    }

    /// A bug of ours: nobody knows what happened.
    pub fn internal(message: impl Into<String>) -> Self {
        Self { outcome: Outcome::Unknown, ..Self::not_applied(Reason::Internal, message) }
    }

    /// Too little is free of these stocks; nothing happened.
    pub fn sold_out(shortages: Vec<Shortage>) -> Self {
        let shown: Vec<String> = shortages
            .iter()
            .take(2)
            .map(|short| format!("{}: {} wanted, {} free", short.key, short.requested, short.available))
            .collect();
        let more = shortages.len().saturating_sub(shown.len());
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        let message = format!("too little stock is free: {}{more}", shown.join("; "));
        Self { sold_out: Some(Box::new(SoldOut { shortages })), ..Self::not_applied(Reason::SoldOut, message) }
    }

    /// The reservation that the failure is about, by its id or reference.
    #[must_use]
    pub fn about_reservation(mut self, reservation: impl fmt::Display) -> Self {
        self.subject = Some(reservation.to_string());
        self.kind = Some("reservation");
        self
    }

    /// The job that the failure is about.
    #[must_use]
    pub fn about_job(mut self, job: JobId) -> Self {
        self.subject = Some(job.to_string());
        self.kind = Some("job");
        self
    }

    /// The queue or key that the failure is about.
    #[must_use]
    pub fn about(mut self, subject: impl Into<String>) -> Self {
        self.subject = Some(subject.into());
        self
    }
}

impl From<Invalid> for Failure {
    fn from(invalid: Invalid) -> Self {
        Self::invalid(vec![invalid])
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): {}", self.reason.as_str(), self.outcome.as_str(), self.message)
    }
}

impl std::error::Error for Failure {}
