//! Callers' budgets.

use super::Metrics;
use crate::{
    model::Caller,
    telemetry::names::{BUDGET_LANES, BUDGET_SHARE},
};

/// What a caller may have of this replica's lanes.
#[derive(Debug, Clone, PartialEq)]
pub struct BudgetReading {
    /// Who. Whoever reads keeps budgets bounded.
    pub caller: Caller,
    /// Lanes that it may hold at once.
    pub lanes: Option<u32>,
    /// Part of all lane time that it gets while others wait.
    pub share: Option<f64>,
}

impl Metrics {
    /// A request was refused for its caller's budget.
    pub fn refused_by_budget(&self, caller: &Caller) {
        self.0.lanes.refused.add(1, &[self.0.lanes.callers.of(caller)]);
    }

    /// Reads the budgets whenever somebody asks for metrics. Once per handle. A caller with a budget has series of its own
    /// from then on.
    pub fn watch_budgets(&self, read: impl Fn() -> Vec<BudgetReading> + Clone + Send + Sync + 'static) {
        let lanes: fn(&BudgetReading) -> Option<f64> = |budget| budget.lanes.map(f64::from);
        for (declared, value) in [(&BUDGET_LANES, lanes), (&BUDGET_SHARE, |budget| budget.share)] {
            let (read, callers) = (read.clone(), self.0.lanes.callers.clone());
            self.0.maker.observed(declared, move |say| {
                for budget in read() {
                    let label = callers.keep(&budget.caller);
                    if let Some(value) = value(&budget) {
                        say(value, &[label]);
                    }
                }
            });
        }
    }
}
