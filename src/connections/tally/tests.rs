use proptest::prelude::*;

use super::*;
use crate::{
    model::Timestamp,
    store::engine::{Quoting, SessionKind},
};

const SECOND: Duration = Duration::from_secs(1);

fn row(id: i64, state: SessionState, statement: &str) -> SessionRow {
    SessionRow {
        id,
        kind: SessionKind::Client,
        leader: None,
        broker: false,
        observer: false,
        state,
        in_state: SECOND,
        transaction_age: None,
        waiting: false,
        blocked_by: Vec::new(),
        role: "shop".to_owned(),
        application_name: String::new(),
        client_address: None,
        statement: statement.to_owned(),
        cut: false,
    }
}

fn seen(sessions: Vec<SessionRow>) -> SessionsSeen {
    SessionsSeen {
        at: Timestamp(1),
        sessions,
        left_out: 0,
        connections: 9,
        elsewhere: 2,
        max_connections: 100,
        quoting: Quoting::default(),
        alone: false,
        to_see_more: "raise it".to_owned(),
        blind_spots: Vec::new(),
    }
}

fn tally() -> Tally {
    Tally::new(SECOND, 3, [])
}

/// One sample's totals: name, sessions, active, idle in a transaction, waiting, seconds held.
fn totals(view: &View) -> Vec<(&str, u32, u32, u32, u32, f64)> {
    let total = |caller: &CallerTotals| {
        let CallerTotals { holder, sessions, active, idle_in_transaction, waiting_on_lock, estimate, .. } = caller;
        let held = (estimate.held.as_secs_f64() * 10.0).round() / 10.0;
        // the names live as long as the view
        (holder.name.as_str().to_owned(), *sessions, *active, *idle_in_transaction, *waiting_on_lock, held)
    };
    let names: Vec<&str> = view.callers.iter().map(|caller| caller.holder.name.as_str()).collect();
    names
        .into_iter()
        .zip(view.callers.iter().map(total))
        .map(|(name, (_, a, b, c, d, e))| (name, a, b, c, d, e))
        .collect()
}

#[test]
fn connections_are_summed_by_name_and_state() {
    use SessionState::{Active, Hidden, Idle, IdleInTransaction};
    let waiting = SessionRow { waiting: true, blocked_by: vec![3], ..row(5, Active, "/*conn_tag:b*/") };
    let view = tally().add(
        seen(vec![
            row(1, Active, "/*conn_tag:a*/"),
            row(2, Idle, "/*conn_tag:a*/"),
            row(3, IdleInTransaction, "/*conn_tag:a*/"),
            row(4, Hidden, ""),
            waiting,
        ]),
        Instant::now(),
        10 * SECOND,
    );
    assert_eq!(
        totals(&view),
        [("a", 3, 1, 1, 0, 2.0), ("b", 1, 1, 0, 1, 1.0), ("unattributed", 1, 0, 0, 0, 0.0)],
        "idle and hidden ones hold nothing"
    );
    assert_eq!(view.sessions[4].blocked_by, [3]);
    assert_eq!(view.sessions.len(), 5);
}

#[test]
fn the_look_itself_holds_nothing_and_brokers_are_told_apart() {
    let own = |id, observer, statement: &str| SessionRow {
        broker: true,
        observer,
        ..row(id, SessionState::Active, statement)
    };
    let sessions = vec![
        own(1, true, "/* conn_tag:leasehold.sampler */ select"),
        own(2, false, "/* conn_tag:leasehold.sampler */ select"),
        own(3, false, "/* conn_tag:shop */ select"),
        row(4, SessionState::Active, "/* conn_tag:shop */ select"),
        row(5, SessionState::Active, "/* conn_tag:leasehold.sampler */ select"),
    ];
    let view = tally().add(seen(sessions), Instant::now(), 10 * SECOND);
    let found: Vec<_> = view
        .callers
        .iter()
        .map(|caller| (caller.holder.name.as_str(), caller.holder.broker, caller.sessions, caller.estimate.held))
        .collect();
    assert_eq!(
        found,
        [
            ("foreign.leasehold.sampler", false, 1, SECOND),
            ("leasehold.sampler", true, 2, SECOND),
            ("shop", false, 1, SECOND),
            ("shop", true, 1, SECOND),
        ]
    );
}

#[test]
fn workers_are_shown_under_their_leaders_caller_and_counted_nowhere() {
    let worker = SessionRow {
        kind: SessionKind::ParallelWorker,
        leader: Some(1),
        application_name: "parallel worker".to_owned(),
        ..row(2, SessionState::Active, "")
    };
    let lost = SessionRow { id: 3, leader: Some(99), ..worker.clone() };
    let vacuum = SessionRow {
        kind: SessionKind::Maintenance,
        application_name: "autovacuum worker".to_owned(),
        ..row(4, SessionState::Active, "autovacuum: VACUUM t")
    };
    let leader = row(1, SessionState::Active, "/*conn_tag:report*/");
    let view = tally().add(seen(vec![worker, leader, lost, vacuum]), Instant::now(), 10 * SECOND);
    let callers: Vec<_> = view.sessions.iter().map(|session| session.caller.as_str()).collect();
    assert_eq!(callers, ["report", "report", "parallel_worker", "autovacuum_worker"]);
    assert_eq!(totals(&view), [("report", 1, 1, 0, 0, 1.0)]);
}

#[test]
fn a_sample_stands_for_the_time_since_the_last_one_and_no_longer_than_was_watched() {
    let (mut tally, begin) = (tally(), Instant::now());
    let sessions = || seen(vec![row(1, SessionState::Active, "/*conn_tag:a*/")]);
    for (at, at_most, held) in [(0.0, 10.0, 1.0), (0.5, 10.0, 1.5), (3.5, 10.0, 4.5), (33.5, 10.0, 14.5)] {
        let (taken, at_most) = (begin + Duration::from_secs_f64(at), Duration::from_secs_f64(at_most));
        let view = tally.add(sessions(), taken, at_most);
        assert_eq!(totals(&view), [("a", 1, 1, 0, 0, held)], "at {at} s");
    }
    assert_eq!(tally.held()[0].1, Duration::from_millis(14_500));
}

#[test]
fn who_has_gone_stays_for_the_minute_and_in_the_sum() {
    let (mut tally, begin) = (tally(), Instant::now());
    tally.add(seen(vec![row(1, SessionState::Active, "/*conn_tag:a*/")]), begin, 10 * SECOND);
    let view = tally.add(seen(vec![]), begin + 30 * SECOND, 10 * SECOND);
    assert_eq!(totals(&view), [("a", 0, 0, 0, 0, 1.0)]);
    assert_eq!(view.callers[0].attribution, Attribution::ConnTag);
    let view = tally.add(seen(vec![]), begin + 90 * SECOND, 10 * SECOND);
    assert_eq!(totals(&view), []);
    assert_eq!(tally.held().len(), 1);
}

#[test]
fn names_past_the_bound_are_other_and_configured_ones_never() {
    let configured = Name::clean("named", false).expect("a name");
    let mut tally = Tally::new(SECOND, 2, [configured]);
    let invented: Vec<_> =
        (1..=10_000).map(|n| row(n, SessionState::Active, &format!("/*conn_tag:invented-{n}*/"))).collect();
    tally.add(seen(invented), Instant::now(), SECOND);
    let late = ["named", "invented-1", "new"].map(|name| row(1, SessionState::Active, &format!("/*conn_tag:{name}*/")));
    let view = tally.add(seen(late.into()), Instant::now(), SECOND);
    let names: Vec<_> = view.callers.iter().map(|caller| (caller.holder.name.as_str(), caller.sessions)).collect();
    assert_eq!(names.len(), 4);
    assert!(names.contains(&("named", 1)) && names.contains(&("invented-1", 1)) && names.contains(&("other", 1)));
    assert_eq!(tally.held().len(), 4, "two places, the configured one and other");
}

#[test]
fn long_texts_are_cut_on_a_characters_boundary() {
    let long = SessionRow { application_name: "é".repeat(10_240), ..row(1, SessionState::Idle, "") };
    let view = tally().add(seen(vec![long]), Instant::now(), SECOND);
    assert_eq!(view.sessions[0].application_name, "é".repeat(128));
}

#[test]
fn sessions_that_were_left_out_are_spoken_of() {
    let view = tally().add(SessionsSeen { left_out: 7, ..seen(vec![]) }, Instant::now(), SECOND);
    assert!(view.blind_spots[0].contains("7 were left out"), "{:?}", view.blind_spots);
}

#[test]
fn statements_that_were_cut_are_spoken_of_where_they_name_nobody() {
    let cut = |id, statement: &str| SessionRow { cut: true, ..row(id, SessionState::Active, statement) };
    let sessions = vec![cut(1, "/*conn_tag:a*/ select"), cut(2, "select 1"), row(3, SessionState::Active, "select 1")];
    let view = tally().add(seen(sessions), Instant::now(), SECOND);
    assert_eq!(view.blind_spots.len(), 1);
    assert!(view.blind_spots[0].starts_with("Of 1 statements"), "{:?}", view.blind_spots);
}

proptest! {
    #[test]
    fn every_connection_is_counted_once_whatever_it_says(
        rows in prop::collection::vec((any::<String>(), 0..4_u8, any::<bool>(), any::<i64>()), 0..40)
    ) {
        let states = [SessionState::Active, SessionState::Idle, SessionState::IdleInTransaction, SessionState::Hidden];
        let sessions: Vec<_> = rows
            .iter()
            .map(|(statement, state, broker, id)| SessionRow {
                broker: *broker,
                leader: (*state == 3).then_some(*id),
                ..row(*id, states[usize::from(*state)], statement)
            })
            .collect();
        let busy: u32 = sessions.iter().map(|row| u32::from(is_busy(row))).sum();
        let view = tally().add(seen(sessions), Instant::now(), SECOND);
        prop_assert_eq!(view.callers.iter().map(|caller| caller.sessions as usize).sum::<usize>(), rows.len());
        let held: f64 = view.callers.iter().map(|caller| caller.estimate.held.as_secs_f64()).sum();
        prop_assert!((held - f64::from(busy)).abs() < 1e-6);
        prop_assert!(view.callers.len() <= 3 + 4);
    }
}
