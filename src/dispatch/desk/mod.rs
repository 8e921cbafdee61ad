//! The dispatcher's state and every change to it, without a runtime, a database or a clock of its own: it is told what
//! happened and at what time, and answers with what to do.

mod alarms;
mod brought;
mod capped;
mod claims;
mod leases;
mod line;
mod looks;
mod names;
mod returns;
mod settings;
mod streams;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    mem,
    time::{Duration, Instant},
};

use rand::{Rng as _, rngs::StdRng};

use self::{capped::Capped, claims::UnderWay, leases::Lease, line::ClaimLine, names::Name, streams::OpenStream};
use super::{
    StreamsSnapshot,
    agenda::{Agenda, Alarm},
    buffer::Returned,
    inbox::Mail,
    options::DispatchOptions,
    queue::KnownQueue,
};
use crate::{
    model::{Caller, Failure, JobId, QueueId, QueueName, ReplicaId, StreamNumber},
    store::engine::{Claim, ClaimedJob, LeaseRef, LeaseState, LookSpot, QueueRow, Sighting, Wake},
};

/// A map whose keys no client chooses: numbers and leases that the broker or the database drew. So its hash need not withstand
/// anybody, and several of them are asked for each job.
type Table<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// Something that the desk wants done.
#[derive(Debug)]
pub(super) enum Act {
    /// Claim, of each queue once; the number comes back with the answer.
    Claim { number: u64, caller: Caller, claims: Vec<Claim> },
    /// Give back what was never sent.
    GiveBack(Vec<Returned>),
    /// Look for work.
    Look(Vec<LookSpot>),
    /// See which leases still hold.
    Inspect(Vec<LeaseRef>),
    /// Find queues by their names.
    Resolve { number: u64, names: Vec<QueueName> },
    /// Read the settings of queues.
    ReadSettings(Vec<QueueName>),
    /// Tell other replicas.
    Notify(Wake),
}

/// What became of an [`Act`].
#[derive(Debug)]
pub(super) enum Done {
    Claim { number: u64, result: Result<Vec<ClaimedJob>, Failure> },
    GiveBack { returned: Vec<Returned>, result: Result<Vec<bool>, Failure> },
    Look { result: Result<Vec<Sighting>, Failure> },
    Inspect { leases: Vec<LeaseRef>, result: Result<Vec<LeaseState>, Failure> },
    Resolve { number: u64, results: Vec<(QueueName, Result<Option<QueueRow>, Failure>)> },
    ReadSettings { names: Vec<QueueName>, result: Result<Vec<QueueRow>, Failure> },
}

/// See the module.
#[expect(clippy::struct_excessive_bools, reason = "each is one fact of its own; all combinations occur")]
pub(super) struct Desk {
    options: DispatchOptions,
    replica: ReplicaId,
    random: StdRng,
    streams: Table<StreamNumber, OpenStream>,
    /// Jobs that they may have outstanding together.
    granted: usize,
    names: HashMap<QueueName, Name>,
    queues: BTreeMap<QueueId, KnownQueue>,
    leases: Table<JobId, Lease>,
    agenda: Agenda,
    acts: Vec<Act>,
    /// Streams to look at again before this turn ends.
    touched: BTreeSet<StreamNumber>,
    draining: bool,
    available: bool,
    /// Numbers what is started, so that "since then" has a meaning.
    sequence: u64,
    tickets: u64,

    hot: BTreeSet<QueueId>,
    untold: BTreeSet<QueueId>,
    /// Claims to come.
    line: ClaimLine,
    capped: Capped,
    claims: Table<u64, UnderWay>,
    reserved: usize,
    /// Bytes of jobs in all buffers.
    buffered: usize,

    look_at: Instant,
    looking: Option<Instant>,
    looked_at: Option<Instant>,
    look_failed: bool,
    look_turn: QueueId,

    /// Streams whose leases are compared with the database.
    compared: BTreeSet<StreamNumber>,
    /// Leases to look at as soon as possible.
    suspects: BTreeSet<JobId>,
    inspecting: bool,
    inspect_turn: (StreamNumber, JobId),

    /// Names that streams ask for and that no queue has.
    absent: BTreeSet<QueueName>,
    /// Names to look up as soon as possible.
    unresolved: BTreeSet<QueueName>,
    /// Names whose look-up failed.
    unresolved_yet: BTreeSet<QueueName>,
    resolving: bool,
    resolve_failed: bool,
    /// Ids of queues that no stream here asks for.
    foreign: BTreeSet<QueueId>,
    name_turn: Option<QueueName>,
    name_is_due: bool,
    ticks: u64,

    /// When to read the settings of queues again.
    settings_at: Instant,
    reading_settings: bool,
    settings_turn: QueueId,

    returns: Vec<Returned>,
    returning: usize,
    /// Those whose statement failed, to be tried again together.
    returns_again: Vec<Returned>,
}

impl Desk {
    /// Nothing open, nothing known.
    pub(super) fn new(options: DispatchOptions, replica: ReplicaId, random: StdRng, now: Instant) -> Self {
        let mut agenda = Agenda::default();
        agenda.set(now + options.look_interval, Alarm::Look);
        agenda.set(now + options.reconcile_interval, Alarm::Reconcile);
        Self {
            look_at: now + options.look_interval,
            settings_at: now + options.settings_interval,
            options,
            replica,
            random,
            streams: Table::default(),
            granted: 0,
            names: HashMap::new(),
            queues: BTreeMap::new(),
            leases: Table::default(),
            agenda,
            acts: Vec::new(),
            touched: BTreeSet::new(),
            draining: false,
            available: true,
            sequence: 0,
            tickets: 0,
            hot: BTreeSet::new(),
            untold: BTreeSet::new(),
            line: ClaimLine::default(),
            capped: Capped::default(),
            claims: Table::default(),
            reserved: 0,
            buffered: 0,
            looking: None,
            looked_at: None,
            look_failed: false,
            look_turn: QueueId(i32::MIN),
            compared: BTreeSet::new(),
            suspects: BTreeSet::new(),
            inspecting: false,
            inspect_turn: (StreamNumber(0), JobId(i64::MIN)),
            absent: BTreeSet::new(),
            unresolved: BTreeSet::new(),
            unresolved_yet: BTreeSet::new(),
            resolving: false,
            resolve_failed: false,
            foreign: BTreeSet::new(),
            name_turn: None,
            name_is_due: false,
            ticks: 0,
            reading_settings: false,
            settings_turn: QueueId(i32::MIN),
            returns: Vec::new(),
            returning: 0,
            returns_again: Vec::new(),
        }
    }

    /// Takes in all that happened, then decides. What to do is in [`Desk::take_acts`].
    pub(super) fn turn(&mut self, mail: Mail, done: Vec<Done>, wakes: Vec<Wake>, now: Instant) {
        for opening in mail.opened {
            self.open(opening, now);
        }
        for done in done {
            self.done(done, now);
        }
        self.read_hints(&mail.settled, &mail.extended, &mail.reaped, now);
        for (stream, stale) in mail.stale {
            self.stalled(stream, stale);
        }
        for stream in mail.taken {
            self.taken(stream);
        }
        for (stream, unsent) in mail.closed {
            self.closed(stream, unsent);
        }
        for stream in mail.closing {
            self.connection_closes(stream);
        }
        for row in mail.changed {
            self.learn(&row, now);
        }
        for name in mail.deleted {
            self.lose(&name);
        }
        for (queue, at) in mail.due {
            self.remember_due(queue, at);
        }
        for (queue, jobs) in mail.ready {
            self.heat(queue, jobs, true);
        }
        self.suspect(&mail.suspected);
        for wake in wakes {
            self.wake(wake, now);
        }
        while let Some(alarm) = self.agenda.pop(now) {
            self.ring(alarm, now);
        }
        while let Some(stream) = self.touched.pop_first() {
            self.refresh(stream, now);
        }
        self.start_claims(now);
        self.tell_others();
        self.start_returns();
        self.start_inspection();
        self.start_resolving();
        for ask in mail.asked {
            // Whoever stopped waiting does not need it.
            drop(ask.send(self.show_streams()));
        }
    }

    /// What to do, once.
    pub(super) fn take_acts(&mut self) -> Vec<Act> {
        mem::take(&mut self.acts)
    }

    /// When to turn to it at the latest.
    pub(super) fn next_turn(&self) -> Option<Instant> {
        self.agenda.next()
    }

    /// Whether the database can be asked at all; when it comes back, nothing waits any longer.
    pub(super) fn set_available(&mut self, available: bool, now: Instant) {
        if available && !self.available {
            self.look_at_everything(now);
        }
        self.available = available;
    }

    /// Whether [`Desk::drain`] was called.
    pub(super) fn is_draining(&self) -> bool {
        self.draining
    }

    /// After [`Desk::drain`]: nothing is under way any more.
    pub(super) fn is_drained(&self) -> bool {
        self.draining
            && self.claims.is_empty()
            && self.returns.is_empty()
            && self.returning == 0
            && self.returns_again.is_empty()
    }

    /// Counts for metrics.
    pub(super) fn snapshot(&self) -> StreamsSnapshot {
        StreamsSnapshot {
            streams: self.streams.len(),
            credit: self.granted,
            outstanding: self.leases.len(),
            unsent_bytes: self.buffered,
            reserved: self.reserved,
            compared: self.compared.len(),
            claims_under_way: self.claims.len(),
            queues: self.queues.len(),
        }
    }

    fn done(&mut self, done: Done, now: Instant) {
        match done {
            Done::Claim { number, result } => self.claimed(number, result, now),
            Done::GiveBack { returned, result } => self.given_back(returned, result, now),
            Done::Look { result } => self.looked(result, now),
            Done::Inspect { leases, result } => self.inspected(&leases, result, now),
            Done::Resolve { number, results } => self.resolved(number, results, now),
            Done::ReadSettings { names, result } => self.settings_read(&names, result, now),
        }
    }

    fn wake(&mut self, wake: Wake, now: Instant) {
        match wake {
            Wake::Settled { replica, jobs } if replica == self.replica => {
                if jobs.is_empty() {
                    self.suspect_in_turn();
                }
                self.suspect(&jobs);
            }
            Wake::Settled { .. } => {}
            Wake::Ready { queues } => {
                for queue in queues {
                    self.heat(queue, 1, false);
                }
            }
            Wake::Everything => self.look_at_everything(now),
        }
    }

    fn next_number(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// `around`, up to `part` of it more or less.
    fn jitter(&mut self, around: Duration, part: f64) -> Duration {
        around.mul_f64(1.0 + self.random.random_range(-1.0..=1.0) * part)
    }
}

/// For tests of what holds at all times.
#[cfg(test)]
impl Desk {
    /// Every lease that uses credit, and whose.
    fn grants(&self) -> impl Iterator<Item = (crate::model::LeaseId, StreamNumber)> {
        self.leases.values().map(Lease::grant)
    }

    /// The parts of the state that are kept twice agree.
    fn credit_adds_up(&self) -> bool {
        let used: usize = self.streams.values().map(|stream| stream.credit.used() as usize).sum();
        let jobs: usize = self.streams.values().map(|stream| stream.jobs.len()).sum();
        used == self.leases.len() && jobs == used
    }

    /// Nothing is left of streams that are gone.
    fn is_at_rest(&self) -> bool {
        let none_waits = self.queues.values().all(|queue| queue.groups.is_empty());
        none_waits && self.streams.is_empty() && self.absent.is_empty() && self.suspects.is_empty() && self.is_idle()
    }

    fn is_idle(&self) -> bool {
        self.returns.is_empty() && self.returning == 0 && self.returns_again.is_empty() && self.touched.is_empty()
    }
}
