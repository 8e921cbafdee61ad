//! Looking at the queues of open streams: one task for all of them, which runs while there are any.
//!
//! A round is at most three statements, whatever the number of queues: their settings, now and then; which of those that held
//! nothing have a ready job; and counts of some of those that hold something, the ones just found first. Rounds take at most a
//! twentieth of one lane's time.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::{sync::watch, time::sleep};
use tracing::debug;

use super::gauge::load_of;
use crate::{
    model::{Caller, Failure, QueueId, QueueLoad, QueueName},
    store::{Call, Store, engine::QueueRow},
};

/// Queues counted in one round.
const COUNTED: usize = 10;
/// Rounds take at most this part of the time.
const SHARE: u32 = 20;
/// However long they take, one begins this often.
const SLOWEST: Duration = Duration::from_secs(10);
/// A round may take this long.
const PATIENCE: Duration = Duration::from_secs(10);
/// Settings are read once in so long; names of queues that do not exist are looked up every other round.
const SETTINGS: Duration = Duration::from_secs(5);
/// So often a look begins at the beginning, for what its floors hide.
const FULL: Duration = Duration::from_mins(10);

/// The queues of open streams, and what was seen of them.
pub(super) struct Watch {
    store: Store,
    interval: Duration,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    queues: HashMap<QueueName, watch::Sender<Option<QueueLoad>>>,
    /// The task runs.
    running: bool,
}

/// What the task knows besides.
#[derive(Default)]
struct Rounds {
    rows: Vec<QueueRow>,
    settings_at: Option<Instant>,
    full_at: Option<Instant>,
    /// Counted last: the turn goes on behind it.
    turn: Option<QueueName>,
    odd: bool,
}

impl Watch {
    pub(super) fn new(store: Store, interval: Duration) -> Self {
        Self { store, interval, seen: Mutex::default() }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is seen of the queue from now on, until the receiver is dropped.
    pub(super) fn subscribe(this: &Arc<Self>, queue: &QueueName) -> watch::Receiver<Option<QueueLoad>> {
        let mut seen = this.seen();
        let receiver = seen.queues.entry(queue.clone()).or_insert_with(|| watch::Sender::new(None)).subscribe();
        if !seen.running {
            seen.running = true;
            tokio::spawn(Arc::clone(this).run());
        }
        receiver
    }

    /// The queues that anybody waits for, by name; when there are none left the task is to end.
    fn waited_for(&self) -> Option<Vec<QueueName>> {
        let mut seen = self.seen();
        seen.queues.retain(|_, sender| sender.receiver_count() > 0);
        seen.running = !seen.queues.is_empty();
        let mut names: Vec<QueueName> = seen.queues.keys().cloned().collect();
        names.sort();
        seen.running.then_some(names)
    }

    async fn run(self: Arc<Self>) {
        let mut rounds = Rounds::default();
        loop {
            let Some(names) = self.waited_for() else { return };
            let began = Instant::now();
            if let Err(failure) = self.round(&mut rounds, names).await {
                debug!(%failure, "queues that a scaler waits for were not looked at");
            }
            let took = began.elapsed();
            sleep((took * SHARE).min(SLOWEST).max(self.interval)).await;
        }
    }

    async fn round(&self, rounds: &mut Rounds, names: Vec<QueueName>) -> Result<(), Failure> {
        let call = Call { caller: Caller::broker("scaler"), deadline: Instant::now() + PATIENCE };
        self.read_settings(rounds, &names).await?;
        rounds.rows.retain(|row| names.binary_search(&row.name).is_ok());
        let idle: Vec<QueueId> = rounds.rows.iter().filter(|row| self.is_idle(&row.name)).map(|row| row.id).collect();
        let found = if idle.is_empty() { HashSet::new() } else { self.look(rounds, &call, &idle).await? };
        let calls = |row: &QueueRow| found.contains(&row.id) && !row.is_paused();
        let counted = rounds.choose(|row| self.is_idle(&row.name).then(|| calls(row)));
        if counted.is_empty() {
            return Ok(());
        }
        let ids: Vec<QueueId> = counted.iter().map(|row| row.id).collect();
        let counts = self.store.count_at_once(&call, &ids).await?;
        for (row, counts) in counted.iter().zip(&counts) {
            self.tell(&row.name, load_of(row, counts));
        }
        Ok(())
    }

    /// Reads the queues anew where that is due, and says of those that are not there that they hold nothing.
    async fn read_settings(&self, rounds: &mut Rounds, names: &[QueueName]) -> Result<(), Failure> {
        rounds.odd = !rounds.odd;
        let known = names.iter().filter(|name| rounds.rows.iter().any(|row| row.name == **name)).count();
        let old = rounds.settings_at.is_none_or(|at| at.elapsed() >= SETTINGS);
        if !old && (known == names.len() || rounds.odd) {
            return Ok(());
        }
        rounds.rows = self.store.queues_now(names.to_vec()).await?;
        rounds.settings_at = Some(Instant::now());
        for name in names.iter().filter(|name| rounds.rows.iter().all(|row| row.name != **name)) {
            self.tell(name, QueueLoad::default());
        }
        Ok(())
    }

    async fn look(&self, rounds: &mut Rounds, call: &Call, idle: &[QueueId]) -> Result<HashSet<QueueId>, Failure> {
        let full = rounds.full_at.is_none_or(|at| at.elapsed() >= FULL);
        let found = self.store.with_ready(call, idle, full).await?;
        if full {
            rounds.full_at = Some(Instant::now());
        }
        Ok(found)
    }

    /// Whether nothing was in it when it was seen last.
    fn is_idle(&self, name: &QueueName) -> bool {
        self.seen().queues.get(name).is_some_and(|sender| *sender.borrow() == Some(QueueLoad::default()))
    }

    fn tell(&self, name: &QueueName, load: QueueLoad) {
        if let Some(sender) = self.seen().queues.get(name) {
            sender.send_replace(Some(load));
        }
    }
}

impl Rounds {
    /// What this round counts. `found` says of a queue that held nothing whether it calls for workers now, and nothing of others.
    fn choose(&mut self, found: impl Fn(&QueueRow) -> Option<bool>) -> Vec<QueueRow> {
        let (mut first, mut others) = (Vec::new(), Vec::new());
        for row in &self.rows {
            match found(row) {
                Some(true) => first.push(row.clone()),
                Some(false) => {}
                None => others.push(row.clone()),
            }
        }
        others.sort_by(|a, b| a.name.cmp(&b.name));
        let behind = others.iter().position(|row| Some(&row.name) > self.turn.as_ref()).unwrap_or(0);
        others.rotate_left(behind);
        first.truncate(COUNTED);
        others.truncate(COUNTED - first.len());
        if let Some(last) = others.last() {
            self.turn = Some(last.name.clone());
        }
        first.append(&mut others);
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::StoreOptions;

    fn rounds(names: &[&str]) -> Rounds {
        let row = |(id, name): (i32, &&str)| QueueRow {
            id: QueueId(id),
            name: QueueName::parse("queue", name).expect("a name"),
            settings: StoreOptions::default().new_queues.settings,
            version: 1,
            closing: false,
        };
        Rounds { rows: (1..).zip(names).map(row).collect(), ..Rounds::default() }
    }

    fn counted(rounds: &mut Rounds, found: impl Fn(&str) -> Option<bool>) -> Vec<String> {
        rounds.choose(|row| found(row.name.as_str())).iter().map(|row| row.name.to_string()).collect()
    }

    #[test]
    fn queues_that_were_just_found_are_counted_first_and_idle_ones_not_at_all() {
        let mut rounds = rounds(&["a", "b", "c"]);
        let found = |name: &str| match name {
            "a" => None,
            "b" => Some(false),
            _ => Some(true),
        };
        assert_eq!(counted(&mut rounds, found), ["c", "a"]);
    }

    #[test]
    fn with_many_queues_each_has_its_turn() {
        let names: Vec<String> = (10..35).map(|number| format!("q{number}")).collect();
        let mut rounds = rounds(&names.iter().map(String::as_str).collect::<Vec<_>>());
        let mut seen: Vec<String> = (0..3).flat_map(|_| counted(&mut rounds, |_| None)).collect();
        assert_eq!(seen.len(), 3 * COUNTED);
        seen.sort();
        seen.dedup();
        assert_eq!(seen, names);
    }
}
