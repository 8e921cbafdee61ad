use std::{
    cell::Cell,
    collections::HashMap,
    rc::Rc,
    time::{Duration, Instant},
};

use proptest::prelude::*;

use super::*;
use crate::{
    model::Caller,
    store::line::{Batch, Cap, LineOptions, Next},
};

/// A request of a kind, nothing more.
#[derive(Debug)]
struct Ask(Kind, Instant);

impl Queued for Ask {
    fn kind(&self) -> Kind {
        self.0
    }
    fn items(&self) -> usize {
        1
    }
    fn bytes(&self) -> usize {
        1
    }
    fn queued_at(&self) -> Instant {
        self.1
    }
    fn take(&self) -> bool {
        true
    }
}

#[derive(Clone, Default)]
struct Bell(Rc<Cell<bool>>);

impl Wakes for Bell {
    fn wake(&self) {
        self.0.set(true);
    }
}

enum Doing {
    /// It is about to ask for work.
    Asking,
    /// It has nothing to do; it looks again at that moment at the latest.
    Resting(Option<Instant>),
    Works(Batch<Ask>),
}

struct Lane {
    role: LaneRole,
    bell: Bell,
    doing: Doing,
}

/// Lanes that do as the real ones, step by step, in whatever order.
struct World {
    line: Line<Ask>,
    crew: Crew<Bell>,
    lanes: Vec<Lane>,
    now: Instant,
    pushed: usize,
    served: usize,
}

const CALLERS: [&str; 4] = ["free", "one", "three", "shared"];

fn caps(all: bool) -> HashMap<Caller, Cap> {
    let lanes = |count| Cap { max_lanes: Some(count), share: None };
    let caps = [("one", lanes(1)), ("three", lanes(3)), ("shared", Cap { max_lanes: Some(2), share: Some(0.1) })];
    let some = if all { &caps[..] } else { &caps[1..2] };
    some.iter().map(|(name, cap)| (Caller::parse(name).expect("a name"), *cap)).collect()
}

impl World {
    fn new(roles: &[LaneRole]) -> Self {
        let lane = |role: &LaneRole| Lane { role: *role, bell: Bell::default(), doing: Doing::Asking };
        let options = LineOptions { merged_items: 3, ..LineOptions::default() };
        let mut line = Line::new(options, roles.len());
        line.set_caps(caps(true));
        let lanes = roles.iter().map(lane).collect();
        Self { line, crew: Crew::new(), lanes, now: Instant::now(), pushed: 0, served: 0 }
    }

    fn push(&mut self, caller: &str, kind: Kind) {
        self.now += Duration::from_micros(1);
        let caller = Caller::parse(caller).expect("a name");
        let gathers_until = self.line.gathers_until(&caller, kind, self.now);
        self.line.push(&caller, Ask(kind, self.now)).expect("room");
        self.pushed += 1;
        let armed = gathers_until.is_some_and(|at| self.crew.is_armed(kind, at));
        if !armed && !self.line.is_capped(&caller, kind) {
            self.crew.wake_for(kind);
        }
    }

    /// A lane goes on: asks for work, wakes up, or is done with what it has.
    fn step(&mut self, at: usize, lost: bool) {
        let (now, role) = (self.now, self.lanes[at].role);
        match &self.lanes[at].doing {
            Doing::Resting(again_at) => {
                if self.lanes[at].bell.0.replace(false) || again_at.is_some_and(|again_at| again_at <= now) {
                    self.crew.up(at, role);
                    self.lanes[at].doing = Doing::Asking;
                }
            }
            Doing::Asking => {
                self.crew.asks(at);
                self.lanes[at].doing = match self.line.next(role, now) {
                    Next::Batch(batch) => {
                        self.crew.wake_for_the_rest(&self.line, now);
                        Doing::Works(batch)
                    }
                    Next::Nothing { again_at } => {
                        self.crew.rest(at, role, self.lanes[at].bell.clone(), again_at);
                        Doing::Resting(again_at)
                    }
                };
            }
            Doing::Works(batch) => {
                self.served += batch.requests.len();
                self.line.done(&batch.ended(), now - batch.taken_at);
                if lost {
                    self.crew.wake_for_the_rest(&self.line, now);
                    self.crew.lost(at);
                    self.crew.wake_all();
                } else {
                    self.crew.returns(at, role);
                    self.crew.wake_for_the_rest(&self.line, now);
                }
                self.lanes[at].doing = Doing::Asking;
            }
        }
    }

    /// No request waits beside a lane that could take it, unless another one is on its way.
    fn check(&self) {
        let rests = |lane: &&Lane| matches!(lane.doing, Doing::Resting(_)) && !lane.bell.0.get();
        let on_its_way = |lane: &&Lane| matches!(lane.doing, Doing::Asking) || lane.bell.0.get();
        let could_work = |lane: &Lane| self.line.has_work(lane.role, self.now);
        let timer = |lane: &Lane| matches!(lane.doing, Doing::Resting(Some(again_at)) if again_at <= self.now);
        let forgotten = self.lanes.iter().filter(rests).any(could_work)
            && !self.lanes.iter().filter(on_its_way).any(could_work)
            && !self.lanes.iter().any(|lane| timer(lane) && could_work(lane));
        assert!(!forgotten, "a request waits beside an idle lane");
    }

    /// Goes on until nothing is left to do.
    fn finish(&mut self) {
        for _ in 0..100_000 {
            if self.line.len() == 0 && self.lanes.iter().all(|lane| !matches!(lane.doing, Doing::Works(_))) {
                return;
            }
            for at in 0..self.lanes.len() {
                self.step(at, false);
                self.check();
            }
            self.now += Duration::from_millis(1);
        }
        panic!("{} requests are never served", self.line.len());
    }
}

/// As each engine has them.
const ROLES: [&[LaneRole]; 3] = [
    &[LaneRole::Any, LaneRole::Any, LaneRole::Any, LaneRole::Settle, LaneRole::Settle],
    &[LaneRole::Write, LaneRole::Read, LaneRole::Read],
    &[LaneRole::Any],
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn with_budgets_every_request_is_served_and_none_waits_beside_an_idle_lane(
        roles in 0..ROLES.len(),
        acts in proptest::collection::vec((0..10_u8, 0..CALLERS.len(), 0..Kind::COUNT, any::<u8>()), 1..400),
    ) {
        let mut world = World::new(ROLES[roles]);
        for (act, caller, kind, number) in acts {
            let lane = usize::from(number) % world.lanes.len();
            match act {
                0..4 => world.push(CALLERS[caller], Kind::ALL[kind]),
                4..8 => world.step(lane, false),
                8 if number < 200 => world.now += Duration::from_millis(u64::from(number)),
                8 => {
                    world.line.set_caps(caps(number % 2 == 0));
                    world.crew.wake_all();
                }
                _ => world.step(lane, true),
            }
            world.check();
        }
        world.finish();
        prop_assert_eq!(world.served, world.pushed);
    }
}

#[test]
fn the_end_of_a_hold_wakes_a_lane_for_what_the_budget_held_back() {
    let mut world = World::new(ROLES[0]);
    for at in 0..5 {
        world.step(at, false);
    }
    world.push("one", Kind::Ack);
    world.push("one", Kind::Enqueue);
    let settling = 4; // a lane that takes nothing else is woken for the Ack
    world.step(settling, false);
    world.step(settling, false);
    assert!(matches!(world.lanes[settling].doing, Doing::Works(_)));
    assert!(world.lanes[..3].iter().all(|lane| !lane.bell.0.get()), "the Enqueue has to wait");
    world.step(settling, false);
    assert_eq!(world.lanes[..3].iter().filter(|lane| lane.bell.0.get()).count(), 1);
}
