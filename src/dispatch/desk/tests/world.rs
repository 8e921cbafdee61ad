//! A database of a few maps, and streams that are polled by hand: enough to drive a desk without a runtime.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    mem,
    sync::Arc,
    task::{Poll, Waker},
    time::{Duration, Instant},
};

use rand::{SeedableRng as _, rngs::StdRng};
use tokio_util::sync::CancellationToken;

use super::super::{Act, Desk, Done};
use crate::{
    dispatch::{
        buffer::Buffer,
        frame::{DrainReason, Frame, RevokedLease, SentJob},
        inbox::Mail,
        options::DispatchOptions,
        stream::{Opening, StreamSpec},
    },
    model::{
        Caller, Failure, JobId, LeaseId, LeaseToken, QueueId, QueueName, QueueSettings, Reason, ReplicaId,
        StreamNumber, Timestamp,
    },
    store::engine::{LeaseRef, QueueRow, Wake},
};

pub(super) const REPLICA: ReplicaId = ReplicaId(7);
pub(super) const SECOND: Duration = Duration::from_secs(1);

#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) queue: QueueId,
    pub(super) payload: usize,
    pub(super) ready_at: Timestamp,
    pub(super) lease: Option<LeaseId>,
    pub(super) lease_until: Timestamp,
    pub(super) attempts: u32,
    pub(super) cancel_requested: bool,
}

/// What a consumer got from its stream.
#[derive(Default)]
pub(super) struct Received {
    pub(super) jobs: Vec<SentJob>,
    pub(super) revoked: Vec<RevokedLease>,
    pub(super) heartbeats: Vec<(u32, bool)>,
    pub(super) drains: Vec<DrainReason>,
    pub(super) end: Option<Result<(), Failure>>,
}

pub(super) struct World {
    pub(super) desk: Desk,
    pub(super) now: Instant,
    pub(super) clock: i64,
    pub(super) rows: BTreeMap<JobId, Row>,
    pub(super) queues: HashMap<QueueName, QueueId>,
    /// Queues that ever were.
    made: i32,
    /// Changes of queues, the paused ones last seen.
    pub(super) paused: HashSet<QueueId>,
    version: i64,
    pub(super) buffers: HashMap<StreamNumber, Arc<Buffer>>,
    streams: u32,
    next_job: i64,
    pub(super) mail: Mail,
    pub(super) wakes: Vec<Wake>,
    done: Vec<Done>,
    /// Acts that wait, while held.
    pub(super) held: Vec<Act>,
    pub(super) hold: bool,
    /// Claims fail.
    pub(super) away: bool,
    pub(super) claims: Vec<(QueueId, usize)>,
    pub(super) looks: usize,
    pub(super) look_ups: usize,
    pub(super) inspected: usize,
    pub(super) told: Vec<Wake>,
}

pub(super) fn queue(name: &str) -> QueueName {
    QueueName::parse("queue", name).expect("a name")
}

pub(super) fn spec(queues: &[&str], max_in_flight: u32) -> StreamSpec {
    StreamSpec {
        queues: queues.iter().map(|name| queue(name)).collect(),
        consumer: "worker".into(),
        caller: Caller::parse("shop").expect("a name"),
        max_in_flight,
        max_in_flight_bytes: 0,
        lease_duration: None,
        stop_when_empty: false,
        deadline: None,
        connection_closing: CancellationToken::new(),
        peer: "here".into(),
    }
}

impl World {
    /// With these queues.
    pub(super) fn new(queues: &[&str]) -> Self {
        let now = Instant::now() + Duration::from_hours(1);
        let desk = Desk::new(DispatchOptions::default(), REPLICA, StdRng::seed_from_u64(1), now);
        let mut world = Self {
            desk,
            now,
            clock: 1_000_000_000_000,
            rows: BTreeMap::new(),
            queues: HashMap::new(),
            made: 0,
            paused: HashSet::new(),
            version: 0,
            buffers: HashMap::new(),
            streams: 0,
            next_job: 0,
            mail: Mail::default(),
            wakes: Vec::new(),
            done: Vec::new(),
            held: Vec::new(),
            hold: false,
            away: false,
            claims: Vec::new(),
            looks: 0,
            look_ups: 0,
            inspected: 0,
            told: Vec::new(),
        };
        for name in queues {
            world.create(name);
        }
        world
    }

    pub(super) fn create(&mut self, name: &str) -> QueueId {
        if !self.queues.contains_key(&queue(name)) {
            self.made += 1;
            self.queues.insert(queue(name), QueueId(self.made));
        }
        self.queues[&queue(name)]
    }

    /// A queue's row as the database has it.
    pub(super) fn row(&self, name: &QueueName) -> Option<QueueRow> {
        let id = *self.queues.get(name)?;
        let settings = QueueSettings { paused: self.paused.contains(&id), ..QueueSettings::default() };
        Some(QueueRow { id, name: name.clone(), settings, version: self.version, closing: false })
    }

    /// Pauses or resumes, through another replica.
    pub(super) fn pause(&mut self, name: &str, paused: bool) {
        let id = self.create(name);
        self.version += 1;
        if paused {
            self.paused.insert(id)
        } else {
            self.paused.remove(&id)
        };
    }

    /// The same through this one.
    pub(super) fn pause_here(&mut self, name: &str, paused: bool) {
        self.pause(name, paused);
        let row = self.row(&queue(name)).expect("it exists");
        self.mail.changed.push(row);
        self.run();
    }

    /// Stores jobs without telling anyone.
    pub(super) fn store(&mut self, name: &str, jobs: usize, payload: usize) -> Vec<JobId> {
        let queue = self.create(name);
        let stored = (0..jobs).map(|_| {
            self.clock += 1;
            self.next_job += 1;
            let row = Row {
                queue,
                payload,
                ready_at: Timestamp(self.clock),
                lease: None,
                lease_until: Timestamp::BEGINNING,
                attempts: 0,
                cancel_requested: false,
            };
            self.rows.insert(JobId(self.next_job), row);
            JobId(self.next_job)
        });
        stored.collect()
    }

    /// As through an Enqueue of this replica.
    pub(super) fn enqueue(&mut self, name: &str, jobs: usize) {
        self.enqueue_sized(name, jobs, 100);
    }

    pub(super) fn enqueue_sized(&mut self, name: &str, jobs: usize, payload: usize) {
        self.store(name, jobs, payload);
        let id = self.create(name);
        *self.mail.ready.entry(id).or_default() += jobs;
        self.run();
    }

    pub(super) fn open(&mut self, spec: StreamSpec) -> StreamNumber {
        self.streams += 1;
        let number = StreamNumber(self.streams);
        let opened = Frame::Heartbeat { in_flight: 0, in_flight_bytes: 0, claims_failing: false };
        let buffer = Arc::new(Buffer::new(opened, self.now));
        self.buffers.insert(number, buffer.clone());
        let ends_at = self.now + Duration::from_mins(5);
        self.mail.opened.push(Opening { number, spec, buffer, ends_at });
        self.run();
        number
    }

    pub(super) fn close(&mut self, number: StreamNumber) {
        if let Some(buffer) = self.buffers.remove(&number) {
            self.mail.closed.push((number, buffer.close()));
        }
        self.run();
    }

    /// One turn, and the answers to what it asked for.
    pub(super) fn turn(&mut self) {
        let (mail, done, wakes) = (mem::take(&mut self.mail), mem::take(&mut self.done), mem::take(&mut self.wakes));
        self.desk.turn(mail, done, wakes, self.now);
        for act in self.desk.take_acts() {
            if self.hold {
                self.held.push(act);
            } else {
                self.act(act);
            }
        }
    }

    /// Turns until nothing is left to do at this time.
    pub(super) fn run(&mut self) {
        for turns in 0.. {
            assert!(turns < 10_000, "the desk does not come to rest");
            self.turn();
            if self.done.is_empty() {
                return;
            }
        }
    }

    /// The database does what one caller asked it for; its answers are still on the way.
    pub(super) fn answer(&mut self, caller: &str) -> Vec<Done> {
        let of_caller = |act: &Act| matches!(act, Act::Claim { caller: by, .. } if by.as_str() == caller);
        let (now, later) = mem::take(&mut self.held).into_iter().partition(of_caller);
        self.held = later;
        let before = mem::take(&mut self.done);
        for act in now {
            self.act(act);
        }
        mem::replace(&mut self.done, before)
    }

    pub(super) fn deliver(&mut self, answers: Vec<Done>) {
        self.done.extend(answers);
        self.run();
    }

    pub(super) fn let_go(&mut self) {
        self.hold = false;
        for act in mem::take(&mut self.held) {
            self.act(act);
        }
        self.run();
    }

    /// Lets time pass, alarm by alarm.
    pub(super) fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        while let Some(next) = self.desk.next_turn().filter(|next| *next <= until) {
            self.move_to(next.max(self.now));
            self.run();
        }
        self.move_to(until);
        self.run();
    }

    fn move_to(&mut self, at: Instant) {
        // Whole microseconds alone, else steps of less would stop the database's clock while the broker's goes on.
        let micros = at.duration_since(self.now).as_nanos().div_ceil(1_000);
        self.clock += i64::try_from(micros).expect("short");
        self.now += Duration::from_micros(u64::try_from(micros).expect("short"));
    }

    /// Reads a stream until it has nothing to say.
    pub(super) fn read(&mut self, number: StreamNumber) -> Received {
        let mut received = Received::default();
        while let Some(more) = self.read_frame(number, &mut received) {
            if !more {
                break;
            }
        }
        self.run();
        received
    }

    pub(super) fn read_frame(&mut self, number: StreamNumber, received: &mut Received) -> Option<bool> {
        let buffer = self.buffers.get(&number)?;
        let (polled, note) = buffer.poll(Waker::noop(), self.now, 1 << 20);
        if note.taken {
            self.mail.taken.push(number);
        }
        if !note.stale.is_empty() {
            self.mail.stale.push((number, note.stale));
        }
        match polled {
            Poll::Pending => return None,
            Poll::Ready(None) => received.end = Some(Ok(())),
            Poll::Ready(Some(Err(failure))) => received.end = Some(Err(failure)),
            Poll::Ready(Some(Ok(frame))) => {
                match frame {
                    Frame::Jobs(jobs) => received.jobs.extend(jobs),
                    Frame::Revoked(leases) => received.revoked.extend(leases),
                    Frame::Heartbeat { in_flight, claims_failing, .. } => {
                        received.heartbeats.push((in_flight, claims_failing));
                    }
                    Frame::Drain(reason) => received.drains.push(reason),
                    Frame::Opened { .. } => {}
                }
                return Some(true);
            }
        }
        Some(false)
    }

    /// As through this replica.
    pub(super) fn ack(&mut self, token: &LeaseToken) {
        if self.rows.get(&token.job).is_some_and(|row| row.lease == Some(token.lease)) {
            self.rows.remove(&token.job);
        }
        self.mail.settled.push(LeaseRef { job: token.job, lease: token.lease });
        self.run();
    }

    pub(super) fn leased(&self) -> usize {
        self.rows.values().filter(|row| row.lease.is_some()).count()
    }

    fn act(&mut self, act: Act) {
        let away = || Failure::not_applied(Reason::DatabaseUnavailable, "away");
        match act {
            Act::Claim { number, claims, .. } => {
                self.claims.extend(claims.iter().map(|claim| (claim.queue, claim.slots.len())));
                let claimed = |world: &mut Self| claims.iter().flat_map(|claim| world.claim(claim)).collect();
                let result = if self.away { Err(away()) } else { Ok(claimed(self)) };
                self.done.push(Done::Claim { number, result });
            }
            Act::GiveBack(returned) => {
                let undone = returned.iter().map(|returned| self.give_back(returned.lease)).collect();
                self.done.push(Done::GiveBack { returned, result: Ok(undone) });
            }
            Act::Look(spots) => {
                self.looks += 1;
                let result = if self.away { Err(away()) } else { Ok(self.look(&spots)) };
                self.done.push(Done::Look { result });
            }
            Act::Inspect(leases) => {
                self.inspected += leases.len();
                let result = Ok(leases.iter().map(|lease| self.inspect(*lease)).collect());
                self.done.push(Done::Inspect { leases, result });
            }
            Act::Resolve { number, names } => {
                self.look_ups += names.len();
                let results = names.into_iter().map(|name| {
                    let row = self.row(&name);
                    (name, if self.away { Err(away()) } else { Ok(row) })
                });
                let results = results.collect();
                self.done.push(Done::Resolve { number, results });
            }
            Act::ReadSettings(names) => {
                let rows = names.iter().filter_map(|name| self.row(name)).collect();
                let result = if self.away { Err(away()) } else { Ok(rows) };
                self.done.push(Done::ReadSettings { names, result });
            }
            Act::Notify(wake) => self.told.push(wake),
        }
    }
}
