//! What waits in queues, for metrics. Reads alone.
//!
//! The first queues by name are measured each time and told apart; so are all replicas', which choose alike. Of the others as many
//! are measured each time, in turn, and what was last seen of all of them is summed. Counting takes a twentieth of one lane's time
//! at most.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use async_trait::async_trait;

use super::{Pass, SHARE, Step};
use crate::{
    model::{Caller, Failure, QueueId, QueueName},
    store::{
        Call, Store,
        engine::{QueueCounts, QueueRow},
    },
    telemetry::metrics::QueueReading,
};

/// A measurement may take this long.
const PATIENCE: Duration = Duration::from_secs(30);
/// What the sum of the others is called: no queue can have that name.
const OTHER: &str = "_other";

/// What was measured last.
pub(super) type Readings = Arc<Mutex<Arc<[QueueReading]>>>;

pub(super) struct Census {
    store: Store,
    at_most: usize,
    told: Readings,
    others: Others,
    not_before: Option<Instant>,
}

impl Census {
    /// Of `at_most` queues apart; tells what it measured there.
    pub(super) fn new(store: Store, at_most: usize, told: Readings) -> Self {
        Self { store, at_most, told, others: Others::default(), not_before: None }
    }

    async fn measure(&mut self) -> Result<(), Failure> {
        let call = Call { caller: Caller::broker("census"), deadline: Instant::now() + PATIENCE };
        let named = self.store.list_queues(&call, "", "", self.at_most).await?;
        let counts = self.count(&call, &named).await?;
        if named.len() < self.at_most {
            self.others = Others::default();
        } else if let Some(last) = named.last() {
            let after = self.others.turn(&last.name);
            let rows = self.store.list_queues(&call, "", &after, self.at_most).await?;
            let counted = self.count(&call, &rows).await?;
            self.others.counted(&rows, &counted, rows.len() < self.at_most);
        }
        let apart = named.iter().zip(&counts).map(|(row, counts)| reading(row.name.as_str(), counts));
        let rest = self.others.sum().map(|sum| reading(OTHER, &sum));
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = apart.chain(rest).collect();
        Ok(())
    }

    async fn count(&self, call: &Call, rows: &[QueueRow]) -> Result<Vec<QueueCounts>, Failure> {
        let ids: Vec<QueueId> = rows.iter().map(|row| row.id).collect();
        self.store.count_jobs(call, &ids).await
    }
}

#[async_trait]
impl Pass for Census {
    fn name(&self) -> &'static str {
        "census"
    }

    fn start_over(&mut self) {
        self.others = Others::default();
    }

    async fn run_once(&mut self, _limit: usize) -> Result<Step, Failure> {
        let began = Instant::now();
        if self.not_before.is_none_or(|at| began >= at) {
            let measured = self.measure().await;
            self.not_before = Some(Instant::now() + began.elapsed() * SHARE);
            measured?;
        }
        Ok(Step { rows: 0, more: false })
    }
}

/// Queues that are not told apart.
#[derive(Default)]
struct Others {
    /// What was last seen of each, in this walk or in the one before.
    seen: BTreeMap<QueueId, QueueCounts>,
    /// Seen in this walk.
    walked: BTreeMap<QueueId, QueueCounts>,
    /// Where this walk is.
    last: Option<QueueName>,
}

impl Others {
    /// Where the walk goes on, past those that are told apart.
    fn turn(&self, apart: &QueueName) -> String {
        self.last.as_ref().filter(|last| *last > apart).unwrap_or(apart).as_str().to_owned()
    }

    /// Takes in what was counted; `ends` where nothing comes after. A walk that has ended forgets the queues it did not meet.
    fn counted(&mut self, rows: &[QueueRow], counts: &[QueueCounts], ends: bool) {
        for (row, counts) in rows.iter().zip(counts) {
            self.seen.insert(row.id, *counts);
            self.walked.insert(row.id, *counts);
        }
        self.last = rows.last().map(|row| row.name.clone());
        if ends {
            self.seen = std::mem::take(&mut self.walked);
            self.last = None;
        }
    }

    fn sum(&self) -> Option<QueueCounts> {
        self.seen.values().copied().reduce(|mut sum, one| {
            for (sum, one) in [
                (&mut sum.ready, one.ready),
                (&mut sum.scheduled, one.scheduled),
                (&mut sum.blocked, one.blocked),
                (&mut sum.leased, one.leased),
                (&mut sum.dead, one.dead),
            ] {
                sum.value += one.value;
                sum.at_least |= one.at_least;
            }
            let oldest = [sum.oldest_ready, one.oldest_ready].into_iter().flatten();
            QueueCounts { oldest_ready: oldest.max_by_key(|(_, age)| *age), ..sum }
        })
    }
}

fn reading(name: &str, counts: &QueueCounts) -> QueueReading {
    let jobs = [
        ("ready", counts.ready),
        ("scheduled", counts.scheduled),
        ("blocked", counts.blocked),
        ("leased", counts.leased),
        ("dead", counts.dead),
    ];
    QueueReading {
        queue: name.into(),
        jobs: jobs.map(|(state, count)| (state, count.value)).to_vec(),
        oldest_age: counts.oldest_ready.map_or(Duration::ZERO, |(_, age)| age),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Count, QueueSettings, Timestamp};

    fn row(id: i32, name: &str) -> QueueRow {
        let name = QueueName::parse("queue", name).expect("a queue's name");
        QueueRow { id: QueueId(id), name, settings: QueueSettings::default(), version: 1, closing: false }
    }

    fn ready(jobs: u64, age: u64) -> QueueCounts {
        let oldest_ready = (jobs > 0).then(|| (Timestamp::BEGINNING, Duration::from_secs(age)));
        QueueCounts { ready: Count::of(jobs), oldest_ready, ..QueueCounts::default() }
    }

    fn told(others: &Others) -> Option<(u64, Duration)> {
        others.sum().map(|sum| (sum.ready.value, reading(OTHER, &sum).oldest_age))
    }

    #[test]
    fn queues_that_are_not_told_apart_are_summed_as_they_were_last_seen() {
        let mut others = Others::default();
        let apart = row(1, "b").name;
        assert_eq!((told(&others), others.turn(&apart).as_str()), (None, "b"));
        others.counted(&[row(2, "c"), row(3, "d")], &[ready(5, 10), ready(7, 90)], false);
        assert_eq!(told(&others), Some((12, Duration::from_secs(90))));
        assert_eq!(others.turn(&apart), "d", "the walk goes on");
        others.counted(&[row(4, "e")], &[ready(0, 0)], true);
        assert_eq!((told(&others), others.turn(&apart).as_str()), (Some((12, Duration::from_secs(90))), "b"));
        others.counted(&[row(2, "c"), row(4, "e")], &[ready(1, 1), ready(2, 2)], true);
        assert_eq!(
            told(&others),
            Some((3, Duration::from_secs(2))),
            "a deleted queue is gone with the walk that missed it"
        );
    }

    #[test]
    fn a_walk_never_falls_behind_what_is_told_apart() {
        let mut others = Others::default();
        others.counted(&[row(2, "c")], &[ready(1, 1)], false);
        assert_eq!(others.turn(&row(9, "m").name), "m");
    }
}
