//! Callers' budgets: C3.

use std::time::{Duration, Instant};

use leasehold::{
    model::{Budget, BudgetSource, Caller, Outcome, Reason, Share},
    store::{Store, StoreOptions, Window},
};
use tokio::task::JoinSet;

use super::stage::{Sql, Stage, caller, calm, claim, job, lease, put, submit, until};

fn lanes(count: u32, max_wait: Duration) -> Budget {
    Budget { max_lanes: Some(count), max_wait, share: None }
}

fn with(caller_name: &str, budget: Budget) -> StoreOptions {
    StoreOptions { budgets: vec![(caller(caller_name), budget)], ..StoreOptions::default() }
}

/// Statements of a caller that the database works on at this instant.
async fn at_work(sql: &mut Sql, by: &str) -> i64 {
    sql.number(&format!(
        "select count(*) from pg_stat_activity where datname = current_database() and state = 'active' \
         and query like '/* conn\\_tag:{by} */%'"
    ))
    .await
}

fn held_now(store: &Store, by: &str) -> usize {
    let report = store.lane_report(Window::TenSeconds, false);
    report.callers.iter().find(|caller| caller.caller.as_str() == by).map_or(0, |caller| caller.held_now)
}

fn refused(store: &Store, by: &str) -> u64 {
    let report = store.lane_report(Window::SinceStart, false);
    report.callers.iter().find(|caller| caller.caller.as_str() == by).map_or(0, |caller| caller.refused)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_calls_of_a_capped_caller_hold_its_lanes_and_no_more_and_leave_one_for_settling() {
    let stage = Stage::postgres().await;
    let store = stage.store(with("flood", lanes(3, Duration::from_secs(30)))).await;
    let (_, queue) = put(&store, job("q", "first")).await;
    store.enqueue(&calm("producer"), vec![job("q", "work"); 200]).await.expect("stored");
    let leased = claim(&store, queue, 201).await;
    assert_eq!(leased.len(), 201);
    until("all lanes are there", async || store.lanes().0 + store.lanes().1 == 8).await;
    let mut sql = stage.sql().await;

    let mut held = stage.hold_writes().await;
    let mut asking = Vec::new();
    for n in 0..200 {
        // Keys make statements of two kinds, so that they do not just gather.
        let to = if n % 2 == 0 { job("q", "flood") } else { super::stage::keyed("q", "flood", &format!("k{n}")) };
        asking.push(submit(&store, calm("flood"), vec![to]).await);
    }
    until("two of its statements are at work", async || at_work(&mut sql, "flood").await == 2).await;
    let acks: Vec<_> = leased
        .chunks(1)
        .map(|jobs| {
            let (store, leases) = (store.clone(), jobs.iter().map(lease).collect());
            tokio::spawn(async move { store.ack(&calm("flood"), leases).await })
        })
        .collect();
    until("the third lane settles", async || at_work(&mut sql, "flood").await == 3).await;
    let free = submit(&store, calm("free"), vec![job("q", "free")]).await;
    until("another caller has a lane", async || at_work(&mut sql, "free").await == 1).await;
    assert_eq!((held_now(&store, "flood"), at_work(&mut sql, "flood").await), (3, 3));
    assert!(store.waiting() > 0 && store.lanes().1 > 0, "lanes are idle while it waits: that is the cap");

    held.run("rollback").await;
    free.await.expect("it ran").expect("stored");
    let mut most = 0;
    while asking.iter().any(|call| !call.is_finished()) || acks.iter().any(|call| !call.is_finished()) {
        most =
            most.max(held_now(&store, "flood")).max(usize::try_from(at_work(&mut sql, "flood").await).expect("a few"));
    }
    assert!(most <= 3, "{most} lanes at once");
    for call in asking {
        call.await.expect("it ran").expect("stored");
    }
    for call in acks {
        call.await.expect("it ran").expect("acked");
    }
    let left = "select count(*) from job where content_type = 'flood'";
    assert_eq!(sql.number(left).await, 200);
    assert_eq!(sql.number("select count(*) from job where content_type = 'work'").await, 0, "all were acked");
    assert_eq!(refused(&store, "flood"), 0);
}

async fn a_request_that_its_budget_keeps_waiting_too_long_is_refused_and_nobody_elses_is(stage: Stage) {
    let store = stage.store(with("capped", lanes(1, Duration::from_millis(100)))).await;
    put(&store, job("q", "first")).await;
    let mut held = stage.hold_writes().await;
    let first = submit(&store, calm("capped"), vec![job("q", "first of the cap")]).await;
    until("a lane takes it", async || store.waiting() == 0).await;
    let started = Instant::now();
    let second = store.enqueue(&calm("capped"), vec![job("q", "refused")]).await.expect_err("over its budget");
    let took = started.elapsed();
    assert_eq!((second.reason, second.outcome), (Reason::CallerBudget, Outcome::NotApplied), "{second}");
    assert_eq!(second.subject.as_deref(), Some("capped"));
    assert!(second.retry_after.is_some_and(|pause| pause > Duration::ZERO));
    assert!(took >= Duration::from_millis(100) && took < Duration::from_secs(1), "{took:?}");
    let free = submit(&store, calm("free"), vec![job("q", "free")]).await;
    tokio::time::sleep(Duration::from_millis(300)).await; // longer than the other one's budget lets it wait
    held.run("rollback").await;
    first.await.expect("it ran").expect("stored");
    free.await.expect("it ran").expect("whoever has no budget is not refused for one");
    assert_eq!((refused(&store, "capped"), refused(&store, "free")), (1, 0));
    store.enqueue(&calm("capped"), vec![job("q", "later")]).await.expect("there is room again");
    assert_eq!(stage.sql().await.number("select count(*) from job where content_type = 'refused'").await, 0);
}

async fn a_budget_holds_at_once_where_it_is_set_and_when_it_is_taken_away(stage: Stage) {
    let store = stage.store(with("flood", lanes(1, Duration::from_secs(30)))).await;
    put(&store, job("q", "first")).await;
    let flood = caller("flood");
    let mut held = stage.hold_writes().await;
    let mut asking = Vec::new();
    for n in 0..3 {
        asking.push(submit(&store, calm("flood"), vec![super::stage::keyed("q", "flood", &format!("k{n}"))]).await);
        asking.push(submit(&store, calm("flood"), vec![job("q", "flood")]).await);
    }
    until("it holds its lane", async || held_now(&store, "flood") == 1).await;
    held.run("rollback").await;

    // The write of the budget itself needs a lane that the flood does not have.
    let set = store.set_budget(&calm("operator"), &flood, Some(lanes(4, Duration::from_secs(5)))).await.expect("set");
    let set = set.expect("a budget");
    assert_eq!((set.budget.max_lanes, set.source), (Some(4), BudgetSource::Database));
    for call in asking {
        call.await.expect("it ran").expect("stored");
    }
    let back =
        store.set_budget(&calm("operator"), &flood, None).await.expect("taken away").expect("the configuration's");
    assert_eq!((back.budget.max_lanes, back.source), (Some(1), BudgetSource::Configuration));
    assert_eq!(store.set_budget(&calm("operator"), &caller("nobody"), None).await.expect("nothing to take"), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_wait_go_as_soon_as_a_larger_budget_lets_them() {
    let stage = Stage::postgres().await;
    let store = stage.store(with("flood", lanes(1, Duration::from_secs(30)))).await;
    put(&store, job("q", "first")).await;
    let mut held = stage.hold_writes().await;
    let mut asking = Vec::new();
    for n in 0..4 {
        asking.push(submit(&store, calm("flood"), vec![super::stage::keyed("q", "flood", &format!("k{n}"))]).await);
        asking.push(submit(&store, calm("flood"), vec![job("q", "flood")]).await);
    }
    until("it holds its lane", async || held_now(&store, "flood") == 1).await;
    assert!(store.waiting() > 0);
    // No job is written by this, so the held writes do not hold it up on PostgreSQL.
    let raised = lanes(4, Duration::from_secs(30));
    store.set_budget(&calm("operator"), &caller("flood"), Some(raised)).await.expect("set");
    until("what waited is on lanes", async || store.waiting() == 0 && held_now(&store, "flood") > 1).await;
    assert!(held_now(&store, "flood") <= 3, "one lane is left for settling");
    held.run("rollback").await;
    for call in asking {
        call.await.expect("it ran").expect("stored");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn budgets_reach_every_replica_through_the_database() {
    let stage = Stage::postgres().await;
    let (here, there) = (stage.store(StoreOptions::default()).await, stage.store(StoreOptions::default()).await);
    let budget = Budget { max_lanes: Some(2), max_wait: Duration::from_millis(1_500), share: Share::nearest(0.25) };
    let unattributed = Caller::unattributed();
    here.set_budget(&calm("operator"), &unattributed, Some(budget)).await.expect("set");
    let known = |store: &Store| store.budgets().borrow().get(&unattributed).map(|held| (held.budget, held.source));
    assert_eq!(known(&here), Some((budget, BudgetSource::Database)));
    assert_eq!(known(&there), None);
    assert!(there.refresh_budgets().await.expect("read"));
    assert_eq!(known(&there), Some((budget, BudgetSource::Database)));
    assert!(!there.refresh_budgets().await.expect("read"), "nothing has changed since");

    there.set_budget(&calm("operator"), &unattributed, None).await.expect("taken away");
    here.refresh_budgets().await.expect("read");
    assert_eq!((known(&here), known(&there)), (None, None));
}

async fn more_callers_than_may_have_no_budget(stage: Stage) {
    let store = stage.store(StoreOptions { budgets_at_most: 2, ..StoreOptions::default() }).await;
    let set = async |name: &str| {
        store.set_budget(&calm("operator"), &caller(name), Some(lanes(1, Duration::from_secs(1)))).await
    };
    set("a").await.expect("room");
    set("b").await.expect("room");
    let third = set("c").await.expect_err("no room");
    assert_eq!((third.reason, third.outcome), (Reason::InvalidField, Outcome::NotApplied), "{third}");
    assert_eq!(third.invalid[0].field, "caller");
    set("a").await.expect("one that has one may get another");
    assert_eq!(store.budgets().borrow().len(), 2);
}

/// Both ask for more without end; the one with a share gets no more than that of the lanes that are contended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_with_a_share_leaves_the_rest_to_those_who_wait() {
    let stage = Stage::sqlite().await; // one lane writes, so it is contended
    let share = Budget { share: Share::nearest(0.2), max_wait: Duration::from_secs(60), ..Budget::default() };
    let store = stage.store(with("capped", share)).await;
    put(&store, job("q", "first")).await;
    let before = store.lane_report(Window::SinceStart, false);
    let end = Instant::now() + Duration::from_secs(3);
    let mut flood = JoinSet::new();
    // So many of the others that some of them wait at every moment, also on a busy machine: else nobody is there to leave it to.
    for n in 0..80 {
        let (store, by) = (store.clone(), if n % 5 == 0 { "capped" } else { "free" });
        flood.spawn(async move {
            while Instant::now() < end {
                // Statements of one request each: the key decides that they do not merge into one of many milliseconds.
                store.enqueue(&calm(by), vec![job("q", by); 20]).await.expect("it waits its turn");
            }
        });
    }
    while let Some(ended) = flood.join_next().await {
        ended.expect("it ends");
    }
    let after = store.lane_report(Window::SinceStart, false);
    let held = |name: &str| {
        let of = |report: &leasehold::store::LaneReport| {
            report
                .callers
                .iter()
                .find(|caller| caller.caller.as_str() == name)
                .map_or(Duration::ZERO, |is| is.lanes.held)
        };
        of(&after).saturating_sub(of(&before)).as_secs_f64()
    };
    let part = held("capped") / (held("capped") + held("free"));
    assert!((0.1..0.3).contains(&part), "{part} of the writing lane's time for a share of 0.2");
}

on_both_engines!(
    a_request_that_its_budget_keeps_waiting_too_long_is_refused_and_nobody_elses_is,
    a_budget_holds_at_once_where_it_is_set_and_when_it_is_taken_away,
    more_callers_than_may_have_no_budget,
);
