//! The database goes away and comes back.

use std::time::{Duration, Instant};

use leasehold::{
    model::{Outcome, Reason},
    store::StoreOptions,
};

use super::{
    proxy::Mode,
    server::APPLICATION,
    stage::{Sql, Stage, calm, job, one_lane, put, submit, until},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_is_not_applied_and_ends_with_all_lanes_back_within_ten_seconds() {
    let stage = Stage::postgres_behind_a_proxy().await;
    let options = StoreOptions { acquire_timeout: Duration::from_millis(200), ..StoreOptions::default() };
    let store = stage.store(options).await;
    put(&store, job("q", "before")).await;
    let mut watcher = stage.sql().await;
    let sessions = format!(
        "select count(*) from pg_stat_activity where application_name = '{APPLICATION}' and datname = current_database()"
    );
    let lanes = i64::try_from(stage.engine.lanes(8).len()).expect("a few");
    let all_lanes = async |watcher: &mut Sql| {
        let deadline = Instant::now() + Duration::from_secs(10);
        while watcher.number(&sessions).await < lanes {
            assert!(Instant::now() < deadline, "not all lanes are there within 10 s");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    all_lanes(&mut watcher).await;

    for _ in 0..2 {
        stage.proxy().set(Mode::Refuse);
        stage.proxy().cut();
        // A connection that was used a moment ago is tried once more, with an outcome that nobody knows; then all notice.
        until("the lanes notice", async || {
            let started = Instant::now();
            let away = store.enqueue(&calm("checkout"), vec![job("q", "meanwhile")]).await.expect_err("no database");
            assert!(started.elapsed() < Duration::from_secs(2), "it answers soon: {:?}", started.elapsed());
            (away.reason, away.outcome) == (Reason::DatabaseUnavailable, Outcome::NotApplied)
        })
        .await;
        assert!(!*store.availability().borrow());

        // Long enough that the pauses between tries have grown.
        tokio::time::sleep(Duration::from_secs(3)).await;
        stage.proxy().set(Mode::Pass);
        let healed = Instant::now();
        let mut up = store.availability();
        up.wait_for(|up| *up).await.expect("lanes run");
        all_lanes(&mut watcher).await;
        assert!(healed.elapsed() < Duration::from_secs(10), "{:?}", healed.elapsed());
        put(&store, job("q", "after")).await;
    }
    assert_eq!(watcher.number("select count(*) from job where content_type = 'meanwhile'").await, 0);
    assert_eq!(watcher.number("select count(*) from job where content_type = 'after'").await, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_lost_on_the_way_are_unknown_and_what_was_stored_stays() {
    let stage = Stage::postgres_behind_a_proxy().await;
    // One lane, with its statement prepared: nothing else is asked before it is sent.
    let options = one_lane();
    assert_eq!(stage.writers(&options), 1);
    let store = stage.store(options).await;
    put(&store, job("q", "before")).await;
    let mut watcher = stage.sql().await;

    stage.proxy().set(Mode::LoseAnswers);
    let asking = submit(&store, calm("producer"), vec![job("q", "stored")]).await;
    watcher.wait_for("select count(*) from job where content_type = 'stored'", 1).await;
    stage.proxy().cut();
    stage.proxy().set(Mode::Pass);
    let lost = asking.await.expect("it ran").expect_err("its answer was lost");
    assert_eq!((lost.reason, lost.outcome), (Reason::OutcomeUnknown, Outcome::Unknown), "{lost}");
    put(&store, job("q", "after")).await;
    assert_eq!(
        watcher.number("select count(*) from job where content_type = 'stored'").await,
        1,
        "never repeated by us"
    );
}
