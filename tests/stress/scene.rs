//! What the actors of a run share.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

use leasehold::{
    model::{Failure, Outcome, QueueId, Reason},
    store::{Store, StoreOptions},
};
use rand::{Rng, SeedableRng, rngs::StdRng};

use super::history::History;
use crate::lanes::stage::{Stage, calm, claim, job, lease, put};

/// The queue of the run.
pub(super) const QUEUE: &str = "ordered";

/// Handle to what the actors share.
#[derive(Clone)]
pub(super) struct Scene {
    pub(super) stage: Arc<Stage>,
    /// Two on a server, as if they were two replicas.
    pub(super) stores: Vec<Store>,
    pub(super) queue: QueueId,
    pub(super) keys: Arc<Vec<String>>,
    pub(super) history: Arc<History>,
    begun: Instant,
    producing: Arc<AtomicBool>,
    consuming: Arc<AtomicBool>,
}

impl Scene {
    pub(super) async fn new(stage: Stage, keys: usize) -> Self {
        let mut stores = vec![stage.store(StoreOptions::default()).await];
        if stage.is_server() {
            stores.push(stage.store(StoreOptions::default()).await);
        }
        // Brings the queue into being; its first job is none of the run's.
        let (_, queue) = put(&stores[0], job(QUEUE, "first")).await;
        let first = claim(&stores[0], queue, 1).await;
        stores[0].ack(&calm("producer"), vec![lease(&first[0])]).await.expect("acked");
        Self {
            stage: Arc::new(stage),
            stores,
            queue,
            keys: Arc::new((0..keys).map(|n| format!("key-{n}")).collect()),
            history: Arc::default(),
            begun: Instant::now(),
            producing: Arc::new(AtomicBool::new(true)),
            consuming: Arc::new(AtomicBool::new(true)),
        }
    }

    pub(super) fn store(&self, rng: &mut StdRng) -> &Store {
        &self.stores[rng.random_range(0..self.stores.len())]
    }

    pub(super) fn key(&self, rng: &mut StdRng) -> &str {
        &self.keys[rng.random_range(0..self.keys.len())]
    }

    /// Whether more may be enqueued. Ebb and flow take turns: what goes wrong when a key comes and goes shows only where keys
    /// run empty, and what goes wrong in a queue only where there is one.
    pub(super) fn wants_jobs(&self) -> bool {
        let ebb = (self.begun.elapsed().as_millis() / 700).is_multiple_of(2);
        self.history.outstanding() < if ebb { self.keys.len() / 4 + 1 } else { 300 }
    }

    /// While producers and trouble-makers go on.
    pub(super) fn is_wild(&self) -> bool {
        self.producing.load(SeqCst)
    }

    /// While consumers and maintenance go on.
    pub(super) fn is_open(&self) -> bool {
        self.consuming.load(SeqCst)
    }

    /// From here on nothing new comes, and what is there is settled calmly.
    pub(super) fn calm_down(&self) {
        self.producing.store(false, SeqCst);
    }

    pub(super) fn close(&self) {
        self.consuming.store(false, SeqCst);
    }

    /// True where nothing happened; false where that is not known. Other failures end the run.
    pub(super) fn is_not_applied(&self, failure: &Failure) -> bool {
        match failure.reason {
            Reason::Conflict => self.history.conflict(),
            Reason::OutcomeUnknown | Reason::DatabaseUnavailable | Reason::Overloaded => {}
            _ => panic!("an answer that nothing here explains: {failure}"),
        }
        failure.outcome == Outcome::NotApplied
    }
}

/// An actor's own dice.
pub(super) fn dice(seed: u64, actor: u64) -> StdRng {
    StdRng::seed_from_u64(seed.wrapping_mul(1_000_003).wrapping_add(actor))
}

/// Some time of up to `most`.
pub(super) async fn linger(rng: &mut StdRng, most: Duration) {
    tokio::time::sleep(most.mul_f64(rng.random())).await;
}
