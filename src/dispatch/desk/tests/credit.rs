//! Whose credit a lease uses, and how it comes back.

use std::time::Duration;

use super::world::{REPLICA, SECOND, World, spec};
use crate::model::LeaseId;
use crate::store::engine::{LeaseRef, Wake};

#[test]
fn nothing_is_claimed_without_credit_and_nothing_for_a_full_buffer() {
    let mut world = World::new(&["q"]);
    let stream = world.open(spec(&["q"], 10));
    world.enqueue("q", 1_000);
    assert_eq!(world.leased(), 10);
    let received = world.read(stream);
    assert_eq!((received.jobs.len(), world.leased()), (10, 10));
    world.ack(&received.jobs[0].token);
    assert_eq!(world.leased(), 10);
    world.ack(&received.jobs[1].token);
    assert_eq!(world.leased(), 9, "the buffer holds the job claimed after the first Ack");
    assert_eq!(world.read(stream).jobs.len(), 1);
    assert_eq!(world.read(stream).jobs.len(), 1, "reading the first freed the buffer for the second");
}

#[test]
fn settling_a_lease_twice_returns_one_credit() {
    let mut world = World::new(&["q"]);
    let stream = world.open(spec(&["q"], 2));
    world.enqueue("q", 10);
    let received = world.read(stream);
    world.ack(&received.jobs[0].token);
    world.ack(&received.jobs[0].token);
    assert_eq!(world.read(stream).jobs.len(), 1);
    assert_eq!(world.leased(), 2);
}

#[test]
fn byte_credit_holds_and_what_does_not_fit_goes_back() {
    let mut world = World::new(&["q"]);
    let mut asked = spec(&["q"], 100);
    asked.max_in_flight_bytes = 1_000;
    let stream = world.open(asked);
    world.enqueue_sized("q", 3, 10);
    assert_eq!(world.read(stream).jobs.len(), 1, "the first job tells how large jobs are");
    let mut got = 1;
    while got < 3 {
        got += world.read(stream).jobs.len();
    }
    world.enqueue_sized("q", 50, 600);
    let received = world.read(stream);
    assert_eq!(received.jobs.len(), 1);
    assert_eq!(world.leased(), 4);
    assert_eq!(world.rows.values().filter(|row| row.attempts > 0).count(), 4);
}

#[test]
fn a_job_larger_than_the_byte_credit_is_sent_alone() {
    let mut world = World::new(&["q"]);
    let mut asked = spec(&["q"], 100);
    asked.max_in_flight_bytes = 1_000;
    let stream = world.open(asked);
    world.enqueue_sized("q", 2, 5_000);
    let received = world.read(stream);
    assert_eq!(received.jobs.len(), 1);
    world.ack(&received.jobs[0].token);
    assert_eq!(world.read(stream).jobs.len(), 1);
}

#[test]
fn an_expired_lease_returns_its_credit_only_when_the_database_says_so() {
    let mut world = World::new(&["q"]);
    let stream = world.open(spec(&["q"], 1));
    world.enqueue("q", 2);
    let first = world.read(stream);
    // Extended through another replica.
    let job = first.jobs[0].token.job;
    let row = world.rows.get_mut(&job).expect("leased");
    row.lease_until = row.lease_until.plus(Duration::from_secs(30));
    world.pass(Duration::from_secs(40));
    assert!(world.read(stream).jobs.is_empty());
    world.pass(Duration::from_secs(25));
    let received = world.read(stream);
    assert_eq!(received.jobs.len(), 1, "neither settled nor reaped, but not outstanding either");
}

#[test]
fn a_reaped_lease_is_revoked_and_its_credit_comes_back() {
    let mut world = World::new(&["q"]);
    let stream = world.open(spec(&["q"], 1));
    world.enqueue("q", 2);
    let first = world.read(stream);
    world.pass(Duration::from_millis(30_500));
    world.mail.reaped = world.reap();
    world.run();
    let received = world.read(stream);
    assert_eq!(received.revoked.len(), 1);
    assert_eq!(received.revoked[0].token, first.jobs[0].token);
    assert!(!received.revoked[0].cancel_requested);
    assert_eq!(received.jobs.len(), 1);
}

#[test]
fn credit_of_jobs_settled_elsewhere_comes_back_by_hint_or_by_reading() {
    let mut world = World::new(&["q"]);
    let stream = world.open(spec(&["q"], 2));
    world.enqueue("q", 10);
    let received = world.read(stream);
    let jobs: Vec<_> = received.jobs.iter().map(|job| job.token.job).collect();
    world.rows.remove(&jobs[0]);
    world.wakes.push(Wake::Settled { replica: REPLICA, jobs: vec![jobs[0]] });
    world.run();
    assert_eq!(world.read(stream).jobs.len(), 1, "by hint, at once");
    world.rows.remove(&jobs[1]);
    world.pass(Duration::from_millis(1_200));
    assert_eq!(world.read(stream).jobs.len(), 1, "by reading, within the interval");
}

#[test]
fn credit_in_bytes_comes_back_by_reading_though_there_is_credit_in_jobs() {
    let mut world = World::new(&["q"]);
    let mut asked = spec(&["q"], 100);
    asked.max_in_flight_bytes = 1_000;
    let stream = world.open(asked);
    world.enqueue_sized("q", 3, 600);
    let received = world.read(stream);
    assert_eq!(received.jobs.len(), 1, "there is no room for a second one");
    world.rows.remove(&received.jobs[0].token.job);
    world.pass(Duration::from_millis(1_200));
    assert_eq!(world.read(stream).jobs.len(), 1, "settled elsewhere, and the hint was lost");
}

#[test]
fn a_forged_hint_returns_no_credit() {
    let mut world = World::new(&["q"]);
    let stream = world.open(spec(&["q"], 2));
    world.enqueue("q", 10);
    let jobs = world.read(stream).jobs.iter().map(|job| job.token.job).collect();
    world.wakes.push(Wake::Settled { replica: REPLICA, jobs });
    world.run();
    assert_eq!(world.leased(), 2);
    assert!(world.read(stream).jobs.is_empty());
}

#[test]
fn a_cancel_request_is_told_once() {
    let mut world = World::new(&["q"]);
    let stream = world.open(spec(&["q"], 1));
    world.enqueue("q", 1);
    let token = world.read(stream).jobs[0].token;
    world.rows.get_mut(&token.job).expect("leased").cancel_requested = true;
    world.pass(5 * SECOND);
    let received = world.read(stream);
    assert_eq!(received.revoked.len(), 1);
    assert!(received.revoked[0].cancel_requested);
    assert_eq!(world.leased(), 1, "the lease stands");
}

#[test]
fn a_lease_reference_that_is_not_ours_changes_nothing() {
    let mut world = World::new(&["q"]);
    let stream = world.open(spec(&["q"], 1));
    world.enqueue("q", 2);
    let token = world.read(stream).jobs[0].token;
    world.mail.settled.push(LeaseRef { job: token.job, lease: LeaseId(token.lease.0 ^ 1) });
    world.run();
    assert_eq!(world.leased(), 1);
}
