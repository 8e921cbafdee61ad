//! What waits between the dispatcher and the HTTP/2 layer, for one stream.

use std::{
    collections::VecDeque,
    mem,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Poll, Waker},
    time::{Duration, Instant},
};

use super::frame::{DrainReason, Frame, RevokedLease, SentJob, weight};
use crate::{
    model::{Failure, LeaseToken, QueueId, QueueName},
    store::engine::{ClaimedJob, LeaseRef},
};

/// A job that was claimed for a stream and not sent yet.
#[derive(Debug)]
pub(super) struct Unsent {
    pub(super) token: LeaseToken,
    pub(super) queue: QueueName,
    pub(super) queue_id: QueueId,
    pub(super) job: ClaimedJob,
    /// Before its claim was sent, so that what is left of the lease is never overstated.
    pub(super) started: Instant,
    pub(super) duration: Duration,
    /// From here on it is given back rather than sent.
    pub(super) stale_at: Instant,
}

impl Unsent {
    /// When a job of a claim that was sent at `started` and answered at `landed` is too old to be sent: after half of its
    /// lease, or of what the claim has left of it; and in any case after `at_most` in front of a reader who does not read.
    pub(super) fn stale_at(started: Instant, landed: Instant, duration: Duration, at_most: Duration) -> Instant {
        let left = (started + duration).saturating_duration_since(landed);
        (started + duration / 2).max(landed + left / 2).min(landed + at_most)
    }

    pub(super) fn returned(&self) -> Returned {
        Returned { lease: LeaseRef { job: self.token.job, lease: self.token.lease }, queue: self.queue_id, tries: 0 }
    }

    fn weight(&self) -> usize {
        weight(&self.job, &self.queue)
    }

    fn sent(self, now: Instant) -> SentJob {
        let remaining = self.duration.saturating_sub(now.saturating_duration_since(self.started));
        SentJob { token: self.token, queue: self.queue, job: self.job, remaining }
    }
}

/// A grant that was never sent and goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Returned {
    pub(super) lease: LeaseRef,
    pub(super) queue: QueueId,
    /// Statements that failed to give it back.
    pub(super) tries: u32,
}

/// What a poll means to the dispatcher.
#[derive(Debug, Default)]
pub(super) struct Note {
    /// Jobs were sent, or the reader waits again after it had not taken any for long.
    pub(super) taken: bool,
    /// Too old to be sent.
    pub(super) stale: Vec<Returned>,
}

/// Shared by the dispatcher, which fills it, and the stream, which the HTTP/2 layer polls. A job is sent exactly when
/// [`Buffer::poll`] hands it out; until then either side can take it back.
#[derive(Debug)]
pub(super) struct Buffer {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    opened: Option<Frame>,
    revoked: Vec<RevokedLease>,
    unsent: VecDeque<Unsent>,
    heartbeat: Option<Frame>,
    drain: Option<DrainReason>,
    end: Option<Result<(), Failure>>,
    /// The stream is gone: nothing more can be sent.
    closed: bool,
    /// The dispatcher wants to know when the reader next waits.
    stalled: bool,
    last_frame: Instant,
    waker: Option<Waker>,
}

impl Buffer {
    /// Holds the stream's first frame.
    pub(super) fn new(opened: Frame, now: Instant) -> Self {
        Self {
            state: Mutex::new(State {
                opened: Some(opened),
                revoked: Vec::new(),
                unsent: VecDeque::new(),
                heartbeat: None,
                drain: None,
                end: None,
                closed: false,
                stalled: false,
                last_frame: now,
                waker: None,
            }),
        }
    }

    /// Adds jobs; hands them back where the stream is gone.
    pub(super) fn put(&self, jobs: Vec<Unsent>) -> Result<(), Vec<Unsent>> {
        let mut state = self.state();
        if state.closed || state.end.is_some() {
            return Err(jobs);
        }
        state.unsent.extend(jobs);
        state.wake();
        Ok(())
    }

    /// Adds leases whose work should stop.
    pub(super) fn revoke(&self, lease: RevokedLease) {
        let mut state = self.state();
        if !state.closed {
            state.revoked.push(lease);
            state.wake();
        }
    }

    /// Says something where nothing was said since `quiet_since`; else tells when something was.
    pub(super) fn beat(&self, quiet_since: Instant, heartbeat: impl FnOnce() -> Frame) -> Option<Instant> {
        let mut state = self.state();
        if state.last_frame > quiet_since {
            return Some(state.last_frame);
        }
        state.heartbeat = Some(heartbeat());
        state.wake();
        None
    }

    /// The stream ends after what it says now; jobs that were not sent go back.
    pub(super) fn end(&self, drain: Option<DrainReason>, end: Result<(), Failure>) -> Vec<Returned> {
        let mut state = self.state();
        state.drain = drain;
        state.end = Some(end);
        state.heartbeat = None;
        state.wake();
        state.take_unsent()
    }

    /// The stream is gone; jobs that were not sent go back.
    pub(super) fn close(&self) -> Vec<Returned> {
        let mut state = self.state();
        state.closed = true;
        state.waker = None;
        state.take_unsent()
    }

    /// Jobs that are too old to be sent, which go back, and when the next one will be.
    pub(super) fn take_stale(&self, now: Instant) -> (Vec<Returned>, Option<Instant>) {
        let mut state = self.state();
        let (old, young): (Vec<_>, Vec<_>) =
            mem::take(&mut state.unsent).into_iter().partition(|job| job.stale_at <= now);
        state.unsent = young.into();
        state.stalled |= !old.is_empty();
        (old.iter().map(Unsent::returned).collect(), state.next_stale())
    }

    /// When the first job will be too old to be sent.
    pub(super) fn next_stale(&self) -> Option<Instant> {
        self.state().next_stale()
    }

    /// Bytes that wait to be sent; 0 where nothing does.
    pub(super) fn bytes(&self) -> usize {
        self.state().unsent.iter().map(Unsent::weight).sum()
    }

    /// The next frame of at most `frame_bytes`, or one job.
    pub(super) fn poll(
        &self,
        waker: &Waker,
        now: Instant,
        frame_bytes: usize,
    ) -> (Poll<Option<Result<Frame, Failure>>>, Note) {
        let mut state = self.state();
        let mut note = Note::default();
        if let Some(frame) = state.next_frame(now, frame_bytes, &mut note) {
            state.last_frame = now;
            return (Poll::Ready(Some(Ok(frame))), note);
        }
        if let Some(end) = &mut state.end {
            let end = mem::replace(end, Ok(()));
            return (Poll::Ready(end.err().map(Err)), note);
        }
        note.taken |= mem::take(&mut state.stalled);
        state.waker = Some(waker.clone());
        (Poll::Pending, note)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing in here panics half-way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn next_frame(&mut self, now: Instant, frame_bytes: usize, note: &mut Note) -> Option<Frame> {
        if let Some(opened) = self.opened.take() {
            return Some(opened);
        }
        if !self.revoked.is_empty() {
            return Some(Frame::Revoked(mem::take(&mut self.revoked)));
        }
        let jobs = self.next_jobs(now, frame_bytes, note);
        if !jobs.is_empty() {
            note.taken = true;
            self.heartbeat = None;
            return Some(Frame::Jobs(jobs));
        }
        self.heartbeat.take().or_else(|| self.drain.take().map(Frame::Drain))
    }

    fn next_jobs(&mut self, now: Instant, frame_bytes: usize, note: &mut Note) -> Vec<SentJob> {
        let mut jobs = Vec::new();
        let mut bytes = 0;
        while let Some(next) = self.unsent.pop_front() {
            if next.stale_at <= now {
                note.stale.push(next.returned());
                continue;
            }
            bytes += next.weight();
            if bytes > frame_bytes && !jobs.is_empty() {
                self.unsent.push_front(next);
                break;
            }
            jobs.push(next.sent(now));
        }
        jobs
    }

    fn next_stale(&self) -> Option<Instant> {
        self.unsent.iter().map(|job| job.stale_at).min()
    }

    fn take_unsent(&mut self) -> Vec<Returned> {
        mem::take(&mut self.unsent).iter().map(Unsent::returned).collect()
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}
