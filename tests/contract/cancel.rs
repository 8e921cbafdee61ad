//! Cancelling jobs, and running them before their time.

use std::time::Duration;

use leasehold::{
    model::{JobId, JobState, NackAction, QueueId, ReplicaId, Start},
    store::engine::{Cancelled, ExtendRow, Held, LeaseRef, NackRow, RunNow},
};

use super::{
    bench::{Bench, STREAM, changed, ids, job, keyed, lease, leases, nack_row, payloads, queue_name},
    database::{Database, caller},
    presence::report,
};

const UNKNOWN: JobId = JobId(1 << 40);

pub(crate) async fn a_job_that_is_not_leased_is_gone_at_once(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let later = changed(job(queue, "later"), |job| job.start = Start::After(Duration::from_secs(3_600)));
    let stored = ids(&bench.enqueue(&[job(queue, "ready"), later, job(queue, "stays")]).await);
    let answer = bench.cancel(&[stored[1], UNKNOWN, stored[0]]).await;
    assert_eq!(answer.jobs, [Cancelled::Removed, Cancelled::Gone, Cancelled::Removed]);
    assert_eq!(bench.cancel(&stored[..2]).await.jobs, [Cancelled::Gone, Cancelled::Gone], "once is enough");
    assert_eq!(payloads(&bench.claim(queue, 10).await), ["stays"]);
    assert_eq!(db.number("select count(*) from dead_job").await, 0, "cancelled is not dead");
    assert_eq!(bench.cancel(&[]).await.jobs, []);
}

pub(crate) async fn a_dead_job_is_no_job_to_cancel(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let id = bench.dead_job(queue, "x").await;
    assert_eq!(bench.cancel(&[id]).await.jobs, [Cancelled::Gone]);
    assert_eq!(db.number("select count(*) from dead_job").await, 1);
}

pub(crate) async fn a_leased_job_is_told_and_goes_on_until_its_lease_ends(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    bench.enqueue(&[job(queue, "asked"), job(queue, "left alone")]).await;
    let claimed = leases(&bench.claim(queue, 2).await);
    for _ in 0..2 {
        let answer = bench.cancel(&[claimed[0].job]).await;
        assert_eq!(answer.jobs, [Cancelled::Requested(Some(STREAM))], "as often as it is asked for");
    }
    let rows = claimed.iter().map(|lease| ExtendRow { lease: *lease, duration: None }).collect::<Vec<_>>();
    let extended = bench.extend(&rows).await;
    let shown = extended.iter().map(|row| (row.held, row.cancel_requested)).collect::<Vec<_>>();
    assert_eq!(shown, [(Held::Ok, true), (Held::Ok, false)], "the lease stands");
    let looked = bench.session.inspect(&caller(), &claimed).await.expect("a look");
    assert_eq!(looked.iter().map(|state| state.cancel_requested).collect::<Vec<_>>(), [true, false]);
    assert_eq!(bench.ack_one(claimed[0]).await, Held::Ok, "an ack still is one");
    assert_eq!(bench.ack_one(claimed[0]).await, Held::Gone);
}

async fn cancelled_lease(bench: &mut Bench, queue: QueueId) -> LeaseRef {
    bench.enqueue_one(job(queue, "x")).await;
    let claimed = lease(&bench.claim_one(queue).await);
    assert_eq!(bench.cancel(&[claimed.job]).await.jobs, [Cancelled::Requested(Some(STREAM))]);
    claimed
}

pub(crate) async fn whatever_else_ends_its_lease_removes_it(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    for action in [NackAction::Retry, NackAction::Release, NackAction::Reject] {
        let claimed = cancelled_lease(&mut bench, queue).await;
        let nacked = bench.nack_one(nack_row(claimed, action)).await;
        assert_eq!((nacked.held, nacked.dead, nacked.ready_at), (Held::Ok, false, None), "{action:?}");
        assert_eq!(bench.nack_one(nack_row(claimed, action)).await.held, Held::Gone, "{action:?}");
    }
    let claimed = cancelled_lease(&mut bench, queue).await;
    assert_eq!(bench.give_back(&[claimed]).await, [true]);
    assert_eq!(bench.ack_one(claimed).await, Held::Gone);

    let claimed = cancelled_lease(&mut bench, queue).await;
    bench.session.give_back_unseen(&caller(), &[claimed.lease]).await.expect("given back");
    assert_eq!(bench.ack_one(claimed).await, Held::Gone);

    let claimed = cancelled_lease(&mut bench, queue).await;
    db.expire_leases().await;
    let reaped = bench.reap().await;
    assert_eq!(reaped.leases.iter().map(|reaped| (reaped.lease, reaped.dead)).collect::<Vec<_>>(), [(claimed, false)]);
    assert_eq!(bench.ack_one(claimed).await, Held::Gone);
    assert_eq!(db.number("select count(*) from job").await, 0);
    assert_eq!(db.number("select count(*) from dead_job").await, 0);
}

pub(crate) async fn the_last_attempt_of_a_cancelled_job_leaves_no_dead_one(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    for expires in [false, true] {
        let mut row = job(queue, "x");
        row.max_attempts = 1;
        bench.enqueue_one(row).await;
        let claimed = lease(&bench.claim_one(queue).await);
        bench.cancel(&[claimed.job]).await;
        if expires {
            db.expire_leases().await;
            assert_eq!(bench.reap().await.leases.len(), 1);
        } else {
            assert!(!bench.nack_one(nack_row(claimed, NackAction::Retry)).await.dead);
        }
    }
    assert_eq!(db.number("select count(*) from job").await, 0);
    assert_eq!(db.number("select count(*) from dead_job").await, 0);
}

pub(crate) async fn a_cancelled_head_lets_its_key_go_on(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let other = keyed(queue, "other", "3");
    let stored = ids(&bench.enqueue(&[keyed(queue, "k", "1"), keyed(queue, "k", "2"), other]).await);
    let answer = bench.cancel(&[stored[0]]).await;
    assert_eq!((answer.jobs.as_slice(), answer.readied.as_slice()), (&[Cancelled::Removed][..], &[queue][..]));
    let claimed = bench.claim(queue, 10).await;
    assert_eq!(payloads(&claimed), ["3", "2"], "the next one became ready after the other key's");
    // Under a lease it holds its key, asked or not.
    bench.enqueue_one(keyed(queue, "k", "4")).await;
    assert_eq!(bench.cancel(&[stored[1]]).await.jobs, [Cancelled::Requested(Some(STREAM))]);
    assert_eq!(bench.claim(queue, 10).await.len(), 0);
    let nacked = bench.nack_one(nack_row(lease(&claimed[1]), NackAction::Retry)).await;
    assert_eq!((nacked.held, nacked.readied), (Held::Ok, Some(queue)), "its end is the next one's beginning");
    assert_eq!(payloads(&bench.claim(queue, 10).await), ["4"]);
}

pub(crate) async fn cancelled_in_the_middle_of_a_key_changes_nobodys_turn(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let rows: Vec<_> = ["1", "2", "3", "4"].map(|n| keyed(queue, "k", n)).into();
    let stored = ids(&bench.enqueue(&rows).await);
    let answer = bench.cancel(&[stored[1]]).await;
    assert_eq!((answer.jobs.as_slice(), answer.readied.len()), (&[Cancelled::Removed][..], 0));
    let first = bench.claim(queue, 10).await;
    assert_eq!(payloads(&first), ["1"], "still alone");
    bench.ack_one(lease(&first[0])).await;
    let next = bench.claim(queue, 10).await;
    assert_eq!(payloads(&next), ["3"]);
    // All that is left at once, the one that has its turn among them.
    bench.give_back(&leases(&next)).await;
    assert_eq!(bench.cancel(&stored[2..]).await.jobs, [Cancelled::Removed, Cancelled::Removed]);
    bench.enqueue_one(keyed(queue, "k", "5")).await;
    assert_eq!(payloads(&bench.claim(queue, 10).await), ["5"], "the key begins anew");
}

pub(crate) async fn a_lease_given_back_by_key_lets_it_go_on(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    bench.enqueue(&[keyed(queue, "k", "1"), keyed(queue, "k", "2"), keyed(queue, "k", "3")]).await;
    let first = lease(&bench.claim_one(queue).await);
    bench.cancel(&[first.job]).await;
    assert_eq!(bench.give_back(&[first]).await, [true]);
    let second = bench.claim_one(queue).await;
    assert_eq!(second.payload, "2");
    bench.cancel(&[second.job]).await;
    bench.session.give_back_unseen(&caller(), &[second.lease]).await.expect("given back");
    assert_eq!(payloads(&bench.claim(queue, 10).await), ["3"]);
}

pub(crate) async fn a_request_reaches_the_replica_that_has_the_lease_once(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let known = bench.session.attend(&caller(), &report(STREAM.replica)).await.expect("written");
    assert_eq!(known.to_cancel, []);
    bench.enqueue(&[job(queue, "1"), job(queue, "2")]).await;
    let claimed = leases(&bench.claim(queue, 2).await);
    bench.cancel(&[claimed[1].job]).await;
    let other = report(ReplicaId(STREAM.replica.0 + 1));
    assert_eq!(bench.session.attend(&caller(), &other).await.expect("written").to_cancel, [], "not its own");
    let told = bench.session.attend(&caller(), &report(STREAM.replica)).await.expect("written");
    assert_eq!(told.to_cancel, [claimed[1].job]);
    assert_eq!(bench.session.attend(&caller(), &report(STREAM.replica)).await.expect("written").to_cancel, []);
    // A replica that is gone reads nothing, and nothing is kept for it.
    bench.session.leave(&caller(), STREAM.replica).await.expect("taken out");
    bench.cancel(&[claimed[0].job]).await;
    assert_eq!(db.number("select count(*) from cancellation").await, 0);
}

pub(crate) async fn cancel_and_everything_else_never_both_win(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let rows: Vec<_> = (0..120).map(|n| keyed(queue, &format!("k{}", n % 7), n.to_string())).collect();
    let stored = ids(&bench.enqueue(&rows).await);
    let (mut canceller, mut worker, mut reaper) = (Bench::on(db).await, Bench::on(db).await, Bench::on(db).await);
    // Who works begins when the first are cancelled: one writer may let another go first for long.
    let (begun, begin) = tokio::sync::oneshot::channel();
    let cancelling = async {
        let (mut removed, mut begun) = (0, Some(begun));
        for chunk in stored.chunks(11) {
            let mut left = chunk.to_vec();
            while !left.is_empty() {
                let answer = canceller.cancel(&left).await;
                removed += answer.jobs.iter().filter(|one| **one == Cancelled::Removed).count();
                let busy = left.iter().zip(&answer.jobs).filter(|(_, one)| **one == Cancelled::Busy);
                left = busy.map(|(job, _)| *job).collect();
                if let Some(begun) = begun.take() {
                    begun.send(()).expect("somebody waits");
                }
            }
        }
        removed
    };
    let working = async {
        begin.await.expect("some are cancelled");
        let mut acked = 0;
        for round in 0..60 {
            let claimed = leases(&worker.claim(queue, 5).await);
            match round % 3 {
                0 => drop(
                    worker.nack(&claimed.iter().map(|l| nack_row(*l, NackAction::Retry)).collect::<Vec<_>>()).await,
                ),
                _ => acked += worker.ack_until_decided(&claimed).await,
            }
        }
        acked
    };
    let reaping = async {
        for _ in 0..20 {
            reaper.reap().await;
        }
    };
    let (removed, acked, ()) = tokio::join!(cancelling, working, reaping);
    // Whatever was leased and asked for goes with its lease.
    db.expire_leases().await;
    while !bench.reap().await.leases.is_empty() {}
    assert_eq!(db.number("select count(*) from dead_job").await, 0);
    assert!(removed > 0, "the race is one");
    assert!(removed + acked <= 120, "{removed} removed and {acked} acked of 120");
    let left = bench.session.find_jobs(&caller(), &stored, false).await.expect("jobs");
    assert!(left.iter().all(|job| !job.cancel_requested), "asked for and still there: {left:?}");
    assert_eq!(left.len(), 0, "all were asked for");
    for n in 0..7 {
        bench.enqueue_one(keyed(queue, &format!("k{n}"), "next")).await;
    }
    assert_eq!(bench.claim(queue, 100).await.len(), 7, "no key is stuck");
}

pub(crate) async fn a_scheduled_job_runs_when_it_is_told_to(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let later = changed(job(queue, "later"), |job| job.start = Start::After(Duration::from_secs(3_600)));
    let stored = bench.enqueue_one(later).await.job;
    assert_eq!(bench.run_now(stored).await, RunNow::Readied(queue));
    assert_eq!(bench.run_now(stored).await, RunNow::Unchanged, "it is ready");
    let claimed = bench.claim_one(queue).await;
    assert_eq!(claimed.payload, "later");
    assert_eq!(bench.run_now(stored).await, RunNow::Unchanged, "it runs");
    // One that waits for its retry as well, its attempts as they were.
    bench
        .nack_one(NackRow { delay: Some(Duration::from_secs(600)), ..nack_row(lease(&claimed), NackAction::Retry) })
        .await;
    assert_eq!(bench.claim(queue, 1).await.len(), 0);
    assert_eq!(bench.run_now(stored).await, RunNow::Readied(queue));
    let again = bench.claim_one(queue).await;
    assert_eq!((again.job, again.attempt), (stored, 2));
    bench.ack_one(lease(&again)).await;
    assert_eq!(bench.run_now(stored).await, RunNow::Gone);
    let dead = bench.dead_job(queue, "dead").await;
    assert_eq!(bench.run_now(dead).await, RunNow::Gone);
    assert_eq!(bench.run_now(UNKNOWN).await, RunNow::Gone);
}

pub(crate) async fn a_blocked_job_is_due_and_waits_for_its_key_alone(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let later = changed(keyed(queue, "k", "2"), |job| job.start = Start::After(Duration::from_secs(3_600)));
    let stored = ids(&bench.enqueue(&[keyed(queue, "k", "1"), later]).await);
    assert_eq!(bench.run_now(stored[1]).await, RunNow::Blocked);
    let first = bench.claim(queue, 10).await;
    assert_eq!(payloads(&first), ["1"], "its key is not free");
    bench.ack_one(lease(&first[0])).await;
    assert_eq!(payloads(&bench.claim(queue, 10).await), ["2"], "and when it is, nothing else keeps it");
    let record = bench.find(stored[1]).await;
    assert_eq!((record.state, record.queue_name), (JobState::Leased, Some(queue_name("orders"))));
}
