//! What operators change about queues while streams ask for them.

use std::time::Duration;

use super::world::{SECOND, World, queue, spec};

/// Longer than any interval at which settings are read.
const A_WHILE: Duration = Duration::from_secs(7);

#[test]
fn nothing_is_claimed_from_a_paused_queue_until_it_is_resumed() {
    let mut world = World::new(&["q"]);
    let stream = world.open(spec(&["q"], 10));
    world.pause_here("q", true);
    world.claims.clear();
    world.enqueue("q", 3);
    world.pass(20 * SECOND);
    assert_eq!(world.claims, [], "it is paused");
    let received = world.read(stream);
    assert!(received.end.is_none() && !received.heartbeats.is_empty(), "the stream stays open");
    world.pause_here("q", false);
    assert_eq!(world.read(stream).jobs.len(), 3, "at once");
}

#[test]
fn what_another_replica_paused_is_paused_here_within_the_interval() {
    let mut world = World::new(&["q"]);
    let stream = world.open(spec(&["q"], 10));
    world.pause("q", true);
    world.pass(A_WHILE);
    world.claims.clear();
    world.enqueue("q", 3);
    assert_eq!(world.claims, []);
    world.pause("q", false);
    world.pass(A_WHILE);
    assert_eq!(world.read(stream).jobs.len(), 3);
}

#[test]
fn settings_that_cannot_be_read_stay_as_they_are_and_are_read_again() {
    let mut world = World::new(&["q"]);
    let stream = world.open(spec(&["q"], 10));
    world.pause("q", true);
    world.away = true;
    world.pass(A_WHILE);
    world.away = false;
    world.pass(2 * SECOND);
    world.claims.clear();
    world.enqueue("q", 1);
    assert_eq!(world.claims, [], "read as soon as that was possible");
    assert!(world.read(stream).jobs.is_empty());
}

#[test]
fn what_a_claim_under_way_brings_after_the_pause_goes_back_unsent() {
    let mut world = World::new(&["q"]);
    let stream = world.open(spec(&["q"], 10));
    world.hold = true;
    world.enqueue("q", 2);
    world.pause_here("q", true);
    world.let_go();
    assert!(world.read(stream).jobs.is_empty());
    assert_eq!(world.leased(), 0, "given back");
    assert!(world.rows.values().all(|row| row.attempts == 0), "and not counted");
}

#[test]
fn a_paused_queue_takes_no_share_of_a_streams_credit() {
    let mut world = World::new(&["a", "b"]);
    world.store("a", 50, 10);
    world.store("b", 50, 10);
    world.pause("a", true);
    let stream = world.open(spec(&["a", "b"], 10));
    let jobs = world.read(stream).jobs;
    assert_eq!(jobs.len(), 10);
    assert!(jobs.iter().all(|job| job.queue == queue("b")));
}

#[test]
fn a_stream_that_stops_when_empty_waits_for_a_paused_queue() {
    let mut world = World::new(&["q"]);
    world.store("q", 1, 10);
    world.pause("q", true);
    let stream = world.open(crate::dispatch::StreamSpec { stop_when_empty: true, ..spec(&["q"], 10) });
    world.pass(A_WHILE);
    assert!(world.read(stream).end.is_none());
    world.pause_here("q", false);
    let jobs = world.read(stream).jobs;
    assert_eq!(jobs.len(), 1);
    world.ack(&jobs[0].token);
    world.pass(SECOND);
    assert!(world.read(stream).end.is_some());
}

#[test]
fn streams_of_a_deleted_queue_are_served_from_the_one_created_anew() {
    let mut world = World::new(&["q", "other"]);
    let stream = world.open(spec(&["q", "other"], 10));
    let old = world.queues.remove(&queue("q")).expect("it was there");
    world.mail.deleted.push(queue("q"));
    world.run();
    world.claims.clear();
    world.enqueue("other", 1);
    assert_eq!(world.read(stream).jobs.len(), 1, "its other queue goes on");
    assert!(world.claims.iter().all(|(queue, _)| *queue != old));
    world.enqueue("q", 2);
    world.pass(SECOND);
    assert_eq!(world.read(stream).jobs.len(), 2);
    world.close(stream);
    world.pass(SECOND);
    assert!(world.rows.values().all(|row| row.queue != old));
}

#[test]
fn a_queue_that_another_replica_deleted_and_created_anew_is_noticed() {
    let mut world = World::new(&["q"]);
    let stream = world.open(spec(&["q"], 10));
    world.queues.remove(&queue("q"));
    world.store("q", 2, 10);
    world.pass(A_WHILE);
    assert_eq!(world.read(stream).jobs.len(), 2);
}
