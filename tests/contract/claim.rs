//! Claims: P5, O8, O11.

use std::{collections::BTreeSet, time::Duration};

use leasehold::{
    model::{LeaseId, NackAction, Priority, QueueId, Start, Timestamp},
    store::engine::Slot,
};

use super::{
    bench::{Bench, STREAM, changed, claim_of, claimed_ids, ids, job, lease, nack_row, payloads, priority},
    database::Database,
};

pub(crate) async fn higher_priorities_come_first(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let at = |level| changed(job(queue, format!("{level}")), |job| job.priority = priority(level));
    bench.enqueue(&(0..10).map(at).collect::<Vec<_>>()).await;
    bench.enqueue(&(0..10).map(at).collect::<Vec<_>>()).await;
    assert_eq!(payloads(&bench.claim(queue, 3).await), ["9", "9", "8"]);
    assert_eq!(payloads(&bench.claim(queue, 2).await), ["8", "7"]);
    assert_eq!(payloads(&bench.claim(queue, 100).await).join(""), "766554433221100");
}

pub(crate) async fn within_a_priority_what_was_ready_first_comes_first(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let stored = bench.enqueue(&(0..3).map(|n| job(queue, format!("{n}"))).collect::<Vec<_>>()).await;
    let first = bench.claim_one(queue).await;
    assert_eq!(first.job, stored[0].job);
    bench.nack_one(nack_row(lease(&first), NackAction::Release)).await;
    // Behind those that were ready already, in front of what comes later.
    bench.enqueue_one(job(queue, "3")).await;
    let mut order = Vec::new();
    for _ in 0..4 {
        order.extend(payloads(&bench.claim(queue, 1).await));
    }
    assert_eq!(order, ["1", "2", "0", "3"]);
}

pub(crate) async fn a_claim_takes_no_more_than_its_slots(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    assert_eq!(bench.claim(queue, 10).await.len(), 0);
    bench.enqueue(&(0..7).map(|n| job(queue, format!("{n}"))).collect::<Vec<_>>()).await;
    assert_eq!(bench.claim(queue, 0).await.len(), 0);
    assert_eq!(bench.claim(queue, 5).await.len(), 5);
    assert_eq!(bench.claim(queue, 5).await.len(), 2);
    assert_eq!(bench.claim(queue, 5).await.len(), 0, "what is leased is not ready");
    assert_eq!(db.number("select count(*) from job where lease_id is not null").await, 7);
}

pub(crate) async fn claims_of_several_queues_take_each_its_own(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let [orders, mail, empty] = [bench.queue("orders").await, bench.queue("mail").await, bench.queue("empty").await];
    let urgent = |row| changed(row, |job| job.priority = priority(9));
    let jobs = [job(orders, "o1"), urgent(job(orders, "o0")), job(orders, "o2"), job(mail, "m0"), job(mail, "m1")];
    bench.enqueue(&jobs).await;
    let nowhere = QueueId(i32::MAX);
    let claims = [(empty, 3), (orders, 2), (nowhere, 1), (mail, 0)].map(|(queue, count)| claim_of(queue, count));
    let claimed = bench.try_claims(&claims).await.expect("claims");
    assert_eq!(payloads(&claimed), ["o0", "o1"], "of a queue as many as its claim has slots, in its order");
    let claims = [(mail, 5), (empty, 2), (orders, 5)].map(|(queue, count)| claim_of(queue, count));
    let claimed = bench.try_claims(&claims).await.expect("claims");
    assert_eq!(payloads(&claimed).into_iter().collect::<BTreeSet<_>>(), ["m0", "m1", "o2"].map(String::from).into());
    for job in &claimed {
        let claim = claims.iter().find(|claim| claim.slots.iter().any(|slot| slot.lease == job.lease)).expect("a slot");
        assert_eq!(claim.queue, job.queue, "a queue's jobs have leases that were drawn for it");
        assert_eq!(job.payload[0], if job.queue == mail { b'm' } else { b'o' });
    }
    assert_eq!(bench.try_claims(&[]).await.expect("nothing").len(), 0);
    assert_eq!(db.number("select count(*) from job where lease_id is not null").await, 5);
}

pub(crate) async fn each_job_has_the_lease_and_duration_of_one_slot(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let stored = bench.enqueue(&(0..20).map(|n| job(queue, format!("{n}"))).collect::<Vec<_>>()).await;
    let mut claim = claim_of(queue, 0);
    claim.slots = (0..30_u64)
        .map(|n| Slot {
            lease: LeaseId(u128::from(n) << 100 | 7),
            stream: STREAM,
            duration: Duration::from_secs(n + 1),
        })
        .collect();
    let claimed = bench.try_claim(&claim).await.expect("a claim");
    assert_eq!(claimed_ids(&claimed).into_iter().collect::<BTreeSet<_>>(), ids(&stored).into_iter().collect());
    let used: BTreeSet<_> = claimed.iter().map(|job| job.lease).collect();
    assert_eq!(used.len(), 20, "no slot twice");
    let mut granted = BTreeSet::new();
    for job in &claimed {
        let slot = claim.slots.iter().find(|slot| slot.lease == job.lease).expect("one of the slots");
        granted.insert(Timestamp(job.lease_expires_at.minus(slot.duration).0));
        assert!(job.lease_expires_at.minus(slot.duration) >= job.ready_at);
        assert_eq!((job.attempt, job.lease_number), (1, 1));
    }
    let (first, last) = (granted.first().expect("some"), granted.last().expect("some"));
    assert!(last.since(*first) < Duration::from_secs(1), "granted at one moment");
    for job in &claimed {
        assert_eq!(bench.ack_one(lease(job)).await, leasehold::store::engine::Held::Ok);
    }
}

pub(crate) async fn a_claim_stops_at_its_slots_in_the_middle_of_a_level(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let at = |level: i32| changed(job(queue, format!("{level}")), |job| job.priority = priority(level));
    let batch: Vec<_> = [2, 5, 9].into_iter().flat_map(|level| std::iter::repeat_n(at(level), 40)).collect();
    bench.enqueue(&batch).await;
    let claimed = payloads(&bench.claim(queue, 60).await);
    assert_eq!(claimed.iter().filter(|level| *level == "9").count(), 40);
    assert_eq!(claimed.iter().filter(|level| *level == "5").count(), 20);
    let claimed = payloads(&bench.claim(queue, 60).await);
    assert_eq!(claimed.iter().filter(|level| *level == "5").count(), 20);
    assert_eq!(claimed.iter().filter(|level| *level == "2").count(), 40);
}

pub(crate) async fn scheduled_jobs_are_not_claimed_early(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let later = |seconds, level| {
        changed(job(queue, "later"), |job| {
            job.start = Start::After(Duration::from_secs(seconds));
            job.priority = priority(level);
        })
    };
    bench.enqueue(&[later(30, 9), later(3_600, 4), job(queue, "now")]).await;
    assert_eq!(payloads(&bench.claim(queue, 10).await), ["now"]);
    let past = db.instant(Timestamp(2_000_000));
    db.execute(&format!("update job set ready_at = {past} where priority = 9")).await;
    assert_eq!(bench.claim(queue, 10).await.len(), 1, "once its time has come");
}

pub(crate) async fn nothing_at_or_before_a_floor_is_walked(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let at = |level, n: i64| {
        changed(job(queue, format!("{level}{n}")), |job| {
            job.priority = priority(level);
            job.content_type = format!("{level}{n}"); // so that SQL finds it
        })
    };
    bench.enqueue(&[at(4, 1), at(4, 2), at(4, 3), at(7, 1), at(7, 2)]).await;
    // Ready at the first, second and third microsecond past two seconds.
    for n in 1..=3 {
        let instant = db.instant(Timestamp(2_000_000 + n));
        for level in [4, 7] {
            db.execute(&format!("update job set ready_at = {instant} where content_type = '{level}{n}'")).await;
        }
    }
    let mut claim = claim_of(queue, 10);
    claim.floors = [Timestamp(2_000_002); Priority::LEVELS];
    claim.floors[7] = Timestamp(2_000_001);
    let claimed = bench.try_claim(&claim).await.expect("a claim");
    assert_eq!(payloads(&claimed), ["72", "43"]);
    let mut rest = payloads(&bench.claim(queue, 10).await);
    rest.sort();
    assert_eq!(rest, ["41", "42", "71"]);
}

pub(crate) async fn queues_are_claimed_apart(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let (queue, other) = (bench.queue("orders").await, bench.queue("other").await);
    bench.enqueue(&[job(queue, "orders"), job(other, "other")]).await;
    assert_eq!(payloads(&bench.claim(other, 10).await), ["other"]);
    assert_eq!(payloads(&bench.claim(queue, 10).await), ["orders"]);
}

pub(crate) async fn concurrent_claims_never_share_a_job(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let stored = bench.enqueue(&(0..1_000).map(|n| job(queue, format!("{n}"))).collect::<Vec<_>>()).await;
    let mut claims = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let mut bench = Bench::on(db).await;
        claims.spawn(async move {
            let mut all = Vec::new();
            loop {
                let claimed = bench.claim(queue, 30).await;
                if claimed.is_empty() {
                    return all;
                }
                all.extend(claimed_ids(&claimed));
            }
        });
    }
    let mut all = Vec::new();
    while let Some(claimed) = claims.join_next().await {
        all.extend(claimed.expect("no claim fails"));
    }
    // A claim may pass over what another one holds at that moment and find nothing: what is left is still there.
    loop {
        let claimed = bench.claim(queue, 100).await;
        if claimed.is_empty() {
            break;
        }
        all.extend(claimed_ids(&claimed));
    }
    all.sort();
    assert_eq!(all, ids(&stored));
}

pub(crate) async fn priority_holds_across_retry_release_and_recovery(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let at = |level: i32| changed(job(queue, format!("{level}")), |job| job.priority = priority(level));
    bench.enqueue(&[at(9), at(8), at(7), at(6)]).await;
    let claimed = bench.claim(queue, 4).await;
    bench.enqueue_one(at(5)).await;
    bench.nack_one(nack_row(lease(&claimed[3]), NackAction::Retry)).await;
    bench.nack_one(nack_row(lease(&claimed[2]), NackAction::Release)).await;
    assert_eq!(bench.give_back(&[lease(&claimed[1])]).await, [true]);
    db.expire_leases().await;
    assert_eq!(bench.reap().await.leases.len(), 1);
    assert_eq!(payloads(&bench.claim(queue, 10).await), ["9", "8", "7", "6", "5"]);
}
