//! When the dispatcher has to turn to what: one ordered set for everything, so that an idle stream costs two entries and
//! no timer of its own.

use std::{collections::BTreeSet, time::Instant};

use crate::model::{Caller, JobId, QueueId, StreamNumber};

/// What to turn to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Alarm {
    /// Say something on a quiet stream.
    Heartbeat(StreamNumber),
    /// End an old stream.
    Age(StreamNumber),
    /// End a stream whose caller stops waiting.
    Deadline(StreamNumber),
    /// Give back what a stream has left untaken for too long.
    Stale(StreamNumber),
    /// A lease ran out by our count.
    Expiry(JobId),
    /// A scheduled job of this queue becomes ready.
    Due(QueueId),
    /// A claim that failed may be tried again.
    Retry(QueueId, Caller),
    /// Give back what could not be given back before.
    GiveBack,
    /// Look for work.
    Look,
    /// Compare leases with the database.
    Reconcile,
}

/// Alarms in the order of their time.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    alarms: BTreeSet<(Instant, Alarm)>,
}

impl Agenda {
    /// Rings `alarm` at `at`. One alarm may be set for several times.
    pub(super) fn set(&mut self, at: Instant, alarm: Alarm) {
        self.alarms.insert((at, alarm));
    }

    /// Takes back what was set for exactly that time.
    pub(super) fn cancel(&mut self, at: Instant, alarm: Alarm) {
        self.alarms.remove(&(at, alarm));
    }

    /// When the next one rings.
    pub(super) fn next(&self) -> Option<Instant> {
        self.alarms.first().map(|(at, _)| *at)
    }

    /// The next alarm whose time has come.
    pub(super) fn pop(&mut self, now: Instant) -> Option<Alarm> {
        if self.next()? > now {
            return None;
        }
        self.alarms.pop_first().map(|(_, alarm)| alarm)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn alarms_ring_in_order_and_not_early() {
        let start = Instant::now();
        let mut agenda = Agenda::default();
        agenda.set(start + Duration::from_secs(2), Alarm::Look);
        agenda.set(start + Duration::from_secs(1), Alarm::Reconcile);
        agenda.set(start + Duration::from_secs(1), Alarm::Age(StreamNumber(1)));
        agenda.cancel(start + Duration::from_secs(1), Alarm::Age(StreamNumber(1)));
        assert_eq!(agenda.pop(start), None);
        assert_eq!(agenda.next(), Some(start + Duration::from_secs(1)));
        assert_eq!(agenda.pop(start + Duration::from_secs(3)), Some(Alarm::Reconcile));
        assert_eq!(agenda.pop(start + Duration::from_secs(3)), Some(Alarm::Look));
        assert_eq!(agenda.pop(start + Duration::from_secs(3)), None);
    }
}
