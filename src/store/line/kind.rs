//! Requests as the line sees them.

use std::time::Instant;

use crate::store::engine::LaneRole;

/// What a request asks for. Requests of one kind and caller may leave as one statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::store) enum Kind {
    /// Enqueue of jobs without any key.
    Enqueue,
    /// Enqueue of jobs of which some have an idempotency or ordering key; apart, since these may wait for each other.
    EnqueueKeyed,
    Ack,
    Nack,
    Extend,
    GiveBack,
    /// Any other act that writes; never merged.
    Write,
    /// Any other act that only reads; never merged.
    Read,
}

impl Kind {
    pub(in crate::store) const COUNT: usize = 8;
    pub(in crate::store) const ALL: [Self; Self::COUNT] = [
        Self::Enqueue,
        Self::EnqueueKeyed,
        Self::Ack,
        Self::Nack,
        Self::Extend,
        Self::GiveBack,
        Self::Write,
        Self::Read,
    ];

    /// What merged requests of it are called; an act on its own has a name of its own.
    pub(in crate::store) fn name(self) -> &'static str {
        match self {
            Self::Enqueue => "enqueue",
            Self::EnqueueKeyed => "enqueue_keyed",
            Self::Ack => "ack",
            Self::Nack => "nack",
            Self::Extend => "extend",
            Self::GiveBack => "give_back",
            Self::Write => "write",
            Self::Read => "read",
        }
    }

    pub(in crate::store) fn merges(self) -> bool {
        !matches!(self, Self::Write | Self::Read)
    }

    /// Whether it ends or moves leases: two lanes are kept for it, and the last one of a caller's budget.
    pub(in crate::store) fn settles(self) -> bool {
        matches!(self, Self::Ack | Self::Nack | Self::Extend | Self::GiveBack)
    }

    /// Whether a lane of this role takes it.
    pub(in crate::store) fn suits(self, role: LaneRole) -> bool {
        match role {
            LaneRole::Any => true,
            LaneRole::Settle => self.settles(),
            LaneRole::Write => self != Self::Read,
            LaneRole::Read => self == Self::Read,
            LaneRole::Notify => false,
        }
    }
}

/// A request as the line sees it.
pub(in crate::store) trait Queued {
    fn kind(&self) -> Kind;
    /// Jobs or tokens in it.
    fn items(&self) -> usize;
    fn bytes(&self) -> usize;
    fn queued_at(&self) -> Instant;
    /// Takes it for a lane; false where its asker has withdrawn it.
    fn take(&self) -> bool;
}
