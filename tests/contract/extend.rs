//! Moving the ends of leases, and looking at them.

use std::time::Duration;

use leasehold::{
    model::{LeaseId, NackAction},
    store::engine::{ExtendRow, Held, LeaseRef},
};

use super::{
    bench::{Bench, LEASE, assert_about, job, lease, leases, nack_row},
    database::{Database, caller},
};

pub(crate) async fn an_extended_lease_ends_that_long_from_now(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    bench.enqueue_one(job(queue, "x")).await;
    let claimed = bench.claim_one(queue).await;
    let hour = Duration::from_secs(3_600);
    let extended = bench.extend_one(lease(&claimed), Some(hour)).await;
    assert_eq!(extended.held, Held::Ok);
    assert_about(extended.remaining, hour);
    assert!(!extended.cancel_requested);
    let until = db.instant(extended.expires_at.expect("it holds"));
    let stored = format!("select count(*) from job where lease_until = {until}");
    assert_eq!(db.number(&stored).await, 1, "what is answered is what is stored");
    assert!(extended.expires_at >= Some(claimed.lease_expires_at.minus(LEASE).plus(hour)));
    assert_eq!(bench.ack_one(lease(&claimed)).await, Held::Ok);
}

pub(crate) async fn without_a_duration_it_is_what_the_lease_was_granted_for(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    bench.enqueue_one(job(queue, "x")).await;
    let claimed = bench.claim_one(queue).await;
    db.expire_leases().await;
    let extended = bench.extend_one(lease(&claimed), None).await;
    assert_about(extended.remaining, LEASE);
    assert!(extended.expires_at >= Some(claimed.lease_expires_at));
}

pub(crate) async fn a_lease_is_never_shortened(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    bench.enqueue_one(job(queue, "x")).await;
    let claimed = bench.claim_one(queue).await;
    let extended = bench.extend_one(lease(&claimed), Some(Duration::from_secs(1))).await;
    assert_eq!((extended.held, extended.expires_at), (Held::Ok, Some(claimed.lease_expires_at)));
    assert_about(extended.remaining, LEASE);
}

pub(crate) async fn a_lease_may_come_twice_in_a_batch(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    bench.enqueue(&[job(queue, "1"), job(queue, "2")]).await;
    let claimed = leases(&bench.claim(queue, 2).await);
    let row = |lease, seconds| ExtendRow { lease, duration: Some(Duration::from_secs(seconds)) };
    let rows = bench.extend(&[row(claimed[0], 7_200), row(claimed[1], 3_600), row(claimed[0], 100)]).await;
    assert!(rows.iter().all(|row| row.held == Held::Ok));
    let longest = Duration::from_secs(7_200);
    assert_about(rows[0].remaining, longest);
    let until = db.instant(rows[0].expires_at.expect("it holds"));
    assert_eq!(db.number(&format!("select count(*) from job where lease_until = {until}")).await, 1);
}

pub(crate) async fn only_leases_that_hold_are_extended(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    bench.enqueue(&[job(queue, "1"), job(queue, "2"), job(queue, "3")]).await;
    let claimed = leases(&bench.claim(queue, 3).await);
    bench.ack(&claimed[..1]).await;
    bench.nack_one(nack_row(claimed[1], NackAction::Retry)).await;
    let rows: Vec<_> = claimed.iter().map(|lease| ExtendRow { lease: *lease, duration: None }).collect();
    let extended = bench.extend(&rows).await;
    assert_eq!(extended.iter().map(|row| row.held).collect::<Vec<_>>(), [Held::Gone, Held::LeaseLost, Held::Ok]);
    assert_eq!((extended[0].expires_at, extended[0].remaining), (None, Duration::ZERO));
    assert_eq!(db.number("select count(*) from job where lease_until is not null").await, 1);
}

pub(crate) async fn a_request_to_cancel_is_shown(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    bench.enqueue(&[job(queue, "1"), job(queue, "2")]).await;
    let claimed = leases(&bench.claim(queue, 2).await);
    let asked = claimed[1].job;
    // Of its type on every engine.
    db.execute(&format!("update job set cancel_requested = (1 = 1) where id = {asked}")).await;
    let rows: Vec<_> = claimed.iter().map(|lease| ExtendRow { lease: *lease, duration: None }).collect();
    let extended = bench.extend(&rows).await;
    assert_eq!(extended.iter().map(|row| row.cancel_requested).collect::<Vec<_>>(), [false, true]);
    assert!(extended.iter().all(|row| row.held == Held::Ok), "the lease stands");
    let seen = bench.session.inspect(&caller(), &claimed).await.expect("a look");
    assert_eq!(seen.iter().map(|state| state.cancel_requested).collect::<Vec<_>>(), [false, true]);
}

pub(crate) async fn a_look_at_leases_says_which_hold(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    bench.enqueue(&[job(queue, "1"), job(queue, "2"), job(queue, "3")]).await;
    let claimed = leases(&bench.claim(queue, 3).await);
    bench.ack(&claimed[..1]).await;
    let stale = LeaseRef { lease: LeaseId(claimed[1].lease.0 ^ 1), ..claimed[1] };
    let asked = [claimed[0], stale, claimed[1], claimed[2], claimed[1]];
    let seen = bench.session.inspect(&caller(), &asked).await.expect("a look");
    assert_eq!(seen.iter().map(|state| state.holds).collect::<Vec<_>>(), [false, false, true, true, true]);
    assert_eq!(seen[0].remaining, Duration::ZERO);
    assert_about(seen[3].remaining, LEASE);
    db.expire_leases().await;
    let seen = bench.session.inspect(&caller(), &asked).await.expect("a look");
    assert!(seen[2].holds && seen[2].remaining == Duration::ZERO, "expired, and nobody took it");
}
