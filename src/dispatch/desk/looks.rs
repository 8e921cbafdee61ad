//! Looking for work while nothing is known to be ready: one statement for all queues together.

use std::{
    ops::Bound,
    time::{Duration, Instant},
};

use super::{Act, Desk};
use crate::{
    dispatch::{agenda::Alarm, cursor::Cursor},
    model::{Failure, QueueId},
    store::engine::{LookSpot, Sighting},
};

/// A look takes at most this part of the time.
const SHARE: u32 = 20;
/// One absent queue's name is looked up in so many ticks.
const NAME_TICKS: u64 = 4;
/// Looks that something asks for are no closer together than this.
const SOON: Duration = Duration::from_millis(100);
/// However long looks take, one begins this often.
const SLOWEST: Duration = Duration::from_secs(10);

impl Desk {
    /// Once an interval: looks, and catches up with whatever nobody told us.
    pub(super) fn look_tick(&mut self, now: Instant) {
        self.ticks += 1;
        if self.looking.is_none() && !self.draining {
            let spots = self.spots(now);
            if !spots.is_empty() {
                self.looking = Some(now);
                self.looked_at = Some(now);
                self.acts.push(Act::Look(spots));
            }
        }
        self.unresolved.append(&mut self.unresolved_yet);
        self.name_is_due |= self.ticks.is_multiple_of(NAME_TICKS);
        if self.looking.is_none() {
            self.look_for_a_name();
        }
        self.consider_hot_queues();
        self.read_settings(now);
        let next = self.jitter(self.options.look_interval, 0.1);
        self.look_next_at(now + next);
    }

    /// Queues in which a stream waits or from which a claim was made since the last look, in turn where there are too many.
    fn spots(&mut self, now: Instant) -> Vec<LookSpot> {
        let mut spots = Vec::new();
        let after = (Bound::Excluded(self.look_turn), Bound::Unbounded);
        let ids: Vec<QueueId> =
            self.queues.range(after).chain(self.queues.range(..=self.look_turn)).map(|(id, _)| *id).collect();
        for id in ids {
            if spots.len() >= self.options.look_queues {
                break;
            }
            let Some(queue) = self.queues.get_mut(&id) else { continue };
            if queue.paused || !queue.has_waiting() && !queue.claimed_since_look {
                continue;
            }
            queue.claimed_since_look = false;
            queue.checked_at = Some(now);
            let full = now >= queue.full_look_at || !self.options.claim_cursor;
            if full {
                queue.full_look_at = now + self.options.full_look_interval;
            }
            let from = if full { Cursor::START } else { queue.cursor };
            spots.push(LookSpot { queue: id, floors: from.look_floors(self.options.look_back) });
            self.look_turn = id;
        }
        spots
    }

    pub(super) fn looked(&mut self, result: Result<Vec<Sighting>, Failure>, now: Instant) {
        let took = self.looking.take().map_or(Duration::ZERO, |began| now.saturating_duration_since(began));
        self.look_failed = result.is_err();
        self.look_for_a_name(); // after the look and not beside it: one lane is enough for both
        let Ok(sightings) = result else {
            // What was to be looked at from the beginning still is.
            for queue in self.queues.values_mut() {
                queue.full_look_at = now;
            }
            return;
        };
        for sighting in sightings {
            self.sighted(sighting, now);
        }
        let pause = (took * SHARE).min(SLOWEST);
        if pause > self.options.look_interval {
            self.look_next_at(now + pause);
        }
    }

    fn sighted(&mut self, sighting: Sighting, now: Instant) {
        let Some(queue) = self.queues.get_mut(&sighting.queue) else { return };
        queue.checked_at = Some(now);
        queue.cursor.sighted(sighting.priority, sighting.ready_at);
        if sighting.ready_in.is_zero() {
            self.heat(sighting.queue, 1, false);
        } else {
            self.remember_due(sighting.queue, now + sighting.ready_in);
        }
    }

    /// Looks as soon as the last look is not all too fresh.
    pub(super) fn look_soon(&mut self, now: Instant) {
        let soon = self.looked_at.map_or(now, |at| now.max(at + SOON));
        if soon < self.look_at {
            self.look_next_at(soon);
        }
    }

    fn look_next_at(&mut self, until: Instant) {
        self.agenda.cancel(self.look_at, Alarm::Look);
        self.look_at = until;
        self.agenda.set(until, Alarm::Look);
    }

    /// Anything may have been missed.
    pub(super) fn look_at_everything(&mut self, now: Instant) {
        for queue in self.queues.values_mut() {
            queue.full_look_at = now;
            for group in queue.groups.values_mut() {
                group.retry_at = None;
            }
        }
        self.unresolved.extend(self.absent.iter().cloned());
        self.suspect_in_turn();
        self.look_soon(now);
    }
}
