//! Claims: when one begins, for whom, and what becomes of what it brings.

use std::{
    cmp::Reverse,
    collections::BTreeMap,
    time::{Duration, Instant},
};

use rand::Rng as _;
use tracing::{debug, error};

use super::{Act, Desk, Table, streams::OpenStream};
use crate::{
    dispatch::{agenda::Alarm, buffer::Unsent, cursor::Cursor, demand},
    model::{Caller, Failure, LeaseId, LeaseToken, QueueId, QueueName, StreamId, StreamNumber},
    store::engine::{Claim, ClaimedJob, Slot, Wake},
};

/// Streams that one claim considers at most.
const CONSIDERED: usize = 1_000;
/// Streams of each caller that are looked at again when a queue has no more to give; a look's tick does it for all.
const PASSED_ON: usize = 64;
/// Pause after a failed claim; doubles with each further one.
const RETRY_BASE: Duration = Duration::from_millis(100);
/// Longest pause between failed claims.
const RETRY_CAP: Duration = Duration::from_secs(5);

/// A claim that was sent.
pub(super) struct UnderWay {
    queue: QueueId,
    name: QueueName,
    caller: Caller,
    slots: Table<LeaseId, (StreamNumber, Duration)>,
    /// By stream: slots, and the payload bytes that were expected for them.
    drawn: BTreeMap<StreamNumber, (u32, u64)>,
    /// Where it began.
    cursor: Cursor,
    /// Of its queue when it began.
    hints: u64,
    /// It walked everything.
    thorough: bool,
    started: Instant,
}

impl UnderWay {
    /// For whom it runs.
    pub(super) fn caller(&self) -> &Caller {
        &self.caller
    }
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
                self.line.push_back((id, caller.clone()));
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
            self.line.push_back((id, caller.clone()));
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

    /// Begins the claims that stand in line.
    pub(super) fn start_claims(&mut self, now: Instant) {
        while self.claims.len() < self.options.max_claims
            && let Some((id, caller)) = self.line.pop_front()
        {
            if self.put_off(id, &caller) {
                continue;
            }
            let under_way = self.claims.len();
            if let Some(queue) = self.queues.get_mut(&id)
                && let Some(group) = queue.groups.get_mut(&caller)
            {
                group.in_line = false;
                if group.may_claim(queue.hot, queue.paused) && !self.draining {
                    self.start_claim(id, caller.clone(), now);
                }
            }
            if self.claims.len() == under_way {
                self.take_up(&caller);
            }
        }
    }

    fn start_claim(&mut self, id: QueueId, caller: Caller, now: Instant) {
        let dealt = self.draw(id, &caller);
        if dealt.is_empty() {
            return; // the streams that wait have given their credit to another queue's claim; its end brings us back
        }
        let number = self.next_number();
        let claim_cursor = self.options.claim_cursor;
        let Some(queue) = self.queues.get_mut(&id) else { return };
        let Some(group) = queue.groups.get_mut(&caller) else { return };
        let thorough = group.asked || !claim_cursor;
        group.asked = false;
        group.claiming = true;
        queue.expected = 0;
        queue.claimed_since_look = true;
        let from = if thorough { Cursor::START } else { queue.cursor };
        let average = queue.pace.average().unwrap_or(0);

        let mut drawn: BTreeMap<StreamNumber, (u32, u64)> = BTreeMap::new();
        let mut slots = Vec::with_capacity(dealt.len());
        let mut leases = Table::with_capacity_and_hasher(dealt.len(), foldhash::fast::RandomState::default());
        for stream in dealt {
            let (count, bytes) = drawn.entry(stream).or_default();
            *count += 1;
            *bytes = bytes.saturating_add(average);
            let asked = self.streams.get(&stream).and_then(|stream| stream.lease_duration);
            let slot = Slot {
                lease: LeaseId(self.random.random()),
                stream: StreamId { replica: self.replica, number: stream },
                duration: asked.unwrap_or(queue.lease_duration),
            };
            leases.insert(slot.lease, (stream, slot.duration));
            slots.push(slot);
        }
        let under_way = UnderWay {
            queue: id,
            name: queue.name.clone(),
            caller: caller.clone(),
            slots: leases,
            cursor: queue.cursor,
            hints: queue.hints,
            thorough,
            started: now,
            drawn,
        };
        self.reserved += slots.len();
        for (stream, (count, bytes)) in &under_way.drawn {
            if let Some(stream) = self.streams.get_mut(stream) {
                stream.credit.reserve(*count, *bytes);
                stream.turn_after(id);
            }
        }
        let touched: Vec<StreamNumber> = under_way.drawn.keys().copied().collect();
        self.claims.insert(number, under_way);
        self.acts.push(Act::Claim { number, caller, claim: Claim { queue: id, floors: from.claim_floors(), slots } });
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

    /// A claim has ended.
    pub(super) fn claimed(&mut self, number: u64, result: Result<Vec<ClaimedJob>, Failure>, now: Instant) {
        let Some(under_way) = self.claims.remove(&number) else { return };
        self.reserved -= under_way.slots.len();
        for (stream, (count, bytes)) in &under_way.drawn {
            if let Some(open) = self.streams.get_mut(stream) {
                open.credit.unreserve(*count, *bytes);
                self.touched.insert(*stream);
            }
        }
        let (id, caller) = (under_way.queue, under_way.caller.clone());
        if let Some(group) = self.queues.get_mut(&id).and_then(|queue| queue.groups.get_mut(&caller)) {
            group.claiming = false;
            group.failures = if result.is_ok() { 0 } else { group.failures.saturating_add(1) };
        }
        match result {
            Ok(jobs) => self.bring(number, &under_way, jobs, now),
            Err(failure) => self.claim_failed(&under_way, &failure, now),
        }
        if let Some(queue) = self.queues.get_mut(&id) {
            queue.drop_group_if_idle(&caller);
        }
        self.consider(id, &caller);
        self.take_up(&caller);
    }

    /// Learns from a claim, then hands its jobs to the streams whose slots they came in.
    fn bring(&mut self, number: u64, under_way: &UnderWay, mut jobs: Vec<ClaimedJob>, now: Instant) {
        let asked = under_way.slots.len();
        debug!(queue = under_way.queue.0, caller = %under_way.caller, asked, got = jobs.len(), "claimed");
        if let Some(queue) = self.queues.get_mut(&under_way.queue) {
            let bytes = jobs.iter().map(|job| job.payload.len() as u64).sum();
            queue.pace.learn(asked, jobs.len(), bytes);
            for job in &jobs {
                queue.cursor.claimed(job.priority, job.ready_at);
            }
            queue.checked_at = Some(now);
            queue.untold = queue.untold.saturating_sub(jobs.len());
            if jobs.len() < asked {
                if under_way.thorough {
                    queue.empty_as_of = queue.empty_as_of.max(number);
                    self.touched.extend(queue.groups.values().flat_map(|group| &group.finishing));
                }
                if queue.hints == under_way.hints {
                    // Whatever was ready here is on this replica's streams.
                    queue.hot = false;
                    queue.untold = 0;
                    self.hot.remove(&under_way.queue);
                    self.untold.remove(&under_way.queue);
                    // Streams of several queues have their turn free for another one.
                    let waiting = queue.groups.values().flat_map(|group| group.waiting.values().take(PASSED_ON));
                    self.touched.extend(waiting);
                }
            }
        }
        jobs.sort_unstable_by_key(|job| (Reverse(job.priority), job.ready_at, job.job));
        let mut frames: BTreeMap<StreamNumber, Vec<Unsent>> = BTreeMap::new();
        for job in jobs {
            self.place(under_way, job, &mut frames, now);
        }
        for (stream, jobs) in frames {
            self.hand_over(stream, jobs);
        }
    }

    fn place(
        &mut self,
        under_way: &UnderWay,
        job: ClaimedJob,
        frames: &mut BTreeMap<StreamNumber, Vec<Unsent>>,
        now: Instant,
    ) {
        let Some(&(stream, duration)) = under_way.slots.get(&job.lease) else {
            error!(job = job.job.0, "a claim answered with a lease that was not drawn for it");
            return;
        };
        let token = LeaseToken { job: job.job, lease: job.lease, replica: self.replica, stream };
        let (queue, queue_id, started) = (under_way.name.clone(), under_way.queue, under_way.started);
        let stale_at = Unsent::stale_at(started, now, duration, self.options.max_unsent);
        let unsent = Unsent { token, queue, queue_id, job, started, duration, stale_at };
        let paused = self.queues.get(&under_way.queue).is_some_and(|queue| queue.paused);
        if !paused && self.grant(&unsent) {
            frames.entry(stream).or_default().push(unsent);
        } else {
            self.returns.push(unsent.returned());
        }
    }

    fn hand_over(&mut self, number: StreamNumber, jobs: Vec<Unsent>) {
        let Some(stream) = self.streams.get_mut(&number) else { return };
        match stream.buffer.put(jobs) {
            Ok(()) => {
                stream.empty_since = self.sequence + 1;
                self.count_buffer(number);
                self.take_ticket(number);
                self.watch_buffer(number);
            }
            Err(jobs) => {
                // Its end is on the way to us; until then nothing more is claimed for it.
                stream.stalled = true;
                for job in jobs {
                    self.release(job.returned().lease);
                    self.returns.push(job.returned());
                }
            }
        }
        self.touched.insert(number);
    }

    /// Nobody knows what a failed claim has passed; the store gives back what it may have leased.
    fn claim_failed(&mut self, under_way: &UnderWay, failure: &Failure, now: Instant) {
        debug!(queue = under_way.queue.0, caller = %under_way.caller, %failure, "claim failed");
        let wait = self.random.random_range(0.5..=1.0);
        let Some(queue) = self.queues.get_mut(&under_way.queue) else { return };
        queue.cursor.put_back(&under_way.cursor);
        let Some(group) = queue.groups.get_mut(&under_way.caller) else { return };
        group.asked |= under_way.thorough && self.options.claim_cursor;
        let pause = RETRY_BASE.saturating_mul(1 << group.failures.saturating_sub(1).min(6)).min(RETRY_CAP);
        let at = now + pause.mul_f64(wait);
        group.retry_at = Some(at);
        self.agenda.set(at, Alarm::Retry(under_way.queue, under_way.caller.clone()));
        // What it was after may still be there, even if another caller's claim found nothing more meanwhile.
        self.heat(under_way.queue, 0, false);
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
