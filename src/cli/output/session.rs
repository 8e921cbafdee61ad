//! The database's sessions as operators see them.

use serde::Serialize;

use super::{table::Table, time};
use crate::v1::{
    Attribution, DatabaseCaller, DatabaseSession, ListDatabaseSessionsResponse, SessionKind, SessionState,
};

#[derive(Serialize)]
struct LookJson<'a> {
    sampled_at: Option<String>,
    samples: u32,
    interval_seconds: f64,
    covered_seconds: f64,
    connections: u32,
    elsewhere: u32,
    max_connections: u32,
    callers: Vec<CallerJson<'a>>,
    sessions: Vec<SessionJson<'a>>,
    blind_spots: &'a [String],
}

#[derive(Serialize)]
struct CallerJson<'a> {
    caller: &'a str,
    leasehold: bool,
    attribution: &'static str,
    sessions: u32,
    active: u32,
    idle_in_transaction: u32,
    waiting_on_lock: u32,
    hidden: u32,
    held_seconds: f64,
    held_error_seconds: f64,
}

#[derive(Serialize)]
struct SessionJson<'a> {
    session_id: i64,
    kind: &'static str,
    leader: Option<i64>,
    caller: &'a str,
    leasehold: bool,
    attribution: &'static str,
    state: &'static str,
    in_state_seconds: f64,
    transaction_age_seconds: Option<f64>,
    waiting_on_lock: bool,
    blocked_by: &'a [i64],
    role: &'a str,
    application_name: &'a str,
    client_address: &'a str,
}

/// A look for programs.
pub(in crate::cli) fn json(look: &ListDatabaseSessionsResponse) -> impl Serialize {
    LookJson {
        sampled_at: time::maybe(look.sampled_at),
        samples: look.samples,
        interval_seconds: seconds(look.interval),
        covered_seconds: seconds(look.covered),
        connections: look.connections,
        elsewhere: look.elsewhere,
        max_connections: look.max_connections,
        callers: look.callers.iter().map(caller_json).collect(),
        sessions: look.sessions.iter().map(session_json).collect(),
        blind_spots: &look.blind_spots,
    }
}

fn caller_json(caller: &DatabaseCaller) -> CallerJson<'_> {
    CallerJson {
        caller: &caller.caller,
        leasehold: caller.leasehold,
        attribution: attribution(caller.attribution()),
        sessions: caller.sessions,
        active: caller.active,
        idle_in_transaction: caller.idle_in_transaction,
        waiting_on_lock: caller.waiting_on_lock,
        hidden: caller.hidden,
        held_seconds: seconds(caller.held),
        held_error_seconds: seconds(caller.held_error),
    }
}

fn session_json(session: &DatabaseSession) -> SessionJson<'_> {
    SessionJson {
        session_id: session.session_id,
        kind: kind(session.kind()),
        leader: (session.leader != 0).then_some(session.leader),
        caller: &session.caller,
        leasehold: session.leasehold,
        attribution: attribution(session.attribution()),
        state: state(session.state()),
        in_state_seconds: seconds(session.in_state),
        transaction_age_seconds: session.transaction_age.map(time::seconds),
        waiting_on_lock: session.waiting_on_lock,
        blocked_by: &session.blocked_by,
        role: &session.role,
        application_name: &session.application_name,
        client_address: &session.client_address,
    }
}

/// What a look is of, in a line for people.
pub(in crate::cli) fn headline(look: &ListDatabaseSessionsResponse) -> String {
    let elsewhere = match look.elsewhere {
        0 => String::new(),
        count => format!(", {count} of them to other databases"),
    };
    format!(
        "{} of {} connections in use{elsewhere}; held: over {}, by {} samples",
        look.connections,
        look.max_connections,
        time::fine(look.covered.unwrap_or_default()),
        look.samples
    )
}

/// Connections by caller, for people.
pub(in crate::cli) fn callers(look: &ListDatabaseSessionsResponse) -> Table {
    let mut table = Table::new(&[
        "CALLER",
        "WHOSE",
        "NAMED BY",
        ">SESSIONS",
        ">ACTIVE",
        ">IDLE IN TX",
        ">WAITING",
        ">HIDDEN",
        ">HELD",
        ">ERROR",
    ]);
    for caller in &look.callers {
        table.row([
            caller.caller.clone(),
            whose(caller.leasehold).to_owned(),
            attribution(caller.attribution()).replace('_', " "),
            caller.sessions.to_string(),
            caller.active.to_string(),
            caller.idle_in_transaction.to_string(),
            caller.waiting_on_lock.to_string(),
            caller.hidden.to_string(),
            format!("{:.1}s", seconds(caller.held)),
            format!("±{:.1}s", seconds(caller.held_error)),
        ]);
    }
    table
}

/// Sessions that do something, for people; the idle ones are in the sums.
pub(in crate::cli) fn sessions(look: &ListDatabaseSessionsResponse) -> Table {
    let mut table = Table::new(&[
        ">SESSION",
        "CALLER",
        "STATE",
        ">FOR",
        ">TRANSACTION",
        "WAITS FOR",
        "ROLE",
        "~APPLICATION",
        "CLIENT",
    ]);
    for session in look.sessions.iter().filter(|session| session.state() != SessionState::Idle) {
        let kind = match session.kind() {
            SessionKind::Client | SessionKind::Unspecified => String::new(),
            other => format!(" ({})", kind(other).replace('_', " ")),
        };
        table.row([
            session.session_id.to_string(),
            session.caller.clone(),
            state(session.state()).replace('_', " ") + &kind,
            session.in_state.map_or_else(|| "-".to_owned(), time::fine),
            session.transaction_age.map_or_else(|| "-".to_owned(), time::fine),
            waits_for(session),
            session.role.clone(),
            session.application_name.clone(),
            session.client_address.clone(),
        ]);
    }
    table
}

fn waits_for(session: &DatabaseSession) -> String {
    let name = |id: &i64| if *id == 0 { "a prepared transaction".to_owned() } else { id.to_string() };
    match (session.waiting_on_lock, session.blocked_by.is_empty()) {
        (false, _) => "-".to_owned(),
        (true, true) => "a lock".to_owned(),
        (true, false) => session.blocked_by.iter().map(name).collect::<Vec<_>>().join(", "),
    }
}

fn whose(leasehold: bool) -> &'static str {
    if leasehold { "broker" } else { "elsewhere" }
}

fn attribution(attribution: Attribution) -> &'static str {
    match attribution {
        Attribution::ConnTag => "conn_tag",
        Attribution::Sqlcommenter => "sqlcommenter",
        Attribution::ApplicationName => "application_name",
        Attribution::None | Attribution::Unspecified => "nothing",
    }
}

fn state(state: SessionState) -> &'static str {
    match state {
        SessionState::Active => "active",
        SessionState::Idle => "idle",
        SessionState::IdleInTransaction => "idle_in_transaction",
        SessionState::Hidden | SessionState::Unspecified => "hidden",
    }
}

fn kind(kind: SessionKind) -> &'static str {
    match kind {
        SessionKind::Client => "client",
        SessionKind::ParallelWorker => "parallel_worker",
        SessionKind::Replication => "replication",
        SessionKind::Maintenance => "maintenance",
        SessionKind::Background | SessionKind::Unspecified => "background",
    }
}

fn seconds(length: Option<prost_types::Duration>) -> f64 {
    time::seconds(length.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::output::Style;

    #[test]
    fn a_waiting_session_says_whom_it_waits_for_and_foreign_text_stays_on_its_line() {
        let session = DatabaseSession {
            session_id: 7,
            caller: "checkout".into(),
            state: SessionState::Active.into(),
            waiting_on_lock: true,
            blocked_by: vec![0, 12],
            application_name: "a\u{1b}[31m\nb".into(),
            ..DatabaseSession::default()
        };
        let idle = DatabaseSession { state: SessionState::Idle.into(), ..session.clone() };
        let look = ListDatabaseSessionsResponse { sessions: vec![session, idle], ..Default::default() };
        let shown = sessions(&look).render(Style::Plain);
        assert_eq!(shown.lines().count(), 2, "{shown}");
        assert!(shown.contains("a prepared transaction, 12") && shown.contains("a\\u{1b}[31m\\nb"), "{shown}");
    }

    #[test]
    fn absent_figures_are_shown_as_such() {
        let look = ListDatabaseSessionsResponse { callers: vec![DatabaseCaller::default()], ..Default::default() };
        assert!(callers(&look).render(Style::Plain).contains("0.0s"));
        assert_eq!(headline(&look), "0 of 0 connections in use; held: over 0, by 0 samples");
    }
}
