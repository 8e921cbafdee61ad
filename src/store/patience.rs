//! How long a request waits for a lane before it is taken back, and what its asker then hears.

use std::time::{Duration, Instant};

use super::budgets::EffectiveBudget;

/// The moments at which a request that still waits is looked at.
#[derive(Debug)]
pub(super) struct Patience {
    /// When every request should have had a lane.
    acquire_by: Instant,
    /// When its caller's budget may not keep it waiting any longer, where there is one.
    budget_by: Option<Instant>,
    /// The last moment that was looked at.
    looked_at: Option<Instant>,
}

/// What becomes of a request at such a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It goes on waiting.
    Wait,
    /// No lane was free in time.
    NoLane,
    /// Its caller's budget kept it waiting for as long as it may.
    OverBudget,
}

impl Patience {
    /// Of a request that waits since `now`.
    pub(super) fn new(now: Instant, acquire: Duration, budget: Option<EffectiveBudget>) -> Self {
        let caps = budget.filter(|held| held.budget.max_lanes.is_some() || held.budget.share.is_some());
        Self { acquire_by: now + acquire, budget_by: caps.map(|held| now + held.budget.max_wait), looked_at: None }
    }

    /// The next moment.
    pub(super) fn ends(&self) -> Option<Instant> {
        let after = |at: &Instant| self.looked_at.is_none_or(|looked_at| *at > looked_at);
        [Some(self.acquire_by), self.budget_by].into_iter().flatten().filter(after).min()
    }

    /// What becomes of it at the moment `at`, which [`Patience::ends`] named. `is_held_back` says whether its caller's budget is
    /// why it waits.
    pub(super) fn verdict(&mut self, at: Instant, is_held_back: impl FnOnce() -> bool) -> Verdict {
        self.looked_at = Some(at);
        let Some(budget_by) = self.budget_by else { return Verdict::NoLane };
        match (is_held_back(), at >= budget_by, at >= self.acquire_by) {
            (true, true, _) => Verdict::OverBudget,
            (false, _, true) => Verdict::NoLane,
            // Held back, and its budget lets it wait for longer than others do; or not held back, and others may still wait.
            _ => Verdict::Wait,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Budget, BudgetSource};

    const ACQUIRE: Duration = Duration::from_secs(2);

    /// Milliseconds at which it is looked at, and the verdicts, while `held_back` is answered.
    fn verdicts(max_wait: Option<u64>, held_back: bool) -> Vec<(u128, Verdict)> {
        let now = Instant::now();
        let budget = max_wait.map(|millis| EffectiveBudget {
            budget: Budget { max_lanes: Some(1), max_wait: Duration::from_millis(millis), share: None },
            source: BudgetSource::Database,
        });
        let mut patience = Patience::new(now, ACQUIRE, budget);
        let mut seen = Vec::new();
        while let Some(at) = patience.ends() {
            let verdict = patience.verdict(at, || held_back);
            seen.push(((at - now).as_millis(), verdict));
            if verdict != Verdict::Wait {
                break;
            }
        }
        seen
    }

    #[test]
    fn without_a_budget_a_request_waits_as_long_as_any() {
        assert_eq!(verdicts(None, false), [(2_000, Verdict::NoLane)]);
    }

    #[test]
    fn a_request_that_its_budget_holds_back_waits_for_max_wait_be_it_shorter_or_longer() {
        assert_eq!(verdicts(Some(500), true), [(500, Verdict::OverBudget)]);
        assert_eq!(verdicts(Some(2_000), true), [(2_000, Verdict::OverBudget)]);
        assert_eq!(verdicts(Some(9_000), true), [(2_000, Verdict::Wait), (9_000, Verdict::OverBudget)]);
    }

    #[test]
    fn a_request_that_waits_for_other_reasons_is_not_told_that_it_was_the_budget() {
        assert_eq!(verdicts(Some(500), false), [(500, Verdict::Wait), (2_000, Verdict::NoLane)]);
        assert_eq!(verdicts(Some(9_000), false), [(2_000, Verdict::NoLane)]);
    }

    #[test]
    fn a_budget_without_a_cap_changes_nothing() {
        let open = EffectiveBudget { budget: Budget::default(), source: BudgetSource::Database };
        let now = Instant::now();
        let mut patience = Patience::new(now, ACQUIRE, Some(open));
        assert_eq!(patience.ends(), Some(now + ACQUIRE));
        assert_eq!(patience.verdict(now + ACQUIRE, || true), Verdict::NoLane);
    }
}
