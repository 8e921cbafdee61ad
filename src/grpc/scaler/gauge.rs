//! What is in one queue, for whoever asks.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use tokio::{sync::Mutex, time::timeout_at};

use crate::{
    model::{Caller, Failure, QueueLoad, QueueName, Reason},
    store::{
        Call, Store,
        engine::{QueueCounts, QueueRow},
    },
};

/// For so long a reading is good: KEDA asks for a metric and right after it whether the queue is active.
const GOOD_FOR: Duration = Duration::from_secs(1);

/// Reads one queue after the other, however many ask.
pub(super) struct Gauge {
    store: Store,
    read: Mutex<HashMap<QueueName, (Instant, QueueLoad)>>,
}

impl Gauge {
    pub(super) fn new(store: Store) -> Self {
        Self { store, read: Mutex::default() }
    }

    /// What is in the queue, as of a moment ago at most; nothing where it does not exist yet.
    pub(super) async fn load(&self, deadline: Instant, queue: &QueueName) -> Result<QueueLoad, Failure> {
        let mut read = timeout_at(deadline.into(), self.read.lock()).await.map_err(|_| {
            Failure::not_applied(Reason::Deadline, "the database did not answer earlier questions before the deadline")
        })?;
        let now = Instant::now();
        read.retain(|_, (at, _)| now.saturating_duration_since(*at) < GOOD_FOR);
        if let Some((_, load)) = read.get(queue) {
            return Ok(*load);
        }
        let call = Call { caller: Caller::broker("scaler"), deadline };
        let load = match self.store.queue_now(&call, queue).await? {
            None => QueueLoad::default(),
            Some(row) => {
                let counts = self.store.count_at_once(&call, &[row.id]).await?;
                counts.first().map_or_else(QueueLoad::default, |counts| load_of(&row, counts))
            }
        };
        read.insert(queue.clone(), (Instant::now(), load));
        Ok(load)
    }
}

/// What calls for workers. A worker of a paused queue would get nothing.
pub(super) fn load_of(row: &QueueRow, counts: &QueueCounts) -> QueueLoad {
    let leased = counts.leased.value;
    if row.is_paused() {
        return QueueLoad { leased, ..QueueLoad::default() };
    }
    let oldest = counts.oldest_ready.map_or(Duration::ZERO, |(_, age)| age);
    QueueLoad { ready: counts.ready.value, oldest, leased }
}
