//! Whatever happens in whatever order: never more outstanding than was asked for, and no grant forgotten.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use proptest::prelude::*;

use super::world::{Received, World, spec};
use crate::model::{LeaseId, LeaseToken, StreamNumber};

#[derive(Debug, Clone, Copy)]
enum Step {
    Open { queues: u8, max: u32, bytes: u64, stop_when_empty: bool },
    Close(usize),
    Enqueue { queue: u8, jobs: usize, payload: usize },
    EnqueueUnheard { queue: u8, jobs: usize },
    Read(usize),
    ReadFrame(usize),
    Ack(usize),
    AckElsewhere(usize),
    Pass(u64),
    Reap,
    Hold,
    LetGo,
    Away(bool),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (1u8..4, 1u32..20, prop_oneof![Just(0u64), 1u64..500], any::<bool>())
            .prop_map(|(queues, max, bytes, stop_when_empty)| Step::Open { queues, max, bytes, stop_when_empty }),
        1 => (0usize..8).prop_map(Step::Close),
        4 => (0u8..2, 1usize..40, 0usize..300).prop_map(|(queue, jobs, payload)| Step::Enqueue { queue, jobs, payload }),
        1 => (0u8..2, 1usize..40).prop_map(|(queue, jobs)| Step::EnqueueUnheard { queue, jobs }),
        4 => (0usize..8).prop_map(Step::Read),
        2 => (0usize..8).prop_map(Step::ReadFrame),
        6 => (0usize..64).prop_map(Step::Ack),
        2 => (0usize..64).prop_map(Step::AckElsewhere),
        3 => (0u64..20_000).prop_map(Step::Pass),
        1 => Just(Step::Reap),
        1 => Just(Step::Hold),
        2 => Just(Step::LetGo),
        1 => any::<bool>().prop_map(Step::Away),
    ]
}

const NAMES: [&str; 2] = ["a", "b"];

#[derive(Default)]
struct Consumers {
    open: Vec<(StreamNumber, u32)>,
    tokens: Vec<LeaseToken>,
    sent: BTreeSet<LeaseId>,
}

impl Consumers {
    fn take(&mut self, received: Received) {
        for job in received.jobs {
            assert!(self.sent.insert(job.token.lease), "a lease was sent twice");
            assert!(job.remaining > Duration::ZERO, "nothing was left of the lease");
            self.tokens.push(job.token);
        }
    }
}

fn play(world: &mut World, consumers: &mut Consumers, step: Step) {
    match step {
        Step::Open { queues, max, bytes, stop_when_empty } => {
            let names: Vec<&str> =
                NAMES.iter().enumerate().filter(|(at, _)| queues & (1 << at) != 0).map(|(_, n)| *n).collect();
            let mut asked = spec(&names, max);
            asked.max_in_flight_bytes = bytes;
            asked.stop_when_empty = stop_when_empty;
            let number = world.open(asked);
            consumers.open.push((number, max));
        }
        Step::Close(at) if at < consumers.open.len() => {
            let (number, _) = consumers.open.remove(at);
            world.close(number);
        }
        Step::Enqueue { queue, jobs, payload } => world.enqueue_sized(NAMES[usize::from(queue)], jobs, payload),
        Step::EnqueueUnheard { queue, jobs } => drop(world.store(NAMES[usize::from(queue)], jobs, 100)),
        Step::Read(at) if at < consumers.open.len() => {
            let received = world.read(consumers.open[at].0);
            consumers.take(received);
        }
        Step::ReadFrame(at) if at < consumers.open.len() => {
            let mut received = Received::default();
            let _more = world.read_frame(consumers.open[at].0, &mut received);
            consumers.take(received);
            world.run();
        }
        Step::Ack(at) if at < consumers.tokens.len() => {
            let token = consumers.tokens.swap_remove(at);
            world.ack(&token);
        }
        Step::AckElsewhere(at) if at < consumers.tokens.len() => {
            let token = consumers.tokens.swap_remove(at);
            if world.rows.get(&token.job).is_some_and(|row| row.lease == Some(token.lease)) {
                world.rows.remove(&token.job);
            }
        }
        Step::Pass(ms) => world.pass(Duration::from_millis(ms)),
        Step::Reap => {
            world.mail.reaped = world.reap();
            world.run();
        }
        Step::Hold => world.hold = true,
        Step::LetGo => world.let_go(),
        Step::Away(away) => world.away = away,
        _ => {}
    }
}

fn no_stream_has_more_than_it_asked_for(world: &World, consumers: &Consumers) {
    let owners: HashMap<LeaseId, StreamNumber> = world.desk.grants().collect();
    let mut counts: HashMap<StreamNumber, u32> = HashMap::new();
    for row in world.rows.values() {
        if let Some(owner) = row.lease.and_then(|lease| owners.get(&lease)) {
            *counts.entry(*owner).or_default() += 1;
        }
    }
    for (number, max) in &consumers.open {
        assert!(counts.get(number).copied().unwrap_or(0) <= *max, "{number:?} has more than {max}");
    }
    assert!(world.desk.credit_adds_up());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]
    #[test]
    fn credit_holds_and_no_grant_is_forgotten(steps in proptest::collection::vec(step(), 1..80)) {
        let mut world = World::new(&["a"]);
        let mut consumers = Consumers::default();
        for step in steps {
            play(&mut world, &mut consumers, step);
            no_stream_has_more_than_it_asked_for(&world, &consumers);
        }
        world.away = false;
        world.let_go();
        for (number, _) in std::mem::take(&mut consumers.open) {
            world.close(number);
        }
        world.pass(Duration::from_secs(60));
        for (job, row) in &world.rows {
            if let Some(lease) = row.lease {
                prop_assert!(consumers.sent.contains(&lease), "{job:?} is leased and nobody was told");
            }
        }
        let snapshot = world.desk.snapshot();
        prop_assert_eq!((snapshot.streams, snapshot.outstanding, snapshot.reserved), (0, 0, 0));
        prop_assert_eq!((snapshot.compared, snapshot.claims_under_way), (0, 0));
        prop_assert!(world.desk.is_at_rest(), "something of a stream is left");
    }
}
