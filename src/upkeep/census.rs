//! What waits in queues, for metrics. Reads alone.
//!
//! The first queues by name are told apart; all replicas choose alike. The others are walked in turn, and what was last seen of all
//! of them is summed. One step sends two statements at most, and counting takes a twentieth of one lane's time at most: where
//! queues are many or long, a round takes several steps.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
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
/// Statements of one step: an idle broker is to cost its database little, however many queues there are.
const ACTS: usize = 2;
/// The queues that are told apart are looked up anew every so many rounds.
const ROUNDS: u32 = 6;
/// Rows of indexes that one statement may read, by what its queues held last time.
const ROWS: u64 = 500_000;
/// What a queue is taken to hold that was never counted.
const UNKNOWN: u64 = 1_000;

/// What was measured last.
pub(super) type Readings = Arc<Mutex<Arc<[QueueReading]>>>;

pub(super) struct Census {
    store: Store,
    at_most: usize,
    told: Readings,
    named: Vec<QueueRow>,
    counts: HashMap<QueueId, QueueCounts>,
    others: Others,
    /// What is left of this round.
    plan: VecDeque<Act>,
    round: u32,
    not_before: Option<Instant>,
}

/// One statement.
enum Act {
    List,
    Count(Vec<QueueId>),
    ListOthers,
    /// The walk over the others ends with it, or does not.
    CountOthers(Vec<QueueRow>, bool),
}

impl Census {
    /// Of `at_most` queues apart; tells what it measured there.
    pub(super) fn new(store: Store, at_most: usize, told: Readings) -> Self {
        let (named, counts, others, plan) = (Vec::new(), HashMap::new(), Others::default(), VecDeque::new());
        Self { store, at_most, told, named, counts, others, plan, round: 0, not_before: None }
    }

    fn plan_round(&mut self) {
        if self.named.is_empty() || self.round.is_multiple_of(ROUNDS) {
            self.plan.push_back(Act::List);
        } else {
            self.plan_counts();
        }
        self.round = self.round.wrapping_add(1);
    }

    fn plan_counts(&mut self) {
        let ids: Vec<QueueId> = self.named.iter().map(|row| row.id).collect();
        let packs = packs(ids, |id| self.counts.get(id).map_or(UNKNOWN, rows_of));
        self.plan.extend(packs.into_iter().map(Act::Count));
        if self.named.len() < self.at_most {
            self.others = Others::default();
        } else {
            self.plan.push_back(Act::ListOthers);
        }
    }

    async fn act(&mut self, act: Act) -> Result<(), Failure> {
        let call = Call { caller: Caller::broker("census"), deadline: Instant::now() + PATIENCE };
        match act {
            Act::List => {
                self.named = self.store.list_queues(&call, "", "", self.at_most).await?;
                self.counts.retain(|id, _| self.named.iter().any(|row| row.id == *id));
                self.plan_counts();
            }
            Act::Count(ids) => {
                let counted = self.store.count_at_once(&call, &ids).await?;
                self.counts.extend(ids.into_iter().zip(counted));
            }
            Act::ListOthers => {
                let Some(last) = self.named.last() else { return Ok(()) };
                let after = self.others.turn(&last.name);
                let rows = self.store.list_queues(&call, "", &after, self.at_most).await?;
                let ends = rows.len() < self.at_most;
                let mut packs = packs(rows, |row| self.others.seen.get(&row.id).map_or(UNKNOWN, rows_of));
                let last = packs.pop().unwrap_or_default();
                self.plan.extend(packs.into_iter().map(|pack| Act::CountOthers(pack, false)));
                self.plan.push_back(Act::CountOthers(last, ends));
            }
            Act::CountOthers(rows, ends) => {
                let ids: Vec<QueueId> = rows.iter().map(|row| row.id).collect();
                let counted = if ids.is_empty() { Vec::new() } else { self.store.count_at_once(&call, &ids).await? };
                self.others.counted(&rows, &counted, ends);
            }
        }
        self.tell();
        Ok(())
    }

    fn tell(&self) {
        let apart = self.named.iter().filter_map(|row| Some(reading(row.name.as_str(), self.counts.get(&row.id)?)));
        let rest = self.others.sum().map(|sum| reading(OTHER, &sum));
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = apart.chain(rest).collect();
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
        if self.not_before.is_some_and(|at| began < at) {
            return Ok(Step { rows: 0, more: false });
        }
        if self.plan.is_empty() {
            self.plan_round();
        }
        let mut done = Ok(());
        for _ in 0..ACTS {
            if let Some(act) = self.plan.pop_front() {
                done = self.act(act).await;
                if done.is_err() {
                    self.plan.clear();
                }
            }
        }
        self.not_before = Some(Instant::now() + began.elapsed() * SHARE);
        done.map(|()| Step { rows: 0, more: false })
    }
}

/// Puts queues into as few statements as may read their rows.
fn packs<Q>(queues: Vec<Q>, rows: impl Fn(&Q) -> u64) -> Vec<Vec<Q>> {
    let (mut packs, mut last, mut sum) = (Vec::new(), Vec::new(), 0);
    for queue in queues {
        let more = rows(&queue);
        if sum + more > ROWS && !last.is_empty() {
            packs.push(std::mem::take(&mut last));
            sum = 0;
        }
        sum += more;
        last.push(queue);
    }
    packs.extend((!last.is_empty()).then_some(last));
    packs
}

fn rows_of(counts: &QueueCounts) -> u64 {
    let of_states = [counts.ready, counts.scheduled, counts.blocked, counts.leased, counts.dead];
    of_states.iter().map(|count| count.value).sum()
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
    fn small_queues_share_a_statement_and_long_ones_do_not() {
        let small = packs((0..1_000).collect(), |_| 100);
        assert_eq!(small.len(), 1, "a thousand of a hundred rows");
        let long: Vec<usize> = packs((0..25).collect(), |_| 50_000).iter().map(Vec::len).collect();
        assert_eq!(long, [10, 10, 5]);
        assert_eq!(packs(vec![1], |_| 10 * ROWS).len(), 1, "one that is too long goes alone");
        assert!(packs(Vec::<i32>::new(), |_| 1).is_empty());
    }

    #[test]
    fn a_walk_never_falls_behind_what_is_told_apart() {
        let mut others = Others::default();
        others.counted(&[row(2, "c")], &[ready(1, 1)], false);
        assert_eq!(others.turn(&row(9, "m").name), "m");
    }
}
