//! One caller's place in the line.

use std::{
    cell::Cell,
    collections::VecDeque,
    time::{Duration, Instant},
};

use super::{
    LineOptions,
    kind::{Kind, Queued},
};
use crate::{model::Caller, store::engine::LaneRole};

/// What the line keeps of a caller's budget; no cap where nothing is said.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(in crate::store) struct Cap {
    /// Lanes that it may hold at once.
    pub(in crate::store) max_lanes: Option<usize>,
    /// Part of all lane time, above 0 to 1, while others wait.
    pub(in crate::store) share: Option<f64>,
}

/// For so long after its budget held a caller's work back, that counts as the reason why a request of it waits.
const LATELY: Duration = Duration::from_millis(100);

/// Where a caller stands: what it was charged, since which turn it waits, and its name, which only tells callers apart.
pub(super) type Standing = (u64, u64, Caller);

pub(super) struct Place<R> {
    pub(super) waiting: [VecDeque<R>; Kind::COUNT],
    pub(super) under_way: [Vec<Instant>; Kind::COUNT],
    pub(super) cap: Cap,
    /// Nanoseconds of lane time charged, comparable between the callers present.
    pub(super) charged: u64,
    /// The same at the price of a caller with a share: while it is ahead of the line's level, others go first.
    pub(super) paced: u64,
    /// Since which turn it waits: among callers charged alike, who came first goes first.
    pub(super) since: u64,
    /// Length of its last statement: what the next one is charged until it has ended.
    pub(super) last_hold: u64,
    /// When its budget last held something of it back.
    pub(super) held_back_at: Cell<Option<Instant>>,
}

impl<R: Queued> Place<R> {
    pub(super) fn new(charged: u64, paced: u64, cap: Cap) -> Self {
        Self {
            waiting: std::array::from_fn(|_| VecDeque::new()),
            under_way: std::array::from_fn(|_| Vec::new()),
            cap,
            charged,
            paced,
            since: 0,
            last_hold: 0,
            held_back_at: Cell::new(None),
        }
    }

    pub(super) fn waits(&self) -> bool {
        self.waiting.iter().any(|waiting| !waiting.is_empty())
    }

    pub(super) fn requests(&self) -> usize {
        self.waiting.iter().map(VecDeque::len).sum()
    }

    pub(super) fn holds(&self) -> usize {
        self.under_way.iter().map(Vec::len).sum()
    }

    /// Whether it holds all the lanes that it may.
    pub(super) fn is_full(&self) -> bool {
        self.cap.max_lanes.is_some_and(|most| self.holds() >= most)
    }

    /// Whether it stands in the order in which callers are served.
    pub(super) fn stands(&self) -> bool {
        self.waits() && !self.is_full()
    }

    pub(super) fn standing(&self, caller: &Caller) -> Standing {
        (self.charged, self.since, caller.clone())
    }

    /// Whether its cap keeps a request of this kind from any lane now. Of several lanes the last one is for settling; with one
    /// alone, settling goes first.
    pub(super) fn is_capped(&self, kind: Kind) -> bool {
        let Some(most) = self.cap.max_lanes else { return false };
        if self.is_full() || kind.settles() {
            return self.is_full();
        }
        if most == 1 {
            return Kind::ALL.iter().any(|kind| kind.settles() && !self.waiting[*kind as usize].is_empty());
        }
        let others = Kind::ALL.iter().filter(|kind| !kind.settles());
        others.map(|kind| self.under_way[*kind as usize].len()).sum::<usize>() + 1 >= most
    }

    /// Whether it had more than its share, so that others go first.
    pub(super) fn is_ahead(&self, level: u64) -> bool {
        self.cap.share.is_some() && self.paced > level
    }

    /// Whether its budget is why a request of this kind waits.
    pub(super) fn is_held_back(&self, kind: Kind, level: u64, now: Instant) -> bool {
        let lately = |at: Instant| now.saturating_duration_since(at) < LATELY;
        self.is_capped(kind) || (!kind.settles() && self.is_ahead(level)) || self.held_back_at.get().is_some_and(lately)
    }

    /// The kind whose oldest request is the oldest, among those that suit the lane, that the budget lets go and that do not
    /// gather; else when that may change by itself. A caller that is ahead only settles, unless `anyway`.
    pub(super) fn choose(
        &self,
        role: LaneRole,
        now: Instant,
        options: &LineOptions,
        (level, anyway): (u64, bool),
    ) -> Result<Kind, Option<Instant>> {
        let (mut chosen, mut again_at): (Option<(Instant, Kind)>, Option<Instant>) = (None, None);
        for kind in Kind::ALL {
            let Some(first) = self.waiting[kind as usize].front() else { continue };
            if !kind.suits(role) {
                continue;
            }
            if self.is_capped(kind) || (!anyway && !kind.settles() && self.is_ahead(level)) {
                self.held_back_at.set(Some(now));
            } else if let Some(at) = self.gathers_until(kind, now, options) {
                again_at = Some(again_at.map_or(at, |earlier| earlier.min(at)));
            } else if chosen.is_none_or(|(oldest, _)| first.queued_at() < oldest) {
                chosen = Some((first.queued_at(), kind));
            }
        }
        chosen.map(|(_, kind)| kind).ok_or(again_at)
    }

    /// Until when requests of this kind wait for others to leave with them.
    pub(super) fn gathers_until(&self, kind: Kind, now: Instant, options: &LineOptions) -> Option<Instant> {
        if !kind.merges() {
            return None;
        }
        let under_way = self.under_way[kind as usize].iter();
        let young: Vec<Instant> =
            under_way.copied().filter(|&at| now.saturating_duration_since(at) < options.gather_for).collect();
        let behind = young.iter().max().map(|&newest| newest + options.gather_behind).filter(|&at| at > now);
        let crowded = young.iter().min().filter(|_| young.len() >= options.gather_at);
        let until = behind.max(crowded.map(|&oldest| oldest + options.gather_for))?;
        let mut gathered = 0;
        let full = self.waiting[kind as usize].iter().any(|request| {
            gathered += request.items();
            gathered >= options.merged_items / 2
        });
        (!full).then_some(until)
    }
}
