use super::*;

fn caller(name: &str) -> Caller {
    Caller::parse(name).expect("a name")
}

/// A ledger and a clock that goes as it is told.
struct Scene {
    ledger: Ledger,
    now: Instant,
}

impl Scene {
    fn new(at_most: usize, named: &[&str], lanes: usize) -> Self {
        let ledger = Ledger::new(at_most, named.iter().map(|name| caller(name)), lanes);
        let now = ledger.started;
        Self { ledger, now }
    }

    fn pass(&mut self, millis: u64) {
        self.now += Duration::from_millis(millis);
    }

    fn hold(&mut self, lane: usize, by: &str, millis: u64) {
        self.ledger.began(lane, &caller(by), "enqueue", self.now);
        self.pass(millis);
        self.ended(lane, 0);
    }

    fn ended(&self, lane: usize, wait_millis: u64) {
        let mut waits = Spread::EMPTY;
        waits.add(Duration::from_millis(wait_millis));
        self.ledger.ended(lane, &Ran { waits, statements: 1, rows: 10, errors: 0 }, self.now);
    }

    fn report(&self, window: Window) -> LaneReport {
        self.ledger.report(window, true, self.now)
    }

    /// Hold times by caller, in milliseconds, longest first.
    fn held(&self, window: Window) -> Vec<(String, u128)> {
        let callers = self.report(window).callers;
        callers.into_iter().map(|caller| (caller.caller.to_string(), caller.lanes.held.as_millis())).collect()
    }

    fn adds_up(&self, window: Window) {
        let report = self.report(window);
        let held: Duration = report.callers.iter().map(|caller| caller.lanes.held).sum();
        let lanes = u32::try_from(report.lanes).expect("a few");
        assert_eq!(held + report.idle, report.covered * lanes, "{report:?}");
    }
}

#[test]
fn holds_and_idle_time_add_up_in_every_window_at_every_moment() {
    let mut scene = Scene::new(10, &[], 2);
    let mut lengths = (1..).map(|n: u64| (n * 7_919) % 4_001);
    scene.ledger.began(1, &caller("long"), "reap", scene.now);
    for turn in 0..4_000 {
        scene.pass(lengths.next().expect("endless"));
        let length = lengths.next().expect("endless");
        scene.hold(0, ["a", "b", "c"][turn % 3], length);
        if turn % 100 == 99 {
            scene.ended(1, 0);
            scene.pass(1);
            scene.ledger.began(1, &caller("long"), "reap", scene.now);
        }
        for window in Window::SLIDING.into_iter().chain([Window::SinceStart]) {
            scene.adds_up(window);
        }
    }
    for lane in scene.report(Window::SinceStart).per_lane {
        assert_eq!(lane.held + lane.idle, scene.now - scene.ledger.started);
    }
}

#[test]
fn a_hold_that_has_not_ended_counts_already() {
    let mut scene = Scene::new(10, &[], 2);
    scene.pass(1_000);
    scene.ledger.began(0, &caller("slow"), "claim", scene.now);
    scene.pass(2_000);
    let report = scene.report(Window::TenSeconds);
    let slow = &report.callers[0];
    assert_eq!((slow.lanes.held, slow.held_now, slow.lanes.holds), (Duration::from_secs(2), 1, 0));
    assert_eq!((report.held_now, report.idle), (1, Duration::from_secs(4)));
    assert_eq!(slow.statements[0].lanes.held, Duration::from_secs(2));
    let share = report.share(slow.lanes.held);
    assert!((share - 1.0 / 3.0).abs() < 1e-9, "{share}");
    scene.ended(0, 5);
    let slow = &scene.report(Window::TenSeconds).callers[0];
    assert_eq!((slow.lanes.held, slow.held_now, slow.lanes.holds), (Duration::from_secs(2), 0, 1));
    assert_eq!((slow.lanes.waits, slow.lanes.waited, slow.lanes.rows), (1, Duration::from_millis(5), 10));
}

#[test]
fn windows_slide_and_the_sum_since_the_start_stays() {
    let mut scene = Scene::new(10, &[], 1);
    scene.hold(0, "early", 1_000);
    scene.pass(30_000);
    scene.hold(0, "late", 500);
    assert_eq!(scene.held(Window::TenSeconds), [("late".to_owned(), 500), ("early".to_owned(), 0)]);
    assert_eq!(scene.held(Window::OneMinute), [("early".to_owned(), 1_000), ("late".to_owned(), 500)]);
    scene.pass(7_200_000);
    assert_eq!(scene.held(Window::OneHour), [("early".to_owned(), 0), ("late".to_owned(), 0)]);
    assert_eq!(scene.held(Window::SinceStart), [("early".to_owned(), 1_000), ("late".to_owned(), 500)]);
}

#[test]
fn ten_thousand_invented_callers_leave_a_configured_one_its_own_and_the_sum_exact() {
    let mut scene = Scene::new(1_000, &["checkout"], 1);
    for n in 0..10_000 {
        scene.hold(0, &format!("invented-{n}"), 1);
    }
    scene.hold(0, "checkout", 77);
    scene.ledger.began(0, &Caller::broker("reaper"), "reap", scene.now);
    scene.pass(5);
    scene.ended(0, 0);
    let callers = scene.report(Window::SinceStart).callers;
    let of = |name: &str| callers.iter().find(|caller| caller.caller.as_str() == name).map(|is| is.lanes.held);
    assert_eq!(of("checkout"), Some(Duration::from_millis(77)));
    assert_eq!(of("leasehold.reaper"), Some(Duration::from_millis(5)));
    assert_eq!(of("invented-0"), Some(Duration::from_millis(1)));
    assert_eq!(of("other"), Some(Duration::from_millis(10_000 - 999)));
    assert_eq!(callers.len(), 999 + 3);
    assert_eq!(callers.iter().map(|caller| caller.lanes.held).sum::<Duration>(), Duration::from_millis(10_082));
    scene.adds_up(Window::SinceStart);
}

#[test]
fn a_caller_that_gets_a_budget_later_is_told_apart_from_then_on() {
    let mut scene = Scene::new(1, &[], 1);
    for by in ["first", "second"] {
        scene.hold(0, by, 1);
    }
    scene.ledger.name([caller("second")]);
    scene.hold(0, "second", 2);
    scene.ledger.refused(&caller("second"));
    scene.ledger.refused(&caller("third"));
    let mut shown = scene.held(Window::SinceStart);
    shown.sort();
    assert_eq!(shown, [("first".to_owned(), 1), ("other".to_owned(), 1), ("second".to_owned(), 2)]);
    let refused: Vec<_> =
        scene.report(Window::OneMinute).callers.iter().map(|is| (is.caller.to_string(), is.refused)).collect();
    assert!(refused.contains(&("second".to_owned(), 1)) && refused.contains(&("other".to_owned(), 1)), "{refused:?}");
}

#[test]
fn a_lane_that_has_ended_counts_no_further() {
    let mut scene = Scene::new(1, &[], 1);
    scene.pass(10);
    scene.ledger.closed(0, scene.now);
    scene.pass(1_000);
    let lane = scene.report(Window::SinceStart).per_lane[0];
    assert_eq!(lane, LaneTime { held: Duration::ZERO, idle: Duration::from_millis(10) });
}
