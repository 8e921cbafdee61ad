//! The reaper: P9, P10, P11, O1.

use std::time::Duration;

use leasehold::{
    model::{QueueId, Timestamp},
    store::engine::{Held, LeaseRef},
};

use super::{
    bench::{Bench, claim_of, job, lease, leases},
    database::{Database, caller},
};

pub(crate) async fn an_expired_lease_makes_its_job_ready_again(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    bench.enqueue_one(job(queue, "x")).await;
    let claimed = bench.claim_one(queue).await;
    db.expire_leases().await;
    let reaped = bench.reap().await;
    assert_eq!(reaped.leases.len(), 1);
    let taken = reaped.leases[0];
    assert_eq!((taken.lease, taken.queue, taken.dead), (lease(&claimed), queue, false));
    assert_eq!(bench.reap().await.leases, []);
    let again = bench.claim_one(queue).await;
    assert_eq!((again.attempt, again.lease_number), (2, 2));
    assert!(again.ready_at > claimed.ready_at, "behind those that were ready already");
}

pub(crate) async fn a_lease_that_lasts_is_left_alone(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    bench.enqueue(&[job(queue, "1"), job(queue, "2")]).await;
    let mut claim = claim_of(queue, 1);
    claim.slots[0].duration = Duration::from_secs(1);
    let claimed = bench.try_claim(&claim).await.expect("a claim");
    let reaped = bench.reap().await;
    assert_eq!(reaped.leases, []);
    assert!(reaped.floor < claimed[0].lease_expires_at, "the next pass must still meet it");
    assert_eq!(bench.ack_one(lease(&claimed[0])).await, Held::Ok);
}

pub(crate) async fn the_last_attempt_that_expires_makes_the_job_dead(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let mut row = job(queue, "x");
    row.max_attempts = 2;
    bench.enqueue_one(row).await;
    for dead in [false, true] {
        let claimed = bench.claim_one(queue).await;
        db.expire_leases().await;
        let reaped = bench.reap().await;
        assert_eq!(reaped.leases.iter().map(|lease| lease.dead).collect::<Vec<_>>(), [dead]);
        assert_eq!(bench.ack_one(lease(&claimed)).await, Held::LeaseLost);
    }
    assert_eq!(db.number("select count(*) from job").await, 0);
    assert_eq!(db.number("select count(*) from dead_job where attempt = 2 and lease_number = 2").await, 1);
    assert_eq!(db.text("select last_error from dead_job").await.as_deref(), Some("lease expired"));
}

/// Leases ended at 1 s, 2 s and so on, in the order given.
async fn ended_in_order(db: &dyn Database, bench: &mut Bench, queue: QueueId, count: usize) -> Vec<LeaseRef> {
    bench.enqueue(&(0..count).map(|n| job(queue, format!("{n}"))).collect::<Vec<_>>()).await;
    let claimed = leases(&bench.claim(queue, count).await);
    for (n, lease) in (1..).zip(&claimed) {
        let ended = db.instant(Timestamp(n * 1_000_000));
        db.execute(&format!("update job set lease_until = {ended} where id = {}", lease.job)).await;
    }
    claimed
}

pub(crate) async fn a_pass_takes_the_longest_expired_up_to_its_limit(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let claimed = ended_in_order(db, &mut bench, queue, 7).await;
    let mut floor = Timestamp::BEGINNING;
    let mut taken = Vec::new();
    for expected in [3, 3, 1, 0] {
        let reaped = bench.session.reap(&caller(), floor, 0, 3).await.expect("a pass");
        assert_eq!(reaped.leases.len(), expected);
        assert!(reaped.floor >= floor, "it only moves on");
        floor = reaped.floor;
        let mut pass: Vec<_> = reaped.leases.iter().map(|lease| lease.lease).collect();
        pass.sort_by_key(|lease| lease.job);
        taken.extend(pass);
    }
    assert_eq!(taken, claimed);
}

pub(crate) async fn a_floor_leaves_out_what_ended_before_it(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let claimed = ended_in_order(db, &mut bench, queue, 3).await;
    let reaped = bench.session.reap(&caller(), Timestamp(2_500_000), 0, 10).await.expect("a pass");
    assert_eq!(reaped.leases.iter().map(|lease| lease.lease).collect::<Vec<_>>(), claimed[2..]);
    // What ends from here on lies behind the floor, so passes that go on from it miss nothing.
    let mut later = Bench::on(db).await;
    later.enqueue_one(job(queue, "later")).await;
    let mut claim = claim_of(queue, 2);
    for slot in &mut claim.slots {
        slot.duration = Duration::ZERO;
    }
    assert_eq!(later.try_claim(&claim).await.expect("a claim").len(), 2);
    let next = bench.session.reap(&caller(), reaped.floor, 0, 10).await.expect("a pass");
    assert_eq!(next.leases.len(), 2);
}

pub(crate) async fn two_reapers_take_each_lease_once(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    bench.enqueue(&(0..300).map(|n| job(queue, format!("{n}"))).collect::<Vec<_>>()).await;
    bench.claim(queue, 300).await;
    db.expire_leases().await;
    let mut reapers = tokio::task::JoinSet::new();
    for _ in 0..3 {
        let mut bench = Bench::on(db).await;
        reapers.spawn(async move {
            let mut taken = 0;
            loop {
                let reaped = bench.session.reap(&caller(), Timestamp::BEGINNING, 0, 20).await.expect("a pass");
                if reaped.leases.is_empty() {
                    return taken;
                }
                taken += reaped.leases.len();
            }
        });
    }
    let mut taken = 0;
    while let Some(reaper) = reapers.join_next().await {
        taken += reaper.expect("no pass fails");
    }
    taken += bench.reap().await.leases.len();
    assert_eq!(taken, 300);
    assert_eq!(db.number("select sum(attempt) from job").await, 300);
    assert_eq!(bench.claim(queue, 1_000).await.len(), 300);
}

pub(crate) async fn reaper_and_ack_never_both_win(db: &dyn Database) {
    const JOBS: usize = 200;
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let batch: Vec<_> = (0..JOBS)
        .map(|n| {
            let mut row = job(queue, format!("{n}"));
            row.max_attempts = if n % 2 == 0 { 1 } else { 20 };
            row
        })
        .collect();
    bench.enqueue(&batch).await;
    let claimed = leases(&bench.claim(queue, JOBS).await);
    db.expire_leases().await;
    let (mut worker, mut upkeep) = (Bench::on(db).await, Bench::on(db).await);
    let acks = tokio::spawn(async move {
        let mut won = Vec::new();
        for lease in claimed.into_iter().rev() {
            won.extend((worker.ack_until_decided(&[lease]).await == 1).then_some(lease.job));
        }
        won
    });
    let reaps = tokio::spawn(async move {
        let mut won = Vec::new();
        loop {
            let pass = upkeep.session.reap(&caller(), Timestamp::BEGINNING, 0, 7).await.expect("a pass");
            if pass.leases.is_empty() {
                return won;
            }
            won.extend(pass.leases.iter().map(|lease| lease.lease.job));
        }
    });
    let (acked, mut reaped) = (acks.await.expect("no ack fails"), reaps.await.expect("no pass fails"));
    // A pass of the reaper may find all that is left held by an ack and stop; whatever is left after both is its share.
    reaped.extend(bench.reap().await.leases.iter().map(|lease| lease.lease.job));
    assert_eq!(acked.len() + reaped.len(), JOBS);
    assert!(acked.iter().all(|job| !reaped.contains(job)));
    let (live, dead) = ("select count(*) from job", "select count(*) from dead_job");
    let left = db.number(live).await + db.number(dead).await;
    assert_eq!(usize::try_from(left).expect("a count"), reaped.len());
    let both = "select count(*) from job where id in (select id from dead_job)";
    assert_eq!(db.number(both).await, 0);
}
