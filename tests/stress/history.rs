//! What was asked and answered in a run, and whether it could have been.

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, MutexGuard},
    time::{Duration, Instant},
};

use leasehold::{
    model::{JobId, LeaseId, Timestamp},
    store::engine::ClaimedJob,
};

/// A job's number in the run: its payload.
pub(super) type Label = i64;

/// What is known of an Enqueue's outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Perhaps,
    Stored { answered: Instant },
    Never,
}

#[derive(Debug)]
struct Enqueued {
    key: String,
    sent: Instant,
    fate: Fate,
}

/// A lease as its holder knows it. Instants of the run's own clock say what was known when; timestamps are the database's.
#[derive(Debug)]
struct Grant {
    job: JobId,
    label: Label,
    number: i64,
    granted: Timestamp,
    /// After every Extend that was answered.
    expires: Timestamp,
    asked: Instant,
    answered: Instant,
    /// When its holder first did something that ends it.
    ending: Option<Instant>,
    /// When its Ack was answered.
    acked: Option<Instant>,
    /// Its Ack was sent, and nothing says that it did not end the job.
    perhaps_over: bool,
}

/// The record of one run.
#[derive(Debug, Default)]
pub(super) struct History(Mutex<Record>);

#[derive(Debug, Default)]
struct Record {
    enqueued: Vec<Enqueued>,
    grants: HashMap<LeaseId, Grant>,
    /// Jobs whose end was asked for.
    ended: HashSet<Label>,
    expired: usize,
    conflicts: usize,
}

/// What a run amounted to.
#[derive(Debug)]
pub(super) struct Sums {
    pub(super) stored: usize,
    pub(super) never: usize,
    pub(super) grants: usize,
    pub(super) expired: usize,
    pub(super) conflicts: usize,
}

impl History {
    fn record(&self) -> MutexGuard<'_, Record> {
        self.0.lock().expect("not poisoned")
    }

    /// An Enqueue is about to be sent.
    pub(super) fn sending(&self, key: &str) -> Label {
        let mut record = self.record();
        record.enqueued.push(Enqueued { key: key.to_owned(), sent: Instant::now(), fate: Fate::Perhaps });
        Label::try_from(record.enqueued.len() - 1).expect("few jobs")
    }

    pub(super) fn stored(&self, labels: &[Label]) {
        self.settle(labels, Fate::Stored { answered: Instant::now() });
    }

    pub(super) fn never(&self, labels: &[Label]) {
        self.settle(labels, Fate::Never);
    }

    fn settle(&self, labels: &[Label], fate: Fate) {
        let mut record = self.record();
        for &label in labels {
            record.enqueued[at(label)].fate = fate;
        }
    }

    /// Stored jobs whose end was not asked for yet.
    pub(super) fn outstanding(&self) -> usize {
        let record = self.record();
        let stored = record.enqueued.iter().filter(|job| matches!(job.fate, Fate::Stored { .. })).count();
        stored.saturating_sub(record.ended.len())
    }

    /// A claim that was sent at `asked` was answered.
    pub(super) fn granted(&self, job: &ClaimedJob, duration: Duration, asked: Instant) {
        let label = std::str::from_utf8(&job.payload).ok().and_then(|text| text.parse().ok());
        let grant = Grant {
            job: job.job,
            label: label.expect("a payload of this run"),
            number: job.lease_number,
            granted: job.lease_expires_at.minus(duration),
            expires: job.lease_expires_at,
            asked,
            answered: Instant::now(),
            ending: None,
            acked: None,
            perhaps_over: false,
        };
        let known = self.record().grants.insert(job.lease, grant);
        assert!(known.is_none(), "a lease was granted twice");
    }

    pub(super) fn extended(&self, lease: LeaseId, expires: Timestamp) {
        if let Some(grant) = self.record().grants.get_mut(&lease) {
            grant.expires = grant.expires.max(expires);
        }
    }

    /// Something that ends the lease and not the job is about to be sent.
    pub(super) fn returning(&self, lease: LeaseId) {
        if let Some(grant) = self.record().grants.get_mut(&lease) {
            grant.ending.get_or_insert_with(Instant::now);
        }
    }

    /// Something that ends lease and job is about to be sent.
    pub(super) fn ending(&self, lease: LeaseId) {
        self.returning(lease);
        let mut record = self.record();
        if let Some(grant) = record.grants.get_mut(&lease) {
            grant.perhaps_over = true;
            let label = grant.label;
            record.ended.insert(label);
        }
    }

    /// What was to end the job certainly did not.
    pub(super) fn kept(&self, lease: LeaseId) {
        if let Some(grant) = self.record().grants.get_mut(&lease) {
            grant.perhaps_over = false;
        }
    }

    /// Its Ack was answered with OK, or its transaction's COMMIT was.
    pub(super) fn acked(&self, lease: LeaseId) {
        if let Some(grant) = self.record().grants.get_mut(&lease) {
            grant.acked = Some(Instant::now());
        }
    }

    pub(super) fn reaped(&self, leases: usize) {
        self.record().expired += leases;
    }

    pub(super) fn conflict(&self) {
        self.record().conflicts += 1;
    }

    pub(super) fn sums(&self) -> Sums {
        let record = self.record();
        let count = |wanted: fn(&Fate) -> bool| record.enqueued.iter().filter(|job| wanted(&job.fate)).count();
        Sums {
            stored: count(|fate| matches!(fate, Fate::Stored { .. })),
            never: count(|fate| *fate == Fate::Never),
            grants: record.grants.len(),
            expired: record.expired,
            conflicts: record.conflicts,
        }
    }

    /// Everything in the record that must not be there; `dead` are the jobs found among the dead at the end.
    pub(super) fn faults(&self, dead: &HashSet<Label>) -> Vec<String> {
        let record = self.record();
        let mut faults = Vec::new();
        let over = record.grants.values().filter(|grant| grant.perhaps_over).map(|grant| grant.label);
        let over: HashSet<Label> = over.chain(dead.iter().copied()).collect();
        for (label, job) in (0..).zip(&record.enqueued) {
            if matches!(job.fate, Fate::Stored { .. }) && !over.contains(&label) {
                faults.push(format!("job {label} is lost"));
            }
        }
        let mut keys: HashMap<&str, Vec<&Grant>> = HashMap::new();
        let mut jobs: HashMap<JobId, Vec<&Grant>> = HashMap::new();
        for grant in record.grants.values() {
            let job = &record.enqueued[at(grant.label)];
            if job.fate == Fate::Never {
                faults.push(format!("job {} was never stored and yet leased", grant.label));
            }
            keys.entry(&job.key).or_default().push(grant);
            jobs.entry(grant.job).or_default().push(grant);
        }
        for grants in keys.values_mut() {
            grants.sort_by_key(|grant| (grant.granted, grant.number));
            faults.extend(overlaps(grants));
            faults.extend(disorder(grants, &record.enqueued));
        }
        for grants in jobs.values_mut() {
            grants.sort_by_key(|grant| grant.granted);
            faults.extend(returns(grants));
        }
        faults
    }
}

fn at(label: Label) -> usize {
    usize::try_from(label).expect("labels count up from zero")
}

/// Leases of one key that lived at the same time.
fn overlaps(grants: &[&Grant]) -> Vec<String> {
    let overlap = |pair: &&[&Grant]| {
        let (first, second) = (pair[0], pair[1]);
        let over = second.granted >= first.expires || first.ending.is_some_and(|ending| ending <= second.answered);
        !over
    };
    grants.windows(2).filter(overlap).map(|pair| format!("two leases of a key at once: {pair:?}")).collect()
}

/// Jobs of one key that were leased in another order than they were enqueued, or out of the middle of another's turn.
fn disorder(grants: &[&Grant], enqueued: &[Enqueued]) -> Vec<String> {
    let mut faults = Vec::new();
    let mut turns: Vec<Label> = Vec::new();
    for grant in grants {
        if turns.last() != Some(&grant.label) {
            if turns.contains(&grant.label) {
                faults.push(format!("job {} came back after a later one of its key: {grant:?}", grant.label));
            }
            turns.push(grant.label);
        }
    }
    // From the last turn on: whoever was sent after a later one had been answered is out of order.
    let mut earliest: Option<(Instant, Label)> = None;
    for &label in turns.iter().rev() {
        let job = &enqueued[at(label)];
        if let Some((answered, later)) = earliest.filter(|(answered, _)| job.sent > *answered) {
            faults.push(format!(
                "job {label} was sent {:?} after job {later} was stored and came first",
                job.sent - answered
            ));
        }
        if let Fate::Stored { answered } = job.fate {
            earliest = Some(earliest.map_or((answered, label), |before| before.min((answered, label))));
        }
    }
    faults
}

/// Leases of one job that should not have been.
fn returns(grants: &[&Grant]) -> Vec<String> {
    let mut faults = Vec::new();
    for pair in grants.windows(2) {
        if pair[1].number <= pair[0].number {
            faults.push(format!("lease numbers do not rise: {pair:?}"));
        }
    }
    let acked: Vec<&&Grant> = grants.iter().filter(|grant| grant.acked.is_some()).collect();
    if acked.len() > 1 {
        faults.push(format!("acked twice: {acked:?}"));
    }
    for ack in acked {
        let after = |grant: &&&Grant| ack.acked.is_some_and(|acked| grant.asked > acked);
        faults.extend(grants.iter().find(after).map(|grant| format!("leased after its Ack: {ack:?} {grant:?}")));
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "k";

    fn grant(label: Label, number: i64, granted: i64, expires: i64, now: Instant) -> Grant {
        Grant {
            job: JobId(label),
            label,
            number,
            granted: Timestamp(granted),
            expires: Timestamp(expires),
            asked: now,
            answered: now,
            ending: None,
            acked: None,
            perhaps_over: true,
        }
    }

    /// A history in which `jobs` were stored one after the other, with these grants.
    fn history(jobs: usize, grants: Vec<Grant>) -> History {
        let history = History::default();
        for _ in 0..jobs {
            let label = history.sending(KEY);
            history.stored(&[label]);
        }
        history.record().grants = (0..).map(LeaseId).zip(grants).collect();
        history
    }

    fn faults(history: &History) -> usize {
        history.faults(&HashSet::new()).len()
    }

    #[test]
    fn a_history_in_order_has_no_faults() {
        let now = Instant::now();
        assert_eq!(
            faults(&history(2, vec![grant(0, 1, 10, 20, now), grant(0, 2, 20, 30, now), grant(1, 1, 30, 40, now)])),
            0
        );
    }

    #[test]
    fn each_kind_of_fault_is_found() {
        let now = Instant::now();
        let swapped = history(2, vec![grant(1, 1, 10, 20, now), grant(0, 1, 20, 30, now)]);
        assert_eq!(faults(&swapped), 1, "out of order");
        let overtaken = history(2, vec![grant(0, 1, 10, 20, now), grant(1, 1, 20, 30, now), grant(0, 2, 30, 40, now)]);
        assert_eq!(faults(&overtaken), 2, "out of a turn, and out of order");
        let overlapping = history(2, vec![grant(0, 1, 10, 21, now), grant(1, 1, 20, 30, now)]);
        assert_eq!(faults(&overlapping), 1, "two at once");
        let stuck = history(1, vec![grant(0, 2, 10, 20, now), grant(0, 2, 20, 30, now)]);
        assert_eq!(faults(&stuck), 1, "lease numbers that do not rise");

        let lost = history(1, vec![]);
        assert_eq!(faults(&lost), 1, "lost");
        assert_eq!(lost.faults(&HashSet::from([0])).len(), 0, "dead is not lost");
        let invented = history(1, vec![grant(0, 1, 10, 20, now)]);
        invented.never(&[0]);
        assert_eq!(faults(&invented), 1, "rolled back and leased");
    }

    #[test]
    fn a_job_leased_after_its_ack_is_a_fault() {
        let before = Instant::now();
        let after = before + Duration::from_secs(1);
        let mut first = grant(0, 1, 10, 20, before);
        first.acked = Some(before + Duration::from_millis(1));
        assert_eq!(faults(&history(1, vec![first, grant(0, 2, 20, 30, after)])), 1);
    }
}
