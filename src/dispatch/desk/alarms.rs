//! What each alarm leads to.

use std::time::Instant;

use super::Desk;
use crate::{
    dispatch::agenda::Alarm,
    model::{Caller, QueueId},
};

impl Desk {
    pub(super) fn ring(&mut self, alarm: Alarm, now: Instant) {
        match alarm {
            Alarm::Heartbeat(stream) => self.beat(stream, now),
            Alarm::Age(stream) => self.age_reached(stream),
            Alarm::Deadline(stream) => self.deadline_reached(stream),
            Alarm::Stale(stream) => self.take_stale(stream, now),
            Alarm::Expiry(job) => drop(self.suspects.insert(job)),
            Alarm::Due(queue) => self.came_due(queue, now),
            Alarm::Retry(queue, caller) => self.may_retry(queue, &caller),
            Alarm::GiveBack => self.returns.append(&mut self.returns_again),
            Alarm::Look => self.look_tick(now),
            Alarm::Reconcile => {
                self.suspect_in_turn();
                let next = self.jitter(self.options.reconcile_interval, 0.1);
                self.agenda.set(now + next, Alarm::Reconcile);
            }
        }
    }

    fn came_due(&mut self, id: QueueId, now: Instant) {
        let Some(queue) = self.queues.get_mut(&id) else { return };
        queue.due_alarm = None;
        let jobs = queue.take_due(now);
        self.set_due_alarm(id);
        if jobs > 0 {
            self.heat(id, jobs, true);
        }
    }

    /// A job of this queue becomes ready then.
    pub(super) fn remember_due(&mut self, id: QueueId, at: Instant) {
        if let Some(queue) = self.queues.get_mut(&id) {
            queue.remember_due(at);
            self.set_due_alarm(id);
        } else {
            self.meet(id);
        }
    }

    fn set_due_alarm(&mut self, id: QueueId) {
        let Some(queue) = self.queues.get_mut(&id) else { return };
        let next = queue.next_due();
        if next == queue.due_alarm {
            return;
        }
        if let Some(at) = queue.due_alarm {
            self.agenda.cancel(at, Alarm::Due(id));
        }
        if let Some(at) = next {
            self.agenda.set(at, Alarm::Due(id));
        }
        queue.due_alarm = next;
    }

    fn may_retry(&mut self, id: QueueId, caller: &Caller) {
        let group = self.queues.get_mut(&id).and_then(|queue| queue.groups.get_mut(caller));
        if let Some(group) = group {
            group.retry_at = None;
            self.consider(id, caller);
        }
    }
}
