//! What a deadline means: withdrawn and not applied before a lane took the request, unknown from then on.

use std::time::Duration;

use leasehold::{
    model::{Outcome, Reason},
    store::{LineOptions, StoreOptions},
};

use super::stage::{Stage, call, calm, few_lanes, job, occupy_writers, put, submit, until};

const SHORT: Duration = Duration::from_millis(200);

async fn a_request_that_no_lane_took_by_its_deadline_is_withdrawn_and_stores_nothing(stage: Stage) {
    let options = few_lanes();
    let writers = stage.writers(&options);
    let store = stage.store(options).await;
    put(&store, job("q", "first")).await;

    let mut held = stage.hold_writes().await;
    let blockers = occupy_writers(&store, writers, "q").await;
    let late = store.enqueue(&call("late", SHORT), vec![job("q", "late")]).await.expect_err("no lane was free");
    assert_eq!((late.reason, late.outcome), (Reason::Deadline, Outcome::NotApplied), "{late}");
    held.run("rollback").await;

    for blocker in blockers {
        blocker.await.expect("it ran").expect("stored once the writes went on");
    }
    store.drain().await;
    assert_eq!(held.number("select count(*) from job where content_type = 'late'").await, 0);
}

async fn a_request_that_no_lane_took_in_time_is_told_so_before_its_deadline(stage: Stage) {
    let options = StoreOptions { acquire_timeout: SHORT, ..few_lanes() };
    let writers = stage.writers(&options);
    let store = stage.store(options).await;
    put(&store, job("q", "first")).await;

    let mut held = stage.hold_writes().await;
    let blockers = occupy_writers(&store, writers, "q").await;
    let late = store.enqueue(&calm("late"), vec![job("q", "late")]).await.expect_err("no lane was free");
    assert_eq!((late.reason, late.outcome), (Reason::Overloaded, Outcome::NotApplied), "{late}");
    held.run("rollback").await;

    for blocker in blockers {
        blocker.await.expect("it ran").expect("stored once the writes went on");
    }
    store.drain().await;
    assert_eq!(held.number("select count(*) from job where content_type = 'late'").await, 0);
}

async fn a_statement_under_way_at_the_deadline_is_unknown_and_still_runs_to_its_end(stage: Stage) {
    let store = stage.store(few_lanes()).await;
    put(&store, job("q", "first")).await;

    let mut held = stage.hold_writes().await;
    let asking = submit(&store, call("checkout", SHORT), vec![job("q", "late")]).await;
    until("a lane takes the request", async || store.waiting() == 0).await;
    let late = asking.await.expect("it ran").expect_err("its deadline passed");
    assert_eq!((late.reason, late.outcome), (Reason::OutcomeUnknown, Outcome::Unknown), "{late}");
    held.run("rollback").await;

    held.wait_for("select count(*) from job where content_type = 'late'", 1).await;
}

async fn a_deadline_that_passes_while_the_queue_is_looked_up_is_not_applied(stage: Stage) {
    let store = stage.store(few_lanes()).await;
    put(&store, job("q", "first")).await;

    let mut held = stage.hold_writes().await;
    if stage.is_postgres() {
        held.run("lock table queue in access exclusive mode").await;
    }
    let late =
        store.enqueue(&call("checkout", SHORT), vec![job("new", "late")]).await.expect_err("its deadline passed");
    assert_eq!((late.reason, late.outcome), (Reason::Deadline, Outcome::NotApplied), "{late}");
    held.run("rollback").await;

    store.drain().await;
    assert_eq!(held.number("select count(*) from job where content_type = 'late'").await, 0);
}

async fn a_full_line_answers_at_once_and_stores_nothing(stage: Stage) {
    let line = LineOptions { max_requests: 3, ..LineOptions::default() };
    let options = StoreOptions { line, ..few_lanes() };
    let writers = stage.writers(&options);
    let store = stage.store(options).await;
    put(&store, job("q", "first")).await;

    let mut held = stage.hold_writes().await;
    let mut asking = occupy_writers(&store, writers, "q").await;
    for n in 0..3 {
        asking.push(submit(&store, calm("patient"), vec![job("q", &format!("patient-{n}"))]).await);
    }
    let one_more = store.enqueue(&calm("impatient"), vec![job("q", "impatient")]).await.expect_err("the line is full");
    assert_eq!((one_more.reason, one_more.outcome), (Reason::Overloaded, Outcome::NotApplied), "{one_more}");
    assert!(one_more.retry_after.is_some());
    held.run("rollback").await;

    for asked in asking {
        asked.await.expect("it ran").expect("stored once the writes went on");
    }
    assert_eq!(held.number("select count(*) from job where content_type like '%patient%'").await, 3);
}

async fn draining_takes_nothing_new_and_ends_what_it_had(stage: Stage) {
    let options = few_lanes();
    let writers = stage.writers(&options);
    let store = stage.store(options).await;
    put(&store, job("q", "first")).await;

    let mut held = stage.hold_writes().await;
    let mut asking = occupy_writers(&store, writers, "q").await;
    asking.push(submit(&store, calm("patient"), vec![job("q", "patient")]).await);
    let mut draining = Box::pin(store.drain());
    // One look is enough to close the line, but the listener may have to end first.
    while futures_util::poll!(&mut draining).is_pending() && store.waiting() == 1 {
        match store.enqueue(&call("late", SHORT), vec![job("q", "late")]).await {
            Err(late) if late.reason == Reason::Draining => {
                assert_eq!(late.outcome, Outcome::NotApplied);
                break;
            }
            other => assert!(other.is_err(), "no lane was free: {other:?}"),
        }
    }
    held.run("rollback").await;
    draining.await;

    for asked in asking {
        asked.await.expect("it ran").expect("handed over before the drain");
    }
    let late = store.enqueue(&calm("late"), vec![job("q", "late")]).await.expect_err("drained");
    assert_eq!((late.reason, late.outcome), (Reason::Draining, Outcome::NotApplied), "{late}");
    assert_eq!(held.number("select count(*) from job where content_type in ('patient', 'late')").await, 1);
}

on_both_engines!(
    a_request_that_no_lane_took_by_its_deadline_is_withdrawn_and_stores_nothing,
    a_request_that_no_lane_took_in_time_is_told_so_before_its_deadline,
    a_statement_under_way_at_the_deadline_is_unknown_and_still_runs_to_its_end,
    a_deadline_that_passes_while_the_queue_is_looked_up_is_not_applied,
    a_full_line_answers_at_once_and_stores_nothing,
    draining_takes_nothing_new_and_ends_what_it_had,
);
