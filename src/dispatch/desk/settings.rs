//! What operators change about queues while streams ask for them: paused, resumed, deleted, created anew.

use std::{collections::BTreeSet, mem, ops::Bound, time::Instant};

use super::{Act, Desk, names::Name};
use crate::{
    dispatch::agenda::Alarm,
    model::{Failure, QueueId, QueueName, StreamNumber},
    store::engine::QueueRow,
};

/// Queues in one look at settings; more than these take turns.
const NAMES: usize = 1_000;

impl Desk {
    /// Has the settings of queues that streams ask for read where it is time.
    pub(super) fn read_settings(&mut self, now: Instant) {
        if self.reading_settings || self.draining || now < self.settings_at {
            return;
        }
        let after = (Bound::Excluded(self.settings_turn), Bound::Unbounded);
        let asked_for = self.queues.range(after).filter(|(_, queue)| !queue.groups.is_empty());
        let (ids, names): (Vec<QueueId>, Vec<QueueName>) =
            asked_for.map(|(id, queue)| (*id, queue.name.clone())).take(NAMES).unzip();
        if names.len() < NAMES {
            self.settings_turn = QueueId(i32::MIN);
            self.settings_at = now + self.options.settings_interval;
        } else if let Some(last) = ids.last() {
            self.settings_turn = *last;
        }
        if !names.is_empty() {
            self.reading_settings = true;
            self.acts.push(Act::ReadSettings(names));
        }
    }

    pub(super) fn settings_read(&mut self, names: &[QueueName], result: Result<Vec<QueueRow>, Failure>, now: Instant) {
        self.reading_settings = false;
        let Ok(rows) = result else {
            self.settings_at = now; // the next tick tries again
            return;
        };
        for name in names.iter().filter(|name| rows.iter().all(|row| row.name != **name)) {
            self.lose(name);
        }
        for row in &rows {
            self.learn(row, now);
        }
        self.read_settings(now);
    }

    /// Takes in a queue's row, where streams ask for it.
    pub(super) fn learn(&mut self, row: &QueueRow, now: Instant) {
        match self.names.get(&row.name) {
            Some(Name::Known(id)) if *id == row.id => {
                let resumed = self.queues.get_mut(&row.id).is_some_and(|queue| queue.learn(row));
                if resumed {
                    self.heat(row.id, 0, false);
                    self.look_soon(now);
                }
            }
            // Deleted and created anew. An older look at it says nothing: numbers only rise.
            Some(Name::Known(id)) if *id < row.id => {
                self.lose(&row.name);
                self.found(row, now);
            }
            Some(Name::Unknown { .. }) => self.found(row, now),
            Some(Name::Known(_)) | None => {}
        }
    }

    /// There is no queue of this name any more. Its streams wait for one to come into being; leases of its jobs stand.
    pub(super) fn lose(&mut self, name: &QueueName) {
        let Some(Name::Known(id)) = self.names.get(name) else { return };
        let id = *id;
        let mut streams: BTreeSet<StreamNumber> = BTreeSet::new();
        for (number, stream) in &mut self.streams {
            let Some(place) = stream.queues.iter_mut().find(|place| place.id == Some(id)) else { continue };
            place.id = None;
            streams.insert(*number);
        }
        if let Some(queue) = self.queues.remove(&id)
            && let Some(at) = queue.due_alarm
        {
            self.agenda.cancel(at, Alarm::Due(id));
        }
        self.hot.remove(&id);
        self.untold.remove(&id);
        if streams.is_empty() {
            self.names.remove(name);
            return;
        }
        self.touched.extend(&streams);
        self.absent.insert(name.clone());
        drop(mem::replace(
            self.names.entry(name.clone()).or_insert(Name::Known(id)),
            Name::Unknown { streams, absent_as_of: self.sequence },
        ));
    }
}
