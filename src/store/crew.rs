//! Which lanes have nothing to do, and which one to wake. No I/O and no clock: instants are handed in.
//!
//! What must hold: where there is work for an idle lane, some lane is on its way that takes work and then looks here again. So no
//! request waits beside an idle lane that could take it.

use std::{sync::Arc, time::Instant};

use tokio::sync::Notify;

use super::{
    engine::LaneRole,
    line::{Kind, Line, Queued},
};

/// What wakes a lane.
pub(super) trait Wakes {
    fn wake(&self);
}

impl Wakes for Arc<Notify> {
    fn wake(&self) {
        self.notify_one();
    }
}

/// The lanes that are not at work.
pub(super) struct Crew<W> {
    idle: Vec<Idle<W>>,
    /// Lanes that were woken, or are done with a batch, and will ask for work next.
    coming: Vec<(usize, LaneRole)>,
}

struct Idle<W> {
    lane: usize,
    role: LaneRole,
    wake: W,
    /// When it wakes by itself, as gathered requests may leave.
    armed: Option<Instant>,
}

impl<W: Wakes> Crew<W> {
    pub(super) fn new() -> Self {
        Self { idle: Vec::new(), coming: Vec::new() }
    }

    /// Idle lanes.
    pub(super) fn idle(&self) -> usize {
        self.idle.len()
    }

    /// A lane has nothing to do.
    pub(super) fn rest(&mut self, lane: usize, role: LaneRole, wake: W, armed: Option<Instant>) {
        self.idle.push(Idle { lane, role, wake, armed });
    }

    /// An idle lane woke up by itself, or was woken before.
    pub(super) fn up(&mut self, lane: usize, role: LaneRole) {
        let before = self.idle.len();
        self.idle.retain(|idle| idle.lane != lane);
        if self.idle.len() < before {
            self.coming.push((lane, role));
        }
    }

    /// A lane asks for work at this moment.
    pub(super) fn asks(&mut self, lane: usize) {
        self.coming.retain(|(coming, _)| *coming != lane);
    }

    /// A lane that was at work will ask for more.
    pub(super) fn returns(&mut self, lane: usize, role: LaneRole) {
        self.coming.push((lane, role));
    }

    /// A lane has gone.
    pub(super) fn lost(&mut self, lane: usize) {
        self.coming.retain(|(coming, _)| *coming != lane);
    }

    /// Whether an idle lane that takes this kind wakes by itself at `at`, when gathered requests may leave, or before.
    pub(super) fn is_armed(&self, kind: Kind, at: Instant) -> bool {
        self.idle.iter().any(|idle| idle.armed.is_some_and(|armed| armed <= at) && kind.suits(idle.role))
    }

    /// Wakes the idle lane with the fewest other uses; of several, the one that was used last.
    pub(super) fn wake_for(&mut self, kind: Kind) {
        self.wake_best(|role| kind.suits(role));
    }

    /// Wakes an idle lane where there is work for one and no lane on its way could take some. That one looks here again.
    pub(super) fn wake_for_the_rest<R: Queued>(&mut self, line: &Line<R>, now: Instant) {
        if self.idle.is_empty() || line.len() == 0 {
            return;
        }
        if self.coming.iter().any(|(_, role)| line.has_work(*role, now)) {
            return;
        }
        self.wake_best(|role| line.has_work(role, now));
    }

    /// Wakes all of them.
    pub(super) fn wake_all(&mut self) {
        for idle in self.idle.drain(..) {
            self.coming.push((idle.lane, idle.role));
            idle.wake.wake();
        }
    }

    fn wake_best(&mut self, suits: impl Fn(LaneRole) -> bool) {
        let breadth = |role: LaneRole| match role {
            LaneRole::Settle | LaneRole::Read | LaneRole::Notify => 0,
            LaneRole::Write => 1,
            LaneRole::Any => 2,
        };
        let best = self
            .idle
            .iter()
            .enumerate()
            .filter(|(_, idle)| suits(idle.role))
            .min_by_key(|(at, idle)| (breadth(idle.role), usize::MAX - at))
            .map(|(at, _)| at);
        if let Some(at) = best {
            let idle = self.idle.remove(at);
            self.coming.push((idle.lane, idle.role));
            idle.wake.wake();
        }
    }
}

#[cfg(test)]
mod tests;
