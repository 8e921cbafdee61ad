//! What became of every job, counted at the clients: the broker's own word is not taken for it.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Jobs of one process, by id.
#[derive(Default)]
pub(super) struct Tally(Mutex<Count>);

/// Numbers of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Sums {
    pub(super) enqueued: usize,
    pub(super) leased: usize,
    pub(super) acked: usize,
    pub(super) retried: usize,
    pub(super) expired: usize,
    pub(super) dead: usize,
    /// Enqueued, and neither acked nor dead. A job that nobody enqueued or that ended twice counts as well.
    pub(super) lost: usize,
}

#[derive(Default)]
struct Count {
    jobs: HashMap<String, Ends>,
    leased: usize,
    retried: usize,
    expired: usize,
}

#[derive(Default)]
struct Ends {
    enqueued: bool,
    acked: usize,
    dead: usize,
}

impl Ends {
    fn is_right(&self) -> bool {
        self.enqueued && self.acked + self.dead == 1
    }
}

impl Tally {
    fn count(&self) -> MutexGuard<'_, Count> {
        // each method changes the count as a whole, so a thread that died left nothing half done
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An Enqueue was answered. A worker may have been faster than the answer.
    pub(super) fn enqueued(&self, ids: impl IntoIterator<Item = String>) {
        let mut count = self.count();
        for id in ids {
            count.jobs.entry(id).or_default().enqueued = true;
        }
    }

    /// Jobs came over a Lease stream.
    pub(super) fn leased(&self, jobs: usize) {
        self.count().leased += jobs;
    }

    /// An Ack was answered OK.
    pub(super) fn acked(&self, id: String) {
        self.count().jobs.entry(id).or_default().acked += 1;
    }

    /// A Nack was answered OK and the job lives.
    pub(super) fn retried(&self) {
        self.count().retried += 1;
    }

    /// A job came back whose worker had forgotten it.
    pub(super) fn expired(&self) {
        self.count().expired += 1;
    }

    /// A Nack was answered OK and the job is dead.
    pub(super) fn dead(&self, id: String) {
        self.count().jobs.entry(id).or_default().dead += 1;
    }

    /// The numbers as they stand.
    pub(super) fn sums(&self) -> Sums {
        let count = self.count();
        let of = |holds: fn(&Ends) -> bool| count.jobs.values().filter(|ends| holds(ends)).count();
        Sums {
            enqueued: of(|ends| ends.enqueued),
            leased: count.leased,
            acked: of(|ends| ends.acked > 0),
            retried: count.retried,
            expired: count.expired,
            dead: of(|ends| ends.dead > 0),
            lost: of(|ends| !ends.is_right()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_that_did_not_end_exactly_once_count_as_lost() {
        let tally = Tally::default();
        tally.enqueued(["done", "dead", "open", "twice"].map(String::from));
        tally.acked("done".into());
        tally.dead("dead".into());
        tally.acked("twice".into());
        tally.acked("twice".into());
        tally.acked("nobody's".into());
        let sums = tally.sums();
        assert_eq!((sums.enqueued, sums.acked, sums.dead, sums.lost), (4, 3, 1, 3));
    }

    #[test]
    fn a_worker_may_be_faster_than_the_producers_answer() {
        let tally = Tally::default();
        tally.acked("quick".into());
        tally.enqueued(["quick".to_owned()]);
        assert_eq!(tally.sums().lost, 0);
    }
}
