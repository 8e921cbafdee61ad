//! Removing what is kept for a while: dead jobs and idempotency keys.

use std::time::Duration;

use leasehold::model::{NackAction, QueueSettings, Timestamp};

use super::{
    bench::{Bench, job, leases, nack_row, once},
    database::{Database, caller},
};

async fn bury(bench: &mut Bench, queue: leasehold::model::QueueId, count: usize) {
    bench.enqueue(&(0..count).map(|n| job(queue, format!("{n}"))).collect::<Vec<_>>()).await;
    let claimed = leases(&bench.claim(queue, count).await);
    let rejects: Vec<_> = claimed.into_iter().map(|lease| nack_row(lease, NackAction::Reject)).collect();
    assert!(bench.nack(&rejects).await.iter().all(|row| row.dead));
}

pub(crate) async fn dead_jobs_go_when_their_time_is_over(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let short = QueueSettings { dead_retention: Duration::ZERO, ..QueueSettings::default() };
    let (kept, queue) = (bench.queue("kept").await, bench.queue_with("short", &short).await.id);
    bury(&mut bench, kept, 2).await;
    bury(&mut bench, queue, 3).await;
    let pruned = bench.session.prune_dead(&caller(), Timestamp::BEGINNING, 100).await.expect("a pass");
    assert_eq!(pruned.rows, 3);
    assert_eq!(db.number("select count(*) from dead_job").await, 2);
    // Those that die afterwards lie behind the floor.
    bury(&mut bench, queue, 1).await;
    let next = bench.session.prune_dead(&caller(), pruned.floor, 100).await.expect("a pass");
    assert_eq!(next.rows, 1);
    assert_eq!(bench.session.prune_dead(&caller(), next.floor, 100).await.expect("a pass").rows, 0);
}

pub(crate) async fn idempotency_keys_go_when_their_time_is_over(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    bench.enqueue(&[once(queue, "a", "x"), once(queue, "b", "x"), once(queue, "c", "x")]).await;
    let past = db.instant(Timestamp(1_000_000));
    db.execute(&format!("update idempotency_key set expires_at = {past} where key <> 'b'")).await;
    let pruned = bench.session.prune_keys(&caller(), Timestamp::BEGINNING, 100).await.expect("a pass");
    assert_eq!(pruned.rows, 2);
    assert!(bench.enqueue_one(once(queue, "b", "x")).await.duplicate);
    assert!(!bench.enqueue_one(once(queue, "a", "x")).await.duplicate);
    assert_eq!(bench.session.prune_keys(&caller(), pruned.floor, 100).await.expect("a pass").rows, 0);
    assert_eq!(bench.claim(queue, 10).await.len(), 4, "jobs are not keys");
}

pub(crate) async fn a_full_pass_says_where_the_next_begins(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    bury(&mut bench, queue, 7).await;
    // All at one instant: a floor that passes a part of them would lose the rest.
    let past = db.instant(Timestamp(1_000_000));
    db.execute(&format!("update dead_job set expires_at = {past}")).await;
    let mut floor = Timestamp::BEGINNING;
    for expected in [3, 3, 1, 0] {
        let pruned = bench.session.prune_dead(&caller(), floor, 3).await.expect("a pass");
        assert_eq!(pruned.rows, expected);
        assert!(pruned.floor >= floor, "it only moves on");
        floor = pruned.floor;
    }
}
