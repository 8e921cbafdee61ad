//! Storing jobs: P1, P2, P12, O13, failure cases 36 and 37.

use std::time::Duration;

use leasehold::{
    model::{Start, Timestamp, TraceContext},
    store::error::EngineError,
};

use super::{
    bench::{Bench, assert_about, changed, claimed_ids, ids, job, key, keyed, lease, once, payloads, priority},
    database::Database,
};

pub(crate) async fn ids_rise_in_the_order_of_the_batch(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let batch: Vec<_> = (0..100).map(|n| job(queue, format!("{n}"))).collect();
    let stored = bench.enqueue(&batch).await;
    assert!(ids(&stored).is_sorted_by(|a, b| a < b));
    let later = bench.enqueue_one(job(queue, "later")).await;
    assert!(later.job > stored[99].job);

    let claimed = bench.claim(queue, 200).await;
    let expected: Vec<_> = (0..100).map(|n| n.to_string()).chain(["later".to_owned()]).collect();
    assert_eq!(payloads(&claimed), expected);
}

pub(crate) async fn everything_comes_back_byte_for_byte(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let all_bytes: Vec<u8> = (0..=255).collect();
    let printable: String = (0x20..=0x7e_u8).map(char::from).collect();
    let trace =
        TraceContext::parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "a=1,b=2").expect("well formed");
    let sent = changed(job(queue, &all_bytes), |job| {
        job.content_type = "text/plain; charset=\"x\"; é 🦀".into();
        job.headers = [
            ("a'b\"c\\d".to_owned(), "🦀 \u{1}\n\t'\"\\ ${x} :y ?1 */".to_owned()),
            ("empty".to_owned(), String::new()),
            ("Ö".to_owned(), "\u{10ffff}".to_owned()),
        ]
        .into();
        job.priority = priority(7);
        job.idempotency_key = Some(key(&printable));
        job.ordering_key = Some(key(" ~'; drop table job; -- "));
        job.trace = Some(trace);
    });
    let stored = bench.enqueue_one(sent.clone()).await;
    assert!(!stored.duplicate);

    let got = bench.claim_one(queue).await;
    assert_eq!(got.job, stored.job);
    assert_eq!(got.payload, sent.job.payload);
    assert_eq!(got.content_type, sent.job.content_type);
    assert_eq!(got.headers, sent.job.headers);
    assert_eq!(got.priority, sent.job.priority);
    assert_eq!(got.idempotency_key, sent.job.idempotency_key);
    assert_eq!(got.ordering_key, sent.job.ordering_key);
    assert_eq!(got.trace, sent.job.trace);
    assert_eq!((got.attempt, got.max_attempts, got.lease_number), (1, 20, 1));
    assert_eq!(got.available_at, got.enqueued_at);
    assert!(got.ready_at >= got.enqueued_at);
    assert_eq!(got.last_error, None);
}

pub(crate) async fn what_was_left_out_stays_absent(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    bench.enqueue_one(job(queue, "")).await;
    let got = bench.claim_one(queue).await;
    assert!(got.payload.is_empty() && got.content_type.is_empty() && got.headers.is_empty());
    assert_eq!((got.idempotency_key, got.ordering_key, got.trace, got.last_error), (None, None, None, None));
}

pub(crate) async fn an_empty_batch_stores_nothing(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    assert_eq!(bench.enqueue(&[]).await, []);
    assert_eq!(db.number("select count(*) from job").await, 0);
}

pub(crate) async fn a_thousand_jobs_of_two_queues_fit_one_batch(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queues = [bench.queue("a").await, bench.queue("b").await];
    let batch: Vec<_> = (0..1_000)
        .map(|n| {
            changed(once(queues[n % 2], &format!("key-{n}"), format!("{n}")), |job| job.ordering_key = Some(key("o")))
        })
        .collect();
    let stored = bench.enqueue(&batch).await;
    assert!(ids(&stored).is_sorted_by(|a, b| a < b));
    assert_eq!(stored.iter().filter(|row| row.ready_in.is_some()).count(), 2);
    assert_eq!(payloads(&bench.claim(queues[0], 1_000).await), ["0"]);
    assert_eq!(payloads(&bench.claim(queues[1], 1_000).await), ["1"]);
    assert_eq!(db.number("select count(*) from job").await, 1_000);
}

pub(crate) async fn a_batch_that_the_database_refuses_is_stored_not_at_all(db: &dyn Database) {
    db.refuse_payload("poison").await;
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let batch = [keyed(queue, "k", "good"), once(queue, "i", "poison"), job(queue, "good too")];
    let refused = bench.try_enqueue(&batch).await.expect_err("a rule of the team's own");
    assert!(matches!(refused, EngineError::Refused(_)), "{refused:?}");
    let shown = refused.to_string();
    assert!(!shown.contains("poison") && !shown.to_lowercase().contains("insert"), "{shown}");
    for table in ["job", "idempotency_key"] {
        assert_eq!(db.number(&format!("select count(*) from {table}")).await, 0, "{table}");
    }
    // The session is not left inside a transaction, and the key is free.
    let stored = bench.enqueue_one(keyed(queue, "k", "good")).await;
    assert_eq!(stored.ready_in, Some(Duration::ZERO));
    assert_eq!(claimed_ids(&bench.claim(queue, 10).await), [stored.job]);
}

pub(crate) async fn the_start_decides_when_a_job_is_ready(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let hour = Duration::from_secs(3_600);
    let starting = |start| changed(job(queue, format!("{start:?}")), |job| job.start = start);
    let now = bench.enqueue_one(starting(Start::Now)).await;
    let past = bench.enqueue_one(starting(Start::At(Timestamp(1_000_000)))).await;
    let after = bench.enqueue_one(starting(Start::After(hour))).await;
    assert_eq!(now.ready_in, Some(Duration::ZERO));
    assert_eq!(past.ready_in, Some(Duration::ZERO));
    let ready_in = after.ready_in.expect("not blocked");
    assert_about(ready_in, hour);

    let claimed = bench.claim(queue, 10).await;
    assert_eq!(claimed_ids(&claimed), [now.job, past.job]);
    assert_eq!(claimed[1].available_at, Timestamp(1_000_000), "what the producer asked for is kept for people");
    assert!(claimed[1].ready_at >= claimed[1].enqueued_at, "a past time does not put it in front of others");

    let year = Duration::from_secs(365 * 24 * 3_600);
    let at = claimed[0].enqueued_at.plus(year);
    let far = bench.enqueue_one(starting(Start::At(at))).await;
    let ready_in = far.ready_in.expect("not blocked");
    assert_about(ready_in, year);
    let stored = db.instant(at);
    let exact = format!("select count(*) from job where available_at = {stored} and ready_at = {stored}");
    assert_eq!(db.number(&exact).await, 1);
}

pub(crate) async fn ids_past_two_to_the_31_and_to_the_53_are_exact(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    for start in [(1_i64 << 31) - 2, (1 << 53) + 1] {
        db.start_ids_at(start).await;
        let batch: Vec<_> = (0..4).map(|n| once(queue, &format!("{start}-{n}"), "x")).collect();
        let stored = bench.enqueue(&batch).await;
        assert!(ids(&stored).iter().all(|id| (start..start + 100).contains(&id.0)), "{stored:?}");
        assert_eq!(ids(&bench.enqueue(&batch).await), ids(&stored), "as duplicates");
        let claimed = bench.claim(queue, 10).await;
        assert_eq!(claimed_ids(&claimed), ids(&stored));
        for job in &claimed {
            assert_eq!(bench.ack_one(lease(job)).await, leasehold::store::engine::Held::Ok);
        }
    }
}
