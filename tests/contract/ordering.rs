//! Ordering keys: O10, failure cases 28 and 30.

use std::{collections::HashMap, time::Duration};

use leasehold::{
    model::{NackAction, Start},
    store::engine::Held,
};

use super::{
    bench::{Bench, changed, job, keyed, lease, leases, nack_row, payloads, priority},
    database::Database,
};

pub(crate) async fn jobs_of_a_key_are_leased_one_at_a_time_in_order(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    for n in 0..5 {
        bench.enqueue_one(keyed(queue, "k", format!("{n}"))).await;
    }
    for n in 0..5 {
        let claimed = bench.claim(queue, 10).await;
        assert_eq!(payloads(&claimed), [n.to_string()]);
        let acked = bench.ack(&leases(&claimed)).await;
        assert_eq!(acked[0].held, Held::Ok);
        assert_eq!(acked[0].readied, (n < 4).then_some(queue), "after {n}");
    }
}

pub(crate) async fn of_a_batch_only_the_first_of_a_key_is_ready(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let batch = [keyed(queue, "k", "1"), job(queue, "free"), keyed(queue, "k", "2"), keyed(queue, "l", "3")];
    let stored = bench.enqueue(&batch).await;
    let ready: Vec<_> = stored.iter().map(|row| row.ready_in.is_some()).collect();
    assert_eq!(ready, [true, true, false, true]);
    assert_eq!(payloads(&bench.claim(queue, 10).await), ["1", "free", "3"]);
}

pub(crate) async fn a_head_that_waits_for_its_retry_holds_its_key(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    bench.enqueue(&[keyed(queue, "k", "1"), keyed(queue, "k", "2"), keyed(queue, "other", "3")]).await;
    let head = bench.claim(queue, 1).await;
    assert_eq!(payloads(&head), ["1"]);
    let mut wait = nack_row(lease(&head[0]), NackAction::Retry);
    wait.delay = Some(Duration::from_secs(3_600));
    bench.nack_one(wait).await;
    assert_eq!(payloads(&bench.claim(queue, 10).await), ["3"], "its successor waits, others flow");
    assert_eq!(bench.enqueue_one(keyed(queue, "k", "4")).await.ready_in, None);
}

pub(crate) async fn a_released_head_is_still_the_head(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    bench.enqueue(&[keyed(queue, "k", "1"), keyed(queue, "k", "2")]).await;
    for action in [NackAction::Release, NackAction::Retry] {
        let head = bench.claim(queue, 10).await;
        assert_eq!(payloads(&head), ["1"]);
        bench.nack_one(nack_row(lease(&head[0]), action)).await;
    }
    assert_eq!(payloads(&bench.claim(queue, 10).await), ["1"]);
    db.expire_leases().await;
    bench.reap().await;
    assert_eq!(payloads(&bench.claim(queue, 10).await), ["1"]);
}

pub(crate) async fn a_dead_head_frees_its_key(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let once_only = |payload: &str| {
        let mut row = keyed(queue, "k", payload);
        row.max_attempts = 1;
        row
    };
    bench.enqueue(&[once_only("1"), once_only("2"), once_only("3"), once_only("4")]).await;

    let head = bench.claim_one(queue).await;
    let rejected = bench.nack_one(nack_row(lease(&head), NackAction::Reject)).await;
    assert_eq!((rejected.dead, rejected.readied), (true, Some(queue)));

    let head = bench.claim(queue, 10).await;
    assert_eq!(payloads(&head), ["2"]);
    let failed = bench.nack_one(nack_row(lease(&head[0]), NackAction::Retry)).await;
    assert_eq!((failed.dead, failed.readied), (true, Some(queue)));

    assert_eq!(payloads(&bench.claim(queue, 10).await), ["3"]);
    db.expire_leases().await;
    let reaped = bench.reap().await;
    assert!(reaped.leases[0].dead);
    assert_eq!(reaped.readied, [queue]);
    assert_eq!(payloads(&bench.claim(queue, 10).await), ["4"]);
}

pub(crate) async fn a_scheduled_head_holds_its_key(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let later = changed(keyed(queue, "k", "1"), |job| job.start = Start::After(Duration::from_secs(3_600)));
    assert!(bench.enqueue_one(later).await.ready_in.is_some());
    assert_eq!(bench.enqueue_one(keyed(queue, "k", "2")).await.ready_in, None);
    assert_eq!(bench.claim(queue, 10).await.len(), 0);
}

pub(crate) async fn a_freed_job_that_is_due_later_waits_for_its_time(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let later = changed(keyed(queue, "k", "2"), |job| job.start = Start::After(Duration::from_secs(3_600)));
    bench.enqueue(&[keyed(queue, "k", "1"), later]).await;
    let head = bench.claim_one(queue).await;
    bench.ack(&[lease(&head)]).await;
    assert_eq!(bench.claim(queue, 10).await.len(), 0);
    let whole = "select count(*) from job where ready_at = available_at and ready_at > enqueued_at";
    assert_eq!(db.number(whole).await, 1);
}

pub(crate) async fn keys_of_other_queues_and_other_bytes_are_other_keys(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let (queue, other) = (bench.queue("orders").await, bench.queue("other").await);
    let batch: Vec<_> = ["k", "K", "k ", " k", "k%", "k\\"].into_iter().map(|name| keyed(queue, name, name)).collect();
    bench.enqueue(&batch).await;
    bench.enqueue_one(keyed(other, "k", "other")).await;
    assert_eq!(bench.claim(queue, 10).await.len(), 6);
    assert_eq!(bench.claim(other, 10).await.len(), 1);
}

pub(crate) async fn a_thousand_blocked_jobs_stop_nobody_else(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    bench.enqueue_one(keyed(queue, "a", "head")).await;
    bench.claim_one(queue).await;
    bench.enqueue(&(0..1_000).map(|_| keyed(queue, "a", "waits")).collect::<Vec<_>>()).await;
    bench.enqueue(&(0..50).map(|_| job(queue, "free")).collect::<Vec<_>>()).await;
    bench.enqueue_one(keyed(queue, "b", "b")).await;
    let claimed = bench.claim(queue, 100).await;
    assert_eq!(claimed.len(), 51);
    assert_eq!(claimed[50].payload, "b");
}

pub(crate) async fn priority_plays_no_part_inside_a_key(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let urgent = changed(keyed(queue, "k", "2"), |job| job.priority = priority(9));
    bench.enqueue(&[keyed(queue, "k", "1"), urgent, keyed(queue, "k", "3")]).await;
    for n in ["1", "2", "3"] {
        let head = bench.claim(queue, 10).await;
        assert_eq!(payloads(&head), [n]);
        bench.ack(&leases(&head)).await;
    }
}

pub(crate) async fn acks_of_many_keys_in_one_batch_free_each_of_them(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let (queue, other) = (bench.queue("orders").await, bench.queue("other").await);
    let mut batch = Vec::new();
    for round in 0..2 {
        for n in 0..50 {
            batch.push(keyed(queue, &format!("k{n}"), format!("{round}")));
            batch.push(keyed(other, &format!("k{n}"), format!("{round}")));
        }
    }
    bench.enqueue(&batch).await;
    let mut heads = bench.claim(queue, 100).await;
    heads.extend(bench.claim(other, 100).await);
    assert_eq!(heads.len(), 100);
    let acked = bench.ack(&leases(&heads)).await;
    for (n, row) in acked.iter().enumerate() {
        assert_eq!(row.readied, Some(if n < 50 { queue } else { other }));
    }
    assert_eq!(payloads(&bench.claim(queue, 100).await), vec!["1"; 50]);
    assert_eq!(payloads(&bench.claim(other, 100).await), vec!["1"; 50]);
}

pub(crate) async fn a_drained_key_begins_anew(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    for n in ["1", "2", "3"] {
        assert_eq!(bench.enqueue_one(keyed(queue, "k", n)).await.ready_in, Some(Duration::ZERO));
        let head = bench.claim(queue, 10).await;
        assert_eq!(payloads(&head), [n]);
        assert_eq!(bench.ack(&leases(&head)).await[0].readied, None);
    }
}

pub(crate) async fn each_producers_order_holds_among_several(db: &dyn Database) {
    const EACH: usize = 40;
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let mut producers = tokio::task::JoinSet::new();
    for producer in ["p", "q", "r"] {
        let mut bench = Bench::on(db).await;
        producers.spawn(async move {
            for n in 0..EACH {
                bench.enqueue_one(keyed(queue, "k", format!("{producer}{n}"))).await;
            }
        });
    }
    // Claims go on while producers add; every seventh job fails once.
    let mut done: HashMap<String, Vec<usize>> = HashMap::new();
    let mut seen = 0;
    while seen < 3 * EACH {
        let claimed = bench.claim(queue, 10).await;
        assert!(claimed.len() <= 1, "two leases of one key");
        for job in claimed {
            if seen % 7 == 6 && job.attempt == 1 {
                bench.nack_one(nack_row(lease(&job), NackAction::Retry)).await;
                continue;
            }
            let text = payloads(std::slice::from_ref(&job)).remove(0);
            let (producer, n) = text.split_at(1);
            done.entry(producer.to_owned()).or_default().push(n.parse().expect("a number"));
            assert_eq!(bench.ack_one(lease(&job)).await, Held::Ok);
            seen += 1;
        }
    }
    while let Some(producer) = producers.join_next().await {
        producer.expect("no enqueue fails");
    }
    for (producer, order) in done {
        assert_eq!(order, (0..EACH).collect::<Vec<_>>(), "producer {producer}");
    }
}

pub(crate) async fn no_key_ever_has_two_live_leases(db: &dyn Database) {
    const JOBS: usize = 120;
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let mut work = tokio::task::JoinSet::new();
    for producer in 0..2 {
        let mut bench = Bench::on(db).await;
        work.spawn(async move {
            for n in 0..JOBS / 4 {
                let batch = [keyed(queue, "k", format!("{producer}-{n}")), keyed(queue, &format!("l{}", n % 3), "x")];
                bench.enqueue(&batch).await;
            }
            0
        });
    }
    for _ in 0..3 {
        let mut bench = Bench::on(db).await;
        work.spawn(async move {
            let (mut acked, mut empty) = (0, 0);
            while empty < 200 {
                let claimed = bench.claim(queue, 3).await;
                empty = if claimed.is_empty() { empty + 1 } else { 0 };
                let decided = bench.ack_until_decided(&leases(&claimed)).await;
                assert_eq!(decided, claimed.len(), "nobody else holds these leases");
                acked += decided;
            }
            acked
        });
    }
    let doubled = "select count(*) from (select 1 from job where lease_id is not null \
                   group by queue_id, ordering_key having count(*) > 1) doubled";
    let mut acked = 0;
    while !work.is_empty() {
        assert_eq!(db.number(doubled).await, 0, "two live leases of one key");
        if let Some(done) = work.try_join_next() {
            acked += done.expect("nobody fails");
        }
        tokio::task::yield_now().await;
    }
    while acked < JOBS {
        let claimed = bench.claim(queue, 10).await;
        assert!(!claimed.is_empty(), "{acked} of {JOBS}: a key leaked");
        acked += bench.ack(&leases(&claimed)).await.len();
    }
    assert_eq!(db.number("select count(*) from job").await, 0);
}
