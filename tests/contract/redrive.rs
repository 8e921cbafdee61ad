//! Dead jobs made live again.

use std::{collections::BTreeSet, time::Duration};

use leasehold::{
    model::{JobId, JobState, NackAction, QueueId, Timestamp, TraceContext},
    store::{
        engine::{DeadFilter, DeadJobs, Held, NackRow, RedriveStep, Redriven},
        error::EngineError,
    },
};

use super::{
    bench::{Bench, changed, ids, job, key, keyed, lease, leases, nack_row, once, payloads, priority},
    database::{Database, caller},
};

pub(crate) fn all_of(queue: QueueId, filter: DeadFilter) -> DeadJobs {
    DeadJobs::OfQueue { queue, filter, after: None, until: None, rows: 1_000 }
}

async fn redrive(bench: &mut Bench, which: DeadJobs, limit: usize) -> Redriven {
    bench.session.redrive(&caller(), &RedriveStep { which, limit }).await.expect("a step")
}

pub(crate) async fn a_job_lives_again_as_it_was_enqueued(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let trace = TraceContext::parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "a=b");
    let mut row = changed(once(queue, "the-key", b"\0payload\xff"), |job| {
        job.content_type = "text/plain".into();
        job.headers = [("a".to_owned(), "é".to_owned())].into();
        job.priority = priority(7);
        job.trace.clone_from(&trace);
        job.ordering_key = Some(key("o"));
    });
    row.max_attempts = 3;
    let stored = bench.enqueue_one(row).await.job;
    for attempt in 1..=3 {
        let claimed = bench.claim_one(queue).await;
        assert_eq!((claimed.attempt, claimed.lease_number), (attempt, i64::from(attempt)));
        bench.nack_one(NackRow { error: "it failed".into(), ..nack_row(lease(&claimed), NackAction::Retry) }).await;
    }
    let dead = bench.find(stored).await;
    assert_eq!((dead.state, dead.caller.as_deref()), (JobState::Dead, Some("contract")));
    let done = redrive(&mut bench, DeadJobs::Ids(vec![stored]), 10).await;
    assert_eq!((done.jobs.as_slice(), done.readied.as_slice(), done.next), (&[stored][..], &[queue][..], None));
    assert_eq!(db.number("select count(*) from dead_job").await, 0, "never both");
    let live = bench.find(stored).await;
    assert_eq!((live.state, live.attempt, live.max_attempts, live.lease_number), (JobState::Ready, 0, 3, 3));
    assert_eq!((live.enqueued_at, live.available_at), (dead.enqueued_at, dead.available_at));
    assert_eq!((live.caller, live.dead_at, live.expires_at), (dead.caller, None, None));
    let claimed = bench.claim_one(queue).await;
    assert_eq!((claimed.job, claimed.attempt, claimed.lease_number), (stored, 1, 4), "lease numbers go on");
    assert_eq!(claimed.payload.as_ref(), b"\0payload\xff");
    assert_eq!((claimed.content_type.as_str(), claimed.headers["a"].as_str()), ("text/plain", "é"));
    assert_eq!((claimed.priority, &claimed.trace), (priority(7), &trace));
    let keys = (claimed.idempotency_key.clone(), claimed.ordering_key.clone());
    assert_eq!(keys, (Some(key("the-key")), Some(key("o"))));
    assert_eq!(claimed.last_error.as_deref(), Some("it failed"), "what its next worker should know");
    assert_eq!(bench.ack_one(lease(&claimed)).await, Held::Ok);
}

pub(crate) async fn an_old_lease_decides_nothing_after_a_redrive(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let stored = bench.enqueue_one(job(queue, "x")).await.job;
    let old = lease(&bench.claim_one(queue).await);
    bench.nack_one(nack_row(old, NackAction::Reject)).await;
    redrive(&mut bench, DeadJobs::Ids(vec![stored]), 1).await;
    assert_eq!(bench.ack_one(old).await, Held::LeaseLost);
    let new = lease(&bench.claim_one(queue).await);
    assert_eq!(bench.ack_one(old).await, Held::LeaseLost);
    assert_eq!(bench.ack_one(new).await, Held::Ok);
}

pub(crate) async fn what_is_not_dead_is_passed_over(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let dead = bench.dead_job(queue, "dead").await;
    let live = bench.enqueue_one(job(queue, "live")).await.job;
    let done = redrive(&mut bench, DeadJobs::Ids(vec![live, JobId(1 << 40), dead]), 10).await;
    assert_eq!(done.jobs, [dead]);
    assert_eq!(redrive(&mut bench, DeadJobs::Ids(vec![dead]), 10).await.jobs, [], "twice is once");
    assert_eq!(bench.claim(queue, 10).await.len(), 2);
}

pub(crate) async fn a_redriven_job_joins_at_the_end_of_its_key(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let first = bench.dead(keyed(queue, "k", "1"), "bad").await;
    let second = bench.dead(keyed(queue, "k", "2"), "bad").await;
    bench.enqueue(&[keyed(queue, "k", "3"), keyed(queue, "k", "4")]).await;
    let done = redrive(&mut bench, all_of(queue, DeadFilter::default()), 10).await;
    assert_eq!(BTreeSet::from_iter(done.jobs), BTreeSet::from([first, second]));
    assert_eq!(done.readied, [], "others come first");
    bench.enqueue_one(keyed(queue, "k", "5")).await;
    for expected in ["3", "4", "1", "2", "5"] {
        let claimed = bench.claim(queue, 10).await;
        assert_eq!(payloads(&claimed), [expected]);
        bench.ack(&leases(&claimed)).await;
    }
    // With nobody before them, the one that died first is ready at once.
    for n in ["6", "7"] {
        bench.dead(keyed(queue, "k", n), "bad").await;
    }
    let done = redrive(&mut bench, all_of(queue, DeadFilter::default()), 10).await;
    assert_eq!((done.jobs.len(), done.readied.as_slice()), (2, &[queue][..]));
    for expected in ["6", "7"] {
        let claimed = bench.claim(queue, 10).await;
        assert_eq!(payloads(&claimed), [expected]);
        bench.ack(&leases(&claimed)).await;
    }
}

pub(crate) async fn steps_take_those_that_died_first_and_go_on_where_they_ended(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let mut dead = Vec::new();
    for n in 0..7 {
        dead.push(bench.dead_job(queue, &n.to_string()).await);
    }
    let other = bench.queue("other").await;
    bench.dead_job(other, "not asked for").await;
    let mut which = all_of(queue, DeadFilter::default());
    let mut redriven = Vec::new();
    for expected in [3, 3, 1] {
        let done = redrive(&mut bench, which.clone(), 3).await;
        assert_eq!(done.jobs.len(), expected);
        redriven.extend(BTreeSet::from_iter(done.jobs.clone()));
        let DeadJobs::OfQueue { after, until, .. } = &mut which else { panic!("of a queue") };
        *after = done.next;
        *until = Some(done.until);
        assert_eq!(done.next.is_some(), expected == 3, "a full step says where to go on");
    }
    assert_eq!(redriven, dead);
    assert_eq!(db.number("select count(*) from dead_job").await, 1);
}

pub(crate) async fn a_job_that_dies_again_is_not_met_again(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let first = bench.dead_job(queue, "1").await;
    let second = bench.dead_job(queue, "2").await;
    let done = redrive(&mut bench, all_of(queue, DeadFilter::default()), 1).await;
    assert_eq!(done.jobs, [first]);
    let again = lease(&bench.claim_one(queue).await);
    bench.nack_one(nack_row(again, NackAction::Reject)).await;
    let next = DeadJobs::OfQueue {
        queue,
        filter: DeadFilter::default(),
        after: done.next,
        until: Some(done.until),
        rows: 1_000,
    };
    let done = redrive(&mut bench, next, 10).await;
    assert_eq!((done.jobs.as_slice(), done.next), (&[second][..], None));
    assert_eq!(bench.find(first).await.state, JobState::Dead);
}

pub(crate) async fn a_filter_picks_and_a_walk_without_a_find_still_goes_on(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    for n in 0..6 {
        bench.dead(job(queue, n.to_string()), if n == 4 { "50% off: \\ 'card' declined" } else { "time-out" }).await;
    }
    let declined = DeadFilter { error_contains: Some("% off: \\ 'card'".into()), ..DeadFilter::default() };
    let walk = |after, until| DeadJobs::OfQueue { queue, filter: declined.clone(), after, until, rows: 3 };
    let done = redrive(&mut bench, walk(None, None), 10).await;
    assert_eq!(done.jobs, [], "the first three are others");
    let done = redrive(&mut bench, walk(done.next, Some(done.until)), 10).await;
    assert_eq!(done.jobs.len(), 1);
    assert_eq!(payloads(&bench.claim(queue, 10).await), ["4"]);
    let last = redrive(&mut bench, walk(done.next, Some(done.until)), 10).await;
    assert_eq!((last.jobs.len(), last.next), (0, None));
    for filter in [
        DeadFilter { error_contains: Some("TIME-OUT".into()), ..DeadFilter::default() },
        DeadFilter { error_contains: Some("time_out".into()), ..DeadFilter::default() },
        DeadFilter { ordering_key: Some(key("k")), ..DeadFilter::default() },
        DeadFilter { caller: Some("somebody-else".into()), ..DeadFilter::default() },
        DeadFilter { died_before: Some(Timestamp(1)), ..DeadFilter::default() },
        DeadFilter { died_after: Some(done.until.plus(Duration::from_secs(60))), ..DeadFilter::default() },
    ] {
        assert_eq!(redrive(&mut bench, all_of(queue, filter.clone()), 10).await.jobs, [], "{filter:?}");
    }
}

pub(crate) async fn a_queue_that_is_being_deleted_gets_no_job_back(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let dead = bench.dead_job(queue, "x").await;
    let past = db.instant(Timestamp(1_000_000));
    db.execute(&format!("update queue set closing_since = {past}")).await;
    let step = RedriveStep { which: all_of(queue, DeadFilter::default()), limit: 10 };
    let refused = bench.session.redrive(&caller(), &step).await;
    assert!(matches!(refused, Err(EngineError::QueueClosed)), "{refused:?}");
    assert_eq!(redrive(&mut bench, DeadJobs::Ids(vec![dead]), 1).await.jobs, []);
    db.execute("delete from queue").await;
    let refused = bench.session.redrive(&caller(), &step).await;
    assert!(matches!(refused, Err(EngineError::QueueClosed)), "{refused:?}");
    assert_eq!(redrive(&mut bench, DeadJobs::Ids(vec![dead]), 1).await.jobs, []);
    assert_eq!(db.number("select count(*) from dead_job").await, 1, "where it was");
}

pub(crate) async fn redrives_and_the_pruner_share_the_dead_without_a_loss(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let rows: Vec<_> = (0..120).map(|n| keyed(queue, &format!("k{}", n % 5), n.to_string())).collect();
    let stored = ids(&bench.enqueue(&rows).await);
    loop {
        let claimed = bench.claim(queue, 100).await;
        if claimed.is_empty() {
            break;
        }
        let reject: Vec<_> = leases(&claimed).into_iter().map(|lease| nack_row(lease, NackAction::Reject)).collect();
        bench.nack(&reject).await;
    }
    let past = db.instant(Timestamp(1_000_000));
    db.execute(&format!("update dead_job set expires_at = {past} where id % 3 = 0")).await;
    let expired = stored.iter().filter(|job| job.0 % 3 == 0).count();
    let mut redrives = tokio::task::JoinSet::new();
    for _ in 0..3 {
        let mut bench = Bench::on(db).await;
        redrives.spawn(async move {
            let mut redriven = Vec::new();
            let mut which = all_of(queue, DeadFilter::default());
            loop {
                let done = redrive(&mut bench, which.clone(), 7).await;
                redriven.extend(done.jobs);
                let DeadJobs::OfQueue { after, until, .. } = &mut which else { panic!("of a queue") };
                (*after, *until) = (done.next, Some(done.until));
                if done.next.is_none() {
                    return redriven;
                }
            }
        });
    }
    let mut pruned = 0;
    while !redrives.is_empty() {
        let pass = bench.session.prune_dead(&caller(), Timestamp::BEGINNING, 5).await.expect("a pass");
        pruned += pass.rows;
        if let Some(done) = redrives.try_join_next() {
            let redriven = done.expect("no redrive fails");
            assert_eq!(redriven.len(), redriven.iter().collect::<BTreeSet<_>>().len());
        }
        tokio::task::yield_now().await;
    }
    assert!(pruned <= expired, "{pruned} of {expired}");
    let left = db.number("select count(*) from dead_job").await;
    let live = db.number("select count(*) from job").await;
    assert_eq!(left + live + i64::try_from(pruned).expect("few"), 120, "each in one place");
    // Those that two redrives ran into at once are passed over; one alone finds the rest.
    while redrive(&mut bench, all_of(queue, DeadFilter::default()), 100).await.next.is_some() {}
    assert_eq!(db.number("select count(*) from dead_job").await, 0);
    let mut done = 0;
    loop {
        let claimed = bench.claim(queue, 100).await;
        if claimed.is_empty() {
            break;
        }
        done += bench.ack_until_decided(&leases(&claimed)).await;
    }
    assert_eq!(done, 120 - pruned, "every one of them is leased, key after key");
}
