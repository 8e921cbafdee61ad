//! Purging queues and deleting them, step by step. Each step is one bounded statement; between two of them nothing is held,
//! so whoever drives one may stop at any time.

use std::time::{Duration, Instant};

use super::{
    Call, Store,
    engine::{Expired, Pruned, PurgeCount, PurgePlace, PurgeStep, Purged, QueueCounts},
    statement::Statement,
    stride::Stride,
};
use crate::model::{Caller, Count, Failure, JobState, QueueId, QueueName, Reason, Timestamp};

/// Later than whatever a database here can hold: every job was enqueued before.
const ALWAYS: Timestamp = Timestamp(253_402_300_799_000_000);
/// How long a deletion waits between two looks at whether the queue can go.
const PAUSE: Duration = Duration::from_millis(250);

/// A purge under way.
#[derive(Debug, Clone)]
pub struct Purge {
    queue: QueueId,
    asked: Vec<JobState>,
    /// Those still to be walked, the last one first.
    states: Vec<JobState>,
    /// A job that was blocked when the purge began was behind one that it removed: waiting ones are to be walked again.
    again: bool,
    before: Option<Timestamp>,
    left: Option<u64>,
    after: PurgePlace,
    removed: u64,
    /// Once it has begun.
    stride: Option<Stride>,
}

/// Where a purge or deletion is after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Jobs removed so far.
    pub removed: u64,
    /// Nothing is left to do.
    pub done: bool,
    /// The next job of an ordering key became ready by this step.
    pub readied: bool,
    /// How long to wait before the next step.
    pub pause: Duration,
}

impl Purge {
    /// Of a queue's jobs in `states`, all but leased ones; those enqueued before `before`, by default before the first step;
    /// `limit` at most.
    pub fn new(queue: QueueId, states: &[JobState], before: Option<Timestamp>, limit: Option<u64>) -> Self {
        let order = [JobState::Acked, JobState::Dead, JobState::Blocked, JobState::Scheduled, JobState::Ready];
        let asked: Vec<JobState> = order.into_iter().filter(|state| states.contains(state)).collect();
        let (states, after) = (asked.clone(), PurgePlace::default());
        Self { queue, asked, states, again: false, before, left: limit, after, removed: 0, stride: None }
    }

    /// Whose jobs.
    pub fn queue(&self) -> QueueId {
        self.queue
    }

    /// Jobs removed so far.
    pub fn removed(&self) -> u64 {
        self.removed
    }

    fn next(&self, at_most: usize) -> Option<PurgeStep> {
        let left = self.left.map_or(usize::MAX, |left| usize::try_from(left).unwrap_or(usize::MAX));
        let state = *self.states.last().filter(|_| left > 0)?;
        let limit = at_most.min(left);
        Some(PurgeStep { queue: self.queue, state, before: self.before, after: self.after.clone(), limit })
    }

    fn took(&mut self, step: &PurgeStep, purged: Purged) {
        self.before = Some(purged.before);
        self.removed += purged.removed as u64;
        self.left = self.left.map(|left| left.saturating_sub(purged.removed as u64));
        self.after = purged.after;
        self.again |= purged.readied && self.asked.contains(&JobState::Blocked);
        if purged.walked < step.limit {
            self.states.pop();
            self.after = PurgePlace::default();
        }
        if self.states.is_empty() && std::mem::take(&mut self.again) {
            let waiting = |state: &&JobState| matches!(state, JobState::Scheduled | JobState::Ready);
            self.states = self.asked.iter().filter(waiting).copied().collect();
        }
    }
}

/// A deletion under way.
#[derive(Debug, Clone)]
pub struct Deletion {
    name: QueueName,
    queue: QueueId,
    live: bool,
    at: Stage,
    removed: u64,
    /// Of the keys that it clears, once it does.
    stride: Option<Stride>,
}

#[derive(Debug, Clone)]
enum Stage {
    Closing,
    Purging(Purge),
    Clearing,
    Removing,
    Gone,
}

impl Deletion {
    /// Of a queue; `live`: together with its live jobs, but for leased ones, whose end it waits for.
    pub fn new(name: QueueName, queue: QueueId, live: bool) -> Self {
        Self { name, queue, live, at: Stage::Closing, removed: 0, stride: None }
    }

    /// Jobs removed so far.
    pub fn removed(&self) -> u64 {
        match &self.at {
            Stage::Purging(purge) => self.removed + purge.removed,
            _ => self.removed,
        }
    }

    fn stride(&mut self, store: &Store) -> &mut Stride {
        self.stride.get_or_insert_with(|| store.stride(store.inner.options.purge_step))
    }

    fn purge(&self) -> Purge {
        let states: &[JobState] = if self.live {
            &[JobState::Ready, JobState::Scheduled, JobState::Blocked, JobState::Dead, JobState::Acked]
        } else {
            &[JobState::Dead, JobState::Acked]
        };
        Purge::new(self.queue, states, Some(ALWAYS), None)
    }

    /// Why it cannot go on, given what is in the queue.
    fn refusal(&self, counts: &QueueCounts, begun: bool) -> Option<Failure> {
        let waiting = [counts.ready, counts.scheduled, counts.blocked].iter().any(|count| count.value > 0);
        let leased = counts.leased.value > 0;
        let why = if waiting && !self.live {
            "has live jobs; let them be worked off, or ask for them to be purged as well"
        } else if leased && !begun {
            "has leased jobs; pause it, let their leases end, and delete it then"
        } else {
            return None;
        };
        let message = format!("queue '{}' {why}", self.name);
        Some(Failure::not_applied(Reason::QueueNotEmpty, message).about(self.name.as_str()))
    }
}

impl Store {
    /// Takes a purge's next step.
    pub async fn purge(&self, call: &Call, purge: &mut Purge) -> Result<Progress, Failure> {
        let stride = purge.stride.get_or_insert_with(|| self.stride(self.inner.options.purge_step));
        let at_most = stride.rows();
        let Some(step) = purge.next(at_most) else {
            return Ok(Progress { removed: purge.removed, done: true, readied: false, pause: Duration::ZERO });
        };
        let (caller, asked) = (call.caller.clone(), step.clone());
        let began = Instant::now();
        let purged = self
            .single(call, Statement::writing("purge"), move |session| {
                Box::pin(async move { session.purge(&caller, &asked).await })
            })
            .await?;
        let (readied, walked) = (purged.readied, purged.walked);
        purge.took(&step, purged);
        let done = purge.next(1).is_none();
        self.inner.views.forget(purge.queue);
        // The jobs that are not purged have to be served too.
        let pause = purge.stride.as_mut().map(|stride| stride.stepped(walked, began, Instant::now(), !done));
        Ok(Progress { removed: purge.removed, done, readied, pause: pause.unwrap_or_default() })
    }

    /// How many jobs a purge would remove.
    pub async fn count_purgeable(&self, call: &Call, purge: &Purge) -> Result<Count, Failure> {
        let caller = call.caller.clone();
        let what = PurgeCount { queue: purge.queue, states: purge.states.clone(), before: purge.before };
        let count = self
            .single(call, Statement::reading("count_purgeable"), move |session| {
                Box::pin(async move { session.count_purgeable(&caller, &what).await })
            })
            .await?;
        Ok(match purge.left {
            Some(limit) if limit <= count.value => Count { value: limit, at_least: false },
            _ => count,
        })
    }

    /// Takes a deletion's next step. The first one marks the queue, so that it takes no jobs and none of its jobs is leased;
    /// where it is refused as not empty, the mark is taken off again.
    pub async fn delete_queue(&self, call: &Call, deletion: &mut Deletion) -> Result<Progress, Failure> {
        let mut progress = Progress { removed: deletion.removed(), done: false, readied: false, pause: Duration::ZERO };
        match &mut deletion.at {
            Stage::Closing => {
                self.close_queue(call, deletion).await?;
                self.look_into(call, deletion, false).await?;
                deletion.at = Stage::Purging(deletion.purge());
            }
            Stage::Purging(purge) => {
                let step = self.purge(call, purge).await?;
                progress.pause = step.pause;
                if step.done {
                    deletion.removed += step.removed;
                    deletion.at = Stage::Clearing;
                }
            }
            Stage::Clearing => {
                let (began, at_most) = (Instant::now(), deletion.stride(self).rows());
                let rows = self.clear_queue(call, deletion.queue, at_most).await?;
                if rows == 0 {
                    deletion.at = Stage::Removing;
                }
                progress.pause = deletion.stride(self).stepped(rows, began, Instant::now(), rows > 0);
            }
            Stage::Removing => {
                if self.remove_queue(call, deletion).await? {
                    deletion.at = Stage::Gone;
                } else {
                    // What was stored or came back meanwhile goes the same way; what others hold is waited for.
                    self.look_into(call, deletion, true).await?;
                    deletion.at = Stage::Purging(deletion.purge());
                    progress.pause = PAUSE;
                }
            }
            Stage::Gone => {}
        }
        progress.removed = deletion.removed();
        progress.done = matches!(deletion.at, Stage::Gone);
        Ok(progress)
    }

    async fn close_queue(&self, call: &Call, deletion: &Deletion) -> Result<(), Failure> {
        let (caller, queue) = (call.caller.clone(), deletion.queue);
        let there = self
            .single(call, Statement::writing("close_queue"), move |session| {
                Box::pin(async move { session.close_queue(&caller, queue).await })
            })
            .await?;
        self.inner.queues.forget(&deletion.name);
        if there { Ok(()) } else { Err(gone(&deletion.name)) }
    }

    /// Refuses a deletion, and takes the queue's mark off, where it has jobs that it may not take away.
    async fn look_into(&self, call: &Call, deletion: &Deletion, begun: bool) -> Result<(), Failure> {
        let counts = self.count_jobs(call, &[deletion.queue]).await?;
        let Some(refusal) = counts.first().and_then(|counts| deletion.refusal(counts, begun)) else { return Ok(()) };
        let (caller, queue) = (call.caller.clone(), deletion.queue);
        self.single(call, Statement::writing("reopen_queue"), move |session| {
            Box::pin(async move { session.reopen_queue(&caller, queue).await })
        })
        .await?;
        self.inner.queues.forget(&deletion.name);
        Err(refusal)
    }

    async fn clear_queue(&self, call: &Call, queue: QueueId, limit: usize) -> Result<usize, Failure> {
        let caller = call.caller.clone();
        self.single(call, Statement::writing("clear_queue"), move |session| {
            Box::pin(async move { session.clear_queue(&caller, queue, limit).await })
        })
        .await
    }

    async fn remove_queue(&self, call: &Call, deletion: &Deletion) -> Result<bool, Failure> {
        let (caller, queue) = (call.caller.clone(), deletion.queue);
        let settled = self.inner.options.queue_refresh;
        let removed = self
            .single(call, Statement::writing("remove_queue"), move |session| {
                Box::pin(async move { session.remove_queue(&caller, queue, settled).await })
            })
            .await?;
        if removed {
            self.inner.queues.forget(&deletion.name);
            self.inner.backlogs.forget(queue);
            return Ok(true);
        }
        match self.queue_now(call, &deletion.name).await? {
            Some(row) if row.id == queue && row.closing => Ok(false),
            Some(row) if row.id == queue => {
                let message = format!("queue '{}' was put back into use meanwhile", deletion.name);
                Err(Failure::not_applied(Reason::Conflict, message).about(deletion.name.as_str()))
            }
            // Somebody else's deletion was quicker, and the name may be another queue's by now.
            _ => Ok(true),
        }
    }

    /// See [`super::engine::Maintaining::prune_acked`].
    pub async fn prune_acked(&self, floor: Timestamp, limit: usize) -> Result<Pruned, Failure> {
        let caller = Caller::broker("pruner");
        self.single(&self.own(caller.clone()), Statement::writing("prune_acked"), move |session| {
            Box::pin(async move { session.prune_acked(&caller, floor, limit).await })
        })
        .await
    }

    /// See [`super::engine::Maintaining::expiring_queues`].
    pub async fn expiring_queues(&self, after: QueueId, limit: usize) -> Result<Vec<QueueId>, Failure> {
        let caller = Caller::broker("expiry");
        self.single(&self.own(caller.clone()), Statement::reading("expiring_queues"), move |session| {
            Box::pin(async move { session.expiring_queues(&caller, after, limit).await })
        })
        .await
    }

    /// See [`super::engine::Maintaining::expire`].
    pub async fn expire(&self, queues: Vec<(QueueId, Timestamp)>, limit: usize) -> Result<Expired, Failure> {
        let caller = Caller::broker("expiry");
        let expired = self
            .single(&self.own(caller.clone()), Statement::writing("expire"), move |session| {
                Box::pin(async move { session.expire(&caller, &queues, limit).await })
            })
            .await?;
        self.inner.counts.expired(expired.jobs);
        Ok(expired)
    }
}

fn gone(name: &QueueName) -> Failure {
    Failure::not_applied(Reason::NotFound, format!("there is no queue '{name}' any more")).about(name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn purged(walked: usize, removed: usize, readied: bool) -> Purged {
        Purged {
            removed,
            walked,
            after: PurgePlace { number: 7, ..PurgePlace::default() },
            before: Timestamp(5),
            readied,
        }
    }

    fn states(purge: &mut Purge, readied: impl Fn(usize) -> bool) -> Vec<JobState> {
        let mut walked = Vec::new();
        while let Some(step) = purge.next(10) {
            walked.push(step.state);
            purge.took(&step, purged(3, 1, readied(walked.len())));
        }
        walked
    }

    #[test]
    fn states_are_walked_in_one_order_whatever_order_they_were_named_in() {
        let mut purge = Purge::new(QueueId(1), &[JobState::Acked, JobState::Leased, JobState::Ready], None, None);
        assert_eq!(states(&mut purge, |_| false), [JobState::Ready, JobState::Acked], "leased ones are not purged");
    }

    #[test]
    fn what_was_blocked_at_first_is_taken_where_blocked_ones_were_asked_for() {
        use JobState::{Blocked, Ready, Scheduled};
        let mut purge = Purge::new(QueueId(1), &[Ready, Scheduled, Blocked], None, None);
        assert_eq!(states(&mut purge, |step| step == 1), [Ready, Scheduled, Blocked, Ready, Scheduled]);
        let mut purge = Purge::new(QueueId(1), &[Ready], None, None);
        assert_eq!(states(&mut purge, |_| true), [Ready], "those behind stay");
    }

    #[test]
    fn a_step_goes_on_where_the_last_one_ended_with_the_instant_of_the_first() {
        let mut purge = Purge::new(QueueId(1), &[JobState::Dead], None, Some(15));
        let first = purge.next(10).expect("a step");
        assert_eq!((first.limit, first.before, first.after.number), (10, None, 0));
        purge.took(&first, purged(10, 9, false));
        let second = purge.next(10).expect("a step");
        assert_eq!((second.limit, second.before, second.after.number), (6, Some(Timestamp(5)), 7));
        purge.took(&second, purged(6, 6, false));
        assert_eq!(purge.next(10), None, "as many as were asked for");
        assert_eq!(purge.removed(), 15);
    }

    #[test]
    fn a_deletion_is_refused_for_live_jobs_and_waits_for_those_leased_after_it_began() {
        let name = QueueName::parse("queue", "orders").expect("a name");
        let counts = |ready, leased| QueueCounts {
            ready: Count { value: ready, at_least: false },
            leased: Count { value: leased, at_least: false },
            ..QueueCounts::default()
        };
        let refused = |live, counts: QueueCounts, begun| {
            Deletion::new(name.clone(), QueueId(1), live).refusal(&counts, begun).is_some()
        };
        assert!(refused(false, counts(1, 0), false) && refused(false, counts(1, 0), true));
        assert!(!refused(true, counts(1, 0), false), "they are purged");
        assert!(refused(true, counts(0, 1), false) && refused(false, counts(0, 1), false));
        assert!(!refused(true, counts(0, 1), true) && !refused(false, counts(0, 0), false));
    }
}
