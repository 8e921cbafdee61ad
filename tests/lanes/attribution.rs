//! Who a lane works for: in the ledger, and in the text of every statement.

use std::{
    collections::BTreeSet,
    env, fs,
    time::{Duration, Instant},
};

use leasehold::{
    model::{Caller, Key, NackAction, NewJob, Priority, Timestamp},
    store::{
        LaneOptions, Store, StoreOptions,
        engine::{ExtendRow, LookSpot, NackRow, Wake},
    },
};

use super::{
    server::APPLICATION,
    stage::{Stage, caller, calm, claim, few_lanes, job, keyed, lease, occupy_writers, put, queue, submit, until},
};

async fn the_ledger_charges_a_hold_to_its_caller_alone(stage: Stage) {
    let options = few_lanes();
    let (writers, lanes) = (stage.writers(&options), u32::try_from(stage.engine.lanes(3).len()).expect("a few"));
    let started = Instant::now();
    let store = stage.store(options).await;
    put(&store, job("q", "first")).await;
    let mut held = stage.hold_writes().await;
    let holding = Instant::now();
    let blockers = occupy_writers(&store, writers, "q").await;
    let waiting = submit(&store, calm("patient"), vec![job("q", "patient")]).await;
    tokio::time::sleep(Duration::from_millis(300)).await; // the hold that is to be seen
    let at_least = holding.elapsed().min(Duration::from_millis(300));
    held.run("rollback").await;
    for blocker in blockers {
        blocker.await.expect("it ran").expect("stored");
    }
    waiting.await.expect("it ran").expect("stored");
    store.drain().await;

    let holds = store.holds();
    let wall = started.elapsed();
    let of = |name: &str| holds.iter().find(|(by, _)| by.as_str() == name).map(|(_, holds)| holds.clone());
    let blocker = of("blocker-0").expect("it held a lane");
    let patient = of("patient").expect("it held a lane");
    assert!(blocker.count == 1 && blocker.held >= at_least, "{blocker:?}");
    assert!(blocker.waited < Duration::from_millis(200), "{blocker:?}");
    assert!(patient.count == 1 && patient.waited >= at_least, "{patient:?}");
    assert!(patient.held < blocker.held, "{patient:?} {blocker:?}");
    let sum: Duration = holds.iter().map(|(_, holds)| holds.held).sum();
    assert!(sum <= wall * lanes, "{sum:?} of {wall:?} on {lanes} lanes");
}

on_both_engines!(the_ledger_charges_a_hold_to_its_caller_alone);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_statement_that_the_database_saw_names_its_caller() {
    let log =
        env::var("LEASEHOLD_TEST_POSTGRES_LOG").expect("LEASEHOLD_TEST_POSTGRES_LOG names no log: run ./test rust");
    let stage = Stage::postgres().await;
    let lanes = LaneOptions { fresh_for: Duration::ZERO, ..LaneOptions::default() };
    let store = stage.store(StoreOptions { lanes, queue_refresh: Duration::ZERO, ..StoreOptions::default() }).await;
    act(&store).await;
    store.drain().await;

    let text = String::from_utf8_lossy(&fs::read(log).expect("the server's log can be read")).into_owned();
    let mine = format!("app={APPLICATION} db={} ", stage.server().database);
    let (mut callers, mut verbs) = (BTreeSet::new(), BTreeSet::new());
    let mut statements = 0;
    for line in text.lines().filter(|line| line.contains(&mine)) {
        let Some(statement) = statement(line) else { continue };
        statements += 1;
        let tagged = statement.strip_prefix("/* conn_tag:").and_then(|rest| rest.split_once(" */ "));
        let (by, text) = tagged.unwrap_or_else(|| panic!("no caller: {statement}"));
        callers.insert(by.to_owned());
        verbs.extend(text.split_whitespace().next().map(str::to_ascii_lowercase));
    }
    assert!(statements > 30, "only {statements} statements were seen");
    for by in [
        "checkout",
        "consumer",
        "leasehold.dispatcher",
        "leasehold.reaper",
        "leasehold.pruner",
        "leasehold.migrate",
        "leasehold.listener",
    ] {
        assert!(callers.contains(by), "{by} is not among {callers:?}");
    }
    for verb in ["begin", "commit", "listen", "select"] {
        assert!(verbs.contains(verb), "{verb} is not among {verbs:?}");
    }
}

/// The text of a statement, where the line of the log begins one.
fn statement(line: &str) -> Option<&str> {
    let (_, logged) = line.split_once(" LOG:  ")?;
    if let Some(text) = logged.strip_prefix("statement: ") {
        return Some(text);
    }
    logged.strip_prefix("execute ")?.split_once(": ").map(|(_, text)| text)
}

/// Everything that a store can be asked for.
async fn act(store: &Store) {
    let (_, id) = put(store, job("q", "first")).await;
    let by = calm("checkout");
    let mut jobs = vec![job("q", "plain"), keyed("q", "keyed", "k"), keyed("q", "keyed", "k")];
    jobs[1].idempotency_key = Some(Key::parse("key", "once").expect("a key"));
    store.enqueue(&by, jobs).await.expect("stored");
    let once = NewJob { idempotency_key: Some(Key::parse("key", "twice").expect("a key")), ..job("new", "keyed") };
    store.enqueue(&by, vec![once.clone()]).await.expect("stored");
    assert!(store.enqueue(&by, vec![once]).await.expect("stored")[0].row.duplicate);

    let claimed = claim(store, id, 3).await;
    assert_eq!(claimed.len(), 3);
    let leases: Vec<_> = claimed.iter().map(lease).collect();
    store.inspect(leases.clone()).await.expect("looked at");
    store.extend(&by, vec![ExtendRow { lease: leases[0], duration: None }]).await.expect("extended");
    let nack =
        NackRow { lease: leases[0], action: NackAction::Reject, delay: None, jitter: 0.5, error: "no".to_owned() };
    store.nack(&by, vec![nack]).await.expect("rejected");
    store.give_back(vec![leases[1]]).await.expect("given back");
    store.ack(&by, vec![leases[2]]).await.expect("acked");

    store.look(vec![LookSpot { queue: id, floors: [Timestamp::BEGINNING; Priority::LEVELS] }]).await.expect("seen");
    store.adopt_arrivals(0, 100).await.expect("adopted");
    store.reap(Timestamp::BEGINNING, 0, 100).await.expect("reaped");
    store.prune_dead(Timestamp::BEGINNING, 100).await.expect("pruned");
    store.prune_keys(Timestamp::BEGINNING, 100).await.expect("pruned");
    store.queue(&queue("q")).await.expect("found");

    // A hint to itself: once it is heard, both the notifier's and the listener's statements are in the log.
    let mut wakes = store.take_wakes().expect("nobody took them");
    let hint = Wake::Ready { queues: vec![id] };
    let heard = async {
        while let Some(wake) = wakes.recv().await {
            if wake == hint {
                return;
            }
        }
    };
    let mut heard = Box::pin(heard);
    until("a wake-up is heard", async || {
        store.notify(hint.clone());
        tokio::time::timeout(Duration::from_millis(200), &mut heard).await.is_ok()
    })
    .await;
    assert!(store.holds().iter().any(|(by, _)| *by == Caller::broker("dispatcher") || *by == caller("checkout")));
}
