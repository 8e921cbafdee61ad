//! Callers' lane time as operators see it.

use serde::Serialize;

use super::{table::Table, time};
use crate::v1::{BudgetSource, CallerBudget, CallerSnapshot, CallerUse, CallerWindow, LaneUse, StatementUse};

#[derive(Serialize)]
struct SnapshotJson<'a> {
    replica: &'a str,
    window: &'static str,
    covered_seconds: f64,
    lanes: u32,
    lanes_connected: u32,
    lanes_at_work: u32,
    waiting: u32,
    idle_seconds: f64,
    callers: Vec<CallerJson<'a>>,
}

#[derive(Serialize)]
struct CallerJson<'a> {
    caller: &'a str,
    #[serde(flatten)]
    lanes: LanesJson,
    budget: Option<BudgetJson>,
    lanes_held: u32,
    waiting: u32,
    refused: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    statements: Vec<StatementJson<'a>>,
}

#[derive(Serialize)]
struct StatementJson<'a> {
    statement: &'a str,
    #[serde(flatten)]
    lanes: LanesJson,
}

#[derive(Serialize)]
struct LanesJson {
    holds: u64,
    held_seconds: f64,
    share: f64,
    average_lanes: f64,
    hold_p50_seconds: f64,
    hold_p99_seconds: f64,
    hold_max_seconds: f64,
    waits: u64,
    waited_seconds: f64,
    wait_p50_seconds: f64,
    wait_p99_seconds: f64,
    wait_max_seconds: f64,
    statements_run: u64,
    rows: u64,
    errors: u64,
}

#[derive(Serialize)]
struct BudgetJson {
    max_lanes: Option<u32>,
    max_wait_seconds: f64,
    share: Option<f64>,
    source: &'static str,
}

impl From<LaneUse> for LanesJson {
    fn from(lanes: LaneUse) -> Self {
        let seconds = |length: Option<prost_types::Duration>| time::seconds(length.unwrap_or_default());
        Self {
            holds: lanes.holds,
            held_seconds: seconds(lanes.held),
            share: lanes.share,
            average_lanes: lanes.average_lanes,
            hold_p50_seconds: seconds(lanes.hold_p50),
            hold_p99_seconds: seconds(lanes.hold_p99),
            hold_max_seconds: seconds(lanes.hold_max),
            waits: lanes.waits,
            waited_seconds: seconds(lanes.waited),
            wait_p50_seconds: seconds(lanes.wait_p50),
            wait_p99_seconds: seconds(lanes.wait_p99),
            wait_max_seconds: seconds(lanes.wait_max),
            statements_run: lanes.statements,
            rows: lanes.rows,
            errors: lanes.errors,
        }
    }
}

/// A snapshot for programs.
pub(in crate::cli) fn json(snapshot: &CallerSnapshot) -> impl Serialize {
    let caller = |caller: &'_ CallerUse| -> (LanesJson, Option<BudgetJson>) {
        (caller.r#use.unwrap_or_default().into(), caller.budget.as_ref().map(budget_json))
    };
    let statement = |is| -> StatementJson<'_> {
        let is: &StatementUse = is;
        StatementJson { statement: &is.statement, lanes: is.r#use.unwrap_or_default().into() }
    };
    let callers = snapshot.callers.iter().map(|is| {
        let (lanes, budget) = caller(is);
        let statements = is.statements.iter().map(statement).collect();
        let (lanes_held, waiting, refused) = (is.lanes_held, is.waiting, is.refused);
        CallerJson { caller: &is.caller, lanes, budget, lanes_held, waiting, refused, statements }
    });
    SnapshotJson {
        replica: &snapshot.replica,
        window: window(snapshot.window()),
        covered_seconds: time::seconds(snapshot.covered.unwrap_or_default()),
        lanes: snapshot.lanes,
        lanes_connected: snapshot.lanes_connected,
        lanes_at_work: snapshot.lanes_at_work,
        waiting: snapshot.waiting,
        idle_seconds: time::seconds(snapshot.idle.unwrap_or_default()),
        callers: callers.collect(),
    }
}

/// A budget for programs.
pub(in crate::cli) fn budget(budget: Option<&CallerBudget>) -> impl Serialize {
    budget.map(budget_json)
}

fn budget_json(budget: &CallerBudget) -> BudgetJson {
    BudgetJson {
        max_lanes: (budget.max_lanes > 0).then_some(budget.max_lanes),
        max_wait_seconds: time::seconds(budget.max_wait.unwrap_or_default()),
        share: (budget.share > 0.0).then_some(budget.share),
        source: match budget.source() {
            BudgetSource::Configuration => "configuration",
            BudgetSource::Database => "database",
            BudgetSource::Unspecified => "unknown",
        },
    }
}

fn window(window: CallerWindow) -> &'static str {
    match window {
        CallerWindow::TenSeconds => "10s",
        CallerWindow::OneMinute | CallerWindow::Unspecified => "1m",
        CallerWindow::TenMinutes => "10m",
        CallerWindow::OneHour => "1h",
        CallerWindow::SinceStart => "start",
    }
}

/// What a snapshot is of, in a line for people.
pub(in crate::cli) fn headline(snapshot: &CallerSnapshot) -> String {
    let span = match snapshot.window() {
        CallerWindow::SinceStart => "since its start".to_owned(),
        window_of => format!("last {}", window(window_of)),
    };
    format!(
        "{} · {span} ({} covered) · {} lanes, {} connected, {} held now · {} requests waiting",
        snapshot.replica,
        time::fine(snapshot.covered.unwrap_or_default()),
        snapshot.lanes,
        snapshot.lanes_connected,
        snapshot.lanes_at_work,
        snapshot.waiting,
    )
}

const FIGURES: [&str; 13] = [
    ">SHARE",
    ">LANES",
    ">NOW",
    ">HELD",
    ">HOLDS",
    ">HOLD P50",
    ">P99",
    ">MAX",
    ">WAIT P50",
    ">P99",
    ">MAX",
    ">ROWS",
    ">ERRORS",
];

/// Callers for people, with a last row for the time in which nobody held a lane.
pub(in crate::cli) fn table(snapshot: &CallerSnapshot) -> Table {
    let mut table = Table::new(&[&["CALLER"], &FIGURES[..], &[">WAITING", ">REFUSED", "BUDGET"]].concat());
    for caller in &snapshot.callers {
        let figures = figures(&caller.r#use.unwrap_or_default(), Some(caller.lanes_held));
        let budget = caller.budget.as_ref().map(budget_text).unwrap_or_default();
        let rest = [caller.waiting.to_string(), caller.refused.to_string(), budget];
        table.row(std::iter::once(caller.caller.clone()).chain(figures).chain(rest));
    }
    table.row(std::iter::once("(idle)".to_owned()).chain(idle(snapshot)).chain([const { String::new() }; 3]));
    table
}

/// Callers' kinds of statements for people, the longest held first.
pub(in crate::cli) fn by_statement(snapshot: &CallerSnapshot) -> Table {
    let mut table = Table::new(&[&["CALLER", "STATEMENT"], &FIGURES[..]].concat());
    let statements = |caller| {
        let caller: &CallerUse = caller;
        caller.statements.iter().map(move |statement| (&caller.caller, statement))
    };
    let mut all: Vec<(&String, &StatementUse)> = snapshot.callers.iter().flat_map(statements).collect();
    let held =
        |statement: &StatementUse| time::seconds(statement.r#use.and_then(|lanes| lanes.held).unwrap_or_default());
    all.sort_by(|(_, a), (_, b)| held(b).total_cmp(&held(a)));
    for (caller, statement) in all {
        let name = [caller.clone(), statement.statement.clone()];
        table.row(name.into_iter().chain(figures(&statement.r#use.unwrap_or_default(), None)));
    }
    table.row(["(idle)".to_owned(), String::new()].into_iter().chain(idle(snapshot)));
    table
}

fn figures(lanes: &LaneUse, now: Option<u32>) -> [String; 13] {
    let length = |length: Option<prost_types::Duration>| time::fine(length.unwrap_or_default());
    [
        percent(lanes.share),
        format!("{:.2}", lanes.average_lanes),
        now.map(|now| now.to_string()).unwrap_or_default(),
        length(lanes.held),
        lanes.holds.to_string(),
        length(lanes.hold_p50),
        length(lanes.hold_p99),
        length(lanes.hold_max),
        length(lanes.wait_p50),
        length(lanes.wait_p99),
        length(lanes.wait_max),
        lanes.rows.to_string(),
        lanes.errors.to_string(),
    ]
}

fn idle(snapshot: &CallerSnapshot) -> [String; 13] {
    let idle = snapshot.idle.unwrap_or_default();
    let (seconds, covered) = (time::seconds(idle), time::seconds(snapshot.covered.unwrap_or_default()));
    let mut cells = [const { String::new() }; 13];
    if covered > 0.0 && snapshot.lanes > 0 {
        cells[0] = percent(seconds / covered / f64::from(snapshot.lanes));
        cells[1] = format!("{:.2}", seconds / covered);
    }
    cells[2] = snapshot.lanes.saturating_sub(snapshot.lanes_at_work).to_string();
    cells[3] = time::fine(idle);
    cells
}

fn percent(part: f64) -> String {
    format!("{:.1}%", part * 100.0)
}

/// A budget for people: `2 lanes, 25% of lane time, waits 1s`.
pub(in crate::cli) fn budget_text(budget: &CallerBudget) -> String {
    let mut parts = Vec::new();
    match budget.max_lanes {
        0 => {}
        1 => parts.push("1 lane".to_owned()),
        lanes => parts.push(format!("{lanes} lanes")),
    }
    if budget.share > 0.0 {
        parts.push(format!("{} of lane time", percent(budget.share)));
    }
    if parts.is_empty() {
        return "no cap".to_owned();
    }
    parts.push(format!("waits {}", time::fine(budget.max_wait.unwrap_or_default())));
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use prost_types::Duration;

    use super::*;
    use crate::cli::output::Style;

    fn snapshot() -> CallerSnapshot {
        let seconds = |seconds, nanos| Some(Duration { seconds, nanos });
        let lanes = LaneUse {
            holds: 10,
            held: seconds(15, 0),
            share: 0.25,
            average_lanes: 0.5,
            hold_p50: seconds(0, 1_500_000),
            hold_p99: seconds(0, 20_000_000),
            hold_max: seconds(2, 0),
            waits: 12,
            waited: seconds(0, 500_000),
            wait_p50: seconds(0, 40_000),
            ..LaneUse::default()
        };
        let caller = CallerUse {
            caller: "checkout".to_owned(),
            r#use: Some(lanes),
            budget: Some(CallerBudget { max_lanes: 2, max_wait: seconds(1, 0), share: 0.25, source: 2 }),
            lanes_held: 1,
            refused: 3,
            statements: vec![StatementUse { statement: "ack".to_owned(), r#use: Some(lanes) }],
            waiting: 4,
        };
        CallerSnapshot {
            replica: "broker-1".to_owned(),
            window: CallerWindow::OneMinute.into(),
            covered: seconds(30, 0),
            lanes: 2,
            lanes_at_work: 1,
            waiting: 4,
            idle: seconds(45, 0),
            callers: vec![caller],
            lanes_connected: 2,
        }
    }

    #[test]
    fn shares_of_callers_and_of_nobody_stand_in_one_column_and_add_up() {
        let shown = table(&snapshot()).render(Style::Plain);
        let shares: Vec<&str> = shown.lines().skip(1).filter_map(|line| line.split_whitespace().nth(1)).collect();
        assert_eq!(shares, ["25.0%", "75.0%"]);
        assert!(shown.contains("2 lanes, 25.0% of lane time, waits 1s"), "{shown}");
        assert!(shown.contains("1.5ms") && shown.contains("40µs"), "{shown}");
        let by_statement = by_statement(&snapshot()).render(Style::Plain);
        assert!(by_statement.lines().nth(1).is_some_and(|line| line.starts_with("checkout  ack ")), "{by_statement}");
    }

    #[test]
    fn programs_read_numbers() {
        let text = serde_json::to_value(json(&snapshot())).expect("JSON");
        assert_eq!(text["callers"][0]["held_seconds"], 15.0);
        assert_eq!(text["callers"][0]["budget"]["source"], "database");
        assert_eq!(text["callers"][0]["statements"][0]["statement"], "ack");
        assert_eq!(text["idle_seconds"], 45.0);
        assert_eq!(text["window"], "1m");
    }
}
