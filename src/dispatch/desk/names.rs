//! Queues by name: streams may ask for one that does not exist yet.

use std::{collections::BTreeSet, mem, ops::Bound, time::Instant};

use super::{Act, Desk, streams::OpenStream};
use crate::{
    dispatch::{agenda::Alarm, queue::KnownQueue},
    model::{Failure, QueueId, QueueName, StreamNumber},
    store::engine::QueueRow,
};

/// Names in one look-up.
const NAMES: usize = 32;
/// Queues that are remembered while no stream asks for them, and ids of queues that none ever did.
const KEPT: usize = 10_000;

/// What is known of a name.
pub(super) enum Name {
    /// It exists.
    Known(QueueId),
    /// It did not when last looked for.
    Unknown {
        /// Who asks for it.
        streams: BTreeSet<StreamNumber>,
        /// The last look-up that did not find it, by its number.
        absent_as_of: u64,
    },
}

impl Desk {
    /// Enters a stream with each of its queues.
    pub(super) fn subscribe(&mut self, number: StreamNumber) {
        let Some(stream) = self.streams.get_mut(&number) else { return };
        for place in &mut stream.queues {
            match self.names.get_mut(&place.name) {
                Some(Name::Known(id)) => {
                    place.id = Some(*id);
                    if let Some(queue) = self.queues.get_mut(id) {
                        queue.join(number, stream.caller.clone(), stream.stop_when_empty);
                    }
                }
                Some(Name::Unknown { streams, .. }) => drop(streams.insert(number)),
                None => {
                    let name = Name::Unknown { streams: BTreeSet::from([number]), absent_as_of: 0 };
                    self.names.insert(place.name.clone(), name);
                    self.absent.insert(place.name.clone());
                    self.unresolved.insert(place.name.clone());
                }
            }
        }
    }

    /// Takes a stream, which is gone, out of everything that names it.
    pub(super) fn unsubscribe(&mut self, number: StreamNumber, stream: &OpenStream) {
        for place in &stream.queues {
            if let Some(id) = place.id {
                let kept = self.queues.len() <= KEPT;
                let Some(queue) = self.queues.get_mut(&id) else { continue };
                queue.leave(number, &stream.caller, stream.ticket);
                if !kept && queue.groups.is_empty() {
                    if let Some(at) = queue.due_alarm {
                        self.agenda.cancel(at, Alarm::Due(id));
                    }
                    self.queues.remove(&id);
                    self.names.remove(&place.name);
                    self.hot.remove(&id);
                    self.untold.remove(&id);
                }
            } else if let Some(Name::Unknown { streams, .. }) = self.names.get_mut(&place.name) {
                streams.remove(&number);
                if streams.is_empty() {
                    self.names.remove(&place.name);
                    self.absent.remove(&place.name);
                    self.unresolved.remove(&place.name);
                    self.unresolved_yet.remove(&place.name);
                }
            }
        }
    }

    /// Jobs are said to be in a queue whose name is not known: it may be one that streams wait for.
    pub(super) fn meet(&mut self, id: QueueId) {
        if self.foreign.len() >= KEPT {
            self.foreign.clear();
        }
        if self.foreign.insert(id) {
            self.unresolved.extend(self.absent.iter().cloned());
        }
    }

    /// Looks for one name that was not there, in turn and when it is due; for queues that came into being unheard.
    pub(super) fn look_for_a_name(&mut self) {
        if !mem::take(&mut self.name_is_due) {
            return;
        }
        let after = |turn: QueueName| self.absent.range((Bound::Excluded(turn), Bound::Unbounded)).next();
        let next = self.name_turn.take().and_then(after).or(self.absent.first()).cloned();
        if let Some(name) = &next {
            self.unresolved.insert(name.clone());
        }
        self.name_turn = next;
    }

    pub(super) fn start_resolving(&mut self) {
        if self.resolving || self.draining || self.unresolved.is_empty() {
            return;
        }
        let mut names = Vec::new();
        while names.len() < NAMES
            && let Some(name) = self.unresolved.pop_first()
        {
            names.push(name);
        }
        self.resolving = true;
        let number = self.next_number();
        self.acts.push(Act::Resolve { number, names });
    }

    pub(super) fn resolved(
        &mut self,
        number: u64,
        results: Vec<(QueueName, Result<Option<QueueRow>, Failure>)>,
        now: Instant,
    ) {
        self.resolving = false;
        self.resolve_failed = false;
        for (name, result) in results {
            match result {
                Ok(Some(row)) => self.found(&row, now),
                Ok(None) => {
                    if let Some(Name::Unknown { streams, absent_as_of }) = self.names.get_mut(&name) {
                        *absent_as_of = number;
                        let finishing = |number: &&StreamNumber| {
                            self.streams.get(number).is_some_and(|stream| stream.stop_when_empty)
                        };
                        self.touched.extend(streams.iter().filter(finishing));
                    }
                }
                Err(_) => {
                    // The store has said why; the look's tick tries again.
                    self.resolve_failed = true;
                    if self.absent.contains(&name) {
                        self.unresolved_yet.insert(name);
                    }
                }
            }
        }
    }

    pub(super) fn found(&mut self, row: &QueueRow, now: Instant) {
        let waiting = match self.names.get_mut(&row.name) {
            Some(Name::Known(_)) => return self.learn(row, now),
            Some(Name::Unknown { streams, .. }) => mem::take(streams),
            None => return, // whoever asked is gone
        };
        self.names.insert(row.name.clone(), Name::Known(row.id));
        self.absent.remove(&row.name);
        self.foreign.remove(&row.id);
        let queue = self.queues.entry(row.id).or_insert_with(|| KnownQueue::new(row, now));
        for number in waiting {
            let Some(stream) = self.streams.get_mut(&number) else { continue };
            queue.join(number, stream.caller.clone(), stream.stop_when_empty);
            if let Some(place) = stream.queues.iter_mut().find(|place| place.name == row.name) {
                place.id = Some(row.id);
            }
            if stream.waiting
                && let Some(group) = queue.groups.get_mut(&stream.caller)
            {
                group.waiting.insert(stream.ticket, number);
            }
            self.touched.insert(number);
        }
        self.heat(row.id, 0, false);
        self.look_soon(now); // a claim does not say what is scheduled
    }
}
