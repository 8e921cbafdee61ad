//! What tells jobs apart: the beginning of each payload.

use std::time::{Duration, Instant};

/// Bytes of a stamp.
pub(super) const SIZE: usize = 24;
/// The number of jobs that no worker should ever see.
pub(super) const BACKDROP: u64 = u64::MAX;

/// Whose job it is, which one, and when it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    /// The measurement; nobody else's jobs have the same.
    pub(super) run: u64,
    /// Counted from 0, over all rounds.
    pub(super) number: u64,
    /// When, from the beginning of the measurement.
    pub(super) sent: Duration,
}

impl Stamp {
    /// A payload of `size` bytes, at least [`SIZE`].
    pub(super) fn payload(self, size: usize) -> Vec<u8> {
        let mut payload = Vec::with_capacity(size.max(SIZE));
        payload.extend(self.run.to_be_bytes());
        payload.extend(self.number.to_be_bytes());
        payload.extend(u64::try_from(self.sent.as_micros()).unwrap_or(u64::MAX).to_be_bytes());
        payload.resize(size.max(SIZE), b'x');
        payload
    }

    /// Reads a payload of `size` bytes; nothing where it is none of ours.
    pub(super) fn read(payload: &[u8], size: usize) -> Option<Self> {
        let (stamp, rest) = payload.split_first_chunk::<SIZE>()?;
        let field = |at: usize| stamp[at..].first_chunk::<8>().map_or(0, |bytes| u64::from_be_bytes(*bytes));
        let whole = payload.len() == size.max(SIZE) && rest.iter().all(|byte| *byte == b'x');
        whole.then(|| Self { run: field(0), number: field(8), sent: Duration::from_micros(field(16)) })
    }

    /// How long ago it was sent, for a measurement that began at `began`.
    pub(super) fn age(self, began: Instant) -> Duration {
        began.elapsed().saturating_sub(self.sent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_comes_back_as_it_went_and_nothing_else_is_taken_for_one() {
        let stamp = Stamp { run: 7, number: 41, sent: Duration::from_micros(1_234) };
        for size in [SIZE, 100, 10_000] {
            let mut payload = stamp.payload(size);
            assert_eq!(payload.len(), size);
            assert_eq!(Stamp::read(&payload, size), Some(stamp));
            assert_eq!(Stamp::read(&payload, size + 1), None, "cut");
            payload.push(b'y');
            assert_eq!(Stamp::read(&payload, size + 1), None, "changed");
        }
        assert_eq!(Stamp::read(b"short", 5), None);
    }
}
