//! How ready jobs are found, by hints and without.

use std::time::Duration;

use super::world::{SECOND, World, spec};
use crate::model::{Caller, LeaseId, QueueId, Timestamp};
use crate::store::engine::Wake;

#[test]
fn a_job_enqueued_elsewhere_is_found_by_looking_within_the_interval() {
    let mut world = World::new(&["q"]);
    let stream = world.open(spec(&["q"], 1));
    world.pass(5 * SECOND);
    world.store("q", 1, 100);
    world.pass(Duration::from_millis(1_100));
    assert_eq!(world.read(stream).jobs.len(), 1);
}

#[test]
fn a_wake_up_brings_a_claim_at_once() {
    let mut world = World::new(&["q"]);
    let stream = world.open(spec(&["q"], 1));
    world.pass(5 * SECOND);
    world.store("q", 1, 100);
    world.wakes.push(Wake::Ready { queues: vec![QueueId(1)] });
    world.run();
    assert_eq!(world.read(stream).jobs.len(), 1);
    assert!(world.told.is_empty(), "a wake-up is not passed on");
}

#[test]
fn ten_thousand_idle_queues_and_streams_cost_one_look_a_second() {
    let mut world = World::new(&[]);
    for number in 0..1_000 {
        let name = format!("q{number}");
        if number % 2 == 0 {
            world.create(&name);
        }
        for _ in 0..3 {
            world.open(spec(&[&name], 5));
        }
    }
    world.pass(3 * SECOND);
    (world.looks, world.look_ups, world.inspected) = (0, 0, 0);
    world.claims.clear();
    world.pass(20 * SECOND);
    assert!(world.claims.is_empty());
    assert!((18..=23).contains(&world.looks), "{} looks", world.looks);
    assert!(world.look_ups <= 12, "{} look-ups of absent queues", world.look_ups);
    assert_eq!(world.inspected, 0);
}

#[test]
fn a_scheduled_job_is_claimed_when_it_is_due() {
    let mut world = World::new(&["q"]);
    let stream = world.open(spec(&["q"], 1));
    let job = world.store("q", 1, 100)[0];
    let due = world.rows[&job].ready_at.plus(Duration::from_millis(5_300));
    world.rows.get_mut(&job).expect("stored").ready_at = due;
    world.mail.due.push((QueueId(1), world.now + Duration::from_millis(5_301)));
    world.run();
    world.pass(Duration::from_millis(5_290));
    assert!(world.read(stream).jobs.is_empty());
    world.pass(Duration::from_millis(20));
    assert_eq!(world.read(stream).jobs.len(), 1);
}

#[test]
fn a_queue_that_comes_into_being_is_served_on_the_first_hint() {
    let mut world = World::new(&["a"]);
    let stream = world.open(spec(&["late"], 1));
    world.enqueue("late", 1);
    assert_eq!(world.read(stream).jobs.len(), 1);
}

#[test]
fn a_queue_that_comes_into_being_unheard_is_found_in_time() {
    let mut world = World::new(&["a"]);
    let stream = world.open(spec(&["late"], 1));
    world.store("late", 1, 10);
    world.pass(5 * SECOND);
    assert_eq!(world.read(stream).jobs.len(), 1);
}

#[test]
fn queues_that_could_not_be_looked_up_are_found_once_the_database_is_back() {
    let names: Vec<String> = (0..100).map(|number| format!("q{number}")).collect();
    let mut world = World::new(&names.iter().map(String::as_str).collect::<Vec<_>>());
    world.away = true;
    let streams: Vec<_> = names.iter().map(|name| world.open(spec(&[name], 1))).collect();
    for name in &names {
        world.store(name, 1, 10);
    }
    world.pass(5 * SECOND);
    world.away = false;
    world.pass(3 * SECOND);
    let got: usize = streams.into_iter().map(|stream| world.read(stream).jobs.len()).sum();
    assert_eq!(got, 100);
}

#[test]
fn a_claim_that_failed_is_walked_again() {
    let mut world = World::new(&["q"]);
    let stream = world.open(spec(&["q"], 1));
    world.enqueue("q", 1);
    let first = world.read(stream).jobs.remove(0);
    world.away = true;
    world.enqueue("q", 1);
    world.ack(&first.token);
    assert!(world.read(stream).jobs.is_empty());
    world.away = false;
    world.pass(SECOND);
    assert_eq!(world.read(stream).jobs.len(), 1);
}

#[test]
fn a_job_left_of_the_cursor_is_found_by_the_look_back() {
    let mut world = World::new(&["q"]);
    let stream = world.open(spec(&["q"], 10));
    world.enqueue("q", 1);
    assert_eq!(world.read(stream).jobs.len(), 1);
    let job = world.store("q", 1, 10)[0];
    let row = world.rows.get_mut(&job).expect("stored");
    row.ready_at = row.ready_at.minus(Duration::from_secs(20)); // its transaction was open for so long
    world.mail.ready.insert(QueueId(1), 1);
    world.run();
    assert!(world.read(stream).jobs.is_empty(), "the cursor has passed it");
    world.pass(Duration::from_millis(1_200));
    assert_eq!(world.read(stream).jobs.len(), 1);
}

#[test]
fn after_everything_may_have_been_missed_a_look_walks_everything() {
    let mut world = World::new(&["q"]);
    let stream = world.open(spec(&["q"], 10));
    world.enqueue("q", 1);
    world.read(stream);
    world.pass(2 * SECOND); // the first look walks everything anyway
    let job = world.store("q", 1, 10)[0];
    world.rows.get_mut(&job).expect("stored").ready_at = Timestamp(5);
    world.pass(5 * SECOND);
    assert!(world.read(stream).jobs.is_empty());
    world.wakes.push(Wake::Everything);
    world.run();
    assert_eq!(world.read(stream).jobs.len(), 1);
}

#[test]
fn jobs_that_no_stream_here_can_take_are_told_to_other_replicas() {
    let mut world = World::new(&["q"]);
    world.enqueue("q", 1);
    assert_eq!(world.told, [Wake::Ready { queues: vec![QueueId(1)] }], "no stream at all");
    world.told.clear();
    let stream = world.open(spec(&["q"], 1));
    world.read(stream);
    world.enqueue("q", 1);
    assert_eq!(world.told, [Wake::Ready { queues: vec![QueueId(1)] }], "no credit left");
    world.told.clear();
    let other = world.open(spec(&["q"], 10));
    assert_eq!(world.read(other).jobs.len(), 1, "the one that was told of is still there");
    world.enqueue("q", 3);
    assert!(world.told.is_empty(), "all were taken here");
}

#[test]
fn a_hint_during_a_claim_that_found_nothing_brings_another_claim() {
    let mut world = World::new(&["q"]);
    let stream = world.open(spec(&["q"], 5));
    world.hold = true;
    world.mail.ready.insert(QueueId(1), 1);
    world.turn();
    let answers = world.answer("shop");
    world.store("q", 1, 10);
    world.mail.ready.insert(QueueId(1), 1);
    world.turn();
    world.hold = false;
    world.deliver(answers);
    assert_eq!(world.read(stream).jobs.len(), 1);
}

#[test]
fn what_a_failed_claim_may_have_passed_is_walked_again_at_once() {
    let mut world = World::new(&["q"]);
    let mut asked = spec(&["q"], 5);
    asked.caller = Caller::parse("billing").expect("a name");
    let failing = world.open(spec(&["q"], 5));
    let other = world.open(asked);
    let old = world.store("q", 1, 10)[0];
    let row = world.rows.get_mut(&old).expect("stored");
    row.ready_at = row.ready_at.minus(SECOND);
    row.lease = Some(LeaseId(1)); // in the claim that will fail
    world.store("q", 1, 10);
    world.hold = true;
    world.mail.ready.insert(QueueId(1), 2);
    world.turn();
    let answers = world.answer("billing");
    world.deliver(answers);
    assert_eq!(world.read(other).jobs.len(), 1, "the cursor is past the first job now");
    world.rows.get_mut(&old).expect("stored").lease = None;
    world.away = true;
    let answers = world.answer("shop");
    world.deliver(answers);
    world.away = false;
    world.let_go();
    world.pass(Duration::from_millis(150));
    assert_eq!(world.read(failing).jobs.len() + world.read(other).jobs.len(), 1);
    assert_eq!(world.looks, 1, "and not by looking");
}
