//! The line in front of the lanes: who is served next.
//!
//! Fair between callers by the time for which they held lanes: the caller that held them least goes first, among equals the
//! one that waits longest. Within a caller the oldest request goes first, together with as many of its kind as fit into one
//! statement. While statements of a kind are under way for a caller, further requests of that kind gather, so that batches
//! form by themselves and an idle broker adds no latency. Bounded in requests and bytes. No I/O and no clock: instants are
//! handed in.

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    time::{Duration, Instant},
};

use super::engine::LaneRole;
use crate::model::Caller;

/// What a request asks for. Requests of one kind and caller may leave as one statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Kind {
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
    pub(super) const COUNT: usize = 8;
    pub(super) const ALL: [Self; Self::COUNT] = [
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
    pub(super) fn name(self) -> &'static str {
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

    fn merges(self) -> bool {
        !matches!(self, Self::Write | Self::Read)
    }

    /// Whether a lane of this role takes it.
    pub(super) fn suits(self, role: LaneRole) -> bool {
        let settles = matches!(self, Self::Ack | Self::Nack | Self::Extend | Self::GiveBack);
        match role {
            LaneRole::Any => true,
            LaneRole::Settle => settles,
            LaneRole::Write => self != Self::Read,
            LaneRole::Read => self == Self::Read,
            LaneRole::Notify => false,
        }
    }
}

/// A request as the line sees it.
pub(super) trait Queued {
    fn kind(&self) -> Kind;
    /// Jobs or tokens in it.
    fn items(&self) -> usize;
    fn bytes(&self) -> usize;
    fn queued_at(&self) -> Instant;
    /// Takes it for a lane; false where its asker has withdrawn it.
    fn take(&self) -> bool;
}

/// Bounds of the line and of what leaves it.
#[derive(Debug, Clone)]
pub struct LineOptions {
    /// Requests that may wait.
    pub max_requests: usize,
    /// Bytes of requests that may wait.
    pub max_bytes: usize,
    /// Jobs or tokens of one merged statement.
    pub merged_items: usize,
    /// Bytes of one merged statement.
    pub merged_bytes: usize,
    /// Statements of one kind and caller under way at which further ones gather.
    pub gather_at: usize,
    /// A statement older than this no longer makes others gather: it waits for something of its own.
    pub gather_for: Duration,
}

impl Default for LineOptions {
    fn default() -> Self {
        Self {
            max_requests: 10_000,
            max_bytes: 64 << 20,
            merged_items: 1_000,
            merged_bytes: 4 << 20,
            gather_at: 2,
            gather_for: Duration::from_millis(50),
        }
    }
}

/// The line is full.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Full;

/// What a lane gets when it asks for work.
#[derive(Debug)]
pub(super) enum Next<R> {
    /// Requests of one kind and caller.
    Batch(Batch<R>),
    /// Nothing for this lane now. Where requests gather: when to look again at the latest.
    Nothing { again_at: Option<Instant> },
}

/// Requests that leave together.
#[derive(Debug)]
pub(super) struct Batch<R> {
    pub(super) caller: Caller,
    pub(super) kind: Kind,
    pub(super) requests: Vec<R>,
    pub(super) taken_at: Instant,
    estimate: u64,
}

struct Place<R> {
    waiting: [VecDeque<R>; Kind::COUNT],
    under_way: [Vec<Instant>; Kind::COUNT],
    /// Nanoseconds of lane time charged, comparable between the callers present.
    charged: u64,
    /// Since which turn it waits: among callers charged alike, who came first goes first.
    since: u64,
    /// Length of its last statement: what the next one is charged until it has ended.
    last_hold: u64,
}

impl<R: Queued> Place<R> {
    fn new(charged: u64) -> Self {
        Self {
            waiting: std::array::from_fn(|_| VecDeque::new()),
            under_way: std::array::from_fn(|_| Vec::new()),
            charged,
            since: 0,
            last_hold: 0,
        }
    }

    fn waits(&self) -> bool {
        self.waiting.iter().any(|waiting| !waiting.is_empty())
    }

    fn holds(&self) -> usize {
        self.under_way.iter().map(Vec::len).sum()
    }

    fn standing(&self, caller: &Caller) -> Standing {
        (self.charged, self.since, caller.clone())
    }
}

/// Where a caller stands: what it was charged, since which turn it waits, and its name, which only tells callers apart.
type Standing = (u64, u64, Caller);

/// The line. `R` is the request.
pub(super) struct Line<R> {
    options: LineOptions,
    places: HashMap<Caller, Place<R>>,
    /// Callers with waiting requests, least charged first.
    order: BTreeSet<Standing>,
    /// Counts up each time that a caller begins to wait or was served.
    turn: u64,
    /// Where newcomers start: what the caller served last had been charged, or further, by what each caller's share of the lane
    /// time since has been. It never stands still, so newcomers without end do not keep anybody waiting.
    level: u64,
    requests: usize,
    bytes: usize,
}

impl<R: Queued> Line<R> {
    pub(super) fn new(options: LineOptions) -> Self {
        Self { options, places: HashMap::new(), order: BTreeSet::new(), turn: 0, level: 0, requests: 0, bytes: 0 }
    }

    /// Requests that wait.
    pub(super) fn len(&self) -> usize {
        self.requests
    }

    /// Puts a request at the end of its caller's.
    pub(super) fn push(&mut self, caller: &Caller, request: R) -> Result<(), Full> {
        if self.requests >= self.options.max_requests || self.bytes + request.bytes() > self.options.max_bytes {
            return Err(Full);
        }
        self.insert(caller, request, VecDeque::push_back);
        Ok(())
    }

    /// Whether a request of this kind, pushed now, waits for others to gather with it.
    pub(super) fn gathers(&self, caller: &Caller, kind: Kind, now: Instant) -> bool {
        self.places.get(caller).is_some_and(|place| gathers_until(place, kind, now, &self.options).is_some())
    }

    /// Puts requests that were taken back to the front, in their order: nothing was sent of them.
    pub(super) fn put_back(&mut self, caller: &Caller, requests: Vec<R>) {
        for request in requests.into_iter().rev() {
            self.insert(caller, request, VecDeque::push_front);
        }
    }

    fn insert(&mut self, caller: &Caller, request: R, put: fn(&mut VecDeque<R>, R)) {
        self.requests += 1;
        self.bytes += request.bytes();
        let level = self.level;
        self.turn += 1;
        let place = self.places.entry(caller.clone()).or_insert_with(|| Place::new(level));
        if !place.waits() {
            place.charged = place.charged.max(level); // time away earns nothing
            place.since = self.turn;
            self.order.insert(place.standing(caller));
        }
        put(&mut place.waiting[request.kind() as usize], request);
    }

    /// The next work for a lane of this role.
    pub(super) fn next(&mut self, role: LaneRole, now: Instant) -> Next<R> {
        // After an outage every caller may have nothing but withdrawn requests here: a loop, since callers are many.
        loop {
            let mut again_at = None;
            let mut chosen = None;
            for (.., caller) in &self.order {
                let place = &self.places[caller];
                match choose(place, role, now, &self.options) {
                    Ok(kind) => {
                        chosen = Some((caller.clone(), kind));
                        break;
                    }
                    Err(Some(at)) => again_at = Some(again_at.map_or(at, |earlier: Instant| earlier.min(at))),
                    Err(None) => {}
                }
            }
            let Some((caller, kind)) = chosen else { return Next::Nothing { again_at } };
            let batch = self.take(caller, kind, now);
            if !batch.requests.is_empty() {
                return Next::Batch(batch);
            }
        }
    }

    fn take(&mut self, caller: Caller, kind: Kind, now: Instant) -> Batch<R> {
        let place = self.places.get_mut(&caller).expect("a caller in the order has a place");
        self.order.remove(&place.standing(&caller));
        self.level = self.level.max(place.charged);
        let (mut items, mut bytes, mut requests) = (0, 0, Vec::new());
        let waiting = &mut place.waiting[kind as usize];
        while let Some(first) = waiting.front() {
            let fits = items + first.items() <= self.options.merged_items
                && bytes + first.bytes() <= self.options.merged_bytes
                && kind.merges();
            if !requests.is_empty() && !fits {
                break;
            }
            let request = waiting.pop_front().expect("it has a front");
            self.requests -= 1;
            self.bytes -= request.bytes();
            if request.take() {
                items += request.items();
                bytes += request.bytes();
                requests.push(request);
            }
        }
        let estimate = if requests.is_empty() { 0 } else { place.last_hold };
        if !requests.is_empty() {
            place.under_way[kind as usize].push(now);
            place.charged += estimate;
        }
        if place.waits() {
            self.turn += 1;
            place.since = self.turn;
            self.order.insert(place.standing(&caller));
        } else if place.holds() == 0 {
            self.places.remove(&caller);
        }
        Batch { caller, kind, requests, taken_at: now, estimate }
    }

    /// The statements of a batch have ended after `hold`.
    pub(super) fn done(&mut self, ended: &Ended, hold: Duration) {
        let shares = self.places.len() as u64 + 1;
        let Some(place) = self.places.get_mut(&ended.caller) else { return };
        let waits = place.waits();
        if waits {
            self.order.remove(&place.standing(&ended.caller));
        }
        let under_way = &mut place.under_way[ended.kind as usize];
        if let Some(at) = under_way.iter().position(|&at| at == ended.taken_at) {
            under_way.swap_remove(at);
        }
        let hold = u64::try_from(hold.as_nanos()).unwrap_or(u64::MAX);
        // One share is for whoever comes next, who is to find everybody present charged more.
        self.level = self.level.saturating_add(hold / shares);
        place.charged = place.charged.saturating_sub(ended.estimate).saturating_add(hold);
        place.last_hold = hold;
        if waits {
            self.order.insert(place.standing(&ended.caller));
        } else if place.holds() == 0 {
            self.places.remove(&ended.caller);
        }
    }
}

/// What [`Line::done`] needs to know of a batch.
#[derive(Debug, Clone)]
pub(super) struct Ended {
    caller: Caller,
    kind: Kind,
    taken_at: Instant,
    estimate: u64,
}

impl<R> Batch<R> {
    pub(super) fn ended(&self) -> Ended {
        Ended { caller: self.caller.clone(), kind: self.kind, taken_at: self.taken_at, estimate: self.estimate }
    }
}

/// The kind whose oldest request is the oldest, among those that suit the lane and do not gather; else when that may change.
fn choose<R: Queued>(
    place: &Place<R>,
    role: LaneRole,
    now: Instant,
    options: &LineOptions,
) -> Result<Kind, Option<Instant>> {
    let (mut chosen, mut again_at): (Option<(Instant, Kind)>, Option<Instant>) = (None, None);
    for kind in Kind::ALL {
        let Some(first) = place.waiting[kind as usize].front() else { continue };
        if !kind.suits(role) {
            continue;
        }
        if let Some(at) = gathers_until(place, kind, now, options) {
            again_at = Some(again_at.map_or(at, |earlier| earlier.min(at)));
        } else if chosen.is_none_or(|(oldest, _)| first.queued_at() < oldest) {
            chosen = Some((first.queued_at(), kind));
        }
    }
    chosen.map(|(_, kind)| kind).ok_or(again_at)
}

fn gathers_until<R: Queued>(place: &Place<R>, kind: Kind, now: Instant, options: &LineOptions) -> Option<Instant> {
    if !kind.merges() {
        return None;
    }
    let young = |&&at: &&Instant| now.saturating_duration_since(at) < options.gather_for;
    let under_way = &place.under_way[kind as usize];
    if under_way.iter().filter(young).count() < options.gather_at {
        return None;
    }
    let mut gathered = 0;
    let full = place.waiting[kind as usize].iter().any(|request| {
        gathered += request.items();
        gathered >= options.merged_items / 2
    });
    if full { None } else { under_way.iter().filter(young).min().map(|&at| at + options.gather_for) }
}

#[cfg(test)]
mod tests;
