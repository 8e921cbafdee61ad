//! The ledger as everybody may read it.

use std::{
    cmp::Reverse,
    time::{Duration, Instant},
};

use super::{
    CallerAccounts, Doing, LaneState, Ledger,
    account::{LaneUse, Sums},
    window::Window,
};
use crate::model::Caller;

/// Callers whose accounts are added up under one hold of the lock.
const AT_ONCE: usize = 32;

/// Who had the lanes in a window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneReport {
    /// Which window.
    pub window: Window,
    /// What it covers: at least its name, a fifth more at most; less where the broker started later.
    pub covered: Duration,
    /// Lanes that there are, connected or not.
    pub lanes: usize,
    /// Lanes that are held at this instant.
    pub held_now: usize,
    /// Lane time that nobody held. With the callers' holds it adds up to `lanes` × `covered`.
    pub idle: Duration,
    /// Everybody who ever held a lane or was refused one, the longest holders of the window first.
    pub callers: Vec<CallerUse>,
    /// Each lane since its start.
    pub per_lane: Vec<LaneTime>,
}

/// One caller's part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallerUse {
    /// Who; `other` for all past the bound on callers.
    pub caller: Caller,
    /// All its statements together.
    pub lanes: LaneUse,
    /// Lanes that it holds at this instant.
    pub held_now: usize,
    /// Requests refused for its budget.
    pub refused: u64,
    /// Each kind of statement, the longest held first; empty where nobody asked for them.
    pub statements: Vec<StatementUse>,
}

/// One kind of statement of one caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatementUse {
    /// Its name.
    pub statement: &'static str,
    /// Its part.
    pub lanes: LaneUse,
}

/// A lane's time since its start. Both add up to the wall clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaneTime {
    /// Held for somebody.
    pub held: Duration,
    /// Not held.
    pub idle: Duration,
}

impl LaneReport {
    /// A length of time as a part of all lane time in the window; 0 to 1.
    pub fn share(&self, held: Duration) -> f64 {
        let lanes = u32::try_from(self.lanes).unwrap_or(u32::MAX);
        let all = self.covered.as_secs_f64() * f64::from(lanes);
        if all > 0.0 { held.as_secs_f64() / all } else { 0.0 }
    }

    /// How many lanes were held on average for that much hold time.
    pub fn average_lanes(&self, held: Duration) -> f64 {
        if self.covered.is_zero() { 0.0 } else { held.as_secs_f64() / self.covered.as_secs_f64() }
    }
}

impl Ledger {
    /// What happened in `window` up to `now`, with each kind of statement where `statements` says so. The lock is let go in
    /// between where callers are many; holds that end meanwhile may then count up to a few hundred microseconds more.
    pub fn report(&self, window: Window, statements: bool, now: Instant) -> LaneReport {
        let now = self.at(now);
        let mut report = self.report_of_lanes(window, now);
        let mut done = 0;
        loop {
            let books = self.books();
            if done >= books.callers.len() {
                break;
            }
            let lanes = &books.lanes;
            let part = books.callers.iter().enumerate().skip(done).take(AT_ONCE);
            report.callers.extend(part.map(|(place, caller)| caller.shown(place, lanes, window, statements, now)));
            done += AT_ONCE;
        }
        report.callers.sort_by(|a, b| b.lanes.held.cmp(&a.lanes.held).then_with(|| a.caller.cmp(&b.caller)));
        report
    }

    fn report_of_lanes(&self, window: Window, now: u64) -> LaneReport {
        let books = self.books();
        let begins = window.begins(now);
        let mut idle: u64 = books.idle.parts(window, now).sum();
        let idle_lanes = books.lanes.iter().filter(|lane| lane.doing == Doing::Nothing);
        idle += idle_lanes.map(|lane| now.saturating_sub(lane.since.max(begins))).sum::<u64>();
        LaneReport {
            window,
            covered: window.covered(now),
            lanes: books.lanes.len(),
            held_now: books.lanes.iter().filter(|lane| matches!(lane.doing, Doing::Holds(..))).count(),
            idle: Duration::from_nanos(idle),
            callers: Vec::new(),
            per_lane: books.lanes.iter().map(|lane| lane.time(now)).collect(),
        }
    }
}

impl LaneState {
    fn time(&self, now: u64) -> LaneTime {
        let open = now.saturating_sub(self.since);
        let (held, idle) = match self.doing {
            Doing::Holds(..) => (self.held + open, self.idle),
            Doing::Nothing => (self.held, self.idle + open),
            Doing::Over => (self.held, self.idle),
        };
        LaneTime { held: Duration::from_nanos(held), idle: Duration::from_nanos(idle) }
    }
}

impl CallerAccounts {
    fn shown(&self, place: usize, lanes: &[LaneState], window: Window, statements: bool, now: u64) -> CallerUse {
        let open = |at: usize| {
            let holds = move |lane: &&LaneState| lane.doing == Doing::Holds(place, at);
            lanes.iter().filter(holds).map(|lane| lane.since)
        };
        let mut all = Sums::EMPTY;
        let mut shown = Vec::new();
        for (at, account) in self.accounts.iter().enumerate() {
            let sums = account.sums(window, now, open(at));
            all.merge(&sums);
            if statements && (sums.held > 0 || window == Window::SinceStart) {
                shown.push(StatementUse { statement: account.statement, lanes: sums.shown() });
            }
        }
        shown.sort_by_key(|statement| Reverse(statement.lanes.held));
        CallerUse {
            caller: self.caller.clone(),
            lanes: all.shown(),
            held_now: (0..self.accounts.len()).map(|at| open(at).count()).sum(),
            refused: self.refused.parts(window, now).sum(),
            statements: shown,
        }
    }
}
