//! Claims: when one begins, and for whom.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use rand::Rng as _;

use super::{Act, Desk, Table, streams::OpenStream};
use crate::{
    dispatch::{cursor::Cursor, demand},
    model::{Caller, LeaseId, QueueId, QueueName, StreamId, StreamNumber},
    store::engine::{Claim, Slot, Wake},
};

/// Streams that one claim considers at most.
const CONSIDERED: usize = 1_000;

/// Claims that one statement makes for one caller.
pub(super) struct UnderWay {
    pub(super) caller: Caller,
    pub(super) parts: Vec<Part>,
    pub(super) slots: Table<LeaseId, (StreamNumber, Duration)>,
    /// By stream: slots, and the payload bytes that were expected for them.
    pub(super) drawn: BTreeMap<StreamNumber, (u32, u64)>,
    pub(super) started: Instant,
}

/// What is claimed of one queue.
pub(super) struct Part {
    pub(super) queue: QueueId,
    pub(super) name: QueueName,
    /// Jobs that it asks for.
    pub(super) asked: usize,
    /// Where it began.
    pub(super) cursor: Cursor,
    /// Of its queue when it began.
    pub(super) hints: u64,
    /// It walked everything.
    pub(super) thorough: bool,
}

impl Desk {
    /// Jobs may be ready in this queue: about `jobs` more, if anybody knows; on this replica, if `local`.
    pub(super) fn heat(&mut self, id: QueueId, jobs: usize, local: bool) {
        let Some(queue) = self.queues.get_mut(&id) else {
            self.meet(id);
            if local && !self.draining {
                self.acts.push(Act::Notify(Wake::Ready { queues: vec![id] }));
            }
            return;
        };
        queue.hints += 1;
        queue.expected = queue.expected.saturating_add(jobs);
        if local {
            queue.untold = queue.untold.saturating_add(jobs);
            self.untold.insert(id);
        }
        queue.hot = true;
        self.hot.insert(id);
        for (caller, group) in &mut queue.groups {
            if !group.in_line && group.may_claim(true, queue.paused) {
                group.in_line = true;
                self.line.join(caller, [id]);
            }
        }
    }

    /// Puts a caller's claim in line where it may begin.
    pub(super) fn consider(&mut self, id: QueueId, caller: &Caller) {
        let Some(queue) = self.queues.get_mut(&id) else { return };
        if let Some(group) = queue.groups.get_mut(caller)
            && !group.in_line
            && group.may_claim(queue.hot, queue.paused)
        {
            group.in_line = true;
            self.line.join(caller, [id]);
        }
    }

    /// Whatever may have kept a hot queue's claims out of the line may be over.
    pub(super) fn consider_hot_queues(&mut self) {
        for id in self.hot.clone() {
            let callers = self.queues.get(&id).map(|queue| queue.groups.keys().cloned().collect::<Vec<_>>());
            for caller in callers.unwrap_or_default() {
                self.consider(id, &caller);
            }
        }
    }

    /// Begins the claims that stand in line: of a caller's queues as many with one statement as it may bring jobs for.
    pub(super) fn start_claims(&mut self, now: Instant) {
        while self.claims.len() < self.options.max_claims
            && let Some((caller, mut queues)) = self.line.next()
        {
            if self.is_at_its_most(&caller) {
                self.put_off(caller, queues);
                continue;
            }
            let mut under_way =
                UnderWay { caller, parts: Vec::new(), slots: Table::default(), drawn: BTreeMap::new(), started: now };
            let mut claims = Vec::new();
            while claims.len() < self.options.claim_queues
                && let Some(&id) = queues.front()
                && self.has_room(&under_way, id)
            {
                queues.pop_front();
                claims.extend(self.start_claim(id, &mut under_way));
            }
            self.line.join(&under_way.caller, queues);
            if !claims.is_empty() {
                self.send(under_way, claims, now);
            }
        }
    }

    /// Whether as much as a queue's next claim would ask for fits into a statement, with what is in it already.
    fn has_room(&self, under_way: &UnderWay, id: QueueId) -> bool {
        let Some(queue) = self.queues.get(&id).filter(|_| !under_way.slots.is_empty()) else { return true };
        let average = queue.pace.average().unwrap_or(0);
        let bytes =
            under_way.drawn.values().map(|(_, bytes)| bytes).fold(0, |sum: u64, bytes| sum.saturating_add(*bytes));
        let size = queue.pace.size(queue.expected, self.options.claim_jobs, self.options.claim_bytes);
        under_way.slots.len() + size <= self.options.claim_jobs
            && bytes.saturating_add(average.saturating_mul(size as u64)) <= self.options.claim_bytes
    }

    /// Adds a claim of this queue to a statement, unless there is nothing to claim or nobody to claim for any more.
    fn start_claim(&mut self, id: QueueId, under_way: &mut UnderWay) -> Option<Claim> {
        let group = self.queues.get_mut(&id)?.groups.get_mut(&under_way.caller)?;
        group.in_line = false;
        let queue = self.queues.get(&id)?;
        if self.draining || !queue.groups.get(&under_way.caller)?.may_claim(queue.hot, queue.paused) {
            return None;
        }
        let dealt = self.draw(id, &under_way.caller);
        if dealt.is_empty() {
            return None; // the streams that wait have given their credit to another queue's claim; its end brings us back
        }
        let claim_cursor = self.options.claim_cursor;
        let queue = self.queues.get_mut(&id)?;
        let group = queue.groups.get_mut(&under_way.caller)?;
        let thorough = group.asked || !claim_cursor;
        group.asked = false;
        group.claiming = true;
        queue.expected = 0;
        queue.claimed_since_look = true;
        let from = if thorough { Cursor::START } else { queue.cursor };
        let average = queue.pace.average().unwrap_or(0);

        let mut drawn: BTreeMap<StreamNumber, u32> = BTreeMap::new();
        let mut slots = Vec::with_capacity(dealt.len());
        for stream in dealt {
            *drawn.entry(stream).or_default() += 1;
            let asked = self.streams.get(&stream).and_then(|stream| stream.lease_duration);
            let slot = Slot {
                lease: LeaseId(self.random.random()),
                stream: StreamId { replica: self.replica, number: stream },
                duration: asked.unwrap_or(queue.lease_duration),
            };
            under_way.slots.insert(slot.lease, (stream, slot.duration));
            slots.push(slot);
        }
        under_way.parts.push(Part {
            queue: id,
            name: queue.name.clone(),
            asked: slots.len(),
            cursor: queue.cursor,
            hints: queue.hints,
            thorough,
        });
        self.reserved += slots.len();
        for (number, jobs) in drawn {
            let bytes = average.saturating_mul(u64::from(jobs));
            let (all_jobs, all_bytes) = under_way.drawn.entry(number).or_default();
            *all_jobs += jobs;
            *all_bytes = all_bytes.saturating_add(bytes);
            if let Some(stream) = self.streams.get_mut(&number) {
                stream.credit.reserve(jobs, bytes);
                stream.turn_after(id);
            }
        }
        Some(Claim { queue: id, floors: from.claim_floors(), slots })
    }

    fn send(&mut self, under_way: UnderWay, claims: Vec<Claim>, now: Instant) {
        let number = self.next_number();
        let touched: Vec<StreamNumber> = under_way.drawn.keys().copied().collect();
        self.acts.push(Act::Claim { number, caller: under_way.caller.clone(), claims });
        self.claims.insert(number, under_way);
        for stream in touched {
            self.refresh(stream, now);
        }
    }

    /// Whose slots a claim has, in the order of their use.
    fn draw(&self, id: QueueId, caller: &Caller) -> Vec<StreamNumber> {
        let Some(queue) = self.queues.get(&id) else { return Vec::new() };
        let Some(group) = queue.groups.get(caller) else { return Vec::new() };
        let options = &self.options;
        let average = queue.pace.average();
        let outstanding = self.leases.len() + self.reserved;
        let limit = queue
            .pace
            .size(queue.expected, options.claim_jobs, options.claim_bytes)
            .min(options.max_outstanding.saturating_sub(outstanding));
        let per_frame = average.map_or(u64::MAX, |average| (options.frame_bytes as u64 / average.max(1)).max(1));
        let per_frame = u32::try_from(per_frame).unwrap_or(u32::MAX);
        // So much lies in front of readers already that more has to wait until they read or have waited too long.
        let limit = if self.buffered < options.max_unsent_bytes { limit } else { 0 };
        let mut rooms = Vec::new();
        for number in group.waiting.values().take(CONSIDERED) {
            if rooms.len() >= limit {
                break;
            }
            let Some(stream) = self.streams.get(number) else { continue };
            let room = self.share(stream, id).min(stream.credit.room(average)).min(per_frame);
            if room > 0 {
                rooms.push((*number, room));
            }
        }
        demand::deal(&rooms, limit)
    }

    /// What this queue may have of a stream's credit in this round.
    fn share(&self, stream: &OpenStream, id: QueueId) -> u32 {
        let unused = stream.credit.unused();
        let Some(at) = stream.queues.iter().position(|place| place.id == Some(id)) else { return 0 };
        if stream.queues.len() == 1 {
            return unused;
        }
        let gives = |other: QueueId| {
            let queue = self.queues.get(&other).filter(|queue| queue.gives());
            queue.and_then(|queue| queue.groups.get(&stream.caller)).is_some_and(|group| group.retry_at.is_none())
        };
        let ready = |place: Option<QueueId>| place.is_some_and(|other| other == id || gives(other));
        let ready: Vec<bool> = stream.queues.iter().map(|place| ready(place.id)).collect();
        demand::share(&ready, stream.turn, at, unused)
    }

    /// Tells other replicas of jobs that became ready here and that no stream here can take.
    pub(super) fn tell_others(&mut self) {
        let mut tell = Vec::new();
        for id in self.untold.clone() {
            match self.queues.get_mut(&id) {
                Some(queue) if queue.untold > 0 && queue.takes_its_own() => continue,
                Some(queue) if queue.untold > 0 => {
                    queue.untold = 0;
                    tell.push(id);
                }
                _ => {}
            }
            self.untold.remove(&id);
        }
        if !tell.is_empty() {
            self.acts.push(Act::Notify(Wake::Ready { queues: tell }));
        }
    }
}
