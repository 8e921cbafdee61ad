//! What operators are shown of streams, and cancelled leases that consumers are told of.

use tokio::sync::oneshot;

use super::world::{SECOND, World, queue, spec};
use crate::{
    dispatch::presence::StreamState,
    model::{QueueName, StreamNumber},
};

fn shown(world: &mut World) -> Vec<StreamState> {
    let (ask, mut answer) = oneshot::channel();
    world.mail.asked.push(ask);
    world.run();
    let mut streams = answer.try_recv().expect("within the turn");
    streams.sort_by_key(|stream| stream.number);
    streams
}

#[test]
fn streams_are_shown_with_what_they_hold_and_want() {
    let mut world = World::new(&["a", "b"]);
    assert!(shown(&mut world).is_empty());
    let first = world.open(spec(&["a", "b"], 5));
    let second = world.open(spec(&["b"], 1));
    world.enqueue("a", 2);
    world.enqueue("b", 3);
    assert!(shown(&mut world).iter().all(|stream| stream.in_flight > 0), "what is not read yet counts");
    while world.read(first).jobs.len() + world.read(second).jobs.len() > 0 {}
    let streams = shown(&mut world);
    assert_eq!(streams.iter().map(|stream| stream.number).collect::<Vec<_>>(), [first, second]);
    assert_eq!(streams[0].about.queues, [queue("a"), queue("b")] as [QueueName; 2]);
    assert_eq!((streams[0].about.consumer.as_str(), streams[0].about.peer.as_str()), ("worker", "here"));
    assert_eq!(streams[0].about.max_in_flight, 5);
    let in_flight: u32 = streams.iter().map(|stream| stream.in_flight).sum();
    let free: u32 = streams.iter().map(|stream| stream.free_credit).sum();
    assert_eq!((in_flight, free), (5, 1));
    world.close(second);
    assert_eq!(shown(&mut world).len(), 1);
}

#[test]
fn the_oldest_lease_is_that_of_the_earliest_grant_still_held() {
    let mut world = World::new(&["q"]);
    let stream = world.open(spec(&["q"], 10));
    world.enqueue("q", 1);
    let first = world.read(stream).jobs[0].token;
    let began = shown(&mut world)[0].oldest_lease.expect("a lease");
    world.pass(5 * SECOND);
    world.enqueue("q", 2);
    let later = world.read(stream).jobs;
    assert_eq!(shown(&mut world)[0].oldest_lease, Some(began));
    world.ack(&first);
    let next = shown(&mut world)[0].oldest_lease.expect("two leases");
    assert!(next >= began + 5 * SECOND);
    for job in later {
        world.ack(&job.token);
    }
    assert_eq!(shown(&mut world)[0].oldest_lease, None);
    assert_eq!(shown(&mut world)[0].number, StreamNumber(1));
}

#[test]
fn a_stream_that_does_not_read_wants_nothing() {
    let mut world = World::new(&["q"]);
    world.open(spec(&["q"], 10));
    world.enqueue("q", 1);
    assert_eq!(shown(&mut world)[0].free_credit, 9);
    world.pass(61 * SECOND);
    assert_eq!(shown(&mut world)[0].free_credit, 0, "its jobs went back, and nothing more is claimed for it");
}

#[test]
fn a_suspected_lease_is_looked_at_though_its_stream_has_credit() {
    let mut world = World::new(&["q"]);
    let stream = world.open(spec(&["q"], 10));
    world.enqueue("q", 2);
    let received = world.read(stream);
    let token = received.jobs[1].token;
    world.rows.get_mut(&token.job).expect("leased").cancel_requested = true;
    world.pass(5 * SECOND);
    assert!(world.read(stream).revoked.is_empty(), "streams with credit are not compared by themselves");
    world.mail.suspected.push(token.job);
    world.run();
    let revoked = world.read(stream).revoked;
    assert_eq!(revoked.iter().map(|lease| (lease.token, lease.cancel_requested)).collect::<Vec<_>>(), [(token, true)]);
    world.mail.suspected.push(token.job);
    world.run();
    assert!(world.read(stream).revoked.is_empty(), "told once");
}
