//! What others tell the dispatcher between two of its turns.
//!
//! Not a channel: news of one kind is gathered, so that the dispatcher works at its own pace, and everything in here is
//! bounded by what it is about. Hints past the bound are dropped; reading the database finds what they said.

use std::{
    collections::BTreeMap,
    mem,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Instant,
};

use tokio::sync::{Notify, futures::Notified, oneshot};

use super::{buffer::Returned, presence::StreamState, stream::Opening};
use crate::{
    model::{JobId, QueueId, QueueName, StreamNumber},
    store::engine::{LeaseRef, QueueRow},
};

/// Hints of one kind that are kept between two turns.
const HINTS: usize = 100_000;

/// The news since the last turn.
#[derive(Default)]
pub(super) struct Mail {
    /// At most as many as there may be streams.
    pub(super) opened: Vec<Opening>,
    /// Streams that are gone, with what was not sent on them.
    pub(super) closed: Vec<(StreamNumber, Vec<Returned>)>,
    /// Streams whose connection goes away.
    pub(super) closing: Vec<StreamNumber>,
    /// Streams whose buffer may be free.
    pub(super) taken: Vec<StreamNumber>,
    /// Jobs found too old to be sent.
    pub(super) stale: Vec<(StreamNumber, Vec<Returned>)>,
    pub(super) settled: Vec<LeaseRef>,
    /// Jobs whose leases are worth a look.
    pub(super) suspected: Vec<JobId>,
    pub(super) extended: Vec<(LeaseRef, Instant)>,
    pub(super) reaped: Vec<LeaseRef>,
    /// Queues in which this many jobs became ready on this replica.
    pub(super) ready: BTreeMap<QueueId, usize>,
    /// Queues whose settings were changed on this replica, which an operator does.
    pub(super) changed: Vec<QueueRow>,
    /// Queues that were deleted on this replica.
    pub(super) deleted: Vec<QueueName>,
    /// Queues in which a job becomes ready then.
    pub(super) due: Vec<(QueueId, Instant)>,
    /// Who wants to know of all streams. Whoever asks waits for the answer, and few do.
    pub(super) asked: Vec<oneshot::Sender<Vec<StreamState>>>,
}

/// Filled by everyone, emptied by the dispatcher.
#[derive(Default)]
pub(super) struct Inbox {
    mail: Mutex<Mail>,
    bell: Notify,
    open: AtomicUsize,
    draining: AtomicBool,
}

impl Inbox {
    /// Counts a stream in, unless there are `max` or the replica goes away.
    pub(super) fn enter(&self, max: usize) -> Result<(), Refusal> {
        let more = |open| (open < max).then_some(open + 1);
        let room = self.open.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more);
        // Counted in first and looked second, since the dispatcher does it the other way round: a stream that is let in is
        // one that it still sees.
        if self.is_draining() {
            if room.is_ok() {
                self.leave();
            }
            return Err(Refusal::Draining);
        }
        room.map(drop).map_err(|_| Refusal::Full)
    }

    /// Counts a stream out.
    pub(super) fn leave(&self) {
        self.open.fetch_sub(1, Ordering::SeqCst);
        self.bell.notify_one();
    }

    /// Streams that somebody still holds.
    pub(super) fn open(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }

    /// From now on no stream is let in.
    pub(super) fn drain(&self) {
        self.draining.store(true, Ordering::SeqCst);
        self.bell.notify_one();
    }

    /// Whether the replica goes away.
    pub(super) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::SeqCst)
    }

    /// Leaves news.
    pub(super) fn tell(&self, news: impl FnOnce(&mut Mail)) {
        news(&mut self.mail());
        self.bell.notify_one();
    }

    /// Leaves hints, as far as there is room.
    pub(super) fn hint<T>(&self, of: impl FnOnce(&mut Mail) -> &mut Vec<T>, hints: impl IntoIterator<Item = T>) {
        {
            let mut mail = self.mail();
            let kept = of(&mut mail);
            let room = HINTS.saturating_sub(kept.len());
            kept.extend(hints.into_iter().take(room));
        }
        self.bell.notify_one();
    }

    /// What came since the last time.
    pub(super) fn empty(&self) -> Mail {
        mem::take(&mut self.mail())
    }

    /// Comes back when there may be news.
    pub(super) fn news(&self) -> Notified<'_> {
        self.bell.notified()
    }

    fn mail(&self) -> MutexGuard<'_, Mail> {
        // Nothing in here panics half-way through a change.
        self.mail.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why a stream was not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    Full,
    Draining,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_past_the_bound_are_refused_until_one_leaves() {
        let inbox = Inbox::default();
        assert_eq!(inbox.enter(2), Ok(()));
        assert_eq!(inbox.enter(2), Ok(()));
        assert_eq!(inbox.enter(2), Err(Refusal::Full));
        inbox.leave();
        assert_eq!(inbox.enter(2), Ok(()));
        inbox.drain();
        inbox.leave();
        assert_eq!(inbox.enter(2), Err(Refusal::Draining));
        assert_eq!(inbox.open(), 1, "who is refused is not counted");
    }

    #[test]
    fn hints_past_the_bound_are_dropped() {
        let inbox = Inbox::default();
        let due = (QueueId(1), Instant::now());
        inbox.hint(|mail| &mut mail.due, vec![due; HINTS + 5]);
        inbox.hint(|mail| &mut mail.due, [due]);
        assert_eq!(inbox.empty().due.len(), HINTS);
        assert!(inbox.empty().due.is_empty());
    }
}
