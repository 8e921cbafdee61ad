//! Who held the lanes, for how long, and how long for whom requests waited: every lane's time from its start on has a name or
//! was idle.
//!
//! A lane says when a hold begins and when it ends; what lies between two holds is idle time. So for each lane the holds of all
//! callers and its idle time add up to the wall clock. Opening a connection is a hold of `leasehold.lane` (statement `connect`);
//! the pauses between tries, and waiting for the first lane to have looked at the schema, are idle time.
//!
//! Memory is bounded whatever callers come: those named in the configuration, those with a budget and the broker's own always
//! have an account; of the others the first ones do, up to the bound, and the rest are summed as `other`. Accounts are never
//! given up, so that sums since the start are exact.

mod account;
mod report;
mod spread;
mod window;

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use self::{account::Account, spread::nanos, window::Windows};
pub use self::{
    account::{LaneUse, Ran},
    report::{CallerUse, LaneReport, LaneTime, StatementUse},
    spread::Spread,
    window::Window,
};
use crate::model::Caller;

/// Lane time of one caller since the start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Holds {
    /// Times that a lane was held.
    pub count: u64,
    /// Time on lanes.
    pub held: Duration,
    /// Time that requests waited for a lane.
    pub waited: Duration,
}

/// Accounts of all callers and the state of all lanes. The lock is held for some hundred nanoseconds at a time, never over
/// anything that waits.
#[derive(Debug)]
pub struct Ledger {
    started: Instant,
    /// Callers beside those named, and the broker's own, that have an account at most.
    guests_at_most: usize,
    books: Mutex<Books>,
}

#[derive(Debug)]
struct Books {
    /// Callers that always have an account.
    named: HashSet<Caller>,
    places: HashMap<Caller, usize>,
    callers: Vec<CallerAccounts>,
    guests: usize,
    lanes: Vec<LaneState>,
    idle: Windows<u64>,
}

#[derive(Debug)]
struct CallerAccounts {
    caller: Caller,
    /// One for each kind of statement that ran for it; as many as the program has.
    accounts: Vec<Account>,
    refused: Windows<u64>,
}

/// What a lane does, since when, and what it did before.
#[derive(Debug, Clone, Copy)]
struct LaneState {
    doing: Doing,
    /// Nanoseconds since the start.
    since: u64,
    held: u64,
    idle: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    Nothing,
    /// Holds for a caller, by its place, and its account's.
    Holds(usize, usize),
    /// It has ended.
    Over,
}

impl Ledger {
    /// Of `lanes` lanes, all idle from now on, with accounts for `at_most` callers, the `named` ones among them.
    pub fn new(at_most: usize, named: impl IntoIterator<Item = Caller>, lanes: usize) -> Self {
        let named: HashSet<Caller> = named.into_iter().collect();
        let idle = LaneState { doing: Doing::Nothing, since: 0, held: 0, idle: 0 };
        Self {
            started: Instant::now(),
            guests_at_most: at_most.saturating_sub(named.len()),
            books: Mutex::new(Books {
                named,
                places: HashMap::new(),
                callers: Vec::new(),
                guests: 0,
                lanes: vec![idle; lanes],
                idle: Windows::new(&0),
            }),
        }
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn at(&self, instant: Instant) -> u64 {
        nanos(instant.saturating_duration_since(self.started))
    }

    /// `lane` is held from `now` on.
    pub fn began(&self, lane: usize, caller: &Caller, statement: &'static str, now: Instant) {
        if cfg!(leasehold_without_attribution) {
            return;
        }
        let now = self.at(now);
        let mut books = self.books();
        let place = books.place(caller, self.guests_at_most);
        let account = books.callers[place].account(statement);
        books.turn(lane, Doing::Holds(place, account), now, None);
    }

    /// The hold of `lane` has ended.
    pub fn ended(&self, lane: usize, ran: &Ran, now: Instant) {
        if cfg!(leasehold_without_attribution) {
            return;
        }
        let now = self.at(now);
        self.books().turn(lane, Doing::Nothing, now, Some(ran));
    }

    /// `lane` is not there any more.
    pub fn closed(&self, lane: usize, now: Instant) {
        let now = self.at(now);
        self.books().turn(lane, Doing::Over, now, None);
    }

    /// A request was refused for its caller's budget.
    pub fn refused(&self, caller: &Caller) {
        let now = self.at(Instant::now());
        let mut books = self.books();
        let place = books.place(caller, self.guests_at_most);
        books.callers[place].refused.at(now, &0, |count| *count += 1);
    }

    /// These callers have an account from now on, besides those that had one before.
    pub fn name(&self, callers: impl IntoIterator<Item = Caller>) {
        self.books().named.extend(callers);
    }

    /// Sums since the start, of holds that have ended.
    pub fn holds(&self) -> Vec<(Caller, Holds)> {
        let report = self.report(Window::SinceStart, false, Instant::now());
        let of = |caller: CallerUse| {
            let lanes = caller.lanes;
            (caller.caller, Holds { count: lanes.holds, held: lanes.held, waited: lanes.waited })
        };
        let mut all: Vec<_> = report.callers.into_iter().map(of).collect();
        all.sort_by(|(a, _), (b, _)| a.cmp(b));
        all
    }
}

impl Books {
    /// Where a caller's accounts are: its own, or those of `other`.
    fn place(&mut self, caller: &Caller, guests_at_most: usize) -> usize {
        if let Some(&place) = self.places.get(caller) {
            return place;
        }
        let always = caller.is_brokers()
            || *caller == Caller::other()
            || *caller == Caller::unattributed()
            || self.named.contains(caller);
        if !always {
            if self.guests >= guests_at_most {
                return self.place(&Caller::other(), guests_at_most);
            }
            self.guests += 1;
        }
        let place = self.callers.len();
        self.callers.push(CallerAccounts { caller: caller.clone(), accounts: Vec::new(), refused: Windows::new(&0) });
        self.places.insert(caller.clone(), place);
        place
    }

    /// `lane` does something else from `now` on.
    fn turn(&mut self, lane: usize, doing: Doing, now: u64, ran: Option<&Ran>) {
        let state = &mut self.lanes[lane];
        let (from, to) = (state.since, now.max(state.since));
        match state.doing {
            Doing::Nothing => {
                state.idle += to - from;
                self.idle.over(from, to, &0, |sum, part| *sum += part);
            }
            Doing::Holds(place, account) => {
                state.held += to - from;
                let ran = ran.copied().unwrap_or(Ran::unasked(true));
                self.callers[place].accounts[account].held(from, to, &ran);
            }
            Doing::Over => return,
        }
        (state.doing, state.since) = (doing, to);
    }
}

impl CallerAccounts {
    fn account(&mut self, statement: &'static str) -> usize {
        self.accounts.iter().position(|account| account.statement == statement).unwrap_or_else(|| {
            self.accounts.push(Account::new(statement));
            self.accounts.len() - 1
        })
    }
}

#[cfg(test)]
mod tests;
