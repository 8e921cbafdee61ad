//! Idempotency keys: P3, failure case 27.

use std::time::Duration;

use leasehold::{
    model::{NackAction, Start, Timestamp, TraceContext},
    store::{
        engine::{EnqueuedRow, NackRow},
        error::EngineError,
    },
};

use super::{
    bench::{Bench, changed, job, keyed, lease, nack_row, once, payloads},
    database::Database,
};

pub(crate) async fn the_same_key_and_content_is_one_job(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let first = bench.enqueue_one(once(queue, "k", "x")).await;
    assert!(!first.duplicate);
    let again = bench.enqueue_one(once(queue, "k", "x")).await;
    assert_eq!(again, EnqueuedRow { job: first.job, duplicate: true, ready_in: None });
    assert_eq!(bench.claim(queue, 10).await.len(), 1);
}

pub(crate) async fn other_content_under_a_key_is_refused_and_nothing_is_stored(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    bench.enqueue_one(once(queue, "k", "x")).await;
    let batch = [job(queue, "a"), keyed(queue, "o", "b"), once(queue, "k", "other"), job(queue, "c")];
    let refused = bench.try_enqueue(&batch).await.expect_err("other content");
    assert_eq!(refused, EngineError::KeyReused { index: 2 });
    assert_eq!(payloads(&bench.claim(queue, 10).await), ["x"]);
    assert_eq!(bench.enqueue_one(keyed(queue, "o", "b")).await.ready_in, Some(Duration::ZERO));
}

pub(crate) async fn a_key_three_times_in_one_batch_is_one_job(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let batch = [once(queue, "k", "x"), job(queue, "between"), once(queue, "k", "x"), once(queue, "k", "x")];
    let stored = bench.enqueue(&batch).await;
    assert_eq!(stored.iter().map(|row| row.duplicate).collect::<Vec<_>>(), [false, false, true, true]);
    assert!(stored[0].job == stored[2].job && stored[0].job == stored[3].job && stored[0].job != stored[1].job);
    assert_eq!(payloads(&bench.claim(queue, 10).await), ["x", "between"]);
}

pub(crate) async fn other_content_within_one_batch_is_refused(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let batch = [once(queue, "k", "x"), once(queue, "l", "y"), once(queue, "k", "z")];
    assert_eq!(bench.try_enqueue(&batch).await, Err(EngineError::KeyReused { index: 2 }));
    assert_eq!(bench.claim(queue, 10).await.len(), 0);
}

pub(crate) async fn a_refused_batch_leaves_no_key_behind(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    bench.enqueue_one(once(queue, "k", "x")).await;
    bench.try_enqueue(&[once(queue, "new", "n"), once(queue, "k", "y")]).await.expect_err("other content");
    let stored = bench.enqueue_one(once(queue, "new", "another n")).await;
    assert!(!stored.duplicate);
}

pub(crate) async fn a_key_is_known_whatever_became_of_its_job(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let stored =
        bench.enqueue(&[once(queue, "acked", "x"), once(queue, "dead", "x"), once(queue, "leased", "x")]).await;
    let claimed = bench.claim(queue, 3).await;
    bench.ack(&[lease(&claimed[0])]).await;
    bench.nack_one(nack_row(lease(&claimed[1]), NackAction::Reject)).await;
    for (name, first) in ["acked", "dead", "leased"].into_iter().zip(&stored) {
        let again = bench.enqueue_one(once(queue, name, "x")).await;
        assert_eq!((again.job, again.duplicate), (first.job, true), "{name}");
        let other = bench.try_enqueue(&[once(queue, name, "y")]).await;
        assert_eq!(other, Err(EngineError::KeyReused { index: 0 }), "{name}");
    }
    assert_eq!(bench.claim(queue, 10).await.len(), 0);
}

pub(crate) async fn an_expired_key_is_free_again(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let first = bench.enqueue_one(once(queue, "k", "x")).await;
    let past = db.instant(Timestamp(1_000_000));
    db.execute(&format!("update idempotency_key set expires_at = {past}")).await;
    let batch = [once(queue, "k", "other"), once(queue, "k", "other")];
    let stored = bench.enqueue(&batch).await;
    assert!(stored[0].job != first.job && !stored[0].duplicate && stored[1].duplicate);
    assert_eq!(bench.enqueue_one(once(queue, "k", "other")).await.job, stored[0].job, "known anew");
    assert_eq!(db.number("select hits from idempotency_key").await, 2);
}

pub(crate) async fn start_and_trace_context_are_not_compared(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let first = bench.enqueue_one(once(queue, "k", "x")).await;
    let again = changed(once(queue, "k", "x"), |job| {
        job.start = Start::After(Duration::from_secs(5));
        job.trace = TraceContext::parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "");
        job.headers.insert("traceparent".into(), "anything".into());
    });
    assert_eq!(bench.enqueue_one(again).await.job, first.job);
    let got = bench.claim_one(queue).await;
    assert!(got.trace.is_none() && got.headers.is_empty(), "nothing passes from one call to another's job");
}

pub(crate) async fn keys_are_compared_byte_for_byte_and_by_queue(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let (queue, other) = (bench.queue("orders").await, bench.queue("other").await);
    let long = "k".repeat(200);
    let batch: Vec<_> = ["k", "K", "k ", " k", "k\\", "k%", "k_", long.as_str(), &long[1..]]
        .into_iter()
        .map(|name| once(queue, name, "x"))
        .chain([once(other, "k", "x")])
        .collect();
    assert!(bench.enqueue(&batch).await.iter().all(|row| !row.duplicate));
    assert!(bench.enqueue(&batch).await.iter().all(|row| row.duplicate));
}

pub(crate) async fn each_duplicate_is_written_to_its_key(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    bench.enqueue(&[once(queue, "k", "x"), once(queue, "l", "x")]).await;
    bench.enqueue(&[once(queue, "k", "x"), once(queue, "k", "x")]).await;
    bench.enqueue(&[once(queue, "k", "x")]).await;
    assert_eq!(db.number("select hits from idempotency_key where key = 'k'").await, 3);
    assert_eq!(db.number("select hits from idempotency_key where key = 'l'").await, 0);
}

pub(crate) async fn a_duplicate_does_not_prolong_its_key(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    bench.enqueue_one(once(queue, "k", "x")).await;
    let ends = db.instant(Timestamp(4_000_000_000_000_000));
    db.execute(&format!("update idempotency_key set expires_at = {ends}")).await;
    assert!(bench.enqueue_one(once(queue, "k", "x")).await.duplicate);
    let kept = format!("select count(*) from idempotency_key where expires_at = {ends}");
    assert_eq!(db.number(&kept).await, 1, "it counts from the first enqueue");
}

pub(crate) async fn a_job_with_a_key_that_waits_for_its_retry_stops_nobody(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let first = bench.enqueue_one(once(queue, "k", "x")).await;
    let claimed = bench.claim_one(queue).await;
    bench
        .nack_one(NackRow { delay: Some(Duration::from_secs(60)), ..nack_row(lease(&claimed), NackAction::Retry) })
        .await;
    assert!(bench.enqueue_one(once(queue, "k", "x")).await.duplicate);
    bench.enqueue(&(0..99).map(|n| once(queue, &format!("other-{n}"), "x")).collect::<Vec<_>>()).await;
    assert_eq!(bench.claim(queue, 200).await.len(), 99);
    let past = db.instant(Timestamp(1_000_000));
    db.execute(&format!("update job set ready_at = {past} where lease_id is null")).await;
    let due = bench.claim(queue, 10).await;
    assert_eq!((due.len(), due[0].job, due[0].attempt), (1, first.job, 2));
}

pub(crate) async fn many_sessions_with_one_key_make_one_job(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..6 {
        let mut bench = Bench::on(db).await;
        calls.spawn(async move {
            let mut jobs = Vec::new();
            for n in 0..10 {
                // Two keys in either order: whoever comes second waits or is told, and nobody fails.
                let mut batch = [once(queue, &format!("a{n}"), "x"), once(queue, &format!("b{n}"), "x")];
                if rand::random() {
                    batch.reverse();
                }
                let mut stored = bench.enqueue(&batch).await;
                stored.sort_by_key(|row| row.job);
                jobs.extend(stored);
            }
            jobs
        });
    }
    let mut new = 0;
    while let Some(rows) = calls.join_next().await {
        new += rows.expect("no call fails").iter().filter(|row| !row.duplicate).count();
    }
    assert_eq!(new, 20);
    assert_eq!(db.number("select count(*) from job").await, 20);
    assert_eq!(db.number("select sum(hits) from idempotency_key").await, 100);
    assert_eq!(bench.claim(queue, 100).await.len(), 20);
}
