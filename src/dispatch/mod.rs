//! Streams' credit becomes demand, demand becomes claims, claims become frames.
//!
//! # Who holds what
//!
//! One task, the `actor`, owns the `desk`, which holds all state and decides everything; it does no I/O and reads no
//! clock. Around it: the `inbox`, where everyone leaves news between two turns; a `buffer` for each stream, from which the
//! HTTP/2 layer takes frames; and the store. A stream has no task and no timer of its own: all times stand in one ordered
//! `agenda`.
//!
//! # A job's way
//!
//! | where | what it is | leaves by |
//! | --- | --- | --- |
//! | ready in the database | nobody's | a claim, which draws a slot (lease bits and duration) from a stream's credit |
//! | slot of a claim under way | reserved credit | the answer: a job takes it, or it is free again |
//! | in a stream's buffer | a lease that was never **sent**; uses credit | taken by the HTTP/2 layer: sent · stream gone, unread for half of the lease or a minute, bytes do not fit, drain: given back, no attempt counted |
//! | sent | a lease like any other; uses credit | settled here (`settled`) · reaped here (`reaped`) · found settled, lost or run out by inspection |
//!
//! # A stream's modes
//!
//! - **waiting**: credit left, buffer empty: it stands in the waiting lists of its queues, by (queue, caller), and slots are
//!   drawn from it. Who was served last stands last.
//! - **buffered**: jobs lie in its buffer; nothing is claimed for it. The reader's taking the last one makes it waiting.
//! - **stalled**: it left its buffer untaken for half a lease or a minute; the jobs went back. Waiting again once its reader asks.
//! - **spent**: no credit, by jobs or by bytes. An ending lease makes it waiting. Meanwhile its leases are compared with the
//!   database, a thousand a second at most, since their end may have been elsewhere and the hint lost. So are those of streams
//!   with a bound on bytes and of those that stop when empty, whatever credit they have left.
//! - **ended**: Drain (age, shutdown), deadline, empty (`stop_when_empty`) or gone. What was not sent goes back; the rest of its
//!   leases stand.
//!
//! # A queue's modes
//!
//! - **absent**: no such queue yet. Its name is looked up at once, again when an unknown queue is said to have jobs, and in
//!   turn with the other absent ones every fourth look.
//! - **cold**: the last claim came back short, so nothing is ready. One look a second for all queues together; an
//!   Enqueue of this replica, a wake-up, a sighting or a due time makes it hot.
//! - **hot**: jobs may be ready. Every (queue, caller) with a waiting stream claims, one claim at a time, until one comes
//!   back short and nothing was said meanwhile. Queues of one caller that stand in line together are claimed from by one
//!   statement, which counts as one under way. A failed claim pauses each (queue, caller) that it was for, longer each time.
//! - **paused**: by an operator, or since it is being deleted: nothing is claimed, and what a claim under way brings goes back.
//!   It stays hot or cold beneath that. Settings are read every few seconds; a deleted queue becomes absent.
//!
//! A wake-up changes only what is looked at, never what is believed: credit comes back when the database says so, or when the
//! settlement went through this replica.

mod actor;
mod agenda;
mod buffer;
mod credit;
mod cursor;
mod demand;
mod desk;
mod frame;
mod inbox;
mod options;
mod pace;
mod presence;
mod queue;
mod stream;

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use rand::{Rng as _, SeedableRng as _, rngs::StdRng};
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

use self::{
    buffer::Buffer,
    desk::Desk,
    inbox::{Inbox, Refusal},
    stream::Opening,
};
pub use self::{
    frame::{DrainReason, Frame, RevokedLease, SentJob},
    options::DispatchOptions,
    presence::Presence,
    stream::{LeaseStream, StreamSpec},
};
use crate::{
    model::{Failure, JobId, LeaseToken, QueueId, QueueName, Reason, ReplicaId, StreamId, StreamNumber},
    store::{
        Store,
        engine::{LeaseRef, QueueRow, ReapedLease, Wake},
    },
};

/// Handle to the dispatcher; cheap to clone. It stops with the last one.
#[derive(Clone)]
pub struct Dispatch {
    shared: Arc<Shared>,
    store: Store,
    options: Arc<DispatchOptions>,
    broker: Arc<str>,
    replica: ReplicaId,
    presence: Arc<Presence>,
    _stop: Arc<DropGuard>,
}

/// Counts for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StreamsSnapshot {
    /// Streams that are served.
    pub streams: usize,
    /// Jobs that they may have outstanding together.
    pub credit: usize,
    /// Leases outstanding on them.
    pub outstanding: usize,
    /// Bytes of jobs among them that were not sent yet.
    pub unsent_bytes: usize,
    /// Slots in claims that are under way.
    pub reserved: usize,
    /// Streams whose leases are compared with the database, since without an end of one they may get nothing more.
    pub compared: usize,
    /// Claims under way.
    pub claims_under_way: usize,
    /// Queues known.
    pub queues: usize,
}

/// What handles, streams and the actor have in common.
struct Shared {
    inbox: Arc<Inbox>,
    numbers: AtomicU32,
    snapshot: Mutex<StreamsSnapshot>,
    /// The actor has ended.
    done: CancellationToken,
}

impl Shared {
    fn show(&self, snapshot: StreamsSnapshot) {
        *self.snapshot.lock().unwrap_or_else(PoisonError::into_inner) = snapshot;
    }
}

impl Dispatch {
    /// Starts the dispatcher on the current runtime. `broker` is this process's name for operators.
    pub fn start(store: Store, options: DispatchOptions, broker: String) -> Self {
        let shared = Arc::new(Shared {
            inbox: Arc::new(Inbox::default()),
            numbers: AtomicU32::new(1),
            snapshot: Mutex::default(),
            done: CancellationToken::new(),
        });
        let stop = CancellationToken::new();
        let replica = store.replica();
        let desk = Desk::new(options.clone(), replica, StdRng::from_os_rng(), Instant::now());
        tokio::spawn(actor::run(desk, store.clone(), shared.clone(), stop.clone()));
        let presence = Arc::new(Presence::new(store.clone(), Arc::clone(&shared), broker.clone()));
        Self {
            shared,
            store,
            options: Arc::new(options),
            broker: broker.into(),
            replica,
            presence,
            _stop: Arc::new(stop.drop_guard()),
        }
    }

    /// Opens a stream, or refuses at once: too many, or the replica goes away.
    pub fn open(&self, spec: StreamSpec) -> Result<LeaseStream, Failure> {
        self.shared.inbox.enter(self.options.max_streams).map_err(|refusal| match refusal {
            Refusal::Full => Failure::not_applied(Reason::StreamLimit, "too many Lease streams on this replica"),
            Refusal::Draining => Failure::not_applied(Reason::Draining, "this replica is going away"),
        })?;
        let now = Instant::now();
        // Streams live for minutes, so a number comes round again long after its last owner.
        let number = StreamNumber(self.shared.numbers.fetch_add(1, Ordering::Relaxed));
        let jitter = self.options.stream_age_jitter;
        let age = self.options.stream_age.mul_f64(1.0 + rand::rng().random_range(-jitter..=jitter));
        let opened = Frame::Opened {
            broker: self.broker.to_string(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            stream_id: StreamId { replica: self.replica, number }.to_string(),
            heartbeat_interval: self.options.heartbeat_interval,
            max_age: age,
        };
        let buffer = Arc::new(Buffer::new(opened, now));
        let closing = spec.connection_closing.clone();
        let inbox = self.shared.inbox.clone();
        let stream = LeaseStream::new(number, buffer.clone(), inbox, self.options.frame_bytes, closing);
        self.shared.inbox.tell(|mail| mail.opened.push(Opening { number, spec, buffer, ends_at: now + age }));
        Ok(stream)
    }

    /// These leases decide nothing any more: their credit comes back, through the replica that granted them.
    pub fn settled(&self, tokens: &[LeaseToken]) {
        let own = tokens.iter().filter(|token| token.replica == self.replica);
        self.shared.inbox.hint(|mail| &mut mail.settled, own.map(lease_of));
        let mut others: BTreeMap<ReplicaId, Vec<JobId>> = BTreeMap::new();
        for token in tokens.iter().filter(|token| token.replica != self.replica) {
            others.entry(token.replica).or_default().push(token.job);
        }
        for (replica, jobs) in others {
            self.store.notify(Wake::Settled { replica, jobs });
        }
    }

    /// This lease now ends in `remaining`.
    pub fn extended(&self, token: &LeaseToken, remaining: Duration) {
        if token.replica == self.replica {
            self.shared.inbox.hint(|mail| &mut mail.extended, [(lease_of(token), Instant::now() + remaining)]);
        }
    }

    /// Jobs became ready through this replica, one entry each: now, or as long from now as is said.
    pub fn ready(&self, queues: &[(QueueId, Option<Duration>)]) {
        let now = Instant::now();
        let later = |(queue, due): &(QueueId, Option<Duration>)| {
            due.filter(|due| !due.is_zero()).map(|due| (*queue, now + due + Duration::from_millis(1)))
        };
        self.shared.inbox.hint(|mail| &mut mail.due, queues.iter().filter_map(later));
        self.shared.inbox.tell(|mail| {
            for (queue, due) in queues {
                if due.is_none_or(|due| due.is_zero()) {
                    *mail.ready.entry(*queue).or_default() += 1;
                }
            }
        });
    }

    /// A queue's settings were changed through this replica: they hold here at once.
    pub fn changed(&self, row: QueueRow) {
        self.shared.inbox.hint(|mail| &mut mail.changed, [row]);
    }

    /// A queue was deleted through this replica. Its streams wait for another one of its name.
    pub fn deleted(&self, name: QueueName) {
        self.shared.inbox.hint(|mail| &mut mail.deleted, [name]);
    }

    /// This process's name for operators.
    pub fn broker(&self) -> &str {
        &self.broker
    }

    /// Somebody asked for these leased jobs to be cancelled: their holders are told, each by the replica that has its stream.
    pub fn cancel_requested(&self, jobs: &[(JobId, StreamId)]) {
        let mut others: BTreeMap<ReplicaId, Vec<JobId>> = BTreeMap::new();
        for (job, stream) in jobs {
            others.entry(stream.replica).or_default().push(*job);
        }
        self.look_at(others.remove(&self.replica).unwrap_or_default());
        for (replica, jobs) in others {
            self.store.notify(Wake::Settled { replica, jobs });
        }
    }

    /// The leases of these jobs are looked at in the database, where they are streams' of this replica.
    fn look_at(&self, jobs: Vec<JobId>) {
        self.shared.inbox.hint(|mail| &mut mail.suspected, jobs);
    }

    /// What this replica says of itself to operators.
    pub fn presence(&self) -> &Presence {
        &self.presence
    }

    /// Whether the replica goes away.
    pub fn is_draining(&self) -> bool {
        self.shared.inbox.is_draining()
    }

    /// The reaper took these leases; in `readied` the next job of a key became ready.
    pub fn reaped(&self, leases: &[ReapedLease], readied: &[QueueId]) {
        self.shared.inbox.hint(|mail| &mut mail.reaped, leases.iter().map(|reaped| reaped.lease));
        let back = leases.iter().filter(|reaped| !reaped.dead).map(|reaped| reaped.queue);
        let ready: Vec<_> = back.chain(readied.iter().copied()).map(|queue| (queue, None)).collect();
        self.ready(&ready);
    }

    /// Grants nothing from now on, gives back what was not sent, and ends every stream with a Drain frame. Returns when all
    /// streams are read to their end, or after [`DispatchOptions::drain_limit`].
    pub async fn drain(&self) {
        self.shared.inbox.drain();
        let ended = timeout(self.options.drain_limit, self.shared.done.cancelled()).await;
        if ended.is_err() {
            tracing::warn!(streams = self.shared.inbox.open(), "streams were not read to their end in time");
        }
    }

    /// Counts for metrics, as of the last turn.
    pub fn streams(&self) -> StreamsSnapshot {
        *self.shared.snapshot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Dispatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dispatch").field("streams", &self.streams()).finish_non_exhaustive()
    }
}

fn lease_of(token: &LeaseToken) -> LeaseRef {
    LeaseRef { job: token.job, lease: token.lease }
}
