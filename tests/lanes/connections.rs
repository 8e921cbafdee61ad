//! Lanes whose connection goes: by the database's hand, by a backend that stops answering, while idle and while at work.

use std::time::{Duration, Instant};

use leasehold::{
    model::{Outcome, Reason},
    store::{LaneOptions, StoreOptions},
};
use rustix::process::{Pid, Signal, kill_process};

use super::{
    server::APPLICATION,
    stage::{Sql, Stage, calm, few_lanes, job, put, submit},
};

/// The backend of a lane whose statement waits for the lock that the test holds.
async fn held_backend(watcher: &mut Sql) -> i64 {
    let waiting = format!(
        "select count(*) from pg_stat_activity where application_name = '{APPLICATION}' and datname = current_database() \
         and wait_event_type = 'Lock'"
    );
    watcher.wait_for(&waiting, 1).await;
    watcher.number(&waiting.replace("count(*)", "pid::bigint")).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_terminated_backend_leaves_its_statement_unknown_and_the_next_work_gets_a_fresh_connection() {
    let stage = Stage::postgres().await;
    let store = stage.store(few_lanes()).await;
    put(&store, job("q", "first")).await;
    let mut watcher = stage.sql().await;

    let mut held = stage.hold_writes().await;
    let asking = submit(&store, calm("checkout"), vec![job("q", "cut")]).await;
    let backend = held_backend(&mut watcher).await;
    watcher.run(&format!("select pg_terminate_backend({backend})")).await;
    let cut = asking.await.expect("it ran").expect_err("its connection was cut");
    assert_eq!((cut.reason, cut.outcome), (Reason::OutcomeUnknown, Outcome::Unknown), "{cut}");
    held.run("rollback").await;

    put(&store, job("q", "second")).await;
    assert_eq!(watcher.number("select count(*) from job where content_type = 'cut'").await, 0);
    let gone = format!("select count(*) from pg_stat_activity where pid = {backend}");
    watcher.wait_for(&gone, 0).await; // it leaves the list a moment after its last word
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_backend_leaves_its_statement_unknown_within_the_lanes_own_deadline() {
    let stage = Stage::postgres().await;
    let own = Duration::from_secs(1);
    let lanes = LaneOptions { statement_deadline: own, ..few_lanes().lanes };
    let store = stage.store(StoreOptions { lanes, ..few_lanes() }).await;
    put(&store, job("q", "first")).await;
    let mut watcher = stage.sql().await;

    let mut held = stage.hold_writes().await;
    let started = Instant::now();
    let asking = submit(&store, calm("checkout"), vec![job("q", "stopped")]).await;
    let stopped = Stopped::stop(held_backend(&mut watcher).await);
    let silent = asking.await.expect("it ran").expect_err("its backend does not answer");
    assert_eq!((silent.reason, silent.outcome), (Reason::OutcomeUnknown, Outcome::Unknown), "{silent}");
    let took = started.elapsed();
    assert!(took >= own && took < own * 4, "{took:?}");
    held.run("rollback").await;
    put(&store, job("q", "second")).await;
    drop(stopped);

    // It wakes up without a client: whichever way its statement went, it leaves nothing open behind it.
    watcher.wait_for("select count(*) from pg_stat_activity where state like 'idle in transaction%'", 0).await;
    let sessions = format!(
        "select count(*) from pg_stat_activity where application_name = '{APPLICATION}' and datname = current_database() and query like '%checkout%' and state = 'active'"
    );
    watcher.wait_for(&sessions, 0).await;
    assert!(watcher.number("select count(*) from job where content_type = 'stopped'").await <= 1);
}

/// A backend that does nothing until this is dropped.
struct Stopped(Pid);

impl Stopped {
    fn stop(backend: i64) -> Self {
        let pid = i32::try_from(backend).ok().and_then(Pid::from_raw).expect("a process");
        kill_process(pid, Signal::STOP).expect("the tests may stop the server's processes");
        Self(pid)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        kill_process(self.0, Signal::CONT).expect("it is still there");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_died_while_idle_cost_no_request() {
    let stage = Stage::postgres().await;
    let lanes = LaneOptions { fresh_for: Duration::ZERO, ..few_lanes().lanes };
    let store = stage.store(StoreOptions { lanes, ..few_lanes() }).await;
    let mut watcher = stage.sql().await;
    let sessions =
        format!("from pg_stat_activity where application_name = '{APPLICATION}' and datname = current_database()");
    for round in 0..10 {
        put(&store, job("q", "before")).await;
        let backends = watcher.numbers(&format!("select pid::bigint {sessions}")).await;
        watcher.run(&format!("select pg_terminate_backend(pid) {sessions}")).await;
        let backends = backends.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
        watcher.wait_for(&format!("select count(*) {sessions} and pid in ({backends})"), 0).await;
        put(&store, job("q", &format!("after-{round}"))).await;
    }
    assert_eq!(
        watcher.number("select count(distinct content_type) from job where content_type like 'after%'").await,
        10
    );
}
