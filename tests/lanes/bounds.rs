//! Bounds on queues, and queues that do not come into being.

use std::time::{Duration, Instant};

use leasehold::{
    model::{Failure, Outcome, Reason},
    store::{Store, StoreOptions, engine::NewQueues},
};

use super::stage::{Sql, Stage, call, calm, claim, job, lease, put, queue, submit, until};

fn is_full(refused: &Failure) -> bool {
    assert_eq!(refused.outcome, Outcome::NotApplied);
    assert_eq!(refused.subject.as_deref(), Some("q"));
    refused.reason == Reason::QueueFull
}

/// A queue with a bound that the store has heard of.
async fn bounded(stage: &Stage, bound: &str) -> (Store, leasehold::model::QueueId, Sql) {
    let options = StoreOptions { queue_refresh: Duration::from_millis(20), ..StoreOptions::default() };
    let store = stage.store(options).await;
    let (_, queue) = put(&store, job("q", "first")).await;
    let mut sql = stage.sql().await;
    sql.run(&format!("update queue set {bound} where name = 'q'")).await;
    (store, queue, sql)
}

async fn a_full_queue_refuses_and_takes_jobs_again_once_it_has_room(stage: Stage) {
    let (store, queue, mut sql) = bounded(&stage, "max_backlog_jobs = 10").await;
    // What is known of the queue is read anew by and by.
    until("the bound holds", async || {
        let stored = store.enqueue(&calm("producer"), vec![job("q", "work")]).await;
        stored.is_err_and(|refused| is_full(&refused))
    })
    .await;
    let there = sql.number("select count(*) from job").await;
    assert!(there >= 10, "refused at {there}");

    while sql.number("select count(*) from job").await > 5 {
        let claimed = claim(&store, queue, 1).await;
        store.ack(&calm("consumer"), claimed.iter().map(lease).collect()).await.expect("acked");
    }
    until("there is room", async || store.enqueue(&calm("producer"), vec![job("q", "work")]).await.is_ok()).await;
    // From here on the count is fresh: the bound is kept to the job.
    let refused = store.enqueue(&calm("producer"), vec![job("q", "batch"); 5]).await.expect_err("only four fit");
    assert!(is_full(&refused), "{refused}");
    store.enqueue(&calm("producer"), vec![job("q", "batch"); 4]).await.expect("four fit");
    assert_eq!(sql.number("select count(*) from job").await, 10);
}

async fn a_bound_on_bytes_counts_payloads(stage: Stage) {
    let (store, _, mut sql) = bounded(&stage, "max_backlog_bytes = 1000").await;
    until("the bound holds", async || {
        let mut large = job("q", "large");
        large.payload = vec![7; 1_001].into();
        let stored = store.enqueue(&calm("producer"), vec![large]).await;
        sql.run("delete from job where content_type = 'large'").await;
        stored.is_err_and(|refused| is_full(&refused))
    })
    .await;
    put(&store, job("q", "small")).await;
    put(&store, job("elsewhere", "unbounded")).await;
}

async fn queues_that_may_not_come_into_being_are_not_found(stage: Stage) {
    let options = StoreOptions { auto_create_queues: false, ..StoreOptions::default() };
    let store = stage.store(options).await;
    let missing = store.enqueue(&calm("producer"), vec![job("nowhere", "lost")]).await.expect_err("no such queue");
    assert_eq!((missing.reason, missing.outcome), (Reason::NotFound, Outcome::NotApplied), "{missing}");
    assert_eq!(missing.subject.as_deref(), Some("nowhere"));
    let mut sql = stage.sql().await;
    assert_eq!(sql.number("select count(*) from queue").await, 0);
    assert_eq!(sql.number("select count(*) from job").await, 0);
}

async fn a_replica_that_only_serves_consumers_hears_of_changed_settings(stage: Stage) {
    let options = StoreOptions { queue_refresh: Duration::from_millis(20), ..StoreOptions::default() };
    let producers = stage.store(options.clone()).await;
    put(&producers, job("q", "first")).await;
    let consumers = if stage.is_postgres() { stage.store(options).await } else { producers };
    let lease = async || {
        let known = consumers.queue(&queue("q")).await.expect("looked up").expect("it exists");
        known.settings.lease_duration
    };
    assert_eq!(lease().await, Duration::from_secs(30));
    stage.sql().await.run("update queue set lease_duration = 60000000 where name = 'q'").await;
    until("the settings are read anew", async || lease().await == Duration::from_mins(1)).await;
}

/// A reader waits for a writer on PostgreSQL alone, and there only for one that changes the table itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_count_that_takes_long_keeps_nobody_past_its_deadline_and_no_other_queue() {
    let stage = Stage::postgres().await;
    let (store, _, mut sql) = bounded(&stage, "max_backlog_jobs = 10").await;
    put(&store, job("other", "first")).await;
    sql.run("update queue set max_backlog_jobs = 10").await;
    until("both bounds hold", async || {
        let refused = |to| {
            let store = &store;
            async move { store.enqueue(&calm("producer"), vec![job(to, "work"); 11]).await.is_err() }
        };
        refused("q").await && refused("other").await
    })
    .await;
    sql.run("delete from job").await; // what came in while a bound was not known yet
    // A count is fresh for a second.
    tokio::time::sleep(Duration::from_millis(1_100)).await;

    let mut held = stage.sql().await;
    held.run("begin").await;
    held.run("lock table leasehold.job in access exclusive mode").await;
    let counting = submit(&store, calm("first"), vec![job("q", "first")]).await;
    until("the count is under way", async || store.waiting() == 0).await;
    let (started, short) = (Instant::now(), Duration::from_millis(200));
    let late = store.enqueue(&call("late", short), vec![job("q", "late")]).await.expect_err("nobody knows the count");
    assert_eq!((late.reason, late.outcome), (Reason::Deadline, Outcome::NotApplied), "{late}");
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    let other = submit(&store, calm("neighbour"), vec![job("other", "other")]).await;
    sql.wait_for(
        "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' \
         and query like '/* conn_tag:leasehold.backlog */%'",
        2,
    )
    .await;

    held.run("rollback").await;
    counting.await.expect("it ran").expect("there is room");
    other.await.expect("it ran").expect("there is room");
    assert_eq!(sql.number("select count(*) from job where content_type = 'late'").await, 0);
}

async fn a_job_for_a_queue_past_their_bound_is_refused_and_known_queues_go_on(stage: Stage) {
    let new_queues = NewQueues { at_most: 2, ..NewQueues::default() };
    let store = stage.store(StoreOptions { new_queues, ..StoreOptions::default() }).await;
    put(&store, job("a", "first")).await;
    put(&store, job("b", "first")).await;
    let both = vec![job("a", "refused"), job("c", "refused")];
    let refused = store.enqueue(&calm("producer"), both).await.expect_err("no room for a third queue");
    assert_eq!((refused.reason, refused.outcome), (Reason::QueueFull, Outcome::NotApplied), "{refused}");
    assert_eq!(refused.subject.as_deref(), Some("c"));
    put(&store, job("a", "second")).await;
    let mut sql = stage.sql().await;
    assert_eq!(sql.number("select count(*) from queue").await, 2);
    assert_eq!(sql.number("select count(*) from job where content_type = 'refused'").await, 0);
}

on_both_engines!(
    a_full_queue_refuses_and_takes_jobs_again_once_it_has_room,
    a_bound_on_bytes_counts_payloads,
    queues_that_may_not_come_into_being_are_not_found,
    a_replica_that_only_serves_consumers_hears_of_changed_settings,
    a_job_for_a_queue_past_their_bound_is_refused_and_known_queues_go_on,
);
