//! Why a job is not running, from what is known of it at one moment.

use std::time::Duration;

use super::{Count, JobId, JobState, Timestamp};

/// What there is to know.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    /// What the job is doing.
    pub state: JobState,
    /// The database's time.
    pub now: Timestamp,
    /// When the producer wanted it to start.
    pub available_at: Timestamp,
    /// When it became ready or becomes so, where it is not blocked.
    pub ready_at: Option<Timestamp>,
    /// Somebody's open transaction holds its row.
    pub held: bool,
    /// Where blocked by its key: the job that is not blocked.
    pub head: Option<JobId>,
    /// Jobs of its key before it.
    pub ahead_in_key: Count,
    /// Ready jobs of its queue that go first.
    pub ahead: Count,
    /// Nothing of its queue is leased.
    pub paused: bool,
    /// Lease streams that ask for its queue.
    pub streams: u64,
    /// Their credit that is free.
    pub free_credit: u64,
    /// Where leased: when the lease ends.
    pub lease_until: Option<Timestamp>,
    /// Where leased: what its stream calls itself, where that is known.
    pub consumer: Option<String>,
    /// Somebody asked for it to be cancelled.
    pub cancel_requested: bool,
    /// Leases that counted.
    pub attempt: u32,
    /// Why its last attempt ended.
    pub last_error: Option<String>,
}

/// One thing that keeps a job from running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WaitReason {
    /// Nothing.
    None,
    /// It is due later.
    Scheduled,
    /// An earlier job of its ordering key is not done.
    Blocked,
    /// A service left it, or the end of its key's head, by SQL.
    Adoption,
    /// Its queue is paused.
    QueuePaused,
    /// It runs.
    Leased,
    /// No stream asks for its queue.
    NoConsumer,
    /// No stream that asks for it has credit.
    NoCredit,
    /// Others go first.
    BehindOthers,
    /// It is dead.
    Dead,
    /// It is done.
    Acked,
    /// Somebody's transaction holds its row.
    Held,
}

/// That, with what there is to say about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Wait {
    /// What keeps it.
    pub reason: WaitReason,
    /// One sentence for people, with what to do about it.
    pub explanation: String,
    /// When that ends, where it is known.
    pub until: Option<Timestamp>,
    /// The job that has to end first.
    pub blocking: Option<JobId>,
    /// Who holds the lease.
    pub consumer: Option<String>,
    /// How many go first.
    pub ahead: Option<Count>,
}

impl Wait {
    fn new(reason: WaitReason, explanation: impl Into<String>) -> Self {
        Self { reason, explanation: explanation.into(), until: None, blocking: None, consumer: None, ahead: None }
    }
}

/// Everything that keeps the job from running, in the order of what would have to change first; at least one.
pub fn explain(facts: &Facts) -> Vec<Wait> {
    let mut waits = Vec::new();
    match facts.state {
        JobState::Dead => {
            let why = facts.last_error.as_deref().unwrap_or("nobody said why");
            let text = format!(
                "dead after {} attempts, the last of which ended with: {why}; redrive it once that is mended",
                facts.attempt
            );
            return vec![Wait::new(WaitReason::Dead, text)];
        }
        JobState::Acked => return vec![Wait::new(WaitReason::Acked, "done: its consumer acked it")],
        JobState::Leased => waits.push(leased(facts)),
        JobState::Blocked => waits.extend(blocked(facts)),
        JobState::Scheduled => waits.push(scheduled(facts.ready_at, facts)),
        JobState::Ready => {}
    }
    if facts.held {
        waits.push(Wait::new(
            WaitReason::Held,
            "a transaction of some service holds its row and keeps everybody off it; find the session that is idle in \
             transaction and end it",
        ));
    }
    if facts.state == JobState::Leased {
        return waits;
    }
    if facts.paused {
        waits.push(Wait::new(WaitReason::QueuePaused, "its queue is paused; resume it"));
    }
    if facts.streams == 0 {
        waits.push(Wait::new(
            WaitReason::NoConsumer,
            "no Lease stream asks for its queue; start a consumer, or look whether consumers name the queue right",
        ));
    } else if facts.state == JobState::Ready {
        waits.extend(crowded(facts));
    }
    if waits.is_empty() {
        waits.push(Wait::new(
            WaitReason::None,
            "nothing keeps it: it is ready and consumers have credit; it should be leased within a second",
        ));
    }
    waits
}

/// Consumers are there, and busy with others.
fn crowded(facts: &Facts) -> Vec<Wait> {
    let mut waits = Vec::new();
    if facts.free_credit == 0 {
        let text = format!(
            "{} Lease streams ask for its queue and none has credit: each holds as many jobs as it wants; add consumers, \
             raise max_in_flight, or see what the oldest leases are busy with",
            facts.streams
        );
        waits.push(Wait::new(WaitReason::NoCredit, text));
    }
    if facts.ahead.value > 0 {
        let more = if facts.ahead.at_least { "more than " } else { "" };
        let text = format!(
            "{more}{} ready jobs of its queue go first, of higher priority or ready earlier; add consumers if they do not \
             keep up",
            facts.ahead.value
        );
        waits.push(Wait { ahead: Some(facts.ahead), ..Wait::new(WaitReason::BehindOthers, text) });
    }
    waits
}

fn leased(facts: &Facts) -> Wait {
    let left = facts.lease_until.map_or(Duration::ZERO, |until| until.since(facts.now));
    let holder = match facts.consumer.as_deref() {
        Some("") => "a consumer that gave itself no name".to_owned(),
        Some(name) => format!("consumer '{name}'"),
        None => "a stream that is closed, or that no replica has written down".to_owned(),
    };
    let ends = if left.is_zero() {
        "its lease has ended, and the reaper takes it within seconds".to_owned()
    } else {
        format!("unless extended, the lease ends in {:.1} s", left.as_secs_f64())
    };
    let cancelled = if facts.cancel_requested { "; it is to be cancelled and does not come back" } else { "" };
    Wait {
        until: facts.lease_until,
        consumer: facts.consumer.clone(),
        ..Wait::new(WaitReason::Leased, format!("it runs, leased by {holder}; {ends}{cancelled}"))
    }
}

fn blocked(facts: &Facts) -> Vec<Wait> {
    let mut waits = vec![match facts.head {
        Some(head) => {
            let more = if facts.ahead_in_key.at_least { "more than " } else { "" };
            let text = format!(
                "{more}{} jobs of its ordering key come before it, and job {head} has its turn; explain that one, or cancel \
                 it to let the key go on",
                facts.ahead_in_key.value + 1
            );
            let ahead = Count { value: facts.ahead_in_key.value + 1, ..facts.ahead_in_key };
            Wait { blocking: Some(head), ahead: Some(ahead), ..Wait::new(WaitReason::Blocked, text) }
        }
        None => Wait::new(
            WaitReason::Adoption,
            "a service enqueued it by SQL, or ended the job before it so; the broker takes it over within seconds of that \
             transaction's commit",
        ),
    }];
    if facts.available_at > facts.now {
        waits.push(scheduled(Some(facts.available_at), facts));
    }
    waits
}

fn scheduled(until: Option<Timestamp>, facts: &Facts) -> Wait {
    let left = until.map_or(Duration::ZERO, |until| until.since(facts.now));
    let why = match facts.last_error.as_deref() {
        Some(error) if facts.attempt > 0 => format!(
            "it waits {:.1} s for its next attempt, after {} that failed, the last with: {error}",
            left.as_secs_f64(),
            facts.attempt
        ),
        _ => format!("it is due in {:.1} s", left.as_secs_f64()),
    };
    Wait { until, ..Wait::new(WaitReason::Scheduled, why + "; run it now if it shall not wait") }
}

#[cfg(test)]
mod tests;
