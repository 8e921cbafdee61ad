//! Retry, release, reject, dead jobs: P8, P11, O2, failure cases 5, 36 and 37.

use std::time::Duration;

use leasehold::{
    model::{Backoff, NackAction, QueueSettings},
    store::engine::{Held, NackRow},
};

use super::{
    bench::{Bench, assert_about, changed, job, key, lease, leases, nack_row, once, payloads},
    database::Database,
};

fn failing(lease: leasehold::store::engine::LeaseRef, error: &str) -> NackRow {
    NackRow { error: error.into(), ..nack_row(lease, NackAction::Retry) }
}

pub(crate) async fn a_retry_waits_for_its_delay(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    bench.enqueue_one(job(queue, "x")).await;
    let claimed = bench.claim_one(queue).await;
    let hour = Duration::from_secs(3_600);
    let nacked = bench.nack_one(NackRow { delay: Some(hour), ..failing(lease(&claimed), "no") }).await;
    assert_eq!((nacked.held, nacked.dead, nacked.readied), (Held::Ok, false, Some(queue)));
    assert_about(nacked.ready_in.expect("it lives"), hour);
    let at = db.instant(nacked.ready_at.expect("it lives"));
    assert_eq!(db.number(&format!("select count(*) from job where ready_at = {at}")).await, 1);
    assert_eq!(bench.claim(queue, 10).await.len(), 0);
}

pub(crate) async fn a_retry_without_a_delay_waits_for_the_queues_back_off(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let backoff = Backoff { base: Duration::from_secs(1_000), cap: Duration::from_secs(3_000) };
    let queue = bench.queue_with("orders", &QueueSettings { backoff, ..QueueSettings::default() }).await.id;
    bench.enqueue_one(job(queue, "x")).await;
    for (ceiling, jitter) in [(1_000, 1.0), (2_000, 0.6), (3_000, 1.0), (3_000, 0.25), (3_000, 0.0)] {
        let claimed = bench.claim_one(queue).await;
        let nacked = bench.nack_one(NackRow { delay: None, jitter, ..failing(lease(&claimed), "no") }).await;
        assert_about(nacked.ready_in.expect("it lives"), Duration::from_secs(ceiling).mul_f64(jitter));
        let past = db.instant(leasehold::model::Timestamp(1_000_000));
        db.execute(&format!("update job set ready_at = {past}")).await;
    }
}

pub(crate) async fn back_off_of_huge_attempt_numbers_stays_within_its_cap(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    for (attempt, jitter) in [(31, 1.0), (32, 0.5), (63, 1.0), (64, 0.3), (65, 0.9), (1_715, 1.0), (1_000_000, 0.7)] {
        bench.enqueue_one(job(queue, "x")).await;
        let claimed = bench.claim_one(queue).await;
        db.execute(&format!("update job set attempt = {attempt}, max_attempts = 2000000")).await;
        let nacked = bench.nack_one(NackRow { delay: None, jitter, ..failing(lease(&claimed), "no") }).await;
        assert_eq!(nacked.held, Held::Ok);
        assert_about(nacked.ready_in.expect("it lives"), Duration::from_secs(600).mul_f64(jitter));
        db.execute("delete from job").await;
    }
}

pub(crate) async fn a_release_is_not_counted(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let mut only_one = job(queue, "x");
    only_one.max_attempts = 1;
    bench.enqueue_one(only_one).await;
    for round in 1..=5 {
        let claimed = bench.claim_one(queue).await;
        assert_eq!((claimed.attempt, claimed.lease_number), (1, round));
        let nacked = bench.nack_one(nack_row(lease(&claimed), NackAction::Release)).await;
        assert_eq!((nacked.held, nacked.dead, nacked.ready_in), (Held::Ok, false, Some(Duration::ZERO)));
        assert_eq!(nacked.readied, Some(queue));
    }
    let claimed = bench.claim_one(queue).await;
    let minute = Duration::from_secs(60);
    let later = NackRow { delay: Some(minute), ..nack_row(lease(&claimed), NackAction::Release) };
    assert_about(bench.nack_one(later).await.ready_in.expect("it lives"), minute);
    assert_eq!(bench.claim(queue, 1).await.len(), 0);
}

pub(crate) async fn a_rejected_job_is_dead_at_once(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    bench.enqueue_one(job(queue, "x")).await;
    let claimed = bench.claim_one(queue).await;
    let nacked = bench.nack_one(nack_row(lease(&claimed), NackAction::Reject)).await;
    assert_eq!((nacked.held, nacked.dead), (Held::Ok, true));
    assert_eq!((nacked.ready_at, nacked.ready_in, nacked.readied), (None, None, None));
    assert_eq!(db.number("select count(*) from job").await, 0);
    assert_eq!(db.number("select count(*) from dead_job").await, 1);
}

pub(crate) async fn after_exactly_max_attempts_a_job_is_dead(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let mut row = job(queue, "x");
    row.max_attempts = 3;
    bench.enqueue_one(row).await;
    for attempt in 1..=3 {
        let claimed = bench.claim_one(queue).await;
        assert_eq!((claimed.attempt, claimed.max_attempts), (attempt, 3));
        let nacked = bench.nack_one(failing(lease(&claimed), &format!("failure {attempt}"))).await;
        assert_eq!((nacked.held, nacked.dead), (Held::Ok, attempt == 3));
        // Each nack moved it or kept it, never both.
        assert_eq!(db.number("select count(*) from job").await, i64::from(attempt < 3));
        assert_eq!(db.number("select count(*) from dead_job").await, i64::from(attempt == 3));
    }
    assert_eq!(bench.claim(queue, 10).await.len(), 0);
    assert_eq!(db.text("select last_error from dead_job").await.as_deref(), Some("failure 3"));
}

pub(crate) async fn a_dead_job_keeps_everything_and_the_last_error(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let row = changed(once(queue, "once", "x"), |job| {
        job.content_type = "text/plain".into();
        job.headers = [("k".to_owned(), "🦀".to_owned())].into();
        job.ordering_key = Some(key("o"));
    });
    let stored = bench.enqueue_one(row).await;
    let claimed = bench.claim_one(queue).await;
    let error = "🦀".repeat(1_024); // 4 KiB, as long as one may be
    let rejected = NackRow { error: error.clone(), ..nack_row(lease(&claimed), NackAction::Reject) };
    assert!(bench.nack_one(rejected).await.dead);
    let whole = format!(
        "select count(*) from dead_job where id = {} and queue_id = {} and attempt = 1 and max_attempts = 20 \
         and lease_number = 1 and ordering_key = 'o' and idempotency_key = 'once' and content_type = 'text/plain' \
         and length(payload) = 1 and priority = 4 and enqueued_at = {} and dead_at >= enqueued_at \
         and expires_at > dead_at",
        stored.job,
        queue.0,
        db.instant(claimed.enqueued_at)
    );
    assert_eq!(db.number(&whole).await, 1);
    assert_eq!(db.text("select last_error from dead_job").await, Some(error));
    assert!(db.text("select headers from dead_job").await.expect("headers").contains('🦀'));
}

pub(crate) async fn a_repeated_nack_is_lost(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    for action in [NackAction::Retry, NackAction::Release, NackAction::Reject] {
        bench.enqueue_one(job(queue, "x")).await;
        let claimed = lease(&bench.claim_one(queue).await);
        let wait = NackRow { delay: Some(Duration::from_secs(60)), ..nack_row(claimed, action) };
        assert_eq!(bench.nack_one(wait.clone()).await.held, Held::Ok);
        assert_eq!(bench.nack_one(wait).await.held, Held::LeaseLost, "{action:?}");
        assert_eq!(bench.ack_one(claimed).await, Held::LeaseLost, "{action:?}");
    }
    assert_eq!(db.number("select sum(attempt) from job").await, 1, "the retry counted once, the release not at all");
    assert_eq!(db.number("select count(*) from dead_job").await, 1);

    bench.enqueue_one(job(queue, "x")).await;
    let claimed = lease(&bench.claim_one(queue).await);
    let twice = [nack_row(claimed, NackAction::Retry), nack_row(claimed, NackAction::Reject)];
    let answers = bench.nack(&twice).await;
    assert_eq!((answers[0].held, answers[1].held), (Held::Ok, Held::LeaseLost), "within one batch");
    assert_eq!(db.number("select count(*) from dead_job").await, 1);
}

pub(crate) async fn the_last_error_comes_with_the_next_lease(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    bench.enqueue_one(job(queue, "x")).await;
    let claimed = bench.claim_one(queue).await;
    assert_eq!(claimed.last_error, None);
    let error = "it's \"broken\" \\ \u{fffd} 🦀\n\t$1 ?1 :x */";
    bench.nack_one(failing(lease(&claimed), error)).await;
    let claimed = bench.claim_one(queue).await;
    assert_eq!(claimed.last_error.as_deref(), Some(error));
    bench.nack_one(nack_row(lease(&claimed), NackAction::Release)).await;
    let claimed = bench.claim_one(queue).await;
    assert_eq!(claimed.last_error.as_deref(), Some(error), "a release is no failure");
    db.expire_leases().await;
    bench.reap().await;
    let claimed = bench.claim_one(queue).await;
    assert_eq!(claimed.last_error.as_deref(), Some("lease expired"));
}

pub(crate) async fn lease_numbers_grow_through_everything(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    bench.enqueue_one(job(queue, "x")).await;
    let mut last = 0;
    for round in 0..8 {
        let claimed = bench.claim_one(queue).await;
        assert!(claimed.lease_number > last, "round {round}");
        last = claimed.lease_number;
        match round % 4 {
            0 => drop(bench.nack_one(nack_row(lease(&claimed), NackAction::Retry)).await),
            1 => drop(bench.nack_one(nack_row(lease(&claimed), NackAction::Release)).await),
            2 => assert_eq!(bench.give_back(&[lease(&claimed)]).await, [true]),
            _ => {
                db.expire_leases().await;
                assert_eq!(bench.reap().await.leases.len(), 1);
            }
        }
    }
    assert_eq!(bench.claim_one(queue).await.attempt, 5, "four counted before this one");
}

pub(crate) async fn nacks_of_every_kind_share_a_batch(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let batch: Vec<_> = (0..4)
        .map(|n| {
            let mut row = job(queue, format!("{n}"));
            row.max_attempts = if n == 3 { 1 } else { 20 };
            row
        })
        .collect();
    bench.enqueue(&batch).await;
    let claimed = bench.claim(queue, 4).await;
    assert_eq!(payloads(&claimed), ["0", "1", "2", "3"]);
    let held = leases(&claimed);
    let answers = bench
        .nack(&[
            NackRow { error: "last".into(), ..nack_row(held[3], NackAction::Retry) },
            NackRow { delay: Some(Duration::from_secs(60)), ..nack_row(held[0], NackAction::Retry) },
            nack_row(held[1], NackAction::Release),
            NackRow { error: "never".into(), ..nack_row(held[2], NackAction::Reject) },
        ])
        .await;
    assert!(answers.iter().all(|row| row.held == Held::Ok));
    assert_eq!(answers.iter().map(|row| row.dead).collect::<Vec<_>>(), [true, false, false, true]);
    assert_about(answers[1].ready_in.expect("it lives"), Duration::from_secs(60));
    assert_eq!(answers[2].ready_in, Some(Duration::ZERO));
    assert_eq!(payloads(&bench.claim(queue, 10).await), ["1"]);
    assert_eq!(db.number("select count(*) from dead_job where last_error in ('last', 'never')").await, 2);
}

pub(crate) async fn attempts_end_by_nack_and_expiry_alike(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let mut row = job(queue, "x");
    row.max_attempts = 3;
    bench.enqueue_one(row).await;
    let first = bench.claim_one(queue).await;
    bench.nack_one(failing(lease(&first), "failed")).await;
    for (attempt, dead) in [(2, false), (3, true)] {
        assert_eq!(bench.claim_one(queue).await.attempt, attempt);
        db.expire_leases().await;
        let reaped = bench.reap().await;
        assert_eq!(reaped.leases.iter().map(|lease| lease.dead).collect::<Vec<_>>(), [dead]);
    }
    assert_eq!(db.number("select attempt from dead_job").await, 3);
    assert_eq!(db.number("select count(*) from job").await, 0);
}
