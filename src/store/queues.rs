//! What is known of queues: their numbers and settings, read from the database and remembered for a few seconds.

use std::{
    collections::HashMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

use super::{
    Call, Store,
    engine::{NewQueues, QueueRow},
    statement::Statement,
};
use crate::model::{Caller, Failure, QueueId, QueueName, Reason};

/// Queues remembered at most; past that, the ones read longest ago are forgotten.
const MAX_REMEMBERED: usize = 10_000;

/// The memory.
pub(super) struct Queues {
    refresh: Duration,
    refreshing: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    rows: HashMap<QueueName, (QueueRow, Instant)>,
    names: HashMap<QueueId, QueueName>,
}

impl Queues {
    pub(super) fn new(refresh: Duration) -> Self {
        Self { refresh, refreshing: AtomicBool::new(false), state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A queue that was resolved before.
    pub(super) fn known(&self, id: QueueId) -> Option<QueueRow> {
        let state = self.state();
        let name = state.names.get(&id)?;
        state.rows.get(name).map(|(row, _)| row.clone())
    }

    /// The queues of `names`, in their order, as they were a refresh interval ago or later. Missing ones come into being where
    /// `create` is given and has room for them.
    pub(super) async fn resolve<'n>(
        &self,
        store: &Store,
        call: &Call,
        names: impl Iterator<Item = &'n QueueName> + Clone,
        create: Option<&NewQueues>,
    ) -> Result<Vec<QueueRow>, Failure> {
        let mut unknown: Vec<QueueName> = {
            let state = self.state();
            let now = Instant::now();
            names.clone().filter(|name| !self.is_fresh(&state, name, now)).cloned().collect()
        };
        if !unknown.is_empty() {
            unknown.sort();
            unknown.dedup();
            self.read(store, call, unknown, create.cloned()).await?;
        }
        self.refresh_if_old(store);
        let state = self.state();
        names
            .map(|name| match state.rows.get(name) {
                Some((row, _)) => Ok(row.clone()),
                None => Err(missing(name, create)),
            })
            .collect()
    }

    /// One queue, never created.
    pub(super) async fn find(&self, store: &Store, call: &Call, name: &QueueName) -> Result<Option<QueueRow>, Failure> {
        let fresh = self.is_fresh(&self.state(), name, Instant::now());
        if !fresh {
            self.read(store, call, vec![name.clone()], None).await?;
        }
        self.refresh_if_old(store); // a replica that only has consumers resolves nothing else
        Ok(self.state().rows.get(name).map(|(row, _)| row.clone()))
    }

    fn is_fresh(&self, state: &State, name: &QueueName, now: Instant) -> bool {
        state.rows.get(name).is_some_and(|(_, at)| now.saturating_duration_since(*at) <= self.refresh)
    }

    /// Those of `names` that exist, as the database has them now; the memory learns them. Missing ones come into being where
    /// `create` is given and has room for them.
    pub(super) async fn read(
        &self,
        store: &Store,
        call: &Call,
        names: Vec<QueueName>,
        create: Option<NewQueues>,
    ) -> Result<Vec<QueueRow>, Failure> {
        let (caller, asked) = (call.caller.clone(), names.clone());
        let statement =
            if create.is_none() { Statement::reading("find_queues") } else { Statement::writing("create_queues") };
        let rows = store
            .single(call, statement, move |session| {
                Box::pin(async move { session.find_queues(&caller, &names, create.as_ref()).await })
            })
            .await?;
        let mut state = self.state();
        for name in asked.iter().filter(|name| rows.iter().all(|row| row.name != **name)) {
            state.forget(name);
        }
        let now = Instant::now();
        for row in &rows {
            state.remember(row, now);
        }
        Ok(rows)
    }

    /// A queue as it is now, from whoever changed it.
    pub(super) fn remember(&self, row: &QueueRow) {
        self.state().remember(row, Instant::now());
    }

    /// The queue is gone.
    pub(super) fn forget(&self, name: &QueueName) {
        self.state().forget(name);
    }

    /// Reads all known queues anew in the background where the oldest was read nearly a refresh interval ago, so that a call
    /// seldom has to. Not much before: the dispatcher reads those that streams ask for once an interval.
    fn refresh_if_old(&self, store: &Store) {
        let names: Vec<QueueName> = {
            let state = self.state();
            let old = |at: &Instant| at.elapsed() > self.refresh * 9 / 10;
            state.rows.iter().filter(|(_, (_, at))| old(at)).map(|(name, _)| name.clone()).take(1_000).collect()
        };
        if names.is_empty() || self.refreshing.swap(true, SeqCst) {
            return;
        }
        let store = store.clone();
        tokio::spawn(async move {
            let queues = &store.inner.queues;
            let call = store.own(Caller::broker("queues"));
            if let Err(failure) = queues.read(&store, &call, names, None).await {
                tracing::debug!(%failure, "queue settings were not read anew");
            }
            queues.refreshing.store(false, SeqCst);
        });
    }
}

impl State {
    /// Unless something later is known: two reads may end in another order than they began.
    fn remember(&mut self, row: &QueueRow, now: Instant) {
        if let Some((known, _)) = self.rows.get(&row.name) {
            if (known.id, known.version) > (row.id, row.version) {
                return;
            }
            self.names.remove(&known.id);
        }
        self.names.insert(row.id, row.name.clone());
        self.rows.insert(row.name.clone(), (row.clone(), now));
        while self.rows.len() > MAX_REMEMBERED {
            let Some(oldest) = self.rows.iter().min_by_key(|(_, (_, at))| *at).map(|(name, _)| name.clone()) else {
                break;
            };
            self.forget(&oldest);
        }
    }

    fn forget(&mut self, name: &QueueName) {
        if let Some((row, _)) = self.rows.remove(name) {
            self.names.remove(&row.id);
        }
    }
}

/// Why a queue takes no jobs, where it does not.
pub(super) fn closed(row: &QueueRow) -> Option<Failure> {
    let why = match (&row.settings.disabled_reason, row.closing) {
        (_, true) => "it is being deleted",
        (Some(reason), false) => reason,
        (None, false) => return None,
    };
    let message = format!("queue '{}' takes no jobs: {why}", row.name);
    Some(Failure::not_applied(Reason::Disabled, message).about(row.name.as_str()))
}

pub(super) fn missing(name: &QueueName, create: Option<&NewQueues>) -> Failure {
    let failure = match create {
        None => Failure::not_applied(
            Reason::NotFound,
            format!("there is no queue '{name}', and queues do not come into being by themselves here"),
        ),
        Some(NewQueues { at_most, .. }) => Failure::not_applied(
            Reason::QueueFull,
            format!(
                "queue '{name}' does not come into being: there may be {at_most} queues, and there is no room for it"
            ),
        ),
    };
    failure.about(name.as_str())
}
