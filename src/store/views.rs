//! Counts that viewers share: ten operators who look at the same queues cost the database what one does.
//!
//! Only counts of many jobs are shared, since the others cost next to nothing and are then always of the moment.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

use tokio::{sync::Mutex as Turn, time::timeout_at};

use super::{Call, Store, engine::QueueCounts};
use crate::model::{Failure, QueueId};

/// Counts of fewer jobs are not shared.
const MANY: u64 = 2_000;
/// Sets of queues that are remembered; past them all are forgotten.
const VIEWS: usize = 256;

/// What was counted lately, by the queues that were asked for together.
#[derive(Debug, Default)]
pub(super) struct Views {
    by_queues: Mutex<HashMap<Vec<QueueId>, Arc<View>>>,
    /// How often something was forgotten: what was begun to be counted before is not kept.
    changes: AtomicU64,
}

/// One set of queues.
#[derive(Debug)]
struct View {
    /// Whose turn it is to count; the others wait for what it finds.
    counted: Turn<Option<Counted>>,
}

#[derive(Debug, Clone)]
struct Counted {
    /// When counting began.
    at: Instant,
    counts: Vec<QueueCounts>,
}

impl Counted {
    /// Whether a viewer at `now` is shown it.
    fn holds(&self, now: Instant, age: Duration) -> bool {
        now.saturating_duration_since(self.at) < age
    }
}

/// Whether counting these cost enough to be shared.
fn is_shared(counts: &[QueueCounts]) -> bool {
    let of = |counts: &QueueCounts| {
        let states = [counts.ready, counts.scheduled, counts.blocked, counts.leased, counts.dead];
        states.iter().map(|count| count.value).sum::<u64>()
    };
    counts.iter().map(of).sum::<u64>() >= MANY
}

impl Views {
    fn views(&self) -> MutexGuard<'_, HashMap<Vec<QueueId>, Arc<View>>> {
        self.by_queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The view of these queues, where their counts are shared.
    fn of(&self, queues: &[QueueId]) -> Option<Arc<View>> {
        self.views().get(queues).cloned()
    }

    fn changes(&self) -> u64 {
        self.changes.load(SeqCst)
    }

    /// Keeps what was begun to be counted after so many changes.
    fn keep(&self, queues: &[QueueId], counted: Counted, changes: u64) {
        let mut views = self.views();
        if self.changes() != changes {
            return;
        }
        if views.len() >= VIEWS {
            views.clear();
        }
        views.entry(queues.to_vec()).or_insert_with(|| Arc::new(View { counted: Turn::new(Some(counted)) }));
    }

    /// Somebody changed this queue here who is to see that at once.
    pub(super) fn forget(&self, queue: QueueId) {
        let mut views = self.views();
        self.changes.fetch_add(1, SeqCst);
        views.retain(|queues, _| !queues.contains(&queue));
    }

    fn forget_view(&self, queues: &[QueueId]) {
        self.views().remove(queues);
    }
}

impl Store {
    /// What is in each of these queues, in their order, for people who look at it: where that is many jobs, what was counted
    /// for another one of them within [`count_age`](super::StoreOptions::count_age) and not before an operator's purge,
    /// deletion or redrive here ended a step. At most one of them counts at a time.
    pub async fn view_jobs(&self, call: &Call, queues: &[QueueId]) -> Result<Vec<QueueCounts>, Failure> {
        let (views, age) = (&self.inner.views, self.inner.options.count_age);
        let Some(view) = views.of(queues).filter(|_| !age.is_zero()) else {
            let (at, changes) = (Instant::now(), views.changes());
            let counts = self.count_jobs(call, queues).await?;
            if !age.is_zero() && is_shared(&counts) {
                views.keep(queues, Counted { at, counts: counts.clone() }, changes);
            }
            return Ok(counts);
        };
        let asked = Instant::now();
        let Ok(mut turn) = timeout_at(call.deadline.into(), view.counted.lock()).await else {
            return Err(self.not_in_time(call));
        };
        // What was begun to be counted while this waited is as new as its own count would be, however long it took.
        let shown = |counted: &&Counted| counted.at >= asked || counted.holds(Instant::now(), age);
        if let Some(counted) = turn.as_ref().filter(shown) {
            return Ok(counted.counts.clone());
        }
        let at = Instant::now();
        let counts = self.count_jobs(call, queues).await?;
        if is_shared(&counts) {
            *turn = Some(Counted { at, counts: counts.clone() });
        } else {
            *turn = None;
            views.forget_view(queues);
        }
        Ok(counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Count;

    fn counts(ready: u64) -> QueueCounts {
        let none = Count { value: 0, at_least: false };
        QueueCounts {
            ready: Count { value: ready, at_least: false },
            scheduled: none,
            blocked: none,
            leased: none,
            dead: none,
            oldest_ready: None,
        }
    }

    fn counted() -> Counted {
        Counted { at: Instant::now(), counts: vec![counts(MANY)] }
    }

    #[test]
    fn counts_of_many_jobs_are_shared_and_of_few_are_not() {
        assert!(!is_shared(&[counts(MANY - 1)]));
        assert!(is_shared(&[counts(MANY - 1), counts(1)]));
    }

    #[test]
    fn a_count_holds_until_it_is_as_old_as_it_may_be() {
        let counted = counted();
        let age = Duration::from_secs(2);
        assert!(counted.holds(counted.at + Duration::from_millis(1_999), age));
        assert!(!counted.holds(counted.at + age, age));
    }

    #[test]
    fn a_change_to_a_queue_is_forgotten_in_every_view_of_it() {
        let views = Views::default();
        for queues in [vec![QueueId(1)], vec![QueueId(1), QueueId(2)], vec![QueueId(3)]] {
            views.keep(&queues, counted(), 0);
        }
        views.forget(QueueId(1));
        assert!(views.of(&[QueueId(1)]).is_none() && views.of(&[QueueId(1), QueueId(2)]).is_none());
        assert!(views.of(&[QueueId(3)]).is_some());
        views.keep(&[QueueId(1)], counted(), 0);
        assert!(views.of(&[QueueId(1)]).is_none(), "it was begun before the change");
    }

    #[test]
    fn views_are_bounded() {
        let views = Views::default();
        for queue in 0..10_000 {
            views.keep(&[QueueId(queue)], counted(), 0);
        }
        assert!(views.views().len() <= VIEWS);
    }
}
