//! What was claimed and not sent.

use std::time::Duration;

use super::world::{SECOND, World, spec};
use crate::store::engine::Wake;

#[test]
fn what_was_not_sent_goes_back_without_an_attempt_when_the_stream_is_gone() {
    let mut world = World::new(&["q"]);
    let stream = world.open(spec(&["q"], 10));
    world.enqueue("q", 10);
    assert_eq!(world.leased(), 10);
    world.close(stream);
    assert_eq!(world.leased(), 0);
    assert!(world.rows.values().all(|row| row.attempts == 0));
    assert!(matches!(&world.told[..], [Wake::Ready { .. }]), "other replicas may have streams");
}

#[test]
fn jobs_that_land_after_their_stream_is_gone_go_back() {
    let mut world = World::new(&["q"]);
    let stream = world.open(spec(&["q"], 10));
    world.hold = true;
    world.enqueue("q", 10);
    world.close(stream);
    world.let_go();
    assert_eq!(world.leased(), 0);
    assert!(world.rows.values().all(|row| row.attempts == 0));
}

#[test]
fn a_slow_claim_is_sent_all_the_same_and_says_what_is_left() {
    let mut world = World::new(&["q"]);
    let stream = world.open(spec(&["q"], 10));
    world.hold = true;
    world.enqueue("q", 1);
    world.pass(Duration::from_secs(20));
    world.let_go();
    let received = world.read(stream);
    assert_eq!(received.jobs.len(), 1);
    assert_eq!(received.jobs[0].remaining, Duration::from_secs(10), "counted from before the claim was sent");
}

#[test]
fn a_claim_slower_than_its_leases_is_sent_to_nobody() {
    let mut world = World::new(&["q"]);
    let stream = world.open(spec(&["q"], 10));
    world.hold = true;
    world.enqueue("q", 1);
    world.pass(Duration::from_secs(31));
    world.let_go();
    assert!(world.rows.values().all(|row| row.attempts <= 1));
    let received = world.read(stream);
    assert!(received.jobs.iter().all(|job| job.remaining > Duration::from_secs(29)), "claimed anew");
}

#[test]
fn readers_who_do_not_read_cost_a_bounded_amount_of_memory() {
    let mut world = World::new(&["q"]);
    for _ in 0..600 {
        world.open(spec(&["q"], 10));
    }
    world.enqueue_sized("q", 1_000, 1 << 20);
    let bytes = world.desk.snapshot().unsent_bytes;
    assert!((256 << 20..300 << 20).contains(&bytes), "{bytes} bytes");
    world.pass(Duration::from_secs(70));
    let bytes = world.desk.snapshot().unsent_bytes;
    assert!(bytes < 300 << 20, "{bytes} bytes");
}

#[test]
fn jobs_unread_for_half_of_their_lease_go_back_until_the_reader_asks_again() {
    let mut world = World::new(&["q"]);
    let stream = world.open(spec(&["q"], 10));
    world.read(stream);
    world.enqueue("q", 10);
    world.pass(Duration::from_secs(14));
    assert_eq!(world.leased(), 10);
    world.pass(2 * SECOND);
    assert_eq!(world.leased(), 0);
    let other = world.open(spec(&["q"], 4));
    assert_eq!(world.read(other).jobs.len(), 4, "a healthy consumer gets them");
    assert!(world.read(stream).jobs.is_empty());
    let received = world.read(stream);
    assert_eq!(received.jobs.len(), 6);
    assert!(received.jobs.iter().all(|job| job.job.attempt == 1));
}

#[test]
fn jobs_that_land_in_a_closed_buffer_go_back_once() {
    let mut world = World::new(&["q"]);
    let stream = world.open(spec(&["q"], 10));
    world.hold = true;
    world.enqueue("q", 3);
    let unsent = world.buffers[&stream].close(); // the news of it is still on the way
    world.let_go();
    assert_eq!((unsent.len(), world.leased()), (0, 0));
    world.mail.closed.push((stream, unsent));
    world.run();
    assert!(world.rows.values().all(|row| row.attempts == 0 && row.lease.is_none()));
    assert_eq!(world.desk.snapshot().outstanding, 0);
}

#[test]
fn a_long_lease_waits_for_its_reader_a_minute_at_most() {
    let mut world = World::new(&["q"]);
    let mut asked = spec(&["q"], 10);
    asked.lease_duration = Some(Duration::from_hours(12));
    world.open(asked);
    world.enqueue("q", 3);
    world.pass(Duration::from_secs(59));
    assert_eq!(world.leased(), 3);
    world.pass(2 * SECOND);
    assert_eq!(world.leased(), 0);
}
