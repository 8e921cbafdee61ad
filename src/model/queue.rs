//! Queues: their names and their settings.

use std::{fmt, sync::Arc, time::Duration};

use super::{Backoff, Invalid};

/// `[a-z0-9][a-z0-9._-]{0,127}`, compared byte for byte.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QueueName(Arc<str>);

impl QueueName {
    /// Longest name, in bytes.
    pub const MAX_BYTES: usize = 128;

    /// The name in `field`.
    pub fn parse(field: &str, name: &str) -> Result<Self, Invalid> {
        let bytes = name.as_bytes();
        let starts = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        if (1..=Self::MAX_BYTES).contains(&bytes.len())
            && starts(bytes[0])
            && bytes.iter().all(|&b| starts(b) || matches!(b, b'.' | b'_' | b'-'))
        {
            Ok(Self(name.into()))
        } else {
            Err(Invalid::new(field, "must match [a-z0-9][a-z0-9._-]{0,127}"))
        }
    }

    /// The name's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for QueueName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A queue's number in the database: what rows carry instead of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QueueId(pub i32);

/// How a queue treats its jobs. Kept in the database, so that all replicas agree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueSettings {
    /// No job of it is leased.
    pub paused: bool,
    /// It takes no jobs in, for this reason.
    pub disabled_reason: Option<String>,
    /// Length of a lease where the stream asks for none.
    pub lease_duration: Duration,
    /// Leases granted before a job is dead, where the job says nothing.
    pub max_attempts: u16,
    /// Delay before a retry.
    pub backoff: Backoff,
    /// How long an idempotency key is known, from its first enqueue.
    pub idempotency_retention: Duration,
    /// How long a dead job is kept.
    pub dead_retention: Duration,
    /// Live jobs at most; no bound where absent.
    pub max_backlog_jobs: Option<u64>,
    /// Payload bytes of live jobs at most; no bound where absent.
    pub max_backlog_bytes: Option<u64>,
    /// A job that is ready for longer is dead; no bound where absent.
    pub time_to_live: Option<Duration>,
    /// How long an acked job is kept; not at all where absent.
    pub acked_retention: Option<Duration>,
}

impl Default for QueueSettings {
    fn default() -> Self {
        Self {
            paused: false,
            disabled_reason: None,
            lease_duration: Duration::from_secs(30),
            max_attempts: 20,
            backoff: Backoff::default(),
            idempotency_retention: Duration::from_secs(24 * 3600),
            dead_retention: Duration::from_secs(14 * 24 * 3600),
            max_backlog_jobs: None,
            max_backlog_bytes: None,
            time_to_live: None,
            acked_retention: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queue_names_keep_their_grammar() {
        for good in ["a", "0", "orders", "orders.eu-1_x", "orders.", &"q".repeat(128)] {
            assert!(QueueName::parse("queue", good).is_ok(), "{good}");
        }
        for bad in
            ["", "Orders", "orders ", "órders", "*", "orders.*", "_system", ".a", "a/b", "a\0", "a\n", &"q".repeat(129)]
        {
            assert!(QueueName::parse("queue", bad).is_err(), "{bad:?}");
        }
    }
}
