//! What is claimed, for whom, and in how many statements.

use std::time::Duration;

use super::world::{Received, World, queue, spec};
use crate::dispatch::desk::Act;
use crate::model::{Caller, QueueId, StreamNumber};

#[test]
fn a_job_enqueued_here_is_sent_at_once() {
    let mut world = World::new(&["q"]);
    let stream = world.open(spec(&["q"], 1));
    world.enqueue("q", 1);
    let received = world.read(stream);
    assert_eq!(received.jobs.len(), 1);
    assert!(world.told.is_empty(), "no other replica needs to know");
}

#[test]
fn one_job_costs_one_claim_however_many_streams_wait() {
    let mut world = World::new(&["q"]);
    let streams: Vec<_> = (0..1_000).map(|_| world.open(spec(&["q"], 10))).collect();
    world.claims.clear();
    world.enqueue("q", 1);
    assert_eq!(world.claims.len(), 1);
    assert!(world.claims[0].1 <= 16, "a claim for one job does not ask for a thousand");
    let got: usize = streams.into_iter().map(|stream| world.read(stream).jobs.len()).sum();
    assert_eq!(got, 1);
}

#[test]
fn one_claim_serves_many_streams_evenly() {
    let mut world = World::new(&["q"]);
    let streams: Vec<_> = (0..10).map(|_| world.open(spec(&["q"], 100))).collect();
    world.claims.clear();
    world.enqueue("q", 10);
    assert_eq!(world.claims.len(), 1);
    for stream in streams {
        assert_eq!(world.read(stream).jobs.len(), 1);
    }
}

#[test]
fn queues_of_one_stream_are_served_in_turn() {
    let mut world = World::new(&["a", "b", "c"]);
    world.store("a", 50, 10);
    world.store("b", 50, 10);
    world.store("c", 2, 10);
    let stream = world.open(spec(&["a", "b", "c"], 1));
    let mut counts = std::collections::BTreeMap::<String, u32>::new();
    for _ in 0..20 {
        let received = world.read(stream);
        for job in &received.jobs {
            *counts.entry(job.queue.to_string()).or_default() += 1;
            world.ack(&job.token);
        }
    }
    assert_eq!(counts["c"], 2);
    assert!(counts["a"].abs_diff(counts["b"]) <= 1, "{counts:?}");
}

#[test]
fn a_round_gives_no_queue_more_than_its_share() {
    let mut world = World::new(&["a", "b"]);
    let stream = world.open(spec(&["a", "b"], 10));
    world.store("a", 100, 10);
    world.store("b", 100, 10);
    world.mail.ready.insert(QueueId(1), 100);
    world.mail.ready.insert(QueueId(2), 100);
    world.run();
    let received = world.read(stream);
    assert_eq!(received.jobs.iter().filter(|job| job.queue == queue("a")).count(), 5);
    assert_eq!(received.jobs.len(), 10);
}

#[test]
fn callers_claim_apart() {
    let mut world = World::new(&["q"]);
    world.open(spec(&["q"], 5));
    let mut asked = spec(&["q"], 5);
    asked.caller = Caller::parse("billing").expect("a name");
    world.open(asked);
    world.claims.clear();
    world.enqueue("q", 10);
    assert_eq!(world.leased(), 10);
    assert!(world.claims.len() >= 2);
}

/// Queues that all become hot at once, each with so many jobs and a stream of its own.
fn many_hot_queues(queues: usize, jobs: usize) -> (World, Vec<StreamNumber>) {
    let names: Vec<String> = (0..queues).map(|n| format!("q{n}")).collect();
    let mut world = World::new(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let streams = names.iter().map(|name| world.open(spec(&[name], 500))).collect();
    world.run();
    world.hold = true;
    for (name, id) in names.iter().zip(1..) {
        world.store(name, jobs, 10);
        world.mail.ready.insert(QueueId(id), jobs);
    }
    world.turn();
    (world, streams)
}

/// Queues and slots of each statement that claims.
fn statements(world: &World) -> Vec<(usize, usize)> {
    let of = |act: &Act| match act {
        Act::Claim { claims, .. } => Some((claims.len(), claims.iter().map(|claim| claim.slots.len()).sum())),
        _ => None,
    };
    world.held.iter().filter_map(of).collect()
}

#[test]
fn a_callers_hot_queues_are_claimed_with_one_statement() {
    let (mut world, streams) = many_hot_queues(20, 3);
    assert_eq!(statements(&world), [(20, 20 * 16)]);
    world.let_go();
    for stream in streams {
        assert_eq!(world.read(stream).jobs.len(), 3, "each stream has the jobs of its queue");
    }
}

#[test]
fn one_statement_claims_from_few_queues_and_for_few_jobs() {
    let (mut world, _) = many_hot_queues(100, 1);
    assert_eq!(statements(&world).iter().map(|(queues, _)| *queues).collect::<Vec<_>>(), [32, 32, 32, 4]);
    world.let_go();
    assert_eq!(world.leased(), 100);

    let (mut world, _) = many_hot_queues(8, 400);
    world.let_go();
    world.hold = true;
    for id in 1..=8 {
        world.mail.ready.insert(QueueId(id), 400);
    }
    world.turn();
    for (_, slots) in statements(&world) {
        assert!(slots <= 1_000, "{slots} slots in one statement");
    }
}

#[test]
fn after_a_statement_that_failed_each_of_its_queues_is_claimed_from_again() {
    let (mut world, streams) = many_hot_queues(5, 2);
    world.away = true;
    world.let_go();
    assert_eq!(world.leased(), 0);
    world.away = false;
    world.pass(Duration::from_secs(10));
    for stream in streams {
        assert_eq!(world.read(stream).jobs.len(), 2);
    }
}

#[test]
fn frames_stay_within_their_bound() {
    let mut world = World::new(&["q"]);
    let stream = world.open(spec(&["q"], 10));
    world.enqueue_sized("q", 10, 300_000);
    let mut frames = Vec::new();
    loop {
        let mut received = Received::default();
        match world.read_frame(stream, &mut received) {
            Some(true) if !received.jobs.is_empty() => {
                frames.push(received.jobs.iter().map(|job| job.job.payload.len()).sum::<usize>());
            }
            Some(_) => {}
            None if world.leased() == 10 && frames.len() >= 4 => break,
            None => world.run(),
        }
    }
    assert!(frames.iter().all(|bytes| *bytes <= 1 << 20), "{frames:?}");
    assert_eq!(frames.iter().sum::<usize>(), 3_000_000);
}

#[test]
fn a_capped_callers_claims_wait_for_each_other_and_leave_room_for_others() {
    let names: Vec<String> = (0..100).map(|n| format!("q{n}")).collect();
    let queues: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut world = World::new(&queues);
    let capped = Caller::parse("shop").expect("a name");
    world.desk.set_claims_at_most([(capped.clone(), 2)].into());
    for name in &queues {
        world.open(spec(&[name], 10));
    }
    let mut other = spec(&["q0"], 10);
    other.caller = Caller::parse("other-shop").expect("a name");
    let other = world.open(other);
    world.claims.clear();

    world.hold = true;
    for name in &queues {
        world.enqueue(name, 2);
    }
    let by_capped = |world: &World| {
        let claims = world.held.iter().filter(|act| matches!(act, Act::Claim { caller, .. } if *caller == capped));
        claims.count()
    };
    assert_eq!(by_capped(&world), 2, "of a hundred queues with work");
    assert_eq!(world.held.len(), 3, "the other caller's claim does not wait for them");
    world.hold = false;
    world.let_go();
    assert!(!world.read(other).jobs.is_empty());
    assert_eq!(world.leased(), 200, "one after the other, every queue was claimed from");
}

#[test]
fn a_cap_that_goes_lets_all_claims_begin() {
    let mut world = World::new(&["a", "b", "c"]);
    let capped = Caller::parse("shop").expect("a name");
    world.desk.set_claims_at_most([(capped, 1)].into());
    for name in ["a", "b", "c"] {
        world.open(spec(&[name], 10));
    }
    world.hold = true;
    for name in ["a", "b", "c"] {
        world.enqueue(name, 1);
    }
    assert_eq!(world.held.len(), 1);
    world.desk.set_claims_at_most(std::collections::HashMap::new());
    world.turn();
    assert_eq!(world.held.len(), 2, "those that waited go with one statement");
    world.let_go();
    assert_eq!(world.leased(), 3);
}
