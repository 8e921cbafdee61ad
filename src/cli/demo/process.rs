//! The three business processes of the demonstration.

use std::time::Duration;

/// A business process: who calls, for which queue, how much and how its jobs end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Process {
    /// Its name, sent as `leasehold-caller` with every call.
    pub(super) caller: &'static str,
    /// Where its jobs wait; see [`Process::queue_name`].
    pub(super) queue: &'static str,
    /// Which run of the demonstration it is, where others may have left jobs behind.
    pub(super) run: Option<u32>,
    /// 0 to 9.
    pub(super) priority: i32,
    /// Jobs of one Enqueue.
    pub(super) batch: u64,
    /// From one Enqueue to the next.
    pub(super) pause: Duration,
    /// Workers, each with a Lease stream of its own.
    pub(super) workers: usize,
    /// Credit of each stream.
    pub(super) in_flight: u32,
    /// One job in so many has to be tried twice; none where 0. The same below.
    pub(super) one_retried_in: u64,
    /// Rejected by its worker, so that it is dead at once.
    pub(super) one_rejected_in: u64,
    /// Forgotten by its first worker, so that its lease expires.
    pub(super) one_forgotten_in: u64,
    /// Due only later.
    pub(super) one_scheduled_in: u64,
}

/// What happens to a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// Acked at its first attempt.
    Done,
    /// Nacked at its first attempt, acked at the second.
    Retried,
    /// Rejected.
    Rejected,
    /// Not settled at its first attempt; acked at the second, once the reaper took it away.
    Forgotten,
}

/// All of them.
pub(super) const ALL: [Process; 3] = [
    Process {
        caller: "checkout_completion",
        queue: "orders",
        run: None,
        priority: 8,
        batch: 4,
        pause: Duration::from_millis(20),
        workers: 4,
        in_flight: 16,
        one_retried_in: 40,
        one_rejected_in: 0,
        one_forgotten_in: 500,
        one_scheduled_in: 0,
    },
    Process {
        caller: "email_delivery",
        queue: "email",
        run: None,
        priority: 4,
        batch: 20,
        pause: Duration::from_millis(60),
        workers: 3,
        in_flight: 40,
        one_retried_in: 15,
        one_rejected_in: 100,
        one_forgotten_in: 0,
        one_scheduled_in: 10,
    },
    Process {
        caller: "search_indexing",
        queue: "search.documents",
        run: None,
        priority: 2,
        batch: 100,
        pause: Duration::from_millis(150),
        workers: 2,
        in_flight: 200,
        one_retried_in: 50,
        one_rejected_in: 400,
        one_forgotten_in: 0,
        one_scheduled_in: 0,
    },
];

impl Process {
    /// The name of its queue in this run.
    pub(super) fn queue_name(&self) -> String {
        self.run.map_or_else(|| self.queue.to_owned(), |run| format!("{}-{run:08x}", self.queue))
    }

    /// What happens to job number `number`, counted from 1.
    pub(super) fn fate(&self, number: u64) -> Fate {
        let hits = |one_in: u64| one_in > 0 && number.is_multiple_of(one_in);
        if hits(self.one_rejected_in) {
            Fate::Rejected
        } else if hits(self.one_forgotten_in) {
            Fate::Forgotten
        } else if hits(self.one_retried_in) {
            Fate::Retried
        } else {
            Fate::Done
        }
    }

    /// How long after its Enqueue job number `number` is due; nothing where at once.
    pub(super) fn due_in(&self, number: u64) -> Option<Duration> {
        let scheduled = self.one_scheduled_in > 0 && number.is_multiple_of(self.one_scheduled_in);
        scheduled.then(|| Duration::from_millis(500 + number % 2_000))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_on_one_database_have_queues_of_their_own() {
        let [first, ..] = ALL;
        assert_eq!(first.queue_name(), "orders");
        assert_eq!(Process { run: Some(0xab), ..first }.queue_name(), "orders-000000ab");
    }

    #[test]
    fn every_fate_comes_up() {
        let fates: Vec<Fate> = ALL.iter().flat_map(|process| (1..=1_000).map(|number| process.fate(number))).collect();
        for fate in [Fate::Done, Fate::Retried, Fate::Rejected, Fate::Forgotten] {
            assert!(fates.contains(&fate), "{fate:?}");
        }
    }
}
