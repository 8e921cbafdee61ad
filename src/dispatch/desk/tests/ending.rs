//! What a stream hears besides jobs, and how it ends.

use std::time::Duration;

use super::world::{SECOND, World, spec};
use crate::dispatch::frame::DrainReason;
use crate::model::{Reason, Timestamp};

#[test]
fn a_failed_claim_is_never_an_empty_queue() {
    let mut world = World::new(&["q"]);
    world.store("q", 1, 10);
    world.away = true;
    let mut asked = spec(&["q"], 5);
    asked.stop_when_empty = true;
    let stream = world.open(asked);
    world.pass(Duration::from_secs(40));
    let received = world.read(stream);
    assert!(received.end.is_none());
    assert!(received.heartbeats.last().expect("quiet for long").1, "claims are failing");
    world.away = false;
    world.pass(Duration::from_secs(6));
    let received = world.read(stream);
    assert_eq!(received.jobs.len(), 1);
    assert!(received.end.is_none());
    world.ack(&received.jobs[0].token);
    assert_eq!(world.read(stream).end, Some(Ok(())));
}

#[test]
fn a_stream_that_stops_when_empty_finds_what_lies_left_of_the_cursor() {
    let mut world = World::new(&["q"]);
    let first = world.open(spec(&["q"], 10));
    world.enqueue("q", 3);
    assert_eq!(world.read(first).jobs.len(), 3);
    world.close(first);
    let job = world.store("q", 1, 10)[0];
    world.rows.get_mut(&job).expect("stored").ready_at = Timestamp(5);
    let mut asked = spec(&["q"], 10);
    asked.stop_when_empty = true;
    let stream = world.open(asked);
    let received = world.read(stream);
    assert_eq!(received.jobs.len(), 1);
    world.ack(&received.jobs[0].token);
    assert_eq!(world.read(stream).end, Some(Ok(())));
}

#[test]
fn a_stream_that_stops_when_empty_ends_after_jobs_that_were_settled_elsewhere_unheard() {
    let mut world = World::new(&["q"]);
    let mut asked = spec(&["q"], 10);
    asked.stop_when_empty = true;
    world.store("q", 3, 10);
    let stream = world.open(asked);
    let received = world.read(stream);
    assert_eq!((received.jobs.len(), received.end), (3, None));
    world.rows.clear();
    world.pass(Duration::from_millis(1_200));
    assert_eq!(world.read(stream).end, Some(Ok(())), "long before the leases run out");
}

#[test]
fn a_stream_that_stops_when_empty_does_not_wait_for_queues_that_do_not_exist() {
    let mut world = World::new(&["q"]);
    let mut asked = spec(&["q", "nowhere"], 10);
    asked.stop_when_empty = true;
    let stream = world.open(asked);
    assert_eq!(world.read(stream).end, Some(Ok(())));
}

#[test]
fn a_quiet_stream_hears_a_heartbeat_and_a_busy_one_does_not() {
    let mut world = World::new(&["q"]);
    let stream = world.open(spec(&["q"], 1));
    world.read(stream);
    world.pass(Duration::from_secs(16));
    assert_eq!(world.read(stream).heartbeats, [(0, false)]);
    world.pass(Duration::from_secs(10));
    world.enqueue("q", 1);
    world.read(stream);
    world.pass(Duration::from_secs(14));
    assert!(world.read(stream).heartbeats.is_empty());
    world.pass(Duration::from_secs(2));
    assert_eq!(world.read(stream).heartbeats, [(1, false)]);
}

#[test]
fn an_old_stream_is_drained_and_its_unsent_jobs_go_back() {
    let mut world = World::new(&["q"]);
    let stream = world.open(spec(&["q"], 10));
    world.read(stream);
    world.pass(Duration::from_secs(299));
    world.enqueue("q", 1);
    world.pass(2 * SECOND);
    let received = world.read(stream);
    assert!(received.jobs.is_empty());
    assert_eq!((received.drains, received.end), (vec![DrainReason::Age], Some(Ok(()))));
    assert_eq!(world.leased(), 0);
}

#[test]
fn a_deadline_ends_the_stream_with_its_reason_and_leases_stand() {
    let mut world = World::new(&["q"]);
    let mut asked = spec(&["q"], 10);
    asked.deadline = Some(world.now + Duration::from_secs(3));
    let stream = world.open(asked);
    world.enqueue("q", 1);
    assert_eq!(world.read(stream).jobs.len(), 1);
    world.pass(4 * SECOND);
    let failure = world.read(stream).end.expect("ended").expect_err("by deadline");
    assert_eq!(failure.reason, Reason::Deadline);
    assert_eq!(world.leased(), 1);
}

#[test]
fn a_drain_gives_back_what_is_under_way_and_grants_nothing_more() {
    let mut world = World::new(&["q"]);
    let stream = world.open(spec(&["q"], 10));
    let other = world.open(spec(&["q"], 10));
    world.enqueue("q", 5);
    world.hold = true;
    world.enqueue("q", 30);
    world.desk.drain();
    world.turn();
    assert!(!world.desk.is_drained(), "a claim is under way");
    world.let_go();
    assert_eq!(world.leased(), 0);
    assert!(world.desk.is_drained());
    for stream in [stream, other] {
        let received = world.read(stream);
        assert!(received.jobs.is_empty());
        assert_eq!((received.drains, received.end), (vec![DrainReason::Shutdown], Some(Ok(()))));
    }
    world.enqueue("q", 5);
    world.pass(10 * SECOND);
    assert_eq!(world.leased(), 0);
}

#[test]
fn that_a_queue_was_empty_before_a_stream_opened_proves_nothing() {
    let mut world = World::new(&["q"]);
    let mut asked = spec(&["q"], 10);
    asked.stop_when_empty = true;
    let first = world.open(asked.clone());
    assert_eq!(world.read(first).end, Some(Ok(())));
    world.close(first);
    world.store("q", 1, 10);
    let second = world.open(asked);
    let received = world.read(second);
    assert_eq!((received.jobs.len(), received.end), (1, None));
}
