//! What a job may be doing.

/// A job is in exactly one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum JobState {
    /// Waits for a claim.
    Ready,
    /// Due later: at the producer's wish, or waiting for a retry.
    Scheduled,
    /// Waits for an earlier job of its ordering key, or for its adoption.
    Blocked,
    /// Under a lease, expired ones that nobody took yet included.
    Leased,
    /// Out of attempts, rejected, or past its time.
    Dead,
    /// Done, and kept for a while.
    Acked,
}

impl JobState {
    /// Those of a job that is still to be done.
    pub const LIVE: [Self; 4] = [Self::Ready, Self::Scheduled, Self::Blocked, Self::Leased];

    /// Its name, as the documentation has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Scheduled => "scheduled",
            Self::Blocked => "blocked",
            Self::Leased => "leased",
            Self::Dead => "dead",
            Self::Acked => "acked",
        }
    }

    /// Whether it is one of [`JobState::LIVE`].
    pub fn is_live(self) -> bool {
        Self::LIVE.contains(&self)
    }
}
