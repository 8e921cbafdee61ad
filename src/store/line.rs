//! The line in front of the lanes: who is served next.
//!
//! Fair between callers by the time for which they held lanes: the caller that held them least goes first, among equals the
//! one that waits longest. Within a caller the oldest request goes first, together with as many of its kind as fit into one
//! statement. While a statement of a kind has just begun for a caller, or two are under way, further requests of that kind
//! gather, so that batches form by themselves and an idle broker adds no latency. Bounded in requests and bytes. No I/O and no clock: instants are
//! handed in.
//!
//! A caller with a budget of lanes gets no further one while it holds that many; the last one is for settling. One with a share
//! of lane time pays more for it while others wait, so that it comes to no more than its share; once ahead of it, it only settles
//! unless nobody else has work.

mod kind;
mod place;
mod share;

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    time::{Duration, Instant},
};

use self::place::{Place, Standing};
pub(super) use self::{
    kind::{Kind, Queued},
    place::Cap,
};
use super::engine::LaneRole;
use crate::model::Caller;

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
    /// While a statement of their kind and caller is under way that began less than this ago, further ones gather: where commits
    /// are quick they do so until it ends, where they are slow the next one follows it at a distance.
    pub gather_behind: Duration,
    /// Statements of one kind and caller under way at which further ones gather in any case.
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
            gather_behind: Duration::from_millis(2),
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
    price: f64,
}

/// The line. `R` is the request.
pub(super) struct Line<R> {
    options: LineOptions,
    /// Lanes behind it.
    lanes: usize,
    places: HashMap<Caller, Place<R>>,
    /// Callers with waiting requests that may hold one more lane, least charged first.
    order: BTreeSet<Standing>,
    /// Budgets, of callers that have one.
    caps: HashMap<Caller, Cap>,
    /// What callers with a share had been charged when they last left. Only those with a budget are in it.
    debts: HashMap<Caller, u64>,
    /// Counts up each time that a caller begins to wait or was served.
    turn: u64,
    /// Where newcomers start: what the caller served last had been charged, or further, by what each caller's share of the lane
    /// time since has been. It never stands still, so newcomers without end do not keep anybody waiting.
    level: u64,
    requests: usize,
    bytes: usize,
}

/// Who is next, and whether it is although it is ahead of its share, since nobody else has work for the lane.
type Chosen = (Caller, Kind, bool);

impl<R: Queued> Line<R> {
    pub(super) fn new(options: LineOptions, lanes: usize) -> Self {
        Self {
            options,
            lanes,
            places: HashMap::new(),
            order: BTreeSet::new(),
            caps: HashMap::new(),
            debts: HashMap::new(),
            turn: 0,
            level: 0,
            requests: 0,
            bytes: 0,
        }
    }

    /// Requests that wait.
    pub(super) fn len(&self) -> usize {
        self.requests
    }

    /// The same by caller; those without any are left out.
    pub(super) fn by_caller(&self) -> Vec<(Caller, usize)> {
        let waiting =
            self.places.iter().map(|(caller, place)| (caller, place.requests())).filter(|(_, count)| *count > 0);
        waiting.map(|(caller, count)| (caller.clone(), count)).collect()
    }

    /// These budgets hold from now on, and no others.
    pub(super) fn set_caps(&mut self, caps: HashMap<Caller, Cap>) {
        self.order.clear();
        for (caller, place) in &mut self.places {
            let cap = caps.get(caller).copied().unwrap_or_default();
            if cap.share != place.cap.share {
                place.paced = self.level;
            }
            place.cap = cap;
            if place.stands() {
                self.order.insert(place.standing(caller));
            }
        }
        self.debts.retain(|caller, _| caps.get(caller).is_some_and(|cap| cap.share.is_some()));
        self.caps = caps;
    }

    /// Puts a request at the end of its caller's.
    pub(super) fn push(&mut self, caller: &Caller, request: R) -> Result<(), Full> {
        if self.requests >= self.options.max_requests || self.bytes + request.bytes() > self.options.max_bytes {
            return Err(Full);
        }
        self.insert(caller, request, VecDeque::push_back);
        Ok(())
    }

    /// Until when a request of this kind, pushed now, waits for others to gather with it, where it does.
    pub(super) fn gathers_until(&self, caller: &Caller, kind: Kind, now: Instant) -> Option<Instant> {
        self.places.get(caller)?.gathers_until(kind, now, &self.options)
    }

    /// Whether the caller's cap keeps requests of this kind from every lane, until it holds fewer.
    pub(super) fn is_capped(&self, caller: &Caller, kind: Kind) -> bool {
        self.places.get(caller).is_some_and(|place| place.is_capped(kind))
    }

    /// Whether the caller's budget is why its requests of this kind wait.
    pub(super) fn is_held_back(&self, caller: &Caller, kind: Kind, now: Instant) -> bool {
        self.places.get(caller).is_some_and(|place| place.is_held_back(kind, self.level, now))
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
        let place = self.places.entry(caller.clone()).or_insert_with(|| {
            let cap = self.caps.get(caller).copied().unwrap_or_default();
            Place::new(level, self.debts.remove(caller).unwrap_or_default(), cap)
        });
        let stood = place.stands();
        if !place.waits() {
            // Time away earns nothing.
            place.charged = place.charged.max(level);
            place.paced = place.paced.max(level);
            place.since = self.turn;
        }
        put(&mut place.waiting[request.kind() as usize], request);
        if !stood && place.stands() {
            self.order.insert(place.standing(caller));
        }
    }

    /// The next work for a lane of this role.
    pub(super) fn next(&mut self, role: LaneRole, now: Instant) -> Next<R> {
        // After an outage every caller may have nothing but withdrawn requests here: a loop, since callers are many.
        loop {
            let (caller, kind, anyway) = match self.chosen(role, now) {
                Ok(chosen) => chosen,
                Err(again_at) => return Next::Nothing { again_at },
            };
            let batch = self.take(caller, kind, anyway, now);
            if !batch.requests.is_empty() {
                return Next::Batch(batch);
            }
        }
    }

    /// Whether there is work for a lane of this role.
    pub(super) fn has_work(&self, role: LaneRole, now: Instant) -> bool {
        self.chosen(role, now).is_ok()
    }

    /// Whose work of which kind is next for a lane of this role; else when to look again.
    fn chosen(&self, role: LaneRole, now: Instant) -> Result<Chosen, Option<Instant>> {
        let mut again_at = None;
        // Callers that are ahead of their share only where nobody else has work for the lane: no lane is idle for a share.
        for anyway in [false, true] {
            let mut ahead = false;
            for (.., caller) in &self.order {
                let place = &self.places[caller];
                ahead |= place.is_ahead(self.level);
                match place.choose(role, now, &self.options, (self.level, anyway)) {
                    Ok(kind) => return Ok((caller.clone(), kind, anyway)),
                    Err(Some(at)) => again_at = Some(again_at.map_or(at, |earlier: Instant| earlier.min(at))),
                    Err(None) => {}
                }
            }
            if !ahead {
                break;
            }
        }
        Err(again_at)
    }

    fn take(&mut self, caller: Caller, kind: Kind, anyway: bool, now: Instant) -> Batch<R> {
        let price = if anyway { 1.0 } else { self.price(&caller) };
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
            place.paced = place.paced.saturating_add(times(estimate, price));
        }
        if place.stands() {
            self.turn += 1;
            place.since = self.turn;
            self.order.insert(place.standing(&caller));
        }
        self.leave_if_idle(&caller);
        Batch { caller, kind, requests, taken_at: now, estimate, price }
    }

    /// What lane time counts for a caller: more than its length where it has a share and others wait.
    fn price(&self, caller: &Caller) -> f64 {
        let Some(own) = self.caps.get(caller).and_then(|cap| cap.share) else { return 1.0 };
        let stands =
            |(caller, cap): (&Caller, &Cap)| cap.share.filter(|_| self.places.get(caller).is_some_and(Place::stands));
        let mut shares: Vec<f64> = self.caps.iter().filter_map(stands).collect();
        let others = self.order.len().saturating_sub(shares.len());
        share::price(own, &mut shares, others)
    }

    /// The statements of a batch have ended after `hold`.
    pub(super) fn done(&mut self, ended: &Ended, hold: Duration) {
        let shares = self.places.len() as u64 + 1;
        let Some(place) = self.places.get_mut(&ended.caller) else { return };
        if place.stands() {
            self.order.remove(&place.standing(&ended.caller));
        } else if place.waits() {
            place.held_back_at.set(Some(ended.taken_at + hold));
        }
        let under_way = &mut place.under_way[ended.kind as usize];
        if let Some(at) = under_way.iter().position(|&at| at == ended.taken_at) {
            under_way.swap_remove(at);
        }
        let hold = u64::try_from(hold.as_nanos()).unwrap_or(u64::MAX);
        // One share is for whoever comes next, who is to find everybody present charged more.
        self.level = self.level.saturating_add(hold / shares);
        place.charged = place.charged.saturating_sub(ended.estimate).saturating_add(hold);
        if place.cap.share.is_some() {
            let paced = place.paced.saturating_sub(times(ended.estimate, ended.price));
            // What it had more than its share is made up for within a minute.
            let minute = MINUTE.saturating_mul(self.lanes as u64) / shares;
            place.paced = paced.saturating_add(times(hold, ended.price)).min(self.level.saturating_add(minute));
            // That others went first earns nothing.
            place.charged = place.charged.max(self.level);
        }
        place.last_hold = hold;
        if place.stands() {
            self.order.insert(place.standing(&ended.caller));
        }
        self.leave_if_idle(&ended.caller);
    }

    fn leave_if_idle(&mut self, caller: &Caller) {
        if self.places.get(caller).is_some_and(|place| !place.waits() && place.holds() == 0)
            && let Some(place) = self.places.remove(caller)
            && place.is_ahead(self.level)
        {
            self.debts.insert(caller.clone(), place.paced);
        }
    }
}

/// Nanoseconds in a minute.
const MINUTE: u64 = 60_000_000_000;

#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
fn times(nanos: u64, price: f64) -> u64 {
    (nanos as f64 * price) as u64
}

/// What [`Line::done`] needs to know of a batch.
#[derive(Debug, Clone)]
pub(super) struct Ended {
    caller: Caller,
    kind: Kind,
    taken_at: Instant,
    estimate: u64,
    price: f64,
}

impl<R> Batch<R> {
    pub(super) fn ended(&self) -> Ended {
        Ended {
            caller: self.caller.clone(),
            kind: self.kind,
            taken_at: self.taken_at,
            estimate: self.estimate,
            price: self.price,
        }
    }
}

#[cfg(test)]
mod tests;
