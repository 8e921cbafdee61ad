//! Counting what is in queues.
//!
//! Counts begin where nothing can be left before: at what claims and the reaper walked last, less a margin. Under an old
//! snapshot the indexes still hold the rows of jobs that are done, and a count from the beginning walks all of them.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use super::{
    Call, Store,
    engine::{CountSpot, LookSpot, QueueCounts},
    statement::Statement,
};
use crate::model::{Failure, Priority, QueueId, Timestamp};

/// Queues in one statement: some ten thousand rows of an index for each of five counts, so a fraction of a second.
const AT_ONCE: usize = 10;
/// How far before what was walked last a count begins: transactions that make jobs ready commit in any order.
const MARGIN: Duration = Duration::from_mins(1);
/// So often a queue is counted from the beginning all the same.
const FULL: Duration = Duration::from_mins(10);
/// Queues whose floors are known at most; past that they are learned anew.
const KNOWN: usize = 10_000;

/// Where counts may begin.
#[derive(Default)]
pub(super) struct Floors {
    queues: Mutex<HashMap<QueueId, Known>>,
    leases: AtomicI64,
}

struct Known {
    floors: [Timestamp; Priority::LEVELS],
    /// When it was last counted from the beginning.
    full_at: Option<Instant>,
}

impl Floors {
    fn queues(&self) -> MutexGuard<'_, HashMap<QueueId, Known>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A claim went through that began there. One that began before everything says nothing.
    pub(super) fn claimed(&self, queue: QueueId, floors: [Timestamp; Priority::LEVELS]) {
        if floors == [Timestamp::BEGINNING; Priority::LEVELS] {
            return;
        }
        let mut queues = self.queues();
        if queues.len() >= KNOWN && !queues.contains_key(&queue) {
            queues.clear();
        }
        queues.entry(queue).and_modify(|known| known.floors = floors).or_insert(Known { floors, full_at: None });
    }

    /// No lease ended before this instant and was not taken away.
    pub(super) fn reaped(&self, floor: Timestamp) {
        self.leases.store(floor.0, Relaxed);
    }

    /// Where to begin looking at what waits: from the beginning where that is asked for, or nothing is known.
    fn sight(&self, queue: QueueId, full: bool) -> LookSpot {
        let floors = self.queues().get(&queue).filter(|_| !full).map(|known| known.floors.map(|at| at.minus(MARGIN)));
        LookSpot { queue, floors: floors.unwrap_or([Timestamp::BEGINNING; Priority::LEVELS]) }
    }

    /// Where to begin counting.
    fn spot(&self, queue: QueueId, now: Instant) -> CountSpot {
        let lease_floor = Timestamp(self.leases.load(Relaxed)).minus(MARGIN);
        let beginning = CountSpot { queue, floors: [Timestamp::BEGINNING; Priority::LEVELS], lease_floor };
        let mut queues = self.queues();
        let Some(known) = queues.get_mut(&queue) else { return beginning };
        if known.full_at.is_none_or(|at| now.saturating_duration_since(at) >= FULL) {
            known.full_at = Some(now);
            return beginning;
        }
        CountSpot { floors: known.floors.map(|floor| floor.minus(MARGIN)), ..beginning }
    }
}

impl Store {
    /// What is in each of these queues, in their order; some milliseconds for each.
    pub async fn count_jobs(&self, call: &Call, queues: &[QueueId]) -> Result<Vec<QueueCounts>, Failure> {
        let mut counts = Vec::with_capacity(queues.len());
        for some in queues.chunks(AT_ONCE) {
            counts.extend(self.count_at_once(call, some).await?);
        }
        Ok(counts)
    }

    /// The same in one statement: whoever asks knows that they are few enough.
    pub async fn count_at_once(&self, call: &Call, queues: &[QueueId]) -> Result<Vec<QueueCounts>, Failure> {
        let now = Instant::now();
        let spots: Vec<CountSpot> = queues.iter().map(|queue| self.inner.floors.spot(*queue, now)).collect();
        let caller = call.caller.clone();
        self.single(call, Statement::reading("count_jobs"), move |session| {
            Box::pin(async move { session.count_jobs(&caller, &spots).await })
        })
        .await
    }

    /// Those of `queues` in which a job is ready, in one statement that counts nothing: cheap for many queues of which few
    /// have any. Begins where counts do, or from the beginning where `full` says so; what is left of where it begins is not
    /// seen.
    pub async fn with_ready(&self, call: &Call, queues: &[QueueId], full: bool) -> Result<HashSet<QueueId>, Failure> {
        let spots: Vec<LookSpot> = queues.iter().map(|queue| self.inner.floors.sight(*queue, full)).collect();
        let caller = call.caller.clone();
        let sightings = self
            .single(call, Statement::reading("look"), move |session| {
                Box::pin(async move { session.look(&caller, &spots).await })
            })
            .await?;
        Ok(sightings.iter().filter(|sighting| sighting.ready_in.is_zero()).map(|sighting| sighting.queue).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: QueueId = QueueId(1);

    fn at(second: i64) -> [Timestamp; Priority::LEVELS] {
        [Timestamp(second * 1_000_000); Priority::LEVELS]
    }

    #[test]
    fn a_count_begins_a_minute_before_the_last_claim_but_for_the_first_one() {
        let (floors, now) = (Floors::default(), Instant::now());
        assert_eq!(floors.spot(ONE, now).floors, at(0), "nothing is known");
        floors.claimed(ONE, at(1_000));
        assert_eq!(floors.spot(ONE, now).floors, at(0), "what claims never met is found once");
        assert_eq!(floors.spot(ONE, now).floors, at(940));
        floors.claimed(ONE, at(0));
        assert_eq!(floors.spot(ONE, now).floors, at(940), "a claim that walked everything says nothing");
        floors.claimed(ONE, at(900));
        assert_eq!(floors.spot(ONE, now).floors, at(840), "a cursor that was put back moves it back");
        assert_eq!(floors.spot(ONE, now + FULL).floors, at(0), "once in ten minutes from the beginning");
        assert_eq!(floors.spot(QueueId(2), now).floors, at(0), "another queue");
    }

    #[test]
    fn a_look_begins_where_counts_do_and_takes_no_count_from_the_beginning_away() {
        let (floors, now) = (Floors::default(), Instant::now());
        assert_eq!(floors.sight(ONE, false).floors, at(0), "nothing is known");
        floors.claimed(ONE, at(1_000));
        assert_eq!(floors.sight(ONE, false).floors, at(940));
        assert_eq!(floors.sight(ONE, true).floors, at(0));
        assert_eq!(floors.spot(ONE, now).floors, at(0), "the first count is still from the beginning");
    }

    #[test]
    fn leases_are_counted_from_the_reapers_floor_on() {
        let floors = Floors::default();
        assert_eq!(floors.spot(ONE, Instant::now()).lease_floor, Timestamp::BEGINNING);
        floors.reaped(Timestamp(100_000_000));
        assert_eq!(floors.spot(ONE, Instant::now()).lease_floor, Timestamp(40_000_000));
    }
}
