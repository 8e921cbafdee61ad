//! Callers' lane time and budgets.

use std::{collections::HashMap, fmt, time::Duration};

use super::time;
use crate::{
    model::{Budget, BudgetSource, Caller, Failure, Invalid, Share},
    store::{BudgetList, CallerUse, EffectiveBudget, LaneReport, LaneUse, Window},
    v1,
};

/// The window that a client asks for.
pub(in crate::grpc) fn window(sent: i32) -> Result<Window, Invalid> {
    use v1::CallerWindow as Sent;
    match Sent::try_from(sent) {
        Ok(Sent::TenSeconds) => Ok(Window::TenSeconds),
        Ok(Sent::OneMinute | Sent::Unspecified) => Ok(Window::OneMinute),
        Ok(Sent::TenMinutes) => Ok(Window::TenMinutes),
        Ok(Sent::OneHour) => Ok(Window::OneHour),
        Ok(Sent::SinceStart) => Ok(Window::SinceStart),
        Err(_) => Err(Invalid::new("window", "must be a known window")),
    }
}

fn shown_window(window: Window) -> v1::CallerWindow {
    match window {
        Window::TenSeconds => v1::CallerWindow::TenSeconds,
        Window::OneMinute => v1::CallerWindow::OneMinute,
        Window::TenMinutes => v1::CallerWindow::TenMinutes,
        Window::OneHour => v1::CallerWindow::OneHour,
        Window::SinceStart => v1::CallerWindow::SinceStart,
    }
}

/// What is known beside the ledger at this instant.
pub(in crate::grpc) struct Beside {
    /// Which replica this is.
    pub(in crate::grpc) replica: String,
    /// Lanes that are connected.
    pub(in crate::grpc) connected: usize,
    /// Requests that wait, by caller.
    pub(in crate::grpc) waiting: Vec<(Caller, usize)>,
    /// Budgets that hold.
    pub(in crate::grpc) budgets: BudgetList,
}

/// One snapshot.
pub(in crate::grpc) fn snapshot(report: &LaneReport, beside: Beside) -> v1::CallerSnapshot {
    let waiting = beside.waiting.iter().map(|(_, count)| count).sum();
    let told_apart: HashMap<&Caller, usize> = report.callers.iter().zip(0..).map(|(is, at)| (&is.caller, at)).collect();
    let other = Caller::other();
    // Whoever has no place in the ledger yet, or none of its own, waits as part of the others.
    let mut waits: HashMap<Caller, usize> = HashMap::new();
    for (caller, count) in beside.waiting {
        let known = told_apart.contains_key(&caller) || beside.budgets.contains_key(&caller);
        *waits.entry(if known { caller } else { other.clone() }).or_default() += count;
    }
    let mut callers: Vec<v1::CallerUse> = report
        .callers
        .iter()
        .map(|caller| caller_use(report, caller, waits.remove(&caller.caller).unwrap_or_default(), &beside.budgets))
        .filter(is_worth_showing)
        .collect();
    let mut unseen: Vec<&Caller> = beside.budgets.keys().filter(|caller| !told_apart.contains_key(caller)).collect();
    unseen.sort();
    let quiet = |caller: &Caller| CallerUse {
        caller: caller.clone(),
        lanes: LaneUse::default(),
        held_now: 0,
        refused: 0,
        statements: Vec::new(),
    };
    for caller in unseen.into_iter().chain(waits.contains_key(&other).then_some(&other)) {
        let waiting = waits.get(caller).copied().unwrap_or_default();
        callers.push(caller_use(report, &quiet(caller), waiting, &beside.budgets));
    }
    v1::CallerSnapshot {
        replica: beside.replica,
        window: shown_window(report.window).into(),
        covered: Some(time::duration(report.covered)),
        lanes: count(report.lanes),
        lanes_at_work: count(report.held_now),
        waiting: count(waiting),
        idle: Some(time::duration(report.idle)),
        callers,
        lanes_connected: count(beside.connected),
    }
}

fn is_worth_showing(caller: &v1::CallerUse) -> bool {
    let is_used = |lanes: &v1::LaneUse| lanes.holds > 0 || lanes.held != Some(time::duration(Duration::ZERO));
    caller.refused > 0 || caller.waiting > 0 || caller.budget.is_some() || caller.r#use.as_ref().is_some_and(is_used)
}

fn caller_use(report: &LaneReport, caller: &CallerUse, waiting: usize, budgets: &BudgetList) -> v1::CallerUse {
    let statement = |is: &crate::store::StatementUse| v1::StatementUse {
        statement: is.statement.to_owned(),
        r#use: Some(lane_use(report, &is.lanes)),
    };
    v1::CallerUse {
        caller: caller.caller.as_str().to_owned(),
        r#use: Some(lane_use(report, &caller.lanes)),
        budget: budgets.get(&caller.caller).map(budget_shown),
        lanes_held: count(caller.held_now),
        refused: caller.refused,
        statements: caller.statements.iter().map(statement).collect(),
        waiting: count(waiting),
    }
}

fn lane_use(report: &LaneReport, lanes: &LaneUse) -> v1::LaneUse {
    let duration = |length: Duration| Some(time::duration(length));
    v1::LaneUse {
        holds: lanes.holds,
        held: duration(lanes.held),
        share: report.share(lanes.held),
        average_lanes: report.average_lanes(lanes.held),
        hold_p50: duration(lanes.hold_p50),
        hold_p99: duration(lanes.hold_p99),
        hold_max: duration(lanes.hold_max),
        waits: lanes.waits,
        waited: duration(lanes.waited),
        wait_p50: duration(lanes.wait_p50),
        wait_p99: duration(lanes.wait_p99),
        wait_max: duration(lanes.wait_max),
        statements: lanes.statements,
        rows: lanes.rows,
        errors: lanes.errors,
    }
}

fn count(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// A budget as the wire has it.
pub(in crate::grpc) fn budget_shown(held: &EffectiveBudget) -> v1::CallerBudget {
    let source = match held.source {
        BudgetSource::Configuration => v1::BudgetSource::Configuration,
        BudgetSource::Database => v1::BudgetSource::Database,
    };
    v1::CallerBudget {
        max_lanes: held.budget.max_lanes.unwrap_or_default(),
        max_wait: Some(time::duration(held.budget.max_wait)),
        share: held.budget.share.map_or(0.0, Share::part),
        source: source.into(),
    }
}

/// What is to be changed, for the audit log.
pub(in crate::grpc) struct BudgetChange<'a>(pub(in crate::grpc) &'a v1::SetCallerBudgetRequest);

impl fmt::Display for BudgetChange<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "caller={:?}", self.0.caller)?;
        let Some(budget) = &self.0.budget else { return f.write_str(" budget=none") };
        write!(f, " max_lanes={} share={}", budget.max_lanes, budget.share)?;
        budget.max_wait.as_ref().map_or(Ok(()), |wait| write!(f, " max_wait={}.{:09}s", wait.seconds, wait.nanos))
    }
}

/// Whose budget is to be set to what; `None` takes it away.
pub(in crate::grpc) fn new_budget(sent: &v1::SetCallerBudgetRequest) -> Result<(Caller, Option<Budget>), Failure> {
    let mut invalid = Vec::new();
    let caller = Caller::with_budget(&sent.caller).map_err(|fault| invalid.push(fault)).ok();
    let budget = sent.budget.as_ref().map(|sent| budget(sent, &mut invalid));
    match caller {
        Some(caller) if invalid.is_empty() => Ok((caller, budget)),
        _ => Err(Failure::invalid(invalid)),
    }
}

fn budget(sent: &v1::CallerBudget, invalid: &mut Vec<Invalid>) -> Budget {
    let mut kept = Budget { max_lanes: (sent.max_lanes > 0).then_some(sent.max_lanes), ..Budget::default() };
    if sent.max_lanes > Budget::MAX_LANES {
        invalid.push(Invalid::new("budget.max_lanes", format!("must be 0 (no cap) to {}", Budget::MAX_LANES)));
    }
    if let Some(wait) = &sent.max_wait {
        match time::max_wait("budget.max_wait", wait) {
            Ok(wait) => kept.max_wait = wait,
            Err(fault) => invalid.push(fault),
        }
    }
    if sent.share != 0.0 {
        kept.share = Share::nearest(sent.share);
        if kept.share.is_none() {
            invalid.push(Invalid::new("budget.share", "must be 0 (no cap), or from 0.000001 to 1"));
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(caller: &str, budget: Option<v1::CallerBudget>) -> v1::SetCallerBudgetRequest {
        v1::SetCallerBudgetRequest { caller: caller.to_owned(), budget }
    }

    #[test]
    fn a_budget_is_read_as_it_is_shown() {
        let sent = v1::CallerBudget {
            max_lanes: 3,
            max_wait: Some(prost_types::Duration { seconds: 0, nanos: 250_000_000 }),
            share: 0.25,
            source: v1::BudgetSource::Database.into(),
        };
        let (caller, budget) = new_budget(&request("checkout", Some(sent))).expect("fine");
        let held = EffectiveBudget { budget: budget.expect("one"), source: BudgetSource::Database };
        assert_eq!((caller.as_str(), budget_shown(&held)), ("checkout", sent));
    }

    #[test]
    fn nothing_sent_is_no_cap_and_no_budget_takes_it_away() {
        let (_, open) = new_budget(&request("unattributed", Some(v1::CallerBudget::default()))).expect("fine");
        assert_eq!(open, Some(Budget::default()));
        assert_eq!(new_budget(&request("a", None)).expect("fine").1, None);
    }

    #[test]
    fn all_faults_of_a_budget_are_told_together() {
        for name in ["", "leasehold.reaper", "other", "A", "*/"] {
            let failure = new_budget(&request(name, None)).expect_err(name);
            assert_eq!(failure.invalid[0].field, "caller", "{name}");
        }
        let sent = v1::CallerBudget {
            max_lanes: 10_001,
            max_wait: Some(prost_types::Duration { seconds: 61, nanos: 0 }),
            share: f64::NAN,
            source: 0,
        };
        let failure = new_budget(&request("leasehold.x", Some(sent))).expect_err("four faults");
        let fields: Vec<_> = failure.invalid.iter().map(|fault| fault.field.as_str()).collect();
        assert_eq!(fields, ["caller", "budget.max_lanes", "budget.max_wait", "budget.share"]);
        for share in [-0.1, 1.1, 1e-9, f64::INFINITY] {
            let sent = v1::CallerBudget { share, ..v1::CallerBudget::default() };
            assert!(new_budget(&request("a", Some(sent))).is_err(), "{share}");
        }
    }
}
