//! Engines with row locks: no act waits for a row that somebody's open transaction holds (O8, O9).

use std::time::Duration;

use leasehold::{
    model::NackAction,
    store::engine::{Cancelled, DeadFilter, ExtendRow, Held, RedriveStep, RunNow},
};

use super::{
    bench::{Bench, held, ids, job, keyed, leases, nack_row, payloads},
    database::{Database, caller},
    redrive::all_of,
};

pub(crate) async fn a_held_job_is_passed_by_a_claim(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let stored = bench.enqueue(&[job(queue, "1"), job(queue, "2"), job(queue, "3")]).await;
    let hold = db.hold(stored[0].job).await;
    assert_eq!(payloads(&bench.claim(queue, 2).await), ["2", "3"]);
    assert_eq!(bench.claim(queue, 2).await.len(), 0);
    db.release(hold).await;
}

pub(crate) async fn a_held_job_is_busy_for_ack_and_the_others_are_acked(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    bench.enqueue(&[job(queue, "1"), job(queue, "2"), job(queue, "3")]).await;
    let claimed = leases(&bench.claim(queue, 3).await);
    let hold = db.hold(claimed[1].job).await;
    let started = std::time::Instant::now();
    assert_eq!(held(&bench.ack(&claimed).await), [Held::Ok, Held::Busy, Held::Ok]);
    assert!(started.elapsed() < Duration::from_secs(1), "nothing waited for it");
    assert_eq!(held(&bench.ack(&claimed).await), [Held::Gone, Held::Busy, Held::Gone]);
    db.release(hold).await;
}

pub(crate) async fn a_held_job_is_busy_for_nack_and_extend_and_nothing_changes(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    bench.enqueue(&[job(queue, "1"), job(queue, "2")]).await;
    let claimed = bench.claim(queue, 2).await;
    let refs = leases(&claimed);
    let hold = db.hold(refs[0].job).await;
    let rows: Vec<_> =
        refs.iter().map(|lease| ExtendRow { lease: *lease, duration: Some(Duration::from_secs(3_600)) }).collect();
    let extended = bench.extend(&rows).await;
    assert_eq!(extended.iter().map(|row| row.held).collect::<Vec<_>>(), [Held::Busy, Held::Ok]);
    for action in [NackAction::Retry, NackAction::Release, NackAction::Reject] {
        assert_eq!(bench.nack_one(nack_row(refs[0], action)).await.held, Held::Busy, "{action:?}");
    }
    db.release(hold).await;
    let until = db.instant(claimed[0].lease_expires_at);
    let as_before =
        format!("select count(*) from job where id = {} and attempt = 1 and lease_until = {until}", refs[0].job);
    assert_eq!(db.number(&as_before).await, 1);
}

pub(crate) async fn a_held_job_is_passed_by_reaper_and_give_back(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    bench.enqueue(&[job(queue, "1"), job(queue, "2"), job(queue, "3")]).await;
    let claimed = leases(&bench.claim(queue, 3).await);
    db.expire_leases().await;
    let hold = db.hold(claimed[0].job).await;
    assert_eq!(bench.give_back(&claimed[..2]).await, [false, true]);
    let reaped = bench.reap().await;
    assert_eq!(reaped.leases.iter().map(|lease| lease.lease).collect::<Vec<_>>(), claimed[2..]);
    db.release(hold).await;
    // A pass that goes on from its floor still meets what it passed over.
    let again = bench.session.reap(&caller(), reaped.floor, 0, 10).await.expect("a pass");
    assert_eq!(again.leases.iter().map(|lease| lease.lease).collect::<Vec<_>>(), claimed[..1]);
}

pub(crate) async fn a_claim_locks_only_what_it_takes(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    bench.enqueue(&(0..50).map(|n| job(queue, format!("{n}"))).collect::<Vec<_>>()).await;
    // What a claim took is committed at once, so two claims that meet share all jobs and find none locked in vain.
    let mut other = Bench::on(db).await;
    let (left, right) = tokio::join!(bench.claim(queue, 10), other.claim(queue, 10));
    assert_eq!((left.len(), right.len()), (10, 10));
    assert_eq!(bench.claim(queue, 100).await.len(), 30);
}

pub(crate) async fn a_held_job_is_busy_to_whoever_cancels_or_runs_it(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let rows = [keyed(queue, "k", "1"), keyed(queue, "k", "2"), job(queue, "3")];
    let stored = ids(&bench.enqueue(&rows).await);
    for held in &stored[..2] {
        let hold = db.hold(*held).await;
        assert_eq!(bench.cancel(&[*held]).await.jobs, [Cancelled::Busy]);
        assert_eq!(bench.run_now(*held).await, RunNow::Busy);
        db.release(hold).await;
    }
    let hold = db.hold(stored[2]).await;
    let answer = bench.cancel(&stored).await;
    assert_eq!(answer.jobs, [Cancelled::Removed, Cancelled::Removed, Cancelled::Busy], "nobody else is held up");
    db.release(hold).await;
    let answer = bench.cancel(&stored).await;
    assert_eq!(answer.jobs, [Cancelled::Gone, Cancelled::Gone, Cancelled::Removed]);
    assert_eq!(db.number("select count(*) from job").await, 0);
}

pub(crate) async fn a_held_dead_job_is_passed_by_a_redrive(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let (first, second) = (bench.dead_job(queue, "1").await, bench.dead_job(queue, "2").await);
    let hold = db.hold_dead(first).await;
    let step = RedriveStep { which: all_of(queue, DeadFilter::default()), limit: 10 };
    assert_eq!(bench.session.redrive(&caller(), &step).await.expect("a step").jobs, [second]);
    db.release(hold).await;
    assert_eq!(bench.session.redrive(&caller(), &step).await.expect("a step").jobs, [first]);
}

pub(crate) async fn a_job_that_somebody_holds_is_shown_as_such(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let stored = bench.enqueue_one(job(queue, "1")).await.job;
    let mut held = async || {
        let minute = Duration::from_secs(60);
        bench.session.explain_job(&caller(), stored, minute).await.expect("an answer").expect("the job").held
    };
    assert!(!held().await);
    let hold = db.hold(stored).await;
    assert!(held().await);
    db.release(hold).await;
    assert!(!held().await);
    assert_eq!(payloads(&bench.claim(queue, 1).await), ["1"], "a look leaves no lock");
}
