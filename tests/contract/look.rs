//! Looking for work without taking it.

use std::time::Duration;

use leasehold::{
    model::{Priority, QueueId, Start, Timestamp},
    store::engine::{LookSpot, Sighting},
};

use super::{
    bench::{Bench, assert_about, changed, job, keyed, lease, priority},
    database::{Database, caller},
};

fn spot(queue: QueueId) -> LookSpot {
    LookSpot { queue, floors: [Timestamp::BEGINNING; Priority::LEVELS] }
}

async fn look(bench: &mut Bench, spots: &[LookSpot]) -> Vec<Sighting> {
    let mut seen = bench.session.look(&caller(), spots).await.expect("a look");
    seen.sort_by_key(|sighting| (sighting.queue, sighting.priority));
    seen
}

pub(crate) async fn the_first_waiting_job_of_each_level_is_seen(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let (queue, other) = (bench.queue("orders").await, bench.queue("other").await);
    let nothing = bench.queue("nothing").await;
    let hour = Duration::from_secs(3_600);
    let later = |queue, level| {
        changed(job(queue, "later"), |job| {
            job.priority = priority(level);
            job.start = Start::After(hour);
        })
    };
    bench.enqueue(&[job(queue, "1"), job(queue, "2"), later(queue, 4), later(queue, 9), later(other, 0)]).await;
    let seen = look(&mut bench, &[spot(other), spot(nothing), spot(queue)]).await;
    let what: Vec<_> = seen.iter().map(|sighting| (sighting.queue, sighting.priority.level())).collect();
    let mut expected = vec![(queue, 4), (queue, 9), (other, 0)];
    expected.sort();
    assert_eq!(what, expected);
    for sighting in seen {
        if (sighting.queue, sighting.priority.level()) == (queue, 4) {
            assert_eq!(sighting.ready_in, Duration::ZERO);
            assert_eq!(sighting.ready_at, bench.claim_one(queue).await.ready_at, "where the claim will find it");
        } else {
            assert_about(sighting.ready_in, hour);
        }
    }
    assert_eq!(look(&mut bench, &[]).await, []);
}

pub(crate) async fn a_look_begins_at_its_floors(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let stored = bench.enqueue(&[job(queue, "1"), job(queue, "2")]).await;
    for (n, row) in (1..).zip(&stored) {
        let at = db.instant(Timestamp(n * 1_000_000));
        db.execute(&format!("update job set ready_at = {at} where id = {}", row.job)).await;
    }
    let mut from = spot(queue);
    for (floor, expected) in
        [(0, Some(1_000_000)), (999_999, Some(1_000_000)), (1_000_000, Some(2_000_000)), (2_000_000, None)]
    {
        from.floors[4] = Timestamp(floor);
        let seen = look(&mut bench, &[from]).await;
        assert_eq!(seen.first().map(|sighting| sighting.ready_at.0), expected, "floor {floor}");
    }
}

pub(crate) async fn leased_and_blocked_jobs_are_not_seen(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    bench.enqueue(&[keyed(queue, "k", "1"), keyed(queue, "k", "2")]).await;
    let head = bench.claim_one(queue).await;
    assert_eq!(look(&mut bench, &[spot(queue)]).await, []);
    bench.ack(&[lease(&head)]).await;
    assert_eq!(look(&mut bench, &[spot(queue)]).await.len(), 1, "the freed one");
}
