//! Taking away what queues hold, and queues: in steps of a bounded size.

use std::{collections::BTreeSet, time::Duration};

use leasehold::{
    model::{Count, JobState, NackAction, QueueId, QueueSettings, Start, Timestamp},
    store::engine::{PurgeCount, PurgePlace, PurgeStep, Purged},
};

use super::{
    administration::spot,
    bench::{Bench, changed, ids, job, keyed, lease, nack_row, once, priority},
    database::{Database, caller},
};

fn step(queue: QueueId, state: JobState, limit: usize) -> PurgeStep {
    PurgeStep { queue, state, before: None, after: PurgePlace::default(), limit }
}

async fn take(bench: &mut Bench, step: &PurgeStep) -> Purged {
    bench.session.purge(&caller(), step).await.expect("a step")
}

/// All steps of a purge; how many jobs each removed.
async fn purge(bench: &mut Bench, mut step: PurgeStep) -> Vec<usize> {
    let mut removed = Vec::new();
    loop {
        let purged = take(bench, &step).await;
        assert!(purged.removed <= purged.walked && purged.walked <= step.limit, "{purged:?}");
        removed.push(purged.removed);
        if purged.walked < step.limit {
            return removed;
        }
        assert!(purged.after != step.after, "it moves on");
        step = PurgeStep { after: purged.after, before: Some(purged.before), ..step };
    }
}

async fn bury(bench: &mut Bench, queue: QueueId, count: usize) {
    bench.enqueue(&(0..count).map(|n| job(queue, format!("{n}"))).collect::<Vec<_>>()).await;
    let rejects: Vec<_> =
        bench.claim(queue, count).await.iter().map(|job| nack_row(lease(job), NackAction::Reject)).collect();
    assert!(bench.nack(&rejects).await.iter().all(|row| row.dead));
}

fn later(row: leasehold::store::engine::JobRow) -> leasehold::store::engine::JobRow {
    changed(row, |job| job.start = Start::After(Duration::from_secs(3_600)))
}

pub(crate) async fn a_purge_takes_the_oldest_first_in_bounded_steps(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let (queue, other) = (bench.queue("orders").await, bench.queue("other").await);
    let jobs: Vec<_> = (0..10).map(|n| changed(job(queue, ""), |job| job.priority = priority(n % 10))).collect();
    let mut stored = Vec::new();
    for one in jobs {
        stored.extend(ids(&bench.enqueue(&[one]).await));
    }
    bench.enqueue(&[job(other, "")]).await;
    let first = take(&mut bench, &step(queue, JobState::Ready, 4)).await;
    assert_eq!((first.removed, first.walked), (4, 4));
    let oldest = db.number("select min(id) from job where queue_id <> (select max(id) from queue)").await;
    assert_eq!(oldest, stored[4].0, "whatever their priority");
    let rest = PurgeStep { after: first.after, ..step(queue, JobState::Ready, 4) };
    assert_eq!(purge(&mut bench, rest).await, [4, 2]);
    assert_eq!(db.number("select count(*) from job").await, 1, "the other queue's");
}

pub(crate) async fn each_state_is_purged_apart(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let keeping = QueueSettings { acked_retention: Some(Duration::from_secs(3_600)), ..QueueSettings::default() };
    let queue = bench.queue_with("orders", &keeping).await.id;
    bury(&mut bench, queue, 2).await;
    bench.enqueue(&[job(queue, "acked"), job(queue, "leased")]).await;
    let claimed = bench.claim(queue, 2).await;
    bench.ack(&[lease(&claimed[0])]).await;
    bench.enqueue(&[keyed(queue, "k", ""), keyed(queue, "k", ""), keyed(queue, "k", ""), keyed(queue, "l", "")]).await;
    bench.enqueue(&[later(job(queue, "")), later(job(queue, "")), later(job(queue, ""))]).await;
    let counts = async |bench: &mut Bench| {
        let counts = bench.session.count_jobs(&caller(), &[spot(queue)]).await.expect("counts")[0];
        let live = [counts.ready, counts.scheduled, counts.blocked, counts.leased, counts.dead];
        (live.map(|count| count.value), db.number("select count(*) from acked_job").await)
    };
    assert_eq!(counts(&mut bench).await, ([2, 3, 2, 1, 2], 1));
    assert_eq!(purge(&mut bench, step(queue, JobState::Scheduled, 2)).await, [2, 1]);
    assert_eq!(counts(&mut bench).await, ([2, 0, 2, 1, 2], 1));
    assert_eq!(purge(&mut bench, step(queue, JobState::Dead, 100)).await, [2]);
    assert_eq!(counts(&mut bench).await, ([2, 0, 2, 1, 0], 1));
    assert_eq!(purge(&mut bench, step(queue, JobState::Acked, 100)).await, [1]);
    assert_eq!(counts(&mut bench).await, ([2, 0, 2, 1, 0], 0));
    assert_eq!(purge(&mut bench, step(queue, JobState::Blocked, 1)).await, [1, 1, 0]);
    assert_eq!(counts(&mut bench).await, ([2, 0, 0, 1, 0], 0));
    assert_eq!(purge(&mut bench, step(queue, JobState::Ready, 100)).await, [2]);
    assert_eq!(counts(&mut bench).await, ([0, 0, 0, 1, 0], 0), "the leased one stays");
    assert!(bench.session.purge(&caller(), &step(queue, JobState::Leased, 1)).await.is_err());
}

pub(crate) async fn a_purged_head_frees_its_key_and_a_purged_follower_does_not(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    bench.enqueue(&[keyed(queue, "k", "1"), keyed(queue, "k", "2"), keyed(queue, "k", "3")]).await;
    let first = take(&mut bench, &step(queue, JobState::Ready, 1)).await;
    assert!(first.readied, "the second one's turn has come");
    let leased = bench.claim_one(queue).await;
    assert_eq!(leased.payload, "2");
    assert_eq!(purge(&mut bench, step(queue, JobState::Blocked, 10)).await, [1]);
    assert!(bench.claim(queue, 10).await.is_empty());
    bench.ack(&[lease(&leased)]).await;
    bench.enqueue_one(keyed(queue, "k", "4")).await;
    assert_eq!(bench.claim_one(queue).await.payload, "4", "the key begins anew");
}

pub(crate) async fn a_purge_leaves_what_was_enqueued_later(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    bury(&mut bench, queue, 2).await;
    bench
        .enqueue(&[job(queue, "old"), later(job(queue, "old")), keyed(queue, "k", "old"), keyed(queue, "k", "old")])
        .await;
    let begun = take(&mut bench, &step(queue, JobState::Acked, 1)).await.before;
    bench
        .enqueue(&[
            job(queue, "newer"),
            later(job(queue, "newer")),
            keyed(queue, "l", "newer"),
            keyed(queue, "l", "newer"),
        ])
        .await;
    let new = db.instant(begun.plus(Duration::from_secs(1)));
    db.execute(&format!("update job set enqueued_at = {new} where length(payload) = 5")).await;
    for state in [JobState::Blocked, JobState::Ready, JobState::Scheduled, JobState::Dead] {
        purge(&mut bench, PurgeStep { before: Some(begun), ..step(queue, state, 3) }).await;
    }
    assert_eq!(db.number("select count(*) from job").await, 4);
    assert_eq!(db.number("select count(*) from dead_job").await, 0);
    let claimed = bench.claim(queue, 10).await;
    assert!(claimed.iter().all(|job| job.payload == "newer"), "{claimed:?}");
}

pub(crate) async fn what_a_purge_would_take_is_counted_first(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    bury(&mut bench, queue, 2).await;
    bench.enqueue(&[job(queue, ""), later(job(queue, "")), keyed(queue, "k", ""), keyed(queue, "k", "")]).await;
    let mut count = async |states: &[JobState], before| {
        let what = PurgeCount { queue, states: states.to_vec(), before };
        bench.session.count_purgeable(&caller(), &what).await.expect("a count")
    };
    let exactly = |value| Count { value, at_least: false };
    assert_eq!(count(&[JobState::Ready], None).await, exactly(2));
    assert_eq!(count(&[JobState::Scheduled, JobState::Dead], None).await, exactly(3));
    assert_eq!(count(&[JobState::Blocked, JobState::Acked, JobState::Leased], None).await, exactly(1));
    assert_eq!(count(&JobState::LIVE, Some(Timestamp(1_000_000))).await, exactly(0));
    assert_eq!(count(&[], None).await, exactly(0));
}

/// Purges everything and asks for the queue to go.
async fn remove(bench: &mut Bench, queue: QueueId) -> bool {
    bench.session.remove_queue(&caller(), queue, Duration::ZERO).await.expect("an answer")
}

/// The same, once no transaction is left from before its mark, wherever on the server: other tests have theirs.
async fn remove_in_time(bench: &mut Bench, queue: QueueId) {
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    while !remove(bench, queue).await {
        assert!(std::time::Instant::now() < deadline, "nothing is left of it");
        tokio::task::yield_now().await;
    }
}

pub(crate) async fn a_queue_goes_when_nothing_of_it_is_left(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let keeping = QueueSettings { acked_retention: Some(Duration::from_secs(3_600)), ..QueueSettings::default() };
    let queue = bench.queue_with("orders", &keeping).await.id;
    let other = bench.queue("other").await;
    assert!(!remove(&mut bench, queue).await, "it was not marked");
    bury(&mut bench, queue, 1).await;
    bench.enqueue(&[once(queue, "i", "acked"), once(other, "i", "stays")]).await;
    let claimed = bench.claim_one(queue).await;
    bench.ack(&[lease(&claimed)]).await;
    bench.enqueue(&[job(queue, "leased"), keyed(queue, "k", ""), keyed(queue, "k", ""), later(job(queue, ""))]).await;
    let leased = bench.claim_one(queue).await;
    assert!(bench.session.close_queue(&caller(), queue).await.expect("an answer"));
    for state in [JobState::Ready, JobState::Scheduled, JobState::Blocked, JobState::Dead, JobState::Acked] {
        assert!(!remove(&mut bench, queue).await, "there are {state:?} ones");
        purge(&mut bench, step(queue, state, 100)).await;
    }
    purge(&mut bench, step(queue, JobState::Ready, 100)).await;
    assert!(!remove(&mut bench, queue).await, "one is leased");
    bench.ack(&[lease(&leased)]).await;
    purge(&mut bench, step(queue, JobState::Acked, 100)).await;
    assert!(!remove(&mut bench, queue).await, "its idempotency key is there");
    while bench.session.clear_queue(&caller(), queue, 1).await.expect("a step") > 0 {}
    remove_in_time(&mut bench, queue).await;
    assert!(!remove(&mut bench, queue).await, "once");
    assert!(!bench.session.close_queue(&caller(), queue).await.expect("an answer"), "there is none");
    assert!(!bench.session.reopen_queue(&caller(), queue).await.expect("an answer"));
    assert!(bench.enqueue_one(once(other, "i", "stays")).await.duplicate, "the other queue's key is untouched");
}

pub(crate) async fn a_queue_created_anew_is_another_one(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let mut seen = BTreeSet::new();
    for _ in 0..3 {
        let queue = bench.queue("orders").await;
        assert!(seen.insert(queue), "a number is never given again");
        bench.enqueue_one(once(queue, "i", "x")).await;
        bench.session.close_queue(&caller(), queue).await.expect("an answer");
        purge(&mut bench, step(queue, JobState::Ready, 100)).await;
        bench.session.clear_queue(&caller(), queue, 100).await.expect("a step");
        remove_in_time(&mut bench, queue).await;
    }
}

pub(crate) async fn jobs_past_their_time_to_live_die(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let short = QueueSettings { time_to_live: Some(Duration::from_secs(60)), ..QueueSettings::default() };
    let (queue, usual) = (bench.queue_with("short", &short).await.id, bench.queue("usual").await);
    assert_eq!(bench.session.expiring_queues(&caller(), QueueId(0), 10).await.expect("a list"), [queue]);
    assert_eq!(bench.session.expiring_queues(&caller(), queue, 10).await.expect("a list"), []);
    let old = bench.enqueue(&[keyed(queue, "k", "old"), keyed(queue, "k", "next"), job(queue, "old")]).await;
    bench.enqueue(&[job(usual, "old"), later(job(queue, "scheduled")), job(queue, "leased")]).await;
    let leased = bench.claim(queue, 10).await.into_iter().find(|job| job.payload == "leased").expect("claimed");
    let others: Vec<_> = old.iter().map(|row| row.job).collect();
    // Those that were claimed with it go back.
    let held = db.number("select count(*) from job where lease_id is not null").await;
    assert_eq!(held, 3);
    db.execute(&format!(
        "update job set lease_id = null, lease_until = null, lease_duration = null, attempt = 0 where id in ({}, {})",
        others[0], others[2]
    ))
    .await;
    let past = db.instant(Timestamp(1_000_000));
    db.execute(&format!(
        "update job set ready_at = {past} where id <> {} and ready_at <= (select max(ready_at) from job where id = {})",
        leased.job, leased.job
    ))
    .await;
    db.execute(&format!("update job set ready_at = {past} where id = {}", leased.job)).await;
    bench.enqueue_one(job(queue, "young")).await;

    let expired = bench.session.expire(&caller(), &[(queue, Timestamp::BEGINNING)], 100).await.expect("a pass");
    assert_eq!((expired.jobs, expired.readied.as_slice(), expired.floors.len()), (2, &[queue][..], 1));
    assert!(expired.floors[0] > Timestamp(1_000_000), "it moves on: {:?}", expired.floors);
    let why = "select count(*) from dead_job where last_error = 'time to live is over' and expires_at > dead_at";
    assert_eq!(db.number(why).await, 2);
    let left: BTreeSet<String> =
        bench.claim(queue, 10).await.iter().map(|job| String::from_utf8_lossy(&job.payload).into_owned()).collect();
    assert_eq!(left, BTreeSet::from(["next".to_owned(), "young".to_owned()]), "the key went on");
    assert_eq!(bench.claim(usual, 10).await.len(), 1, "other queues have no such bound");
    assert_eq!(bench.ack_one(lease(&leased)).await, leasehold::store::engine::Held::Ok, "a lease counts");
}

pub(crate) async fn a_pass_over_old_jobs_takes_no_more_than_its_limit(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let short = QueueSettings { time_to_live: Some(Duration::from_secs(1)), ..QueueSettings::default() };
    let (a, b) = (bench.queue_with("a", &short).await.id, bench.queue_with("b", &short).await.id);
    for queue in [a, b] {
        let rows: Vec<_> = (0..5).map(|n| changed(job(queue, ""), |job| job.priority = priority(2 * n % 10))).collect();
        bench.enqueue(&rows).await;
    }
    let past = db.instant(Timestamp(1_000_000));
    db.execute(&format!("update job set ready_at = {past}")).await;
    let (mut floors, mut died) = (vec![Timestamp::BEGINNING; 2], Vec::new());
    loop {
        let spots = [(a, floors[0]), (b, floors[1])];
        let expired = bench.session.expire(&caller(), &spots, 3).await.expect("a pass");
        died.push(expired.jobs);
        assert!(expired.floors.iter().zip(&floors).all(|(next, floor)| next >= floor));
        floors = expired.floors;
        if expired.jobs < 3 {
            break;
        }
    }
    assert_eq!(died, [3, 3, 3, 1], "and none is lost to a floor");
    assert_eq!(db.number("select count(*) from job").await, 0);
    // A queue without such a bound, or none at all, is no error.
    let usual = bench.queue("usual").await;
    let spots = [(usual, Timestamp(7)), (QueueId(usual.0 + 1_000), Timestamp(7))];
    let nothing = bench.session.expire(&caller(), &spots, 3).await.expect("a pass");
    assert_eq!((nothing.jobs, nothing.floors.len()), (0, 2));
}
