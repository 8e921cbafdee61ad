//! What one caller had of the lanes, by kind of statement.

use std::time::Duration;

use super::{
    spread::Spread,
    window::{Window, Windows},
};

/// What a hold was for, known at its end.
#[derive(Debug, Clone, Copy)]
pub struct Ran {
    /// How long each of its requests had waited for it.
    pub waits: Spread,
    /// Statements that ran: several where merged requests ran again in halves.
    pub statements: u64,
    /// Jobs or tokens in them.
    pub rows: u64,
    /// Statements that failed.
    pub errors: u64,
}

impl Ran {
    /// One statement that nobody waited for.
    pub fn unasked(failed: bool) -> Self {
        Self { waits: Spread::EMPTY, statements: 1, rows: 0, errors: u64::from(failed) }
    }
}

/// Figures of one slot.
#[derive(Debug, Clone)]
pub(super) struct Sums {
    /// Nanoseconds on lanes: of a hold that began before the slot, the part in it.
    pub(super) held: u64,
    holds: Spread,
    waits: Spread,
    statements: u64,
    rows: u64,
    errors: u64,
}

impl Sums {
    pub(super) const EMPTY: Self =
        Self { held: 0, holds: Spread::EMPTY, waits: Spread::EMPTY, statements: 0, rows: 0, errors: 0 };

    pub(super) fn merge(&mut self, other: &Self) {
        self.held += other.held;
        self.holds.merge(&other.holds);
        self.waits.merge(&other.waits);
        self.statements += other.statements;
        self.rows += other.rows;
        self.errors += other.errors;
    }

    /// As everybody may read them.
    pub(super) fn shown(&self) -> LaneUse {
        LaneUse {
            holds: self.holds.count,
            held: Duration::from_nanos(self.held),
            hold_p50: self.holds.quantile(0.5),
            hold_p99: self.holds.quantile(0.99),
            hold_max: Duration::from_nanos(self.holds.max),
            waits: self.waits.count,
            waited: Duration::from_nanos(self.waits.sum),
            wait_p50: self.waits.quantile(0.5),
            wait_p99: self.waits.quantile(0.99),
            wait_max: Duration::from_nanos(self.waits.max),
            statements: self.statements,
            rows: self.rows,
            errors: self.errors,
        }
    }
}

/// What somebody had of the lanes in a window. Quantiles are off by a quarter at most; all else is exact.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LaneUse {
    /// Holds that ended.
    pub holds: u64,
    /// Time on lanes, with the parts of holds that began before the window or have not ended yet.
    pub held: Duration,
    /// Half of the holds were no longer.
    pub hold_p50: Duration,
    /// 99 of 100 holds were no longer.
    pub hold_p99: Duration,
    /// The longest hold that ended.
    pub hold_max: Duration,
    /// Requests that got a lane.
    pub waits: u64,
    /// Time that they had waited for it, all together.
    pub waited: Duration,
    /// Half of them had waited no longer.
    pub wait_p50: Duration,
    /// 99 of 100 had waited no longer.
    pub wait_p99: Duration,
    /// The longest of these waits.
    pub wait_max: Duration,
    /// Statements that ran.
    pub statements: u64,
    /// Jobs or tokens in them.
    pub rows: u64,
    /// Statements that failed.
    pub errors: u64,
}

/// One kind of statement of one caller.
#[derive(Debug)]
pub(super) struct Account {
    pub(super) statement: &'static str,
    windows: Windows<Sums>,
}

impl Account {
    pub(super) fn new(statement: &'static str) -> Self {
        Self { statement, windows: Windows::new(&Sums::EMPTY) }
    }

    /// A hold from `from` to `to` has ended.
    pub(super) fn held(&mut self, from: u64, to: u64, ran: &Ran) {
        let length = Duration::from_nanos(to - from);
        self.windows.over(from, to, &Sums::EMPTY, |sums, part| sums.held += part);
        self.windows.at(to, &Sums::EMPTY, |sums| {
            sums.holds.add(length);
            sums.waits.merge(&ran.waits);
            sums.statements += ran.statements;
            sums.rows += ran.rows;
            sums.errors += ran.errors;
        });
    }

    /// What lies in `window`, with what is under way since each of `open`.
    pub(super) fn sums(&self, window: Window, now: u64, open: impl Iterator<Item = u64>) -> Sums {
        let mut sums = Sums::EMPTY;
        self.windows.parts(window, now).for_each(|part| sums.merge(part));
        sums.held += open.map(|since| now.saturating_sub(since.max(window.begins(now)))).sum::<u64>();
        sums
    }
}
