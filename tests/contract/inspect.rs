//! Looking at jobs.

use std::time::Duration;

use leasehold::{
    model::{JobId, JobState, NackAction, QueueId, Start, Timestamp},
    store::engine::{
        Bounds, CountWalk, DeadFilter, DeadPlace, DeadWalk, DemandReport, JobRecord, JobsWalk, NackRow, Page, Report,
    },
};

use super::{
    bench::{
        Bench, LEASE, STREAM, assert_about, changed, ids, job, key, keyed, lease, nack_row, once, priority, queue_name,
    },
    database::{Database, caller},
    presence::{report, stream},
};

const MINUTE: Duration = Duration::from_secs(60);

fn bounds() -> Bounds {
    Bounds { rows: 10_000, found: 1_000, bytes: 1 << 20, payloads: false }
}

fn live(queue: QueueId) -> JobsWalk {
    JobsWalk {
        queue,
        states: JobState::LIVE.to_vec(),
        ordering_key: None,
        caller: None,
        after: JobId(0),
        bounds: bounds(),
    }
}

async fn list(bench: &mut Bench, walk: JobsWalk) -> Page<JobRecord, JobId> {
    bench.session.list_jobs(&caller(), &walk).await.expect("jobs")
}

fn jobs<P>(page: &Page<JobRecord, P>) -> Vec<JobId> {
    page.rows.iter().map(|row| row.job).collect()
}

pub(crate) async fn a_job_is_shown_as_it_is_in_each_state(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let full = changed(once(queue, "once", b"\0\xff"), |job| {
        job.content_type = "text/plain".into();
        job.headers = [("a".to_owned(), "b".to_owned())].into();
        job.priority = priority(9);
    });
    let later = changed(job(queue, "later"), |job| job.start = Start::After(Duration::from_secs(3_600)));
    let stored = ids(&bench.enqueue(&[full, later, keyed(queue, "k", "1"), keyed(queue, "k", "2")]).await);
    let ready = bench.find(stored[0]).await;
    assert_eq!((ready.job, ready.queue, ready.state), (stored[0], queue, JobState::Ready));
    assert_eq!(ready.queue_name, Some(queue_name("orders")));
    assert_eq!(ready.payload.as_deref(), Some(&b"\0\xff"[..]));
    assert_eq!((ready.payload_bytes, ready.content_type.as_str(), ready.headers["a"].as_str()), (2, "text/plain", "b"));
    assert_eq!((ready.priority, ready.attempt, ready.max_attempts, ready.lease_number), (priority(9), 0, 20, 0));
    assert_eq!((ready.idempotency_key, ready.caller.as_deref()), (Some(key("once")), Some("contract")));
    assert_eq!((ready.lease_until, ready.lease_stream, ready.dead_at), (None, None, None));
    let scheduled = bench.find(stored[1]).await;
    assert_eq!((scheduled.state, scheduled.ready_at), (JobState::Scheduled, Some(scheduled.available_at)));
    let blocked = bench.find(stored[3]).await;
    assert_eq!((blocked.state, blocked.ready_at, blocked.ordering_key), (JobState::Blocked, None, Some(key("k"))));

    let claimed = bench.claim_one(queue).await;
    let leased = bench.find(stored[0]).await;
    assert_eq!((leased.state, leased.lease_stream), (JobState::Leased, Some(STREAM)));
    assert_eq!((leased.attempt, leased.lease_number), (1, 1));
    assert_eq!(leased.lease_until, Some(claimed.lease_expires_at));
    bench.nack_one(NackRow { error: "why".into(), ..nack_row(lease(&claimed), NackAction::Retry) }).await;
    let back = bench.find(stored[0]).await;
    assert_eq!(
        (back.state, back.lease_until, back.lease_stream),
        (JobState::Ready, None, None),
        "no trace of the lease"
    );
    let claimed = bench.claim_one(queue).await;
    bench.give_back(&[lease(&claimed)]).await;
    assert_eq!(bench.find(stored[0]).await.lease_stream, None);
    bench.claim_one(queue).await;
    db.expire_leases().await;
    bench.reap().await;
    assert_eq!(bench.find(stored[0]).await.lease_stream, None);
    let claimed = bench.claim_one(queue).await;
    bench.nack_one(NackRow { error: "no such order".into(), ..nack_row(lease(&claimed), NackAction::Reject) }).await;
    let dead = bench.find(stored[0]).await;
    assert_eq!((dead.state, dead.last_error.as_deref()), (JobState::Dead, Some("no such order")));
    assert_eq!((dead.ready_at, dead.caller.as_deref()), (None, Some("contract")));
    let kept = dead.expires_at.expect("an end").since(dead.dead_at.expect("an instant"));
    assert_about(kept, Duration::from_secs(14 * 24 * 3_600) + Duration::from_millis(100)); // two looks at the clock
    let without = bench.session.find_jobs(&caller(), &stored, false).await.expect("jobs");
    assert_eq!(without.len(), 4);
    assert!(without.iter().all(|job| job.payload.is_none() && job.payload_bytes > 0));
    assert_eq!(bench.session.find_jobs(&caller(), &[JobId(1 << 40)], true).await.expect("none"), []);
    assert_eq!(bench.session.find_jobs(&caller(), &[], true).await.expect("none"), []);
}

pub(crate) async fn an_acked_job_is_found_where_its_queue_keeps_it(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    db.execute("update queue set acked_retention = 60000000").await;
    let stored = ids(&bench.enqueue(&[job(queue, "1"), job(queue, "2")]).await);
    for _ in 0..2 {
        let claimed = lease(&bench.claim_one(queue).await);
        bench.ack_one(claimed).await;
    }
    let acked = bench.find(stored[0]).await;
    assert_eq!((acked.state, acked.payload.as_deref()), (JobState::Acked, Some(&b"1"[..])));
    assert_eq!((acked.caller.as_deref(), acked.ready_at), (Some("contract"), None));
    let kept = acked.expires_at.expect("an end").since(acked.acked_at.expect("an instant"));
    assert_about(kept, MINUTE + Duration::from_millis(100)); // two looks at the clock
    let page = list(&mut bench, JobsWalk { states: vec![JobState::Acked], ..live(queue) }).await;
    assert_eq!((jobs(&page), page.next), (stored.clone(), None));
    assert_eq!(list(&mut bench, live(queue)).await.rows, []);
    let explained = bench.session.explain_job(&caller(), stored[1], MINUTE).await.expect("an answer").expect("the job");
    assert_eq!(explained.job.state, JobState::Acked);
}

pub(crate) async fn a_list_is_of_one_queue_by_id_and_state(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let (queue, other) = (bench.queue("orders").await, bench.queue("other").await);
    let later = changed(job(queue, "later"), |job| job.start = Start::After(Duration::from_secs(3_600)));
    let dead = bench.dead_job(queue, "dead").await;
    let leased = bench.enqueue_one(keyed(queue, "k", "1")).await.job;
    bench.claim_one(queue).await;
    let rows = [job(other, "x"), keyed(queue, "k", "2"), job(queue, "ready"), job(other, "y"), later];
    let stored = ids(&bench.enqueue(&rows).await);
    let all = list(&mut bench, live(queue)).await;
    assert_eq!((jobs(&all), all.next), (vec![leased, stored[1], stored[2], stored[4]], None));
    for (state, expected) in [
        (JobState::Leased, leased),
        (JobState::Blocked, stored[1]),
        (JobState::Ready, stored[2]),
        (JobState::Scheduled, stored[4]),
        (JobState::Dead, dead),
    ] {
        let page = list(&mut bench, JobsWalk { states: vec![state], ..live(queue) }).await;
        assert_eq!((jobs(&page), page.next), (vec![expected], None), "{state:?}");
    }
    let of_key = list(&mut bench, JobsWalk { ordering_key: Some(key("k")), ..live(queue) }).await;
    assert_eq!(jobs(&of_key), [leased, stored[1]]);
    let elses = JobsWalk { caller: Some("somebody".into()), ..live(queue) };
    assert_eq!(jobs(&list(&mut bench, elses.clone()).await), []);
    db.execute(&format!("update job set caller = 'somebody' where id = {}", stored[2])).await;
    assert_eq!(jobs(&list(&mut bench, elses).await), [stored[2]]);
    db.execute("update job set caller = null").await;
    assert_eq!(list(&mut bench, live(queue)).await.rows[0].caller, None, "as of older jobs");
}

pub(crate) async fn pages_meet_each_job_once_whatever_their_bounds(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let (queue, other) = (bench.queue("orders").await, bench.queue("other").await);
    let rows: Vec<_> = (0..40).map(|n| job(if n % 4 == 0 { queue } else { other }, "x".repeat(100))).collect();
    let expected: Vec<JobId> = ids(&bench.enqueue(&rows).await).into_iter().step_by(4).collect();
    for bounds in [
        Bounds { rows: 7, ..bounds() },
        Bounds { found: 3, ..bounds() },
        Bounds { bytes: 250, payloads: true, ..bounds() },
        Bounds { bytes: 1, payloads: true, rows: 5, found: 2 },
        Bounds { rows: 40, found: 10, ..bounds() },
    ] {
        let (mut seen, mut after, mut pages) = (Vec::new(), JobId(0), 0);
        loop {
            let page = list(&mut bench, JobsWalk { after, bounds, ..live(queue) }).await;
            assert!(page.rows.len() <= bounds.found);
            let payloads: usize = page.rows.iter().filter_map(|row| row.payload.as_ref()).map(bytes::Bytes::len).sum();
            assert!(payloads as u64 <= bounds.bytes + 100, "{payloads} bytes");
            seen.extend(jobs(&page));
            pages += 1;
            match page.next {
                Some(next) => after = next,
                None => break,
            }
        }
        assert_eq!(seen, expected, "{bounds:?}");
        assert!(pages <= 12, "{pages} pages of {bounds:?}");
    }
}

pub(crate) async fn dead_jobs_are_listed_the_last_ones_first(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let (queue, other) = (bench.queue("orders").await, bench.queue("other").await);
    let mut dead = Vec::new();
    for n in 0..7 {
        dead.push(bench.dead(job(queue, n.to_string()), if n < 3 { "early" } else { "late" }).await);
    }
    bench.dead_job(other, "x").await;
    dead.reverse();
    let walk = |filter, before, found| DeadWalk { queue, filter, before, bounds: Bounds { found, ..bounds() } };
    let mut seen = Vec::new();
    let mut before: Option<DeadPlace> = None;
    loop {
        let page = bench.session.list_dead(&caller(), &walk(DeadFilter::default(), before, 3)).await.expect("jobs");
        seen.extend(jobs(&page));
        before = page.next;
        if before.is_none() {
            break;
        }
    }
    assert_eq!(seen, dead);
    let early = DeadFilter { error_contains: Some("early".into()), ..DeadFilter::default() };
    let page = bench.session.list_dead(&caller(), &walk(early.clone(), None, 100)).await.expect("jobs");
    assert_eq!((jobs(&page), page.next), (dead[4..].to_vec(), None));
    // Between the instants at which two of them died.
    let (third, fifth) = (bench.find(dead[2]).await, bench.find(dead[4]).await);
    let between = DeadFilter { died_after: fifth.dead_at, died_before: third.dead_at, ..DeadFilter::default() };
    let page = bench.session.list_dead(&caller(), &walk(between, None, 100)).await.expect("jobs");
    let expected: Vec<JobId> = dead[3..4].to_vec();
    assert!(jobs(&page) == expected || third.dead_at == fifth.dead_at, "{:?}", jobs(&page));
    for filter in [
        DeadFilter { caller: Some("nobody".into()), ..DeadFilter::default() },
        DeadFilter { ordering_key: Some(key("k")), ..DeadFilter::default() },
        DeadFilter { error_contains: Some("EARLY".into()), ..DeadFilter::default() },
    ] {
        let page = bench.session.list_dead(&caller(), &walk(filter.clone(), None, 100)).await.expect("jobs");
        assert_eq!((jobs(&page), page.next), (vec![], None), "{filter:?}");
    }
    let mine = DeadFilter { caller: Some("contract".into()), ..DeadFilter::default() };
    assert_eq!(bench.session.list_dead(&caller(), &walk(mine, None, 100)).await.expect("jobs").rows.len(), 7);
    // The same counted, a few rows at a time.
    let (mut counted, mut after) = (0, None);
    loop {
        let step = CountWalk { queue, filter: early.clone(), after, rows: 2 };
        let count = bench.session.count_dead(&caller(), &step).await.expect("a count");
        counted += count.jobs;
        after = count.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(counted, 3);
}

pub(crate) async fn what_is_around_a_job_is_seen_at_once(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let mut urgent = job(queue, "urgent");
    urgent.job.priority = priority(9);
    let rows = [keyed(queue, "k", "1"), keyed(queue, "k", "2"), keyed(queue, "k", "3"), job(queue, "4"), urgent];
    let stored = ids(&bench.enqueue(&rows).await);
    let later = changed(job(queue, "later"), |job| job.start = Start::After(Duration::from_secs(3_600)));
    bench.enqueue_one(later).await;
    let mut explain = async |job| bench.session.explain_job(&caller(), job, MINUTE).await.expect("an answer");
    assert_eq!(explain(JobId(1 << 40)).await, None);
    let first = explain(stored[0]).await.expect("the job");
    assert_eq!((first.job.state, first.ahead, first.paused, first.held), (JobState::Ready, 1, false, false));
    assert_eq!((first.streams, first.free_credit), (0, 0), "nobody is there");
    assert_eq!(explain(stored[3]).await.expect("the job").ahead, 2, "the urgent one and the one before it");
    assert_eq!(explain(stored[4]).await.expect("the job").ahead, 0);
    let third = explain(stored[2]).await.expect("the job");
    assert_eq!((third.job.state, third.head, third.ahead_in_key), (JobState::Blocked, Some(stored[0]), 1));

    let said = Report {
        streams: vec![stream(STREAM.replica.0, STREAM.number.0, &["orders"])],
        demand: vec![DemandReport { queue: queue_name("orders"), streams: 2, free_credit: 5 }],
        ..report(STREAM.replica)
    };
    bench.session.attend(&caller(), &said).await.expect("written");
    let claimed = bench.claim(queue, 2).await;
    assert_eq!(claimed[1].job, stored[0]);
    db.execute("update queue set paused = (1 = 1)").await;
    let mut explain = async |job| bench.session.explain_job(&caller(), job, MINUTE).await.expect("an answer");
    let leased = explain(stored[0]).await.expect("the job");
    assert_eq!((leased.job.state, leased.paused, leased.streams, leased.free_credit), (JobState::Leased, true, 2, 5));
    assert_eq!(leased.holder.expect("written down").consumer, format!("pod '{}'", STREAM.number.0));
    assert_about(leased.job.lease_until.expect("a lease").since(leased.now), LEASE);
    let third = explain(stored[2]).await.expect("the job");
    assert_eq!(third.head, Some(stored[0]), "leased, it still has its turn");
    // Its replica is not heard of any more.
    let past = db.instant(Timestamp(1_000_000));
    db.execute(&format!("update replica set seen_at = {past}")).await;
    let leased = bench.session.explain_job(&caller(), stored[0], MINUTE).await.expect("an answer").expect("the job");
    assert_eq!((leased.holder, leased.streams), (None, 0));
}
