//! Streams: how they enter, wait, and end.

use std::{
    collections::BTreeSet,
    mem,
    sync::Arc,
    time::{Duration, Instant},
};

use tracing::debug;

use super::{Desk, names::Name};
use crate::{
    dispatch::{
        agenda::Alarm,
        buffer::{Buffer, Returned},
        credit::Credit,
        frame::{DrainReason, Frame},
        presence::{StreamFacts, StreamState},
        stream::Opening,
    },
    model::{Caller, Failure, JobId, QueueId, QueueName, Reason, StreamNumber},
};

/// A stream that can be served.
#[expect(clippy::struct_excessive_bools, reason = "each is one fact of its own; all combinations occur")]
pub(super) struct OpenStream {
    /// For operators.
    about: Arc<StreamFacts>,
    pub(super) caller: Caller,
    pub(super) queues: Vec<Place>,
    /// Which of its queues comes first in the next round.
    pub(super) turn: usize,
    pub(super) credit: Credit,
    pub(super) lease_duration: Option<Duration>,
    pub(super) buffer: Arc<Buffer>,
    /// Its leases that are outstanding.
    pub(super) jobs: BTreeSet<JobId>,
    /// The same by when they were granted.
    pub(super) granted: BTreeSet<(Instant, JobId)>,
    /// Bytes of jobs in its buffer that were not taken, as last counted; 0 where there are none.
    pub(super) buffered: usize,
    /// It left a buffer untaken for half a lease and has not asked since.
    pub(super) stalled: bool,
    /// The last job did not fit by its bytes; nothing more until one comes back.
    pub(super) bytes_full: bool,
    /// It stands in the waiting lists of its queues.
    pub(super) waiting: bool,
    /// Its place there; a new one whenever it was served.
    pub(super) ticket: u64,
    pub(super) stop_when_empty: bool,
    /// What counts as a proof of emptiness must have begun with this number or later.
    pub(super) empty_since: u64,
    heartbeat_at: Instant,
    ends_at: Instant,
    deadline: Option<Instant>,
    pub(super) stale_at: Option<Instant>,
}

/// One of a stream's queues.
pub(super) struct Place {
    pub(super) name: QueueName,
    /// Absent where the queue does not exist yet.
    pub(super) id: Option<QueueId>,
}

impl OpenStream {
    fn can_take(&self) -> bool {
        self.buffered == 0 && !self.stalled && !self.bytes_full && self.credit.free() > 0
    }

    /// The next round of claims begins after this queue.
    pub(super) fn turn_after(&mut self, id: QueueId) {
        if let Some(at) = self.queues.iter().position(|place| place.id == Some(id)) {
            self.turn = (at + 1) % self.queues.len();
        }
    }

    /// Whether nothing comes of it before one of its leases ends: those with a bound on bytes may lack the room for one more
    /// job, whose size nobody knows, and those that stop when empty wait for all of theirs.
    fn hangs_on_its_leases(&self) -> bool {
        let short = self.stop_when_empty || self.credit.is_bounded_in_bytes();
        self.credit.unused() == 0 || self.bytes_full || (short && !self.jobs.is_empty())
    }
}

impl Desk {
    pub(super) fn open(&mut self, opening: Opening, now: Instant) {
        let Opening { number, spec, buffer, ends_at } = opening;
        if self.draining {
            buffer.end(Some(DrainReason::Shutdown), Ok(()));
            return;
        }
        debug!(stream = number.0, consumer = spec.consumer, peer = spec.peer, caller = %spec.caller, "stream opened");
        let heartbeat_at = now + self.options.heartbeat_interval;
        self.agenda.set(heartbeat_at, Alarm::Heartbeat(number));
        self.agenda.set(ends_at, Alarm::Age(number));
        if let Some(deadline) = spec.deadline {
            self.agenda.set(deadline, Alarm::Deadline(number));
        }
        self.tickets += 1;
        let about = StreamFacts {
            consumer: spec.consumer,
            peer: spec.peer,
            caller: spec.caller.clone(),
            queues: spec.queues.clone(),
            max_in_flight: spec.max_in_flight,
            opened_at: now,
        };
        let stream = OpenStream {
            about: Arc::new(about),
            caller: spec.caller,
            queues: spec.queues.into_iter().map(|name| Place { name, id: None }).collect(),
            turn: 0,
            credit: Credit::new(spec.max_in_flight, spec.max_in_flight_bytes),
            lease_duration: spec.lease_duration,
            buffer,
            jobs: BTreeSet::new(),
            granted: BTreeSet::new(),
            buffered: 0,
            stalled: false,
            bytes_full: false,
            waiting: false,
            ticket: self.tickets,
            stop_when_empty: spec.stop_when_empty,
            empty_since: self.sequence + 1,
            heartbeat_at,
            ends_at,
            deadline: spec.deadline,
            stale_at: None,
        };
        self.granted += stream.credit.most() as usize;
        self.streams.insert(number, stream);
        self.subscribe(number);
        self.touched.insert(number);
    }

    /// Puts a stream where its state says that it belongs: in line for jobs or not, and at its end where it has reached it.
    pub(super) fn refresh(&mut self, number: StreamNumber, now: Instant) {
        let Some(stream) = self.streams.get_mut(&number) else { return };
        let (waited, waits) = (stream.waiting, stream.can_take());
        stream.waiting = waits;
        if stream.hangs_on_its_leases() {
            self.compared.insert(number);
        } else {
            self.compared.remove(&number);
        }
        let (ticket, caller) = (stream.ticket, stream.caller.clone());
        let queues: Vec<QueueId> = stream.queues.iter().filter_map(|place| place.id).collect();
        for id in queues {
            let Some(queue) = self.queues.get_mut(&id) else { continue };
            let Some(group) = queue.groups.get_mut(&caller) else { continue };
            match (waited, waits) {
                (false, true) => drop(group.waiting.insert(ticket, number)),
                (true, false) => drop(group.waiting.remove(&ticket)),
                _ => {}
            }
            // Nobody here has looked for a while, so that what is known about the queue is old.
            let unwatched = queue.checked_at.is_none_or(|at| now > at + self.options.look_interval * 3 / 2);
            if waits && !waited && unwatched {
                self.heat(id, 0, false);
            } else if waits {
                self.consider(id, &caller);
            }
        }
        self.finish_if_empty(number);
    }

    /// A new place at the end of the waiting lists.
    pub(super) fn take_ticket(&mut self, number: StreamNumber) {
        let Some(stream) = self.streams.get_mut(&number) else { return };
        self.tickets += 1;
        let old = mem::replace(&mut stream.ticket, self.tickets);
        if mem::take(&mut stream.waiting) {
            for id in stream.queues.iter().filter_map(|place| place.id) {
                if let Some(group) = self.queues.get_mut(&id).and_then(|queue| queue.groups.get_mut(&stream.caller)) {
                    group.waiting.remove(&old);
                }
            }
        }
    }

    /// A stream that was to stop when empty ends, once a claim that walked everything has found nothing in each of its
    /// queues since it last had a job; where that is not known yet, it is found out.
    pub(super) fn finish_if_empty(&mut self, number: StreamNumber) {
        let Some(stream) = self.streams.get(&number) else { return };
        if !stream.stop_when_empty || !stream.credit.is_untouched() || stream.buffered > 0 {
            return;
        }
        let (since, caller) = (stream.empty_since, stream.caller.clone());
        let mut empty = true;
        let mut ask = Vec::new();
        for place in &stream.queues {
            match (place.id, self.names.get(&place.name)) {
                (Some(id), _) => {
                    let Some(queue) = self.queues.get_mut(&id) else { continue };
                    if queue.empty_as_of >= since && !queue.hot {
                        continue;
                    }
                    empty = false;
                    if let Some(group) = queue.groups.get_mut(&caller) {
                        group.asked = true;
                        ask.push(id);
                    }
                }
                (None, Some(Name::Unknown { absent_as_of, .. })) if *absent_as_of >= since => {}
                (None, _) => {
                    empty = false;
                    self.unresolved.insert(place.name.clone());
                }
            }
        }
        if empty {
            self.end(number, None, Ok(()));
        }
        for id in ask {
            self.consider(id, &caller);
        }
    }

    /// All streams, for operators.
    pub(super) fn show_streams(&self) -> Vec<StreamState> {
        let state = |(number, stream): (&StreamNumber, &OpenStream)| StreamState {
            number: *number,
            about: Arc::clone(&stream.about),
            in_flight: stream.credit.used(),
            free_credit: if stream.stalled || stream.bytes_full { 0 } else { stream.credit.unused() },
            oldest_lease: stream.granted.first().map(|(granted_at, _)| *granted_at),
        };
        self.streams.iter().map(state).collect()
    }

    /// The stream's reader took what was there.
    pub(super) fn taken(&mut self, number: StreamNumber) {
        if let Some(stream) = self.streams.get_mut(&number) {
            stream.stalled = false;
            self.count_buffer(number);
            self.touched.insert(number);
        }
    }

    /// Jobs in its buffer became too old to be sent.
    pub(super) fn stalled(&mut self, number: StreamNumber, stale: Vec<Returned>) {
        for returned in &stale {
            self.release(returned.lease);
        }
        self.returns.extend(stale);
        self.count_buffer(number);
        self.touched.insert(number);
    }

    /// Takes note of how much lies in a stream's buffer.
    pub(super) fn count_buffer(&mut self, number: StreamNumber) {
        let Some(stream) = self.streams.get_mut(&number) else { return };
        let bytes = stream.buffer.bytes();
        self.buffered = self.buffered - mem::replace(&mut stream.buffered, bytes) + bytes;
    }

    /// The stream is gone.
    pub(super) fn closed(&mut self, number: StreamNumber, unsent: Vec<Returned>) {
        debug!(stream = number.0, unsent = unsent.len(), "stream closed");
        self.returns.extend(unsent);
        self.forget(number);
    }

    /// The stream's connection is old.
    pub(super) fn connection_closes(&mut self, number: StreamNumber) {
        self.end(number, Some(DrainReason::Age), Ok(()));
    }

    /// Every stream says Drain and ends; nothing is claimed from now on.
    pub(in crate::dispatch) fn drain(&mut self) {
        self.draining = true;
        let streams: Vec<StreamNumber> = self.streams.keys().copied().collect();
        for number in streams {
            self.end(number, Some(DrainReason::Shutdown), Ok(()));
        }
    }

    /// What is left of a stream is its last words. Its leases stand, but for those that were never sent.
    fn end(&mut self, number: StreamNumber, drain: Option<DrainReason>, end: Result<(), Failure>) {
        if let Some(stream) = self.streams.get(&number) {
            self.returns.extend(stream.buffer.end(drain, end));
            self.forget(number);
        }
    }

    fn forget(&mut self, number: StreamNumber) {
        let Some(stream) = self.streams.remove(&number) else { return };
        self.granted -= stream.credit.most() as usize;
        self.agenda.cancel(stream.heartbeat_at, Alarm::Heartbeat(number));
        self.agenda.cancel(stream.ends_at, Alarm::Age(number));
        if let Some(at) = stream.deadline {
            self.agenda.cancel(at, Alarm::Deadline(number));
        }
        if let Some(at) = stream.stale_at {
            self.agenda.cancel(at, Alarm::Stale(number));
        }
        for job in &stream.jobs {
            self.forget_lease(*job);
        }
        self.buffered -= stream.buffered;
        self.compared.remove(&number);
        self.touched.remove(&number);
        self.unsubscribe(number, &stream);
    }

    pub(super) fn age_reached(&mut self, number: StreamNumber) {
        self.end(number, Some(DrainReason::Age), Ok(()));
    }

    pub(super) fn deadline_reached(&mut self, number: StreamNumber) {
        let failure = Failure::not_applied(Reason::Deadline, "the call's deadline passed; leases of this stream stand");
        self.end(number, None, Err(failure));
    }

    /// Says something on a stream that was quiet for the interval.
    pub(super) fn beat(&mut self, number: StreamNumber, now: Instant) {
        let Some(stream) = self.streams.get(&number) else { return };
        let interval = self.options.heartbeat_interval;
        let said = stream.buffer.beat(now.checked_sub(interval).unwrap_or(now), || Frame::Heartbeat {
            in_flight: stream.credit.used(),
            in_flight_bytes: stream.credit.used_bytes(),
            claims_failing: self.claims_fail_for(stream),
        });
        let next = said.unwrap_or(now) + interval;
        self.agenda.set(next, Alarm::Heartbeat(number));
        if let Some(stream) = self.streams.get_mut(&number) {
            stream.heartbeat_at = next;
        }
    }

    fn claims_fail_for(&self, stream: &OpenStream) -> bool {
        let fails = |id: QueueId| {
            let group = self.queues.get(&id).and_then(|queue| queue.groups.get(&stream.caller));
            group.is_some_and(|group| group.failures > 0)
        };
        !self.available
            || self.look_failed
            || self.resolve_failed
            || stream.queues.iter().filter_map(|place| place.id).any(fails)
    }

    /// Takes back what a stream did not take for half of its lease.
    pub(super) fn take_stale(&mut self, number: StreamNumber, now: Instant) {
        let Some(stream) = self.streams.get_mut(&number) else { return };
        let (stale, next) = stream.buffer.take_stale(now);
        stream.stale_at = next;
        stream.stalled |= !stale.is_empty();
        if let Some(at) = next {
            self.agenda.set(at, Alarm::Stale(number));
        }
        self.stalled(number, stale);
    }

    /// Sets the alarm for what is in a stream's buffer.
    pub(super) fn watch_buffer(&mut self, number: StreamNumber) {
        let Some(stream) = self.streams.get_mut(&number) else { return };
        if let Some(next) = stream.buffer.next_stale()
            && stream.stale_at.is_none_or(|at| next < at)
        {
            if let Some(at) = stream.stale_at.replace(next) {
                self.agenda.cancel(at, Alarm::Stale(number));
            }
            self.agenda.set(next, Alarm::Stale(number));
        }
    }
}
