//! Jobs as producers hand them in.

use std::{collections::BTreeMap, fmt, time::Duration};

use bytes::Bytes;
use sha2::{Digest, Sha256};

use super::{Key, QueueName, Timestamp, TraceContext};

/// A job's identity; stable for its life, unique in its database for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JobId(pub i64);

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// 0 to 9; 9 is served first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Priority(u8);

impl Priority {
    /// Levels there are.
    pub const LEVELS: usize = 10;
    /// Where a job says nothing (as in JMS and AMQP).
    pub const DEFAULT: Self = Self(4);

    /// The level, where it is one.
    pub fn new(level: i32) -> Option<Self> {
        u8::try_from(level).ok().filter(|&level| usize::from(level) < Self::LEVELS).map(Self)
    }

    /// 0 to 9.
    pub fn level(self) -> u8 {
        self.0
    }
}

/// When a job becomes ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// At once.
    Now,
    /// This long after the database stored it.
    After(Duration),
    /// At this instant of the database's clock; at once where it is past.
    At(Timestamp),
}

/// Text pairs that travel with a job; the order of keys carries no meaning.
pub type Headers = BTreeMap<String, String>;

/// A job to be stored. Its parts have been checked against their limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewJob {
    /// Where it waits.
    pub queue: QueueName,
    /// Opaque bytes.
    pub payload: Bytes,
    /// Media type of the payload; empty where not said.
    pub content_type: String,
    /// Delivered as they came.
    pub headers: Headers,
    /// Level at which it is served.
    pub priority: Priority,
    /// When it becomes ready.
    pub start: Start,
    /// Leases granted before it is dead; the queue's setting where absent.
    pub max_attempts: Option<u16>,
    /// At most one job per queue and key within the retention window.
    pub idempotency_key: Option<Key>,
    /// Jobs of one queue and key are leased one at a time, in order.
    pub ordering_key: Option<Key>,
    /// From the job's own headers, else from the Enqueue call.
    pub trace: Option<TraceContext>,
}

impl NewJob {
    /// SHA-256 over what two calls with one idempotency key must agree on: payload, content type, priority, attempts,
    /// ordering key and headers except trace context. The start is left out: a repeated call may compute it anew.
    pub fn content_hash(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        let mut part = |bytes: &[u8]| {
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        };
        part(&self.payload);
        part(self.content_type.as_bytes());
        part(&[self.priority.level()]);
        part(&self.max_attempts.unwrap_or(0).to_le_bytes());
        part(self.ordering_key.as_ref().map_or("", Key::as_str).as_bytes());
        for (key, value) in &self.headers {
            if !matches!(key.to_ascii_lowercase().as_str(), "traceparent" | "tracestate" | "baggage") {
                part(key.as_bytes());
                part(value.as_bytes());
            }
        }
        hash.finalize().into()
    }

    /// Bytes that storing and shipping it takes, near enough to bound batches.
    pub fn weight(&self) -> usize {
        let headers: usize = self.headers.iter().map(|(key, value)| key.len() + value.len() + 8).sum();
        self.payload.len() + self.content_type.len() + headers + 256
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job() -> NewJob {
        NewJob {
            queue: QueueName::parse("queue", "q").expect("a name"),
            payload: Bytes::from_static(b"payload"),
            content_type: String::new(),
            headers: Headers::new(),
            priority: Priority::DEFAULT,
            start: Start::Now,
            max_attempts: None,
            idempotency_key: None,
            ordering_key: None,
            trace: None,
        }
    }

    #[test]
    fn content_is_what_the_contract_compares() {
        let first = job();
        let mut traced = job();
        traced.start = Start::After(Duration::from_secs(9));
        for key in ["traceparent", "tracestate", "baggage", "Baggage"] {
            traced.headers.insert(key.into(), "x".into());
        }
        assert_eq!(first.content_hash(), traced.content_hash());

        let mut others = vec![job(), job(), job(), job(), job(), job()];
        others[0].payload = Bytes::from_static(b"Payload");
        others[1].content_type = "text/plain".into();
        others[2].priority = Priority::new(5).expect("a level");
        others[3].max_attempts = Some(3);
        others[4].ordering_key = Some(Key::parse("k", "k").expect("a key"));
        others[5].headers.insert("a".into(), "b".into());
        for other in others {
            assert_ne!(first.content_hash(), other.content_hash(), "{other:?}");
        }
    }

    #[test]
    fn moving_a_byte_between_fields_changes_the_content() {
        let (mut left, mut right) = (job(), job());
        left.headers.insert("ab".into(), "c".into());
        right.headers.insert("a".into(), "bc".into());
        assert_ne!(left.content_hash(), right.content_hash());
    }

    #[test]
    fn there_are_ten_priorities() {
        assert_eq!(Priority::new(9).map(Priority::level), Some(9));
        for level in [-1, 10, i32::MIN, i32::MAX] {
            assert_eq!(Priority::new(level), None);
        }
    }
}
