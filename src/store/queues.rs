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

    /// The queues of `names`, in their order. Missing ones come into being where `create` is given and has room for them.
    pub(super) async fn resolve<'n>(
        &self,
        store: &Store,
        call: &Call,
        names: impl Iterator<Item = &'n QueueName> + Clone,
        create: Option<&NewQueues>,
    ) -> Result<Vec<QueueRow>, Failure> {
        let mut unknown: Vec<QueueName> = {
            let state = self.state();
            names.clone().filter(|name| !state.rows.contains_key(name)).cloned().collect()
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
        let known = self.state().rows.get(name).map(|(row, _)| row.clone());
        if known.is_none() {
            self.read(store, call, vec![name.clone()], None).await?;
        }
        self.refresh_if_old(store); // a replica that only has consumers resolves nothing else
        Ok(self.state().rows.get(name).map(|(row, _)| row.clone()))
    }

    async fn read(
        &self,
        store: &Store,
        call: &Call,
        names: Vec<QueueName>,
        create: Option<NewQueues>,
    ) -> Result<(), Failure> {
        let caller = call.caller.clone();
        let rows = store
            .single(call, create.is_none(), move |session| {
                Box::pin(async move { session.find_queues(&caller, &names, create.as_ref()).await })
            })
            .await?;
        let now = Instant::now();
        let mut state = self.state();
        for row in rows {
            state.names.insert(row.id, row.name.clone());
            state.rows.insert(row.name.clone(), (row, now));
        }
        while state.rows.len() > MAX_REMEMBERED {
            let Some(oldest) = state.rows.iter().min_by_key(|(_, (_, at))| *at).map(|(name, _)| name.clone()) else {
                break;
            };
            if let Some((row, _)) = state.rows.remove(&oldest) {
                state.names.remove(&row.id);
            }
        }
        Ok(())
    }

    /// Reads all known queues anew in the background where the oldest was read too long ago: settings change rarely, and
    /// nobody waits for it.
    fn refresh_if_old(&self, store: &Store) {
        let names: Vec<QueueName> = {
            let state = self.state();
            let old = |at: &Instant| at.elapsed() > self.refresh;
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

fn missing(name: &QueueName, create: Option<&NewQueues>) -> Failure {
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
