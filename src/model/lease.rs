//! Leases and their tokens.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest, Sha256};

use super::JobId;

/// 128 random bits, new at each grant. Every statement that settles, extends or reaps compares them: they alone decide
/// who holds a job.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LeaseId(pub u128);

impl fmt::Debug for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LeaseId(…)") // a proof, so never in a log
    }
}

/// A broker process; drawn at its start, so that no restart takes over another's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReplicaId(pub u32);

/// A Lease stream of one replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamNumber(pub u32);

/// A Lease stream among those of all replicas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId {
    /// Who serves it.
    pub replica: ReplicaId,
    /// Which of its streams.
    pub number: StreamNumber,
}

impl StreamId {
    /// The lowest and the highest that a replica's streams may have.
    pub fn all_of(replica: ReplicaId) -> (Self, Self) {
        (Self { replica, number: StreamNumber(0) }, Self { replica, number: StreamNumber(u32::MAX) })
    }

    /// Both numbers in one, as it stands in the database; rises with the number within a replica.
    pub fn to_bits(self) -> i64 {
        (u64::from(self.replica.0) << 32 | u64::from(self.number.0)).cast_signed()
    }

    /// Back from [`StreamId::to_bits`].
    pub fn from_bits(bits: i64) -> Self {
        let (high, low) = (bits >> 32, bits & 0xffff_ffff);
        let half = |half: i64| u32::try_from(half & 0xffff_ffff).unwrap_or_default(); // masked, so it always fits
        Self { replica: ReplicaId(half(high)), number: StreamNumber(half(low)) }
    }
}

/// As operators see it.
impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}-{}", self.replica.0, self.number.0)
    }
}

/// Proof of one lease. It names job and lease, so that a settlement needs no look-up, and replica and stream, so that any
/// replica knows whose credit comes back.
///
/// On the wire: 36 bytes in URL-safe base64 without padding, 48 characters. Bytes, big-endian: job 8, lease 16, replica 4,
/// stream 4, check 4. The check is the beginning of the SHA-256 of the 32 bytes before it (a hash that every engine can
/// compute in SQL); it tells a mistyped token from one whose job is gone and protects nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LeaseToken {
    /// The job leased.
    pub job: JobId,
    /// The grant.
    pub lease: LeaseId,
    /// Who granted it.
    pub replica: ReplicaId,
    /// Whose credit it uses.
    pub stream: StreamNumber,
}

const BODY: usize = 32;
const WHOLE: usize = 36;

impl LeaseToken {
    /// Characters of every token.
    pub const CHARS: usize = 48;

    /// The token as clients see it.
    pub fn encode(&self) -> String {
        let mut bytes = [0; WHOLE];
        bytes[..8].copy_from_slice(&self.job.0.to_be_bytes());
        bytes[8..24].copy_from_slice(&self.lease.0.to_be_bytes());
        bytes[24..28].copy_from_slice(&self.replica.0.to_be_bytes());
        bytes[28..32].copy_from_slice(&self.stream.0.to_be_bytes());
        let check = check(&bytes[..BODY]);
        bytes[BODY..].copy_from_slice(&check);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// The token, or nothing where it is malformed or its check does not fit.
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() != Self::CHARS {
            return None;
        }
        let mut bytes = [0; WHOLE];
        let decoded = URL_SAFE_NO_PAD.decode_slice(text, &mut bytes).ok()?;
        if decoded != WHOLE || bytes[BODY..] != check(&bytes[..BODY]) {
            return None;
        }
        Some(Self {
            job: JobId(i64::from_be_bytes(bytes[..8].try_into().ok()?)),
            lease: LeaseId(u128::from_be_bytes(bytes[8..24].try_into().ok()?)),
            replica: ReplicaId(u32::from_be_bytes(bytes[24..28].try_into().ok()?)),
            stream: StreamNumber(u32::from_be_bytes(bytes[28..32].try_into().ok()?)),
        })
    }
}

fn check(body: &[u8]) -> [u8; 4] {
    let hash = Sha256::digest(body);
    [hash[0], hash[1], hash[2], hash[3]]
}

/// What a Nack asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NackAction {
    /// Failed: try again later. Dead when no attempt is left.
    Retry,
    /// Not started: the attempt is not counted.
    Release,
    /// Will never succeed: dead now.
    Reject,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token() -> LeaseToken {
        LeaseToken {
            job: JobId(42),
            lease: LeaseId(0x0123_4567_89ab_cdef_0011_2233_4455_6677),
            replica: ReplicaId(7),
            stream: StreamNumber(9),
        }
    }

    #[test]
    fn a_token_survives_the_wire() {
        let text = token().encode();
        assert_eq!(text.len(), LeaseToken::CHARS);
        assert_eq!(LeaseToken::parse(&text), Some(token()));
    }

    #[test]
    fn a_token_changed_in_any_character_is_malformed() {
        let text = token().encode();
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(bytes).expect("ASCII");
            assert_eq!(LeaseToken::parse(&changed), None, "character {at}");
        }
    }

    #[test]
    fn what_is_no_token_is_no_token() {
        let text = token().encode();
        for bad in ["", "x", &text[1..], &format!("{text}="), &"é".repeat(24), &"\0".repeat(48), &"+".repeat(48)] {
            assert_eq!(LeaseToken::parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_stream_survives_its_column() {
        for (replica, number) in [(0, 0), (7, 9), (u32::MAX, 1), (0x8000_0000, u32::MAX)] {
            let stream = StreamId { replica: ReplicaId(replica), number: StreamNumber(number) };
            assert_eq!(StreamId::from_bits(stream.to_bits()), stream);
        }
        let stream = StreamId { replica: ReplicaId(0xab), number: StreamNumber(12) };
        assert_eq!(stream.to_string(), "000000ab-12");
    }

    #[test]
    fn a_lease_id_does_not_show_in_logs() {
        assert!(!format!("{:?}", token()).contains("81985529216486895"));
        assert_eq!(format!("{:?}", LeaseId(5)), "LeaseId(…)");
    }
}
