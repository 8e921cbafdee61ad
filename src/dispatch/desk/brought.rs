//! What becomes of a claim that has ended, and of the jobs that it brought.

use std::{
    cmp::Reverse,
    collections::BTreeMap,
    iter,
    time::{Duration, Instant},
};

use rand::Rng as _;
use tracing::{debug, error};

use super::{
    Desk,
    claims::{Part, UnderWay},
};
use crate::{
    dispatch::{agenda::Alarm, buffer::Unsent},
    model::{Failure, LeaseToken, StreamNumber},
    store::engine::ClaimedJob,
};

/// Streams of each caller that are looked at again when a queue has no more to give; a look's tick does it for all.
const PASSED_ON: usize = 64;
/// Pause after a failed claim; doubles with each further one.
const RETRY_BASE: Duration = Duration::from_millis(100);
/// Longest pause between failed claims.
const RETRY_CAP: Duration = Duration::from_secs(5);

impl Desk {
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
        let caller = &under_way.caller;
        for part in &under_way.parts {
            if let Some(group) = self.queues.get_mut(&part.queue).and_then(|queue| queue.groups.get_mut(caller)) {
                group.claiming = false;
                group.failures = if result.is_ok() { 0 } else { group.failures.saturating_add(1) };
            }
        }
        match result {
            Ok(jobs) => self.bring(number, &under_way, jobs, now),
            Err(failure) => self.claim_failed(&under_way, &failure, now),
        }
        for part in &under_way.parts {
            if let Some(queue) = self.queues.get_mut(&part.queue) {
                queue.drop_group_if_idle(caller);
            }
            self.consider(part.queue, caller);
        }
        self.take_up(caller);
    }

    /// Learns from each queue's claim, then hands the jobs to the streams whose slots they came in.
    fn bring(&mut self, number: u64, under_way: &UnderWay, mut jobs: Vec<ClaimedJob>, now: Instant) {
        let (asked, queues) = (under_way.slots.len(), under_way.parts.len());
        debug!(queues, caller = %under_way.caller, asked, got = jobs.len(), "claimed");
        jobs.sort_unstable_by_key(|job| (job.queue, Reverse(job.priority), job.ready_at, job.job));
        let mut frames: BTreeMap<StreamNumber, Vec<Unsent>> = BTreeMap::new();
        let mut jobs = jobs.into_iter().peekable();
        let mut parts: Vec<&Part> = under_way.parts.iter().collect();
        parts.sort_unstable_by_key(|part| part.queue);
        for part in parts {
            let own: Vec<ClaimedJob> = iter::from_fn(|| jobs.next_if(|job| job.queue == part.queue)).collect();
            self.learn_from(number, part, &own, now);
            for job in own {
                self.place(under_way, part, job, &mut frames, now);
            }
        }
        for job in jobs {
            error!(job = job.job.0, "a claim answered with a job of a queue that it was not of");
        }
        for (stream, jobs) in frames {
            self.hand_over(stream, jobs);
        }
    }

    /// What a queue's claim says of the queue.
    fn learn_from(&mut self, number: u64, part: &Part, jobs: &[ClaimedJob], now: Instant) {
        let Some(queue) = self.queues.get_mut(&part.queue) else { return };
        let bytes = jobs.iter().map(|job| job.payload.len() as u64).sum();
        queue.pace.learn(part.asked, jobs.len(), bytes);
        for job in jobs {
            queue.cursor.claimed(job.priority, job.ready_at);
        }
        queue.checked_at = Some(now);
        queue.untold = queue.untold.saturating_sub(jobs.len());
        if jobs.len() == part.asked {
            return;
        }
        if part.thorough {
            queue.empty_as_of = queue.empty_as_of.max(number);
            self.touched.extend(queue.groups.values().flat_map(|group| &group.finishing));
        }
        if queue.hints == part.hints {
            // Whatever was ready here is on this replica's streams.
            queue.hot = false;
            queue.untold = 0;
            self.hot.remove(&part.queue);
            self.untold.remove(&part.queue);
            // Streams of several queues have their turn free for another one.
            let waiting = queue.groups.values().flat_map(|group| group.waiting.values().take(PASSED_ON));
            self.touched.extend(waiting);
        }
    }

    fn place(
        &mut self,
        under_way: &UnderWay,
        part: &Part,
        job: ClaimedJob,
        frames: &mut BTreeMap<StreamNumber, Vec<Unsent>>,
        now: Instant,
    ) {
        let Some(&(stream, duration)) = under_way.slots.get(&job.lease) else {
            error!(job = job.job.0, "a claim answered with a lease that was not drawn for it");
            return;
        };
        let token = LeaseToken { job: job.job, lease: job.lease, replica: self.replica, stream };
        let (queue, queue_id, started) = (part.name.clone(), part.queue, under_way.started);
        let stale_at = Unsent::stale_at(started, now, duration, self.options.max_unsent);
        let unsent = Unsent { token, queue, queue_id, job, started, duration, stale_at };
        let paused = self.queues.get(&part.queue).is_some_and(|queue| queue.paused);
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
        debug!(queues = under_way.parts.len(), caller = %under_way.caller, %failure, "claim failed");
        for part in &under_way.parts {
            let wait = self.random.random_range(0.5..=1.0);
            let Some(queue) = self.queues.get_mut(&part.queue) else { continue };
            queue.cursor.put_back(&part.cursor);
            let Some(group) = queue.groups.get_mut(&under_way.caller) else { continue };
            group.asked |= part.thorough && self.options.claim_cursor;
            let pause = RETRY_BASE.saturating_mul(1 << group.failures.saturating_sub(1).min(6)).min(RETRY_CAP);
            let at = now + pause.mul_f64(wait);
            group.retry_at = Some(at);
            self.agenda.set(at, Alarm::Retry(part.queue, under_way.caller.clone()));
            // What it was after may still be there, even if another caller's claim found nothing more meanwhile.
            self.heat(part.queue, 0, false);
        }
    }
}
