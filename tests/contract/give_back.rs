//! Undoing grants that were never sent: no attempt, as if they had not been.

use leasehold::{
    model::{LeaseId, NackAction},
    store::engine::{Held, ReapedLease},
};

use super::{
    bench::{Bench, claim_of, claimed_ids, job, keyed, lease, leases, nack_row, payloads},
    database::{Database, caller},
};

pub(crate) async fn what_was_never_sent_is_ready_again_and_not_counted(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let mut row = job(queue, "x");
    row.max_attempts = 1;
    bench.enqueue_one(row).await;
    for round in 1..=3 {
        let claimed = bench.claim_one(queue).await;
        assert_eq!((claimed.attempt, claimed.lease_number), (1, round));
        assert_eq!(bench.give_back(&[lease(&claimed)]).await, [true]);
        assert_eq!(bench.ack_one(lease(&claimed)).await, Held::LeaseLost);
    }
    assert_eq!(db.number("select attempt from job").await, 0);
    let again = bench.claim_one(queue).await;
    assert!(again.ready_at > again.enqueued_at, "ready again from then on");
}

pub(crate) async fn a_lease_that_no_longer_holds_is_passed_over(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    bench.enqueue(&(0..4).map(|n| job(queue, format!("{n}"))).collect::<Vec<_>>()).await;
    let claimed = leases(&bench.claim(queue, 4).await);
    bench.ack(&claimed[..1]).await;
    bench.nack_one(nack_row(claimed[1], NackAction::Reject)).await;
    bench.nack_one(nack_row(claimed[2], NackAction::Retry)).await;
    assert_eq!(bench.give_back(&claimed).await, [false, false, false, true]);
    assert_eq!(bench.give_back(&claimed).await, [false; 4]);
    assert_eq!(bench.give_back(&[]).await, [false; 0]);
    assert_eq!(db.number("select sum(attempt) from job").await, 1, "the retry's attempt stays counted");
}

pub(crate) async fn unseen_grants_are_undone_by_their_leases(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let (queue, other) = (bench.queue("orders").await, bench.queue("other").await);
    bench.enqueue(&[job(queue, "1"), job(queue, "2"), job(other, "3")]).await;
    let claim = claim_of(queue, 10);
    let claimed = bench.try_claim(&claim).await.expect("a claim");
    let seen = bench.claim_one(other).await;
    bench.nack_one(nack_row(lease(&claimed[0]), NackAction::Retry)).await;

    let slots: Vec<LeaseId> = claim.slots.iter().map(|slot| slot.lease).collect();
    let readied = bench.session.give_back_unseen(&caller(), &slots).await.expect("a give-back");
    assert_eq!(readied, [queue]);
    assert_eq!(db.number("select sum(attempt) from job").await, 2, "only what the claim still held came back");
    let again = bench.session.give_back_unseen(&caller(), &slots).await.expect("a give-back");
    assert_eq!(again, [], "and once");
    assert_eq!(bench.claim(queue, 10).await.len(), 2);

    // A lease that has expired meanwhile is undone as well, where the reaper did not come first: it was never sent.
    bench.enqueue_one(job(other, "4")).await;
    let unseen = bench.claim_one(other).await;
    db.expire_leases().await;
    let readied = bench.session.give_back_unseen(&caller(), &[unseen.lease]).await.expect("a give-back");
    assert_eq!(readied, [other]);
    let reaped = bench.reap().await.leases;
    assert!(reaped.contains(&ReapedLease { lease: lease(&seen), queue: other, dead: false }));
    assert!(reaped.iter().all(|taken| taken.lease != lease(&unseen)));
}

pub(crate) async fn a_head_that_was_given_back_still_holds_its_key(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    bench.enqueue(&[keyed(queue, "k", "1"), keyed(queue, "k", "2")]).await;
    let head = bench.claim(queue, 10).await;
    assert_eq!(bench.give_back(&leases(&head)).await, [true]);
    let again = bench.claim(queue, 10).await;
    assert_eq!(payloads(&again), ["1"]);
    assert_eq!(claimed_ids(&again), claimed_ids(&head));
}
