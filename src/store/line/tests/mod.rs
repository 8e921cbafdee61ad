mod budgets;

use std::cell::Cell;

use super::*;

#[derive(Debug)]
struct Ask {
    kind: Kind,
    items: usize,
    at: Instant,
    withdrawn: Cell<bool>,
}

impl Queued for Ask {
    fn kind(&self) -> Kind {
        self.kind
    }
    fn items(&self) -> usize {
        self.items
    }
    fn bytes(&self) -> usize {
        self.items * 100
    }
    fn queued_at(&self) -> Instant {
        self.at
    }
    fn take(&self) -> bool {
        !self.withdrawn.get()
    }
}

struct Scene {
    line: Line<Ask>,
    now: Instant,
}

impl Scene {
    fn new(options: LineOptions) -> Self {
        Self { line: Line::new(options, 8), now: Instant::now() }
    }

    fn push(&mut self, caller: &str, kind: Kind, items: usize) -> Result<(), Full> {
        self.now += Duration::from_micros(1);
        let ask = Ask { kind, items, at: self.now, withdrawn: Cell::new(false) };
        self.line.push(&Caller::parse(caller).expect("a name"), ask)
    }

    fn next(&mut self, role: LaneRole) -> Option<Batch<Ask>> {
        match self.line.next(role, self.now) {
            Next::Batch(batch) => Some(batch),
            Next::Nothing { .. } => None,
        }
    }
}

fn never_gather() -> LineOptions {
    LineOptions { gather_behind: Duration::ZERO, gather_at: usize::MAX, ..LineOptions::default() }
}

#[test]
fn requests_of_one_kind_and_caller_leave_as_one_statement() {
    let mut scene = Scene::new(LineOptions::default());
    for _ in 0..3 {
        scene.push("a", Kind::Ack, 10).expect("room");
    }
    scene.push("a", Kind::Nack, 1).expect("room");
    scene.push("b", Kind::Ack, 1).expect("room");
    let batch = scene.next(LaneRole::Any).expect("work");
    assert_eq!((batch.caller.as_str(), batch.kind, batch.requests.len()), ("a", Kind::Ack, 3));
}

#[test]
fn a_statement_is_bounded_but_a_single_large_request_still_leaves() {
    let mut scene = Scene::new(LineOptions { merged_items: 15, ..LineOptions::default() });
    for items in [10, 5, 1, 40, 2] {
        scene.push("a", Kind::Ack, items).expect("room");
    }
    let sizes: Vec<usize> = std::iter::from_fn(|| scene.next(LaneRole::Any)).map(|b| b.requests.len()).collect();
    assert_eq!(sizes, [2, 1, 1], "the last one, not half full, gathers behind two that are under way");
}

#[test]
fn requests_gather_while_statements_of_their_kind_are_under_way() {
    let mut scene = Scene::new(LineOptions { gather_at: 1, ..LineOptions::default() });
    scene.push("a", Kind::Enqueue, 1).expect("room");
    let first = scene.next(LaneRole::Any).expect("idle: leaves at once");
    for _ in 0..5 {
        scene.push("a", Kind::Enqueue, 1).expect("room");
    }
    let Next::Nothing { again_at: Some(at) } = scene.line.next(LaneRole::Any, scene.now) else { panic!("they gather") };
    assert_eq!(at, first.taken_at + Duration::from_millis(50));
    scene.line.done(&first.ended(), Duration::from_millis(1));
    assert_eq!(scene.next(LaneRole::Any).expect("gathered").requests.len(), 5);
}

#[test]
fn a_second_statement_follows_a_slow_first_one_at_a_distance_and_a_third_waits() {
    let mut scene = Scene::new(LineOptions::default());
    let mut begun = Vec::new();
    for distance in [0, 2] {
        scene.now += Duration::from_millis(distance);
        scene.push("a", Kind::Enqueue, 1).expect("room");
        begun.push(scene.next(LaneRole::Any).expect("none has just begun"));
        scene.push("a", Kind::Enqueue, 1).expect("room");
        let Next::Nothing { again_at: Some(at) } = scene.line.next(LaneRole::Any, scene.now) else {
            panic!("it waits")
        };
        assert_eq!(at, begun[0].taken_at + Duration::from_millis(if distance == 0 { 2 } else { 50 }));
    }
    scene.line.done(&begun[0].ended(), Duration::from_millis(2));
    assert!(scene.next(LaneRole::Any).is_none(), "the second one has just begun");
    scene.line.done(&begun[1].ended(), Duration::from_millis(1));
    assert_eq!(scene.next(LaneRole::Any).expect("none is under way").requests.len(), 1);
}

#[test]
fn a_stuck_statement_does_not_make_others_gather_for_ever() {
    let mut scene = Scene::new(LineOptions { gather_at: 1, ..LineOptions::default() });
    scene.push("a", Kind::Enqueue, 1).expect("room");
    let _stuck = scene.next(LaneRole::Any).expect("work");
    scene.push("a", Kind::Enqueue, 1).expect("room");
    scene.now += Duration::from_millis(51);
    assert!(scene.next(LaneRole::Any).is_some());
}

#[test]
fn the_caller_that_held_lanes_least_goes_first() {
    let mut scene = Scene::new(LineOptions { merged_items: 1, ..never_gather() });
    for _ in 0..100 {
        scene.push("flood", Kind::Enqueue, 1).expect("room");
    }
    let first = scene.next(LaneRole::Any).expect("work");
    scene.line.done(&first.ended(), Duration::from_millis(10));
    scene.push("quiet", Kind::Enqueue, 1).expect("room");
    let served = scene.next(LaneRole::Any).expect("work");
    assert_eq!(served.caller.as_str(), "quiet", "it has been charged less");
}

#[test]
fn lane_time_is_shared_evenly_whatever_the_length_of_statements() {
    let mut scene = Scene::new(LineOptions { merged_items: 1, ..LineOptions::default() });
    for _ in 0..2_000 {
        scene.push("slow", Kind::Enqueue, 1).expect("room");
        scene.push("fast", Kind::Enqueue, 1).expect("room");
    }
    let (mut slow, mut fast) = (0, 0);
    for _ in 0..1_100 {
        let batch = scene.next(LaneRole::Any).expect("work");
        let hold = if batch.caller.as_str() == "slow" { 10 } else { 1 };
        if hold == 10 {
            slow += hold;
        } else {
            fast += hold;
        }
        scene.now += Duration::from_millis(hold);
        scene.line.done(&batch.ended(), Duration::from_millis(hold));
    }
    assert!(slow.abs_diff(fast) * 10 < slow, "slow {slow} ms, fast {fast} ms");
}

#[test]
fn among_callers_charged_alike_the_one_that_waits_longest_goes_first() {
    let mut scene = Scene::new(LineOptions::default());
    scene.push("zebra", Kind::Enqueue, 1).expect("room");
    for name in ["adder", "bear"] {
        scene.push(name, Kind::Enqueue, 1).expect("room");
    }
    let served: Vec<_> = std::iter::from_fn(|| scene.next(LaneRole::Any)).map(|b| b.caller.to_string()).collect();
    assert_eq!(served, ["zebra", "adder", "bear"], "names decide nothing");
}

#[test]
fn newcomers_without_end_do_not_keep_a_busy_caller_waiting() {
    let mut scene = Scene::new(LineOptions { merged_items: 1, ..LineOptions::default() });
    for _ in 0..2 {
        scene.push("busy", Kind::Enqueue, 1).expect("room");
    }
    let slow = scene.next(LaneRole::Any).expect("work");
    scene.line.done(&slow.ended(), Duration::from_millis(100));
    // Each newcomer is gone after one statement, and another one waits by then.
    scene.push("newcomer-0", Kind::Enqueue, 1).expect("room");
    let mut before = 0;
    for n in 1..1_000 {
        scene.push(&format!("newcomer-{n}"), Kind::Enqueue, 1).expect("room");
        let served = scene.next(LaneRole::Any).expect("work");
        scene.line.done(&served.ended(), Duration::from_millis(1));
        if served.caller.as_str() == "busy" {
            break;
        }
        before = n;
    }
    assert!((1..=400).contains(&before), "{before} newcomers went first");
}

#[test]
fn settling_lanes_take_nothing_else() {
    let mut scene = Scene::new(LineOptions::default());
    scene.push("a", Kind::Enqueue, 1).expect("room");
    scene.push("a", Kind::Read, 1).expect("room");
    assert!(scene.next(LaneRole::Settle).is_none());
    scene.push("a", Kind::Ack, 1).expect("room");
    assert_eq!(scene.next(LaneRole::Settle).expect("work").kind, Kind::Ack);
    assert_eq!(scene.next(LaneRole::Read).expect("work").kind, Kind::Read);
    assert_eq!(scene.next(LaneRole::Write).expect("work").kind, Kind::Enqueue);
}

#[test]
fn a_full_line_says_so() {
    let mut scene = Scene::new(LineOptions { max_requests: 2, ..LineOptions::default() });
    scene.push("a", Kind::Ack, 1).expect("room");
    scene.push("b", Kind::Ack, 1).expect("room");
    assert_eq!(scene.push("c", Kind::Ack, 1), Err(Full));
    scene.next(LaneRole::Any).expect("work");
    scene.push("c", Kind::Ack, 1).expect("room again");

    let mut heavy = Scene::new(LineOptions { max_bytes: 1_000, ..LineOptions::default() });
    heavy.push("a", Kind::Ack, 9).expect("room");
    assert_eq!(heavy.push("a", Kind::Ack, 2), Err(Full));
}

#[test]
fn withdrawn_requests_reach_no_lane() {
    let mut scene = Scene::new(LineOptions::default());
    scene.push("a", Kind::Ack, 1).expect("room");
    scene.line.places.values_mut().for_each(|place| {
        place.waiting[Kind::Ack as usize][0].withdrawn.set(true);
    });
    assert!(scene.next(LaneRole::Any).is_none());
    assert_eq!((scene.line.len(), scene.line.bytes, scene.line.places.len()), (0, 0, 0));
}

#[test]
fn ten_thousand_callers_who_all_gave_up_do_not_exhaust_the_stack() {
    let passing = || {
        let mut scene = Scene::new(LineOptions::default());
        for n in 0..10_000 {
            scene.push(&format!("caller-{n}"), Kind::Enqueue, 1).expect("room");
        }
        for place in scene.line.places.values_mut() {
            place.waiting[Kind::Enqueue as usize][0].withdrawn.set(true);
        }
        (scene.next(LaneRole::Any).is_none(), scene.line.len())
    };
    // What a worker of the runtime has.
    let worker = std::thread::Builder::new().stack_size(2 << 20).spawn(passing).expect("a thread");
    assert_eq!(worker.join().expect("it lives"), (true, 0));
}

#[test]
fn requests_that_were_put_back_keep_their_turn() {
    let mut scene = Scene::new(LineOptions::default());
    for items in [1, 2, 3] {
        scene.push("a", Kind::Write, items).expect("room");
    }
    let batch = scene.next(LaneRole::Any).expect("work");
    let ended = batch.ended();
    scene.line.put_back(&batch.caller, batch.requests);
    scene.line.done(&ended, Duration::ZERO);
    let sizes: Vec<usize> = std::iter::from_fn(|| scene.next(LaneRole::Any)).map(|b| b.requests[0].items).collect();
    assert_eq!(sizes, [1, 2, 3]);
}
