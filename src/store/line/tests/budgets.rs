//! Caps on lanes, and shares of lane time.

use super::*;

fn caller(name: &str) -> Caller {
    Caller::parse(name).expect("a name")
}

fn lanes(count: usize) -> Cap {
    Cap { max_lanes: Some(count), share: None }
}

fn share(part: f64) -> Cap {
    Cap { max_lanes: None, share: Some(part) }
}

/// A line in which nothing merges or gathers, so that each request is a statement of its own.
fn scene(caps: &[(&str, Cap)]) -> Scene {
    let mut scene = Scene::new(LineOptions { merged_items: 1, ..never_gather() });
    scene.line.set_caps(caps.iter().map(|(name, cap)| (caller(name), *cap)).collect());
    scene
}

impl Scene {
    fn push_many(&mut self, caller: &str, kind: Kind, requests: usize) {
        for _ in 0..requests {
            self.push(caller, kind, 1).expect("room");
        }
    }

    fn end(&mut self, batch: &Batch<Ask>, millis: u64) {
        self.line.done(&batch.ended(), Duration::from_millis(millis));
    }

    fn take_all(&mut self, role: LaneRole) -> Vec<Batch<Ask>> {
        std::iter::from_fn(|| self.next(role)).collect()
    }
}

#[test]
fn a_caller_never_holds_more_lanes_than_its_budget_and_the_last_is_for_settling() {
    let mut scene = scene(&[("capped", lanes(3))]);
    scene.push_many("capped", Kind::Enqueue, 10);
    let enqueues = scene.take_all(LaneRole::Any);
    assert_eq!(enqueues.len(), 2, "the third lane is for settling");
    scene.push_many("capped", Kind::Ack, 10);
    let acks = scene.take_all(LaneRole::Any);
    assert_eq!(acks.iter().map(|batch| batch.kind).collect::<Vec<_>>(), [Kind::Ack]);
    assert!(scene.next(LaneRole::Settle).is_none(), "settling counts as well");

    scene.push("free", Kind::Enqueue, 1).expect("room");
    assert_eq!(scene.next(LaneRole::Any).expect("others have work").caller.as_str(), "free");

    scene.end(&acks[0], 1);
    assert_eq!(scene.next(LaneRole::Any).expect("a lane is free again").kind, Kind::Ack);
    scene.end(&enqueues[0], 1);
    assert_eq!(scene.next(LaneRole::Any).expect("a lane is free again").kind, Kind::Enqueue, "the oldest goes first");
}

#[test]
fn a_caller_that_settles_without_end_still_gets_its_other_work_done() {
    let mut scene = scene(&[("capped", lanes(2))]);
    scene.push_many("capped", Kind::Ack, 2);
    let mut held = scene.take_all(LaneRole::Any);
    assert_eq!(held.len(), 2);
    scene.push("capped", Kind::Write, 1).expect("room");
    for turn in 0.. {
        scene.push("capped", Kind::Ack, 1).expect("room");
        let ended = held.remove(0);
        scene.end(&ended, 1);
        held.push(scene.next(LaneRole::Any).expect("work"));
        if held[1].kind == Kind::Write {
            return;
        }
        assert!(turn < 3, "acks without end keep it waiting");
    }
}

#[test]
fn with_one_lane_settling_goes_first() {
    let mut scene = scene(&[("capped", lanes(1))]);
    scene.push_many("capped", Kind::Enqueue, 2);
    let enqueue = scene.next(LaneRole::Any).expect("work");
    scene.push("capped", Kind::Ack, 1).expect("room");
    assert!(scene.take_all(LaneRole::Any).is_empty() && scene.take_all(LaneRole::Settle).is_empty());
    scene.end(&enqueue, 1);
    assert!(scene.next(LaneRole::Read).is_none());
    let ack = scene.next(LaneRole::Any).expect("work");
    assert_eq!(ack.kind, Kind::Ack, "though it came later");
    scene.end(&ack, 1);
    assert_eq!(scene.next(LaneRole::Any).expect("work").kind, Kind::Enqueue);
}

#[test]
fn requests_that_a_cap_holds_back_know_why_they_wait() {
    let mut scene = scene(&[("capped", lanes(2))]);
    let held_back = |scene: &Scene, by: &str, kind| scene.line.is_held_back(&caller(by), kind, scene.now);
    scene.push_many("capped", Kind::Enqueue, 2);
    scene.push_many("free", Kind::Enqueue, 2);
    assert!(!held_back(&scene, "capped", Kind::Enqueue), "it may hold a lane");
    let batch = scene.next(LaneRole::Any).expect("work");
    assert!(held_back(&scene, "capped", Kind::Enqueue) && !held_back(&scene, "capped", Kind::Ack));
    assert!(!held_back(&scene, "free", Kind::Enqueue));
    scene.line.is_capped(&caller("capped"), Kind::Ack);
    scene.push("capped", Kind::Ack, 1).expect("room");
    let ack = scene.next(LaneRole::Settle).expect("work");
    assert!(held_back(&scene, "capped", Kind::Ack));
    scene.now += Duration::from_secs(1);
    scene.end(&batch, 1_000);
    scene.end(&ack, 1_000);
    assert!(held_back(&scene, "capped", Kind::Enqueue), "a moment ago it was its cap");
    scene.now += Duration::from_secs(1);
    assert!(!held_back(&scene, "capped", Kind::Enqueue), "since then it waits for something else");
}

#[test]
fn a_cap_holds_from_the_moment_on_at_which_it_is_set_and_until_it_is_taken_away() {
    let mut scene = scene(&[]);
    scene.push_many("a", Kind::Enqueue, 10);
    let held: Vec<_> = (0..4).map(|_| scene.next(LaneRole::Any).expect("work")).collect();
    scene.line.set_caps([(caller("a"), lanes(3))].into());
    assert!(scene.next(LaneRole::Any).is_none());
    for batch in &held[..2] {
        scene.end(batch, 1);
        assert!(scene.next(LaneRole::Any).is_none(), "what runs, runs to its end");
    }
    scene.end(&held[2], 1);
    assert!(scene.next(LaneRole::Any).is_some());
    assert!(scene.next(LaneRole::Any).is_none());
    scene.line.set_caps(HashMap::new());
    assert_eq!(scene.take_all(LaneRole::Any).len(), 5);
    assert!(scene.line.order.is_empty());
}

/// Lane time that each caller got in a minute on two lanes, all of them asking for more without end.
fn minute(caps: &[(&str, Cap)], callers: &[(&str, u64)]) -> HashMap<String, u64> {
    let mut scene = scene(caps);
    let mut got: HashMap<String, u64> = HashMap::new();
    let start = scene.now;
    // By when each of the two lanes ends what it has.
    let mut lanes: Vec<(Instant, Option<Batch<Ask>>, u64)> = vec![(start, None, 0), (start, None, 0)];
    while scene.now < start + Duration::from_secs(60) {
        for (name, _) in callers {
            let waiting =
                scene.line.by_caller().iter().find(|(by, _)| by.as_str() == *name).map_or(0, |(_, count)| *count);
            scene.push_many(name, Kind::Enqueue, 4_usize.saturating_sub(waiting));
        }
        lanes.sort_by_key(|(ends_at, ..)| *ends_at);
        let (ends_at, batch, millis) = lanes.remove(0);
        scene.now = scene.now.max(ends_at);
        if let Some(batch) = batch {
            scene.end(&batch, millis);
            *got.entry(batch.caller.to_string()).or_default() += millis;
        }
        let next = scene.next(LaneRole::Any).expect("everybody wants more");
        let millis = callers.iter().find(|(name, _)| *name == next.caller.as_str()).map_or(1, |(_, millis)| *millis);
        lanes.push((scene.now + Duration::from_millis(millis), Some(next), millis));
    }
    got
}

fn part(got: &HashMap<String, u64>, name: &str) -> f64 {
    let all: u64 = got.values().sum();
    f64::from(u32::try_from(got[name]).expect("a minute")) / f64::from(u32::try_from(all).expect("two minutes"))
}

#[test]
fn a_caller_with_a_share_gets_that_part_of_all_lane_time_while_others_wait() {
    for (own, millis) in [(0.1, 5), (0.1, 100), (0.3, 20)] {
        let got = minute(&[("capped", share(own))], &[("capped", millis), ("free", 10)]);
        let part = part(&got, "capped");
        assert!((part - own).abs() < own * 0.1 + 0.01, "{part} for a share of {own}: {got:?}");
    }
    let got = minute(&[("a", share(0.1)), ("b", share(0.2))], &[("a", 10), ("b", 10), ("c", 10), ("d", 10)]);
    for (name, should) in [("a", 0.1), ("b", 0.2), ("c", 0.35), ("d", 0.35)] {
        let part = part(&got, name);
        assert!((part - should).abs() < 0.04, "{name}: {part}, not {should}");
    }
}

#[test]
fn no_lane_is_idle_for_a_share() {
    let mut scene = scene(&[("capped", share(0.01))]);
    scene.push_many("capped", Kind::Enqueue, 1_000);
    for _ in 0..1_000 {
        let batch = scene.next(LaneRole::Any).expect("nobody else wants the lane");
        scene.now += Duration::from_millis(10);
        scene.end(&batch, 10);
    }
}

#[test]
fn a_share_never_holds_up_settling() {
    let mut scene = scene(&[("capped", share(0.01))]);
    scene.push_many("free", Kind::Enqueue, 1_000);
    scene.push("capped", Kind::Enqueue, 1).expect("room");
    loop {
        let batch = scene.next(LaneRole::Any).expect("work");
        scene.end(&batch, 100);
        if batch.caller.as_str() == "capped" {
            break;
        }
    }
    scene.push_many("capped", Kind::Enqueue, 1);
    scene.push_many("capped", Kind::Ack, 1);
    for _ in 0..3 {
        let batch = scene.next(LaneRole::Any).expect("work");
        scene.end(&batch, 1);
        if batch.kind == Kind::Ack {
            assert!(scene.line.is_held_back(&caller("capped"), Kind::Enqueue, scene.now));
            return;
        }
    }
    panic!("its Ack waits behind others' work");
}

#[test]
fn what_a_caller_had_more_than_its_share_is_made_up_for_within_a_minute() {
    let mut scene = scene(&[("capped", share(0.001))]);
    scene.push_many("free", Kind::Enqueue, 9_000);
    scene.push_many("capped", Kind::Enqueue, 2);
    let (mut served, mut began) = (0, scene.now);
    // Eight lanes, one after the other: each statement of 80 ms is 10 ms of the clock.
    for _ in 0..9_000 {
        let batch = scene.next(LaneRole::Any).expect("work");
        scene.now += Duration::from_millis(10);
        scene.end(&batch, 80);
        if batch.caller.as_str() == "capped" {
            served += 1;
            if served == 2 {
                let after = scene.now - began;
                assert!(after > Duration::from_secs(5) && after < Duration::from_secs(70), "{after:?}");
                return;
            }
            began = scene.now;
        }
    }
    panic!("it was never served again");
}

#[test]
fn a_debt_outlasts_an_empty_place() {
    let mut scene = scene(&[("capped", share(0.1))]);
    let (mut capped, mut free) = (0, 0);
    // It never has more than one request, so its place is empty after each; the others always wait.
    for _ in 0..2_000 {
        scene.push_many("free", Kind::Enqueue, 1);
        if scene.line.by_caller().iter().all(|(by, _)| by.as_str() != "capped") {
            scene.push("capped", Kind::Enqueue, 1).expect("room");
        }
        let batch = scene.next(LaneRole::Any).expect("work");
        scene.end(&batch, 10);
        *(if batch.caller.as_str() == "capped" { &mut capped } else { &mut free }) += 1;
    }
    assert!(capped * 8 < free && capped * 15 > free, "{capped} to {free}");
    assert!(scene.line.debts.len() <= 1);
}
