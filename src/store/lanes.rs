//! The lanes: each an actor that owns one database connection.
//!
//! All SQL of the process runs on lanes. A request is handed over with its caller and runs to its end whatever happens to
//! the RPC that asked for it, so a cancelled call can never leave a transaction open, and wait and hold time are exact.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

use tokio::sync::{Notify, mpsc, watch};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    counts::Counts,
    crew::Crew,
    engine::{Engine, LaneRole, Wake},
    lane,
    ledger::Ledger,
    line::{Batch, Cap, Ended, Kind, Line, LineOptions, Next, Queued},
    request::Request,
};
use crate::model::{Caller, Failure, Reason};

/// How lanes treat their connections.
#[derive(Debug, Clone)]
pub struct LaneOptions {
    /// Connections for lanes.
    pub lanes: usize,
    /// Opening a connection takes at most this long.
    pub connect_timeout: Duration,
    /// First pause between tries to connect; it doubles, jittered.
    pub reconnect_min: Duration,
    /// Longest pause between tries to connect.
    pub reconnect_max: Duration,
    /// A statement with its commit takes at most this long by the lane's own watch; then its outcome is unknown and the
    /// connection is dropped. The database's own statement time-out is shorter.
    pub statement_deadline: Duration,
    /// An idle lane asks the database this often whether it is still there.
    pub idle_use: Duration,
    /// A lane idle for longer asks before it takes work, so that a connection that died meanwhile costs no request.
    pub fresh_for: Duration,
    /// Whether the first lane applies missing migrations.
    pub migrate: bool,
}

impl Default for LaneOptions {
    fn default() -> Self {
        Self {
            lanes: 8,
            connect_timeout: Duration::from_secs(5),
            reconnect_min: Duration::from_millis(50),
            reconnect_max: Duration::from_secs(5),
            statement_deadline: Duration::from_secs(15),
            idle_use: Duration::from_secs(30),
            fresh_for: Duration::from_secs(1),
            migrate: false,
        }
    }
}

/// What a lane is to do next.
pub(super) enum Work {
    Run(Batch<Request>),
    /// Ask the database whether it is still there.
    Ping,
    /// End: the line is closed and empty.
    End,
}

struct State {
    line: Line<Request>,
    crew: Crew<Arc<Notify>>,
    closed: bool,
    /// When a lane last lost its connection: what took that one may have taken the others, however lately they were used.
    lost_at: Option<Instant>,
}

/// The line, and the lanes behind it.
pub(super) struct Lanes {
    at_most: usize,
    pub(super) engine: Arc<dyn Engine>,
    pub(super) options: LaneOptions,
    pub(super) ledger: Ledger,
    pub(super) counts: Counts,
    /// True once the schema is as new as this binary.
    pub(super) schema: watch::Sender<bool>,
    state: Mutex<State>,
    connected: AtomicUsize,
    writers: AtomicUsize,
    available: watch::Sender<bool>,
    wakes: mpsc::Sender<Wake>,
    pub(super) closing: CancellationToken,
    running: TaskTracker,
}

impl Lanes {
    pub(super) fn start(
        engine: Arc<dyn Engine>,
        options: LaneOptions,
        line: LineOptions,
        (ledger, counts): (Ledger, Counts),
        wakes: mpsc::Sender<Wake>,
    ) -> Arc<Self> {
        let roles = engine.lanes(options.lanes);
        let lanes = Arc::new(Self {
            at_most: roles.len(),
            engine,
            options,
            ledger,
            counts,
            schema: watch::Sender::new(false),
            state: Mutex::new(State {
                line: Line::new(line, roles.len()),
                crew: Crew::new(),
                closed: false,
                lost_at: None,
            }),
            connected: AtomicUsize::new(0),
            writers: AtomicUsize::new(0),
            available: watch::Sender::new(false),
            wakes,
            closing: CancellationToken::new(),
            running: TaskTracker::new(),
        });
        for (index, role) in roles.into_iter().enumerate() {
            lanes.running.spawn(lane::run(Arc::clone(&lanes), index, role));
        }
        lanes.running.close();
        lanes
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True while a lane that writes is connected to a current schema.
    pub(super) fn available(&self) -> watch::Receiver<bool> {
        self.available.subscribe()
    }

    pub(super) fn is_available(&self) -> bool {
        *self.available.borrow()
    }

    /// Requests that wait for a lane.
    pub(super) fn waiting(&self) -> usize {
        self.state().line.len()
    }

    /// The same by caller.
    pub(super) fn waiting_by_caller(&self) -> Vec<(Caller, usize)> {
        self.state().line.by_caller()
    }

    /// Lanes that there may be.
    pub(super) fn at_most(&self) -> usize {
        self.at_most
    }

    /// Lanes that are connected: at work, and idle.
    pub(super) fn at_work_and_idle(&self) -> (usize, usize) {
        let idle = self.state().crew.idle();
        (self.connected.load(SeqCst).saturating_sub(idle), idle)
    }

    /// Puts a request into the line and wakes a lane for it.
    pub(super) fn submit(&self, caller: &Caller, request: Request) -> Result<(), Failure> {
        let (kind, now) = (request.kind(), Instant::now());
        let mut state = self.state();
        if state.closed {
            return Err(Failure::not_applied(Reason::Draining, "this replica is going away; use another one"));
        }
        let gathers_until = state.line.gathers_until(caller, kind, now);
        state.line.push(caller, request).map_err(|_| {
            Failure::not_applied(
                Reason::Overloaded,
                "more requests wait for a database connection than may; try again later",
            )
        })?;
        let armed = gathers_until.is_some_and(|at| state.crew.is_armed(kind, at));
        if !armed && !state.line.is_capped(caller, kind) {
            state.crew.wake_for(kind);
        }
        Ok(())
    }

    /// Whether its caller's budget is why a request of this kind waits.
    pub(super) fn is_held_back(&self, caller: &Caller, kind: Kind) -> bool {
        self.state().line.is_held_back(caller, kind, Instant::now())
    }

    /// These budgets hold from now on, and no others.
    pub(super) fn set_caps(&self, caps: HashMap<Caller, Cap>) {
        let mut state = self.state();
        state.line.set_caps(caps);
        state.crew.wake_all();
    }

    /// The next work for a connected lane. `used` is when its connection last answered.
    pub(super) async fn next(&self, lane: usize, role: LaneRole, wake: &Arc<Notify>, used: Instant) -> Work {
        let mut woken = false;
        loop {
            let now = Instant::now();
            let idle_since = now.saturating_duration_since(used);
            let again_at = {
                let mut state = self.state();
                let suspect = idle_since > self.options.fresh_for || state.lost_at.is_some_and(|lost| lost > used);
                if woken && suspect {
                    return Work::Ping;
                }
                state.crew.asks(lane);
                match state.line.next(role, now) {
                    Next::Batch(batch) => {
                        state.wake_for_the_rest(now);
                        return Work::Run(batch);
                    }
                    Next::Nothing { .. } if state.closed => return Work::End,
                    Next::Nothing { again_at } => {
                        state.crew.rest(lane, role, Arc::clone(wake), again_at);
                        again_at
                    }
                }
            };
            let ping_at = used + self.options.idle_use;
            let until = again_at.map_or(ping_at, |at| at.min(ping_at));
            let timed_out = tokio::time::timeout_at(until.into(), wake.notified()).await.is_err();
            self.state().crew.up(lane, role);
            woken = true;
            if timed_out && Instant::now() >= ping_at {
                return Work::Ping;
            }
        }
    }

    /// A batch of `lane` has ended, which asks for work again at once where `again` says so. What the caller's budget held back
    /// may go now, and perhaps that lane takes other work or none of this kind.
    pub(super) fn done(&self, (lane, role): (usize, LaneRole), ended: &Ended, hold: Duration, again: bool) {
        let mut state = self.state();
        state.line.done(ended, hold);
        if again {
            state.crew.returns(lane, role);
        }
        state.wake_for_the_rest(Instant::now());
    }

    /// Nothing was sent of these: they wait for another lane, but those that nobody waits for any more, which would run
    /// whenever the database is back.
    pub(super) fn put_back(&self, caller: &Caller, mut requests: Vec<Request>) {
        requests.retain(|request| !request.is_abandoned());
        let mut state = self.state();
        let kinds: Vec<Kind> = requests.iter().map(Queued::kind).collect();
        for request in &requests {
            request.ticket().put_back();
        }
        state.line.put_back(caller, requests);
        for kind in kinds {
            state.crew.wake_for(kind);
        }
    }

    /// A lane has connected.
    pub(super) fn joined(&self, role: LaneRole, again: bool) {
        self.connected.fetch_add(1, SeqCst);
        if writes(role) && self.writers.fetch_add(1, SeqCst) == 0 {
            self.available.send_replace(true);
        }
        if again {
            self.look_at_everything();
        }
    }

    /// A lane has lost its connection.
    pub(super) fn left(&self, lane: usize, role: LaneRole) {
        self.connected.fetch_sub(1, SeqCst);
        if writes(role) && self.writers.fetch_sub(1, SeqCst) == 1 {
            self.available.send_replace(false);
        }
        let mut state = self.state();
        state.crew.lost(lane);
        state.lost_at = Some(Instant::now());
        // What it was woken for may still wait, and the others see whether theirs is lost as well.
        state.crew.wake_all();
    }

    /// Tells this replica that anything may have been missed.
    pub(super) fn look_at_everything(&self) {
        // A full channel holds wake-ups that are not read yet; the look after them sees everything as well.
        drop(self.wakes.try_send(Wake::Everything));
    }

    /// Takes nothing new; returns when every lane has ended what it had.
    pub(super) async fn drain(&self) {
        {
            let mut state = self.state();
            state.closed = true;
            state.crew.wake_all();
        }
        self.closing.cancel();
        self.running.wait().await;
    }
}

fn writes(role: LaneRole) -> bool {
    matches!(role, LaneRole::Any | LaneRole::Write)
}

impl State {
    /// Wakes an idle lane for what no other lane is about to take.
    fn wake_for_the_rest(&mut self, now: Instant) {
        self.crew.wake_for_the_rest(&self.line, now);
    }
}
