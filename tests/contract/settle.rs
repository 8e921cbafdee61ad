//! Acks: P6, P7, O1, O2, O9, failure case 2.

use std::time::Duration;

use leasehold::{
    model::{JobId, LeaseId, NackAction},
    store::engine::{Held, LeaseRef},
};
use rand::seq::SliceRandom as _;

use super::{
    bench::{Bench, held, job, lease, leases, nack_row},
    database::Database,
};

pub(crate) async fn an_acked_job_is_gone_and_says_so_again(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    bench.enqueue_one(job(queue, "x")).await;
    let claimed = bench.claim_one(queue).await;
    let acked = bench.ack(&[lease(&claimed)]).await;
    assert_eq!((acked[0].held, acked[0].readied), (Held::Ok, None));
    assert_eq!(bench.ack_one(lease(&claimed)).await, Held::Gone);
    assert_eq!(bench.nack_one(nack_row(lease(&claimed), NackAction::Retry)).await.held, Held::Gone);
    assert_eq!(bench.extend_one(lease(&claimed), None).await.held, Held::Gone);
    assert_eq!(db.number("select count(*) from job").await, 0);
    assert_eq!(bench.claim(queue, 10).await.len(), 0);
}

pub(crate) async fn a_lease_acked_twice_in_one_batch_ends_once(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    bench.enqueue(&[job(queue, "1"), job(queue, "2")]).await;
    let claimed = leases(&bench.claim(queue, 2).await);
    let acked = bench.ack(&[claimed[0], claimed[1], claimed[0]]).await;
    assert_eq!(held(&acked), [Held::Ok, Held::Ok, Held::Gone]);
}

pub(crate) async fn an_expired_lease_that_nobody_took_still_counts(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    bench.enqueue(&[job(queue, "1"), job(queue, "2"), job(queue, "3")]).await;
    let claimed = leases(&bench.claim(queue, 3).await);
    db.expire_leases().await;
    assert_eq!(bench.extend_one(claimed[0], None).await.held, Held::Ok);
    assert_eq!(bench.nack_one(nack_row(claimed[1], NackAction::Retry)).await.held, Held::Ok);
    assert_eq!(bench.ack_one(claimed[2]).await, Held::Ok);
    assert_eq!(bench.reap().await.leases, []);
}

pub(crate) async fn a_reaped_lease_is_lost(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    bench.enqueue_one(job(queue, "x")).await;
    let old = lease(&bench.claim_one(queue).await);
    db.expire_leases().await;
    assert_eq!(bench.reap().await.leases.len(), 1);
    assert_eq!(bench.ack_one(old).await, Held::LeaseLost, "while the job is ready");
    let new = bench.claim_one(queue).await;
    assert_eq!(new.job, old.job);
    assert_eq!(bench.ack_one(old).await, Held::LeaseLost, "while it is leased again");
    assert_eq!(bench.ack_one(lease(&new)).await, Held::Ok);
    assert_eq!(bench.ack_one(old).await, Held::Gone, "and only then");
}

pub(crate) async fn a_stale_lease_decides_nothing(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    bench.enqueue_one(job(queue, "x")).await;
    let first = bench.claim_one(queue).await;
    bench.nack_one(nack_row(lease(&first), NackAction::Retry)).await;
    let second = bench.claim_one(queue).await;
    db.expire_leases().await;
    bench.reap().await;
    let third = bench.claim_one(queue).await;
    assert!(first.lease_number < second.lease_number && second.lease_number < third.lease_number);

    let row = "select count(*) from job where lease_id is not null and attempt = 3 and lease_number = 3 \
               and lease_until = ";
    let until = db.instant(third.lease_expires_at);
    for stale in [lease(&first), lease(&second)] {
        assert_eq!(bench.ack_one(stale).await, Held::LeaseLost);
        for action in [NackAction::Retry, NackAction::Release, NackAction::Reject] {
            assert_eq!(bench.nack_one(nack_row(stale, action)).await.held, Held::LeaseLost);
        }
        assert_eq!(bench.extend_one(stale, Some(Duration::from_secs(9_000))).await.held, Held::LeaseLost);
        assert_eq!(bench.give_back(&[stale]).await, [false]);
        assert_eq!(db.number(&format!("{row}{until}")).await, 1, "to the microsecond as it was");
    }
    // From another session as well, as from another replica.
    let mut other = Bench::on(db).await;
    assert_eq!(other.ack_one(lease(&second)).await, Held::LeaseLost);
    assert_eq!(other.ack_one(lease(&third)).await, Held::Ok);
}

pub(crate) async fn one_bad_lease_never_fails_the_others(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    bench.enqueue(&(0..3).map(|n| job(queue, format!("{n}"))).collect::<Vec<_>>()).await;
    let claimed = leases(&bench.claim(queue, 3).await);
    bench.ack(&claimed[..1]).await;
    bench.nack_one(nack_row(claimed[1], NackAction::Retry)).await;
    let unknown = LeaseRef { job: JobId(i64::MAX), lease: LeaseId(u128::MAX) };
    let acked = bench.ack(&[unknown, claimed[0], claimed[1], claimed[2]]).await;
    assert_eq!(held(&acked), [Held::Gone, Held::Gone, Held::LeaseLost, Held::Ok]);
}

pub(crate) async fn a_lease_of_another_job_decides_nothing(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    bench.enqueue(&[job(queue, "1"), job(queue, "2")]).await;
    let claimed = leases(&bench.claim(queue, 2).await);
    let crossed = [
        LeaseRef { job: claimed[0].job, lease: claimed[1].lease },
        LeaseRef { job: claimed[1].job, lease: claimed[0].lease },
    ];
    assert_eq!(held(&bench.ack(&crossed).await), [Held::LeaseLost, Held::LeaseLost]);
    assert_eq!(bench.give_back(&crossed).await, [false, false]);
    assert_eq!(held(&bench.ack(&claimed).await), [Held::Ok, Held::Ok]);
}

pub(crate) async fn a_dead_jobs_lease_is_lost(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    bench.enqueue_one(job(queue, "x")).await;
    let claimed = lease(&bench.claim_one(queue).await);
    bench.nack_one(nack_row(claimed, NackAction::Reject)).await;
    assert_eq!(bench.ack_one(claimed).await, Held::LeaseLost);
    assert_eq!(bench.extend_one(claimed, None).await.held, Held::LeaseLost);
    db.execute("delete from dead_job").await;
    assert_eq!(bench.ack_one(claimed).await, Held::Gone, "once it is removed");
}

pub(crate) async fn an_unknown_job_is_gone(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    for job in [0, -1, 1, i64::MIN, i64::MAX] {
        let unknown = LeaseRef { job: JobId(job), lease: LeaseId(0) };
        assert_eq!(bench.ack_one(unknown).await, Held::Gone, "{job}");
        assert_eq!(bench.nack_one(nack_row(unknown, NackAction::Retry)).await.held, Held::Gone, "{job}");
        assert_eq!(bench.extend_one(unknown, None).await.held, Held::Gone, "{job}");
    }
    assert_eq!(bench.ack(&[]).await.len(), 0);
}

pub(crate) async fn overlapping_batches_in_any_order_do_not_fail(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    bench.enqueue(&(0..200).map(|n| job(queue, format!("{n}"))).collect::<Vec<_>>()).await;
    let claimed = leases(&bench.claim(queue, 200).await);
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..5 {
        let mut bench = Bench::on(db).await;
        let mut mine = claimed.clone();
        mine.shuffle(&mut rand::rng());
        calls.spawn(async move {
            let mut won = 0;
            for batch in mine.chunks(20) {
                let extended = batch.iter().map(|lease| leasehold::store::engine::ExtendRow {
                    lease: *lease,
                    duration: Some(Duration::from_secs(100)),
                });
                bench.extend(&extended.collect::<Vec<_>>()).await;
                won += bench.ack_until_decided(batch).await;
            }
            won
        });
    }
    let mut won = 0;
    while let Some(call) = calls.join_next().await {
        won += call.expect("no batch fails");
    }
    assert_eq!(won, 200, "each lease is acked once");
}

pub(crate) async fn many_acks_of_one_lease_end_it_once(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let mut benches = Vec::new();
    for _ in 0..5 {
        benches.push(Bench::on(db).await);
    }
    for round in 0..10 {
        bench.enqueue_one(job(queue, format!("{round}"))).await;
        let claimed = lease(&bench.claim_one(queue).await);
        let acks = benches.iter_mut().map(|bench| bench.ack_one(claimed));
        let answers = futures_util::future::join_all(acks).await;
        assert_eq!(answers.iter().filter(|held| **held == Held::Ok).count(), 1, "{answers:?}");
        assert!(!answers.contains(&Held::LeaseLost), "{answers:?}");
    }
}
