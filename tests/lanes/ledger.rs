//! Every lane's time has a name or was idle: C2.

use std::time::{Duration, Instant};

use leasehold::{
    model::{Caller, Key, NewJob},
    store::{LaneOptions, LaneReport, Store, StoreOptions, Window},
};
use tokio::task::JoinSet;

use super::proxy::Mode;
use super::stage::{Stage, call, caller, calm, claim_of, job, lease, put, queue, slots, submit, until};

/// Enqueues, claims and acks until that instant, whatever becomes of single calls.
async fn work(store: Store, by: String, until: Instant) {
    let to = format!("q-{by}");
    while Instant::now() < until {
        // What fails here meets the outage that the test makes.
        drop(store.enqueue(&calm(&by), vec![job(&to, &by); 3]).await);
        let Ok(Some(row)) = store.queue(&queue(&to)).await else { continue };
        let claimed = store.claim(&caller(&by), vec![claim_of(row.id, slots(3, Duration::from_mins(1)))]).await;
        let leases: Vec<_> = claimed.unwrap_or_default().iter().map(lease).collect();
        if !leases.is_empty() {
            drop(store.ack(&calm(&by), leases).await);
        }
    }
}

fn within_a_hundredth(is: Duration, should: Duration, what: &str) {
    let off = is.abs_diff(should);
    assert!(off * 100 <= should, "{what}: {is:?}, not {should:?}");
}

/// All holds and all idle time against the test's own clock.
fn adds_up(report: &LaneReport, wall: Duration) {
    let held: Duration = report.callers.iter().map(|caller| caller.lanes.held).sum();
    let lanes = u32::try_from(report.lanes).expect("a few");
    within_a_hundredth(held + report.idle, wall * lanes, "all lanes");
    for (n, lane) in report.per_lane.iter().enumerate() {
        within_a_hundredth(lane.held + lane.idle, wall, &format!("lane {n}"));
    }
    let by_statement: Duration =
        report.callers.iter().flat_map(|caller| &caller.statements).map(|statement| statement.lanes.held).sum();
    assert_eq!(by_statement, held, "statements of a caller are all of it");
}

async fn under_load_the_holds_of_each_lane_and_its_idle_time_add_up_to_the_wall_clock(stage: Stage) {
    let started = Instant::now();
    let store = stage.store(StoreOptions::default()).await;
    let end = started + Duration::from_secs(3);
    let mut works = JoinSet::new();
    for n in 0..40 {
        works.spawn(work(store.clone(), format!("caller-{}", n % 5), end));
    }
    if stage.is_postgres() {
        // Lanes are lost and connect again: that is lane time as well.
        let mut sql = stage.sql().await;
        until("lanes hold something", async || store.lanes().0 > 3).await;
        sql.run(
            "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database()
             and application_name = 'leasehold/under-test'",
        )
        .await;
    }
    while let Some(worked) = works.join_next().await {
        worked.expect("it ends");
    }
    let report = store.lane_report(Window::SinceStart, true);
    adds_up(&report, started.elapsed());
    let of = |name: &str| report.callers.iter().find(|caller| caller.caller.as_str() == name);
    for n in 0..5 {
        let busy = of(&format!("caller-{n}")).expect("it held lanes");
        assert!(busy.lanes.holds > 0 && busy.lanes.waits >= busy.lanes.holds && busy.lanes.rows > 0, "{busy:?}");
        let acts: Vec<_> = busy.statements.iter().map(|statement| statement.statement).collect();
        assert!(["enqueue", "claim", "ack"].iter().all(|act| acts.contains(act)), "{acts:?}");
        assert!(busy.lanes.hold_p50 <= busy.lanes.hold_p99 && busy.lanes.hold_p99 <= busy.lanes.hold_max);
    }
    let lanes = of("leasehold.lane").expect("connecting is a hold");
    let connects = lanes.statements.iter().find(|statement| statement.statement == "connect").expect("of its own kind");
    let again = u64::from(stage.is_postgres());
    assert!(connects.lanes.holds >= report.lanes as u64 + again, "{connects:?} of {} lanes", report.lanes);

    store.drain().await;
    let after = store.lane_report(Window::SinceStart, false);
    tokio::time::sleep(Duration::from_millis(20)).await; // nothing is counted any more, however long one waits
    assert_eq!(store.lane_report(Window::SinceStart, false).per_lane, after.per_lane);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lanes_that_cannot_connect_account_for_their_time() {
    let stage = Stage::postgres_behind_a_proxy().await;
    stage.proxy().set(Mode::Refuse);
    let started = Instant::now();
    let options =
        StoreOptions { lanes: LaneOptions { migrate: true, ..LaneOptions::default() }, ..StoreOptions::default() };
    let store = Store::start(stage.engine.clone(), options);
    let failed = store.enqueue(&call("checkout", Duration::from_millis(700)), vec![job("q", "x")]).await;
    assert!(failed.is_err(), "nobody answers");
    let report = store.lane_report(Window::SinceStart, true);
    adds_up(&report, started.elapsed());
    assert!(report.callers.iter().any(|caller| caller.caller.as_str() == "leasehold.lane" && caller.lanes.errors > 0));
    stage.proxy().set(Mode::Pass);
    until("it connects", async || *store.availability().borrow()).await;
    adds_up(&store.lane_report(Window::SinceStart, true), started.elapsed());
}

/// The row of an idempotency key, held by a service's transaction, holds up the one Enqueue that needs it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hold_that_goes_on_is_charged_to_its_caller_and_to_nobody_who_runs_meanwhile() {
    let stage = Stage::postgres().await;
    let store = stage.store(StoreOptions::default()).await;
    let keyed = || NewJob { idempotency_key: Some(Key::parse("key", "once").expect("a key")), ..job("q", "keyed") };
    put(&store, keyed()).await;
    until("all lanes are there", async || store.lanes().0 + store.lanes().1 == 8).await;
    let mut service = stage.sql().await;
    service.run("begin").await;
    service.run("select from idempotency_key where key = 'once' for update").await;

    let began = Instant::now();
    let slow = submit(&store, calm("slow"), vec![keyed()]).await;
    let gone = submit(&store, call("gone", Duration::from_millis(100)), vec![keyed()]).await;
    for _ in 0..100 {
        store.enqueue(&calm("fast"), vec![job("q", "fast")]).await.expect("stored");
    }
    assert!(gone.await.expect("it ran").is_err(), "its asker stopped waiting; its hold goes on");
    tokio::time::sleep(Duration::from_millis(800).saturating_sub(began.elapsed())).await; // the hold that is to be seen
    let so_far = began.elapsed();
    let report = store.lane_report(Window::TenSeconds, true);
    let of = |report: &LaneReport, name: &str| {
        report.callers.iter().find(|caller| caller.caller.as_str() == name).cloned().unwrap_or_else(|| panic!("{name}"))
    };
    let early = Duration::from_millis(100);
    for name in ["slow", "gone"] {
        let open = of(&report, name);
        assert!(open.held_now == 1 && open.lanes.holds == 0, "{open:?}");
        assert!(open.lanes.held + early >= so_far && open.lanes.held <= so_far + early, "{open:?} after {so_far:?}");
        assert_eq!(open.statements[0].statement, "enqueue_keyed");
    }
    service.run("rollback").await;
    let held = began.elapsed();
    slow.await.expect("it ran").expect("a duplicate");
    until("both holds have ended", async || store.lane_report(Window::TenSeconds, false).held_now == 0).await;

    let report = store.lane_report(Window::SinceStart, false);
    let slow = of(&report, "slow").lanes;
    assert!(slow.held + early >= held && slow.held <= held + Duration::from_millis(400), "{slow:?} for {held:?}");
    let fast = of(&report, "fast").lanes;
    assert!(fast.held < held && fast.waits == 100, "{fast:?}");
    assert!(fast.waited > Duration::ZERO, "waiting is a figure of its own");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_invented_callers_leave_a_configured_one_its_own_figures() {
    let stage = Stage::sqlite().await;
    let store = stage
        .store(StoreOptions { ledger_callers: 100, named_callers: vec![caller("checkout")], ..StoreOptions::default() })
        .await;
    let mut invented = JoinSet::new();
    for part in 0..50 {
        let store = store.clone();
        invented.spawn(async move {
            for n in 0..200 {
                // A look at a queue that does not exist: the cheapest statement that runs for a caller.
                let call = calm(&format!("invented-{part}-{n}"));
                drop(store.ack(&call, Vec::new()).await);
            }
        });
    }
    while let Some(done) = invented.join_next().await {
        done.expect("it ends");
    }
    for _ in 0..7 {
        store.enqueue(&calm("checkout"), vec![job("q", "x")]).await.expect("stored");
    }
    let holds = store.holds();
    let of = |name: &Caller| holds.iter().find(|(by, _)| by == name).map_or(0, |(_, holds)| holds.count);
    assert!(of(&caller("checkout")) >= 7, "{holds:?}");
    let strangers: u64 = holds
        .iter()
        .filter(|(by, _)| by.as_str().starts_with("invented") || *by == Caller::other())
        .map(|(_, is)| is.count)
        .sum();
    assert_eq!(strangers, 10_000, "none is lost");
    assert!(holds.len() <= 100 + 10, "{} callers", holds.len());
}

on_both_engines!(under_load_the_holds_of_each_lane_and_its_idle_time_add_up_to_the_wall_clock);
