//! What the lanes are doing, and what they did.

use std::time::Instant;

use super::{Holds, LaneReport, Store, Window};
use crate::model::Caller;

impl Store {
    /// Requests that wait for a lane.
    pub fn waiting(&self) -> usize {
        self.inner.lanes.waiting()
    }

    /// The same by caller; those without any are left out.
    pub fn waiting_by_caller(&self) -> Vec<(Caller, usize)> {
        self.inner.lanes.waiting_by_caller()
    }

    /// Lanes that there may be.
    pub fn lanes_at_most(&self) -> usize {
        self.inner.lanes.at_most()
    }

    /// Lanes that are connected: at work, and idle.
    pub fn lanes(&self) -> (usize, usize) {
        self.inner.lanes.at_work_and_idle()
    }

    /// Lane time per caller since the start.
    pub fn holds(&self) -> Vec<(Caller, Holds)> {
        self.inner.lanes.ledger.holds()
    }

    /// Who had the lanes in `window`, with each caller's kinds of statements where `statements` says so.
    pub fn lane_report(&self, window: Window, statements: bool) -> LaneReport {
        self.inner.lanes.ledger.report(window, statements, Instant::now())
    }
}
