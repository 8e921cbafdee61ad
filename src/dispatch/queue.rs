//! What the dispatcher knows of one queue.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use super::{cursor::Cursor, pace::Pace};
use crate::{
    model::{Caller, QueueName, StreamNumber},
    store::engine::QueueRow,
};

/// Due times that are remembered; later ones are found by looking.
const DUES: usize = 64;

/// A queue that exists and that streams here ask for.
#[derive(Debug)]
pub(super) struct KnownQueue {
    pub(super) name: QueueName,
    /// Of its row, so that older news of it is told from newer.
    pub(super) version: i64,
    /// Of leases for streams that ask for none.
    pub(super) lease_duration: Duration,
    /// Nothing is claimed from it.
    pub(super) paused: bool,
    pub(super) cursor: Cursor,
    pub(super) pace: Pace,
    /// Jobs may be ready here, as far as we know.
    pub(super) hot: bool,
    /// Counts what made it hot, so that a claim knows whether anything came while it was under way.
    pub(super) hints: u64,
    /// Jobs that hints named since the last claim.
    pub(super) expected: usize,
    /// Jobs that became ready on this replica and were neither claimed here nor told to other replicas.
    pub(super) untold: usize,
    dues: BTreeSet<Instant>,
    /// What the alarm for the next of them is set to.
    pub(super) due_alarm: Option<Instant>,
    /// Streams by the caller that their claims run for.
    pub(super) groups: BTreeMap<Caller, Group>,
    /// When a claim or look last said what is here.
    pub(super) checked_at: Option<Instant>,
    /// When a look must next begin before everything.
    pub(super) full_look_at: Instant,
    pub(super) claimed_since_look: bool,
    /// The latest claim that walked everything and found the queue empty behind what it took, by its number.
    pub(super) empty_as_of: u64,
}

impl KnownQueue {
    pub(super) fn new(row: &QueueRow, now: Instant) -> Self {
        Self {
            name: row.name.clone(),
            version: row.version,
            lease_duration: row.settings.lease_duration,
            paused: row.is_paused(),
            cursor: Cursor::START,
            pace: Pace::START,
            hot: false,
            hints: 0,
            expected: 0,
            untold: 0,
            dues: BTreeSet::new(),
            due_alarm: None,
            groups: BTreeMap::new(),
            checked_at: None,
            full_look_at: now,
            claimed_since_look: false,
            empty_as_of: 0,
        }
    }

    /// Takes in its row, unless a later one is known already. Says whether claims may go on that could not before.
    pub(super) fn learn(&mut self, row: &QueueRow) -> bool {
        if row.version < self.version {
            return false;
        }
        self.version = row.version;
        self.lease_duration = row.settings.lease_duration;
        std::mem::replace(&mut self.paused, row.is_paused()) && !self.paused
    }

    /// Whether jobs may be had here now, as far as we know.
    pub(super) fn gives(&self) -> bool {
        self.hot && !self.paused
    }

    /// A stream asks for this queue.
    pub(super) fn join(&mut self, stream: StreamNumber, caller: Caller, stop_when_empty: bool) {
        let group = self.groups.entry(caller).or_default();
        group.members += 1;
        if stop_when_empty {
            group.finishing.insert(stream);
        }
    }

    /// A stream does not ask for it any more.
    pub(super) fn leave(&mut self, stream: StreamNumber, caller: &Caller, ticket: u64) {
        let Some(group) = self.groups.get_mut(caller) else { return };
        group.members -= 1;
        group.finishing.remove(&stream);
        group.waiting.remove(&ticket);
        self.drop_group_if_idle(caller);
    }

    /// Forgets a caller that no stream and no claim needs any more.
    pub(super) fn drop_group_if_idle(&mut self, caller: &Caller) {
        if self.groups.get(caller).is_some_and(|group| group.members == 0 && !group.claiming) {
            self.groups.remove(caller);
        }
    }

    /// Whether a stream here could take a job now.
    pub(super) fn has_waiting(&self) -> bool {
        self.groups.values().any(|group| !group.waiting.is_empty())
    }

    /// Whether a claim is under way.
    pub(super) fn is_claiming(&self) -> bool {
        self.groups.values().any(|group| group.claiming)
    }

    /// Whether a stream here may still take what became ready here.
    pub(super) fn takes_its_own(&self) -> bool {
        !self.paused && (self.has_waiting() || self.is_claiming())
    }

    /// Remembers that a job becomes ready then, unless enough earlier ones are known.
    pub(super) fn remember_due(&mut self, at: Instant) {
        self.dues.insert(at);
        if self.dues.len() > DUES {
            self.dues.pop_last();
        }
    }

    /// When the next job that is known becomes ready.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.dues.first().copied()
    }

    /// Jobs whose time has come since the last call.
    pub(super) fn take_due(&mut self, now: Instant) -> usize {
        let before = self.dues.len();
        self.dues.retain(|at| *at > now);
        before - self.dues.len()
    }
}

/// Streams that claim from one queue for one caller.
#[derive(Debug, Default)]
pub(super) struct Group {
    /// Streams that asked for the queue.
    pub(super) members: usize,
    /// Those among them that end when it is empty.
    pub(super) finishing: BTreeSet<StreamNumber>,
    /// Those that could take a job, by ticket: who was served last comes last.
    pub(super) waiting: BTreeMap<u64, StreamNumber>,
    /// A claim is under way.
    pub(super) claiming: bool,
    /// It stands in the line of claims to come.
    pub(super) in_line: bool,
    /// A stream wants to know whether the queue is empty.
    pub(super) asked: bool,
    /// Claims that failed in a row.
    pub(super) failures: u32,
    /// No claim before this.
    pub(super) retry_at: Option<Instant>,
}

impl Group {
    /// Whether a claim may begin, given whether its queue may have jobs, and is paused.
    pub(super) fn may_claim(&self, hot: bool, paused: bool) -> bool {
        (hot || self.asked) && !paused && !self.waiting.is_empty() && !self.claiming && self.retry_at.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{QueueId, QueueSettings};

    fn row(version: i64, paused: bool) -> QueueRow {
        let name = QueueName::parse("queue", "q").expect("a name");
        let settings = QueueSettings { paused, ..QueueSettings::default() };
        QueueRow { id: QueueId(1), name, settings, version, closing: false }
    }

    #[test]
    fn news_of_a_queue_counts_unless_later_news_came_before() {
        let mut queue = KnownQueue::new(&row(3, false), Instant::now());
        assert!(!queue.learn(&row(4, true)));
        assert!(queue.paused);
        assert!(!queue.learn(&row(3, false)), "an older look at it");
        assert!(queue.paused);
        assert!(queue.learn(&row(5, false)), "claims may go on");
        assert!(!queue.learn(&row(6, false)), "they could before");
        let closing = QueueRow { closing: true, ..row(7, false) };
        queue.learn(&closing);
        assert!(queue.paused, "what is being deleted is not leased");
    }

    #[test]
    fn the_earliest_due_times_are_remembered() {
        let now = Instant::now();
        let mut queue = KnownQueue::new(&row(0, false), now);
        for second in (1..=100).rev() {
            queue.remember_due(now + Duration::from_secs(second));
        }
        assert_eq!(queue.next_due(), Some(now + Duration::from_secs(1)));
        assert_eq!(queue.take_due(now), 0);
        assert_eq!(queue.take_due(now + Duration::from_secs(10)), 10);
        assert_eq!(queue.take_due(now + Duration::from_secs(1_000)), DUES - 10, "later ones are left to the look");
        assert_eq!(queue.next_due(), None);
    }
}
