//! Holding units and ending that: R1 to R5, with the jobs that come along.

use std::time::Duration;

use leasehold::{
    model::{
        JobId, LedgerKind, QueueId, ReservationId, ReservationLine, ReservationState, StockKey, Timestamp,
        reservation::lines_hash,
    },
    store::engine::{Cart, End, Ended, JobRow, ReservationRef, ReservationRow, Reserved, ShortLine, VerifyWalk},
};

use super::{
    bench::{Bench, job, key, keyed, payloads},
    database::{Database, caller},
    stocks::{POOL, at, deliver},
};

const HOLD: Duration = Duration::from_mins(15);

/// A cart of `lines`, which are in the order of their keys.
pub(crate) fn cart(reference: &str, lines: &[(StockKey, u32)]) -> Cart {
    let lines: Vec<_> =
        lines.iter().map(|(key, quantity)| ReservationLine { key: key.clone(), quantity: *quantity }).collect();
    Cart {
        reference: key(reference),
        content: lines_hash(&lines),
        lines,
        time_to_live: HOLD,
        jobs: Vec::new(),
        jobs_on_expiry: Vec::new(),
        pool: POOL,
    }
}

/// The same, over as soon as it is made.
pub(super) fn overdue(reference: &str, lines: &[(StockKey, u32)]) -> Cart {
    Cart { time_to_live: Duration::ZERO, ..cart(reference, lines) }
}

/// As the facade reserves, who asks again where the answer is that somebody is at it.
pub(super) async fn reserve(bench: &mut Bench, cart: &Cart) -> Reserved {
    match bench.session.reserve_fast(&caller(), cart).await.expect("an answer") {
        Reserved::Short => bench.session.reserve_slow(&caller(), cart).await.expect("an answer"),
        answer => answer,
    }
}

/// What is held now.
#[track_caller]
fn new(answer: Reserved) -> ReservationRow {
    match answer {
        Reserved::New { reservation, .. } => reservation,
        other => panic!("{other:?}"),
    }
}

pub(super) async fn hold(bench: &mut Bench, cart: &Cart) -> ReservationId {
    new(reserve(bench, cart).await).id
}

pub(super) async fn end(
    bench: &mut Bench,
    reservation: ReservationId,
    state: ReservationState,
    jobs: Vec<JobRow>,
) -> Ended {
    bench.session.end_reservation(&caller(), &End { reservation, state, jobs }).await.expect("an answer")
}

pub(super) async fn find(bench: &mut Bench, id: ReservationId) -> ReservationRow {
    bench
        .session
        .find_reservation(&caller(), &ReservationRef::Id(id))
        .await
        .expect("an answer")
        .expect("the reservation")
}

/// On hand and held.
pub(super) async fn balance(bench: &mut Bench, key: &StockKey) -> (i64, i64) {
    let row = bench
        .session
        .stocks_of(&caller(), std::slice::from_ref(key))
        .await
        .expect("an answer")
        .remove(0)
        .expect("stock");
    (row.balance.on_hand, row.balance.held)
}

/// The books agree with each other.
pub(super) async fn audit(bench: &mut Bench) {
    let walk = VerifyWalk { item: None, after: None, limit: 100 };
    let verified = bench.session.verify(&caller(), &walk).await.expect("a comparison");
    assert!(verified.compared > 0, "nothing was compared");
    assert_eq!(verified.differences, []);
}

/// Jobs of a queue once what waits for its adoption is adopted.
pub(super) async fn adopted(bench: &mut Bench, queue: QueueId) -> Vec<String> {
    bench.session.adopt_arrivals(&caller(), 0, 100).await.expect("a pass");
    payloads(&bench.claim(queue, 10).await)
}

pub(crate) async fn a_cart_is_held_whole_or_not_at_all(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let (cup, pot) = (at("cup"), at("pot"));
    deliver(&mut bench, &[(cup.clone(), 5), (pot.clone(), 1)]).await;
    let held = new(reserve(&mut bench, &cart("one", &[(cup.clone(), 2), (pot.clone(), 1)])).await);
    assert_eq!(held.state, ReservationState::Held);
    assert_eq!(held.lines, cart("one", &[(cup.clone(), 2), (pot.clone(), 1)]).lines);
    assert_eq!((held.reference.as_str(), held.ended_at), ("one", None));
    assert_eq!(held.expires_at.since(held.created_at), HOLD);
    assert_eq!(find(&mut bench, held.id).await, held);
    assert_eq!((balance(&mut bench, &cup).await, balance(&mut bench, &pot).await), ((5, 2), (1, 1)));

    let refused = reserve(&mut bench, &cart("two", &[(cup.clone(), 3), (pot.clone(), 1)])).await;
    assert_eq!(refused, Reserved::SoldOut(vec![ShortLine { line: 1, available: 0 }]));
    assert_eq!(balance(&mut bench, &cup).await, (5, 2), "nothing of the cart is held");
    let by = ReservationRef::Reference(key("two"));
    assert_eq!(bench.session.find_reservation(&caller(), &by).await.expect("an answer"), None);
    new(reserve(&mut bench, &cart("two", &[(cup.clone(), 3)])).await);
    assert_eq!(balance(&mut bench, &cup).await, (5, 5), "a call that failed left no trace of its reference");
    audit(&mut bench).await;
}

pub(crate) async fn a_reference_is_one_reservation_whatever_became_of_it(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let cup = at("cup");
    deliver(&mut bench, &[(cup.clone(), 5)]).await;
    let first = new(reserve(&mut bench, &cart("r", &[(cup.clone(), 2)])).await);
    assert_eq!(reserve(&mut bench, &cart("r", &[(cup.clone(), 2)])).await, Reserved::Known(first.clone()));
    let slow = bench.session.reserve_slow(&caller(), &cart("r", &[(cup.clone(), 2)])).await.expect("an answer");
    assert_eq!(slow, Reserved::Known(first.clone()));
    for other in [cart("r", &[(cup.clone(), 3)]), cart("r", &[(at("pot"), 2)])] {
        assert_eq!(reserve(&mut bench, &other).await, Reserved::KeyReused);
    }
    assert_eq!(balance(&mut bench, &cup).await, (5, 2), "it was held once");
    new(reserve(&mut bench, &cart("R", &[(cup.clone(), 1)])).await);

    end(&mut bench, first.id, ReservationState::Committed, Vec::new()).await;
    match reserve(&mut bench, &cart("r", &[(cup.clone(), 2)])).await {
        Reserved::Known(now) => assert_eq!(now.state, ReservationState::Committed),
        other => panic!("{other:?}"),
    }
    assert_eq!(balance(&mut bench, &cup).await, (3, 1));
    audit(&mut bench).await;
}

pub(crate) async fn quantities_larger_than_a_pool_are_held(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let cup = at("cup");
    let many = POOL * 7 + 3;
    deliver(&mut bench, &[(cup.clone(), i64::from(many) + 1)]).await;
    let id = hold(&mut bench, &cart("bulk", &[(cup.clone(), many)])).await;
    hold(&mut bench, &cart("last", &[(cup.clone(), 1)])).await;
    let none = reserve(&mut bench, &cart("late", &[(cup.clone(), 1)])).await;
    assert_eq!(none, Reserved::SoldOut(vec![ShortLine { line: 0, available: 0 }]));
    end(&mut bench, id, ReservationState::Released, Vec::new()).await;
    hold(&mut bench, &cart("again", &[(cup.clone(), many)])).await;
    assert_eq!(balance(&mut bench, &cup).await, (i64::from(many) + 1, i64::from(many) + 1));
    audit(&mut bench).await;
}

pub(crate) async fn what_was_given_back_can_be_held_to_the_last_unit(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let cup = at("cup");
    deliver(&mut bench, &[(cup.clone(), 30)]).await;
    for round in 0..5 {
        let mut held = Vec::new();
        for n in 0..30 {
            held.push(hold(&mut bench, &cart(&format!("{round}-{n}"), &[(cup.clone(), 1)])).await);
        }
        let none = reserve(&mut bench, &cart(&format!("{round}-late"), &[(cup.clone(), 1)])).await;
        assert_eq!(none, Reserved::SoldOut(vec![ShortLine { line: 0, available: 0 }]));
        for id in held {
            end(&mut bench, id, ReservationState::Released, Vec::new()).await;
        }
        audit(&mut bench).await;
    }
    assert_eq!(balance(&mut bench, &cup).await, (30, 0));
}

pub(crate) async fn stock_that_never_was_is_sold_out(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    deliver(&mut bench, &[(at("cup"), 1)]).await;
    let none = reserve(&mut bench, &cart("r", &[(at("cup"), 1), (at("pot"), 1)])).await;
    assert_eq!(none, Reserved::SoldOut(vec![ShortLine { line: 1, available: 0 }]));
    for other in [StockKey { item: key("Cup"), ..at("cup") }, StockKey { location: key("HERE"), ..at("cup") }] {
        let none = reserve(&mut bench, &cart("r", &[(other, 1)])).await;
        assert_eq!(none, Reserved::SoldOut(vec![ShortLine { line: 0, available: 0 }]));
    }
}

pub(crate) async fn a_reservation_has_one_end(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let cup = at("cup");
    deliver(&mut bench, &[(cup.clone(), 9)]).await;
    let (sold, back) = (
        hold(&mut bench, &cart("sold", &[(cup.clone(), 4)])).await,
        hold(&mut bench, &cart("back", &[(cup.clone(), 2)])).await,
    );
    let Ended::Now { reservation, .. } = end(&mut bench, sold, ReservationState::Committed, Vec::new()).await else {
        panic!("it was held")
    };
    assert_eq!(reservation.state, ReservationState::Committed);
    assert!(reservation.ended_at >= Some(reservation.created_at));
    assert_eq!(balance(&mut bench, &cup).await, (5, 2));
    let Ended::Now { .. } = end(&mut bench, back, ReservationState::Released, Vec::new()).await else {
        panic!("it was held")
    };
    assert_eq!(balance(&mut bench, &cup).await, (5, 0));

    for (id, was) in [(sold, ReservationState::Committed), (back, ReservationState::Released)] {
        for state in [ReservationState::Committed, ReservationState::Released] {
            match end(&mut bench, id, state, Vec::new()).await {
                Ended::Before(row) => assert_eq!(row.state, was),
                other => panic!("{other:?}"),
            }
        }
        let extended = bench.session.extend_reservation(&caller(), id, HOLD * 2).await.expect("an answer");
        assert_eq!(extended, Some(find(&mut bench, id).await), "what has ended is not moved");
    }
    assert_eq!(end(&mut bench, ReservationId(i64::MAX), ReservationState::Released, Vec::new()).await, Ended::Gone);
    assert_eq!(balance(&mut bench, &cup).await, (5, 0));
    audit(&mut bench).await;
}

pub(crate) async fn a_commit_past_its_time_counts_while_nobody_took_the_units(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let cup = at("cup");
    deliver(&mut bench, &[(cup.clone(), 3)]).await;
    let late = hold(&mut bench, &overdue("late", &[(cup.clone(), 2)])).await;
    assert_eq!(balance(&mut bench, &cup).await, (3, 0), "what is past its time counts as free");
    assert_eq!(find(&mut bench, late).await.state, ReservationState::Held);
    let Ended::Now { .. } = end(&mut bench, late, ReservationState::Committed, Vec::new()).await else {
        panic!("nobody had ended it")
    };
    assert_eq!(balance(&mut bench, &cup).await, (1, 0));
    let swept = bench.session.sweep_expired(&caller(), Timestamp::BEGINNING, 100).await.expect("a pass");
    assert_eq!(swept.lags.len(), 0, "it has its end");
    audit(&mut bench).await;
}

pub(crate) async fn units_held_past_their_time_go_to_who_needs_them(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let (queue, cup) = (bench.queue("lapsed").await, at("cup"));
    deliver(&mut bench, &[(cup.clone(), 3)]).await;
    let mut lapsing = overdue("lapsing", &[(cup.clone(), 3)]);
    lapsing.jobs_on_expiry = vec![job(queue, "tell them")];
    let lapsed = hold(&mut bench, &lapsing).await;
    hold(&mut bench, &cart("next", &[(cup.clone(), 2)])).await;
    assert_eq!(find(&mut bench, lapsed).await.state, ReservationState::Expired);
    assert_eq!(balance(&mut bench, &cup).await, (3, 2));
    assert_eq!(adopted(&mut bench, queue).await, ["tell them"], "whoever ends it stores its jobs");
    for state in [ReservationState::Committed, ReservationState::Released] {
        match end(&mut bench, lapsed, state, Vec::new()).await {
            Ended::Before(row) => assert_eq!(row.state, ReservationState::Expired),
            other => panic!("{other:?}"),
        }
    }
    audit(&mut bench).await;
}

pub(crate) async fn an_extension_moves_the_expiry_and_never_back(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let cup = at("cup");
    deliver(&mut bench, &[(cup.clone(), 1)]).await;
    let late = hold(&mut bench, &overdue("late", &[(cup.clone(), 1)])).await;
    let before = find(&mut bench, late).await;
    let longer = bench.session.extend_reservation(&caller(), late, HOLD).await.expect("an answer").expect("a row");
    assert!(longer.expires_at >= before.expires_at.plus(HOLD), "from now on, and now is later than it was made");
    assert_eq!(balance(&mut bench, &cup).await, (1, 1), "it counts again");
    let none = reserve(&mut bench, &cart("other", &[(cup.clone(), 1)])).await;
    assert_eq!(none, Reserved::SoldOut(vec![ShortLine { line: 0, available: 0 }]));
    let swept = bench.session.sweep_expired(&caller(), Timestamp::BEGINNING, 100).await.expect("a pass");
    assert_eq!(swept.lags.len(), 0);
    let shorter = bench
        .session
        .extend_reservation(&caller(), late, Duration::from_secs(1))
        .await
        .expect("an answer")
        .expect("a row");
    assert_eq!(shorter.expires_at, longer.expires_at);
    let none = bench.session.extend_reservation(&caller(), ReservationId(i64::MAX), HOLD).await.expect("an answer");
    assert_eq!(none, None);
}

pub(crate) async fn a_sweep_ends_the_longest_overdue_and_says_how_late(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let (queue, cup, pot) = (bench.queue("lapsed").await, at("cup"), at("pot"));
    deliver(&mut bench, &[(cup.clone(), 9), (pot.clone(), 9)]).await;
    let mut made = Vec::new();
    for n in 0..5 {
        let mut cart = overdue(&format!("{n}"), &[(cup.clone(), 1), (pot.clone(), 1)]);
        cart.jobs_on_expiry = vec![job(queue, format!("{n}")), keyed(queue, "k", format!("{n} keyed"))];
        made.push(hold(&mut bench, &cart).await);
    }
    let kept = hold(&mut bench, &cart("kept", &[(cup.clone(), 1)])).await;
    let swept = bench.session.sweep_expired(&caller(), Timestamp::BEGINNING, 3).await.expect("a pass");
    assert_eq!((swept.lags.len(), swept.jobs), (3, 6));
    let mut expired = Vec::new();
    for id in &made {
        expired.push(find(&mut bench, *id).await.state == ReservationState::Expired);
    }
    assert_eq!(expired, [true, true, true, false, false]);
    let next = bench.session.sweep_expired(&caller(), swept.floor, 100).await.expect("a pass");
    assert_eq!((next.lags.len(), next.jobs), (2, 4));
    assert!(next.floor >= swept.floor, "it only moves on");
    let none = bench.session.sweep_expired(&caller(), next.floor, 100).await.expect("a pass");
    assert_eq!(none.lags.len(), 0);
    assert_eq!(find(&mut bench, kept).await.state, ReservationState::Held);
    assert_eq!((balance(&mut bench, &cup).await, balance(&mut bench, &pot).await), ((9, 1), (9, 0)));
    let mut jobs = adopted(&mut bench, queue).await;
    jobs.sort();
    assert_eq!(jobs, ["0", "0 keyed", "1", "2", "3", "4"], "of a key one at a time");
    // What is made afterwards lies behind the floor.
    hold(&mut bench, &overdue("later", &[(cup.clone(), 1)])).await;
    let last = bench.session.sweep_expired(&caller(), none.floor, 100).await.expect("a pass");
    assert_eq!(last.lags.len(), 1);
    audit(&mut bench).await;
}

pub(crate) async fn ended_reservations_go_and_their_ledger_stays(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let cup = at("cup");
    deliver(&mut bench, &[(cup.clone(), 9)]).await;
    let mut ended = Vec::new();
    for n in 0..3 {
        let id = hold(&mut bench, &cart(&format!("{n}"), &[(cup.clone(), 1)])).await;
        end(&mut bench, id, ReservationState::Committed, Vec::new()).await;
        ended.push(id);
    }
    let held = hold(&mut bench, &cart("held", &[(cup.clone(), 1)])).await;
    let hour = Duration::from_hours(1);
    let none = bench.session.prune_reservations(&caller(), Timestamp::BEGINNING, hour, 10).await.expect("a pass");
    assert_eq!(none.rows, 0, "their time is not over");
    let mut floor = Timestamp::BEGINNING;
    for expected in [2, 1, 0] {
        let pruned = bench.session.prune_reservations(&caller(), floor, Duration::ZERO, 2).await.expect("a pass");
        assert_eq!(pruned.rows, expected);
        assert!(pruned.floor >= floor, "it only moves on");
        floor = pruned.floor;
    }
    for id in ended {
        let gone = bench.session.find_reservation(&caller(), &ReservationRef::Id(id)).await.expect("an answer");
        assert_eq!(gone, None);
    }
    assert_eq!(find(&mut bench, held).await.state, ReservationState::Held);
    let entries = bench.session.ledger(&caller(), &cup, None, 100).await.expect("entries");
    assert_eq!(entries.iter().filter(|entry| entry.kind == LedgerKind::Commit).count(), 3);
    audit(&mut bench).await;
    new(reserve(&mut bench, &cart("0", &[(cup.clone(), 2)])).await);
}

pub(crate) async fn a_cart_of_a_hundred_lines_is_one_act(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let stock: Vec<_> = (0..100).map(|n| (at(&format!("item-{n:03}")), 3)).collect();
    deliver(&mut bench, &stock).await;
    let lines: Vec<_> = stock.iter().map(|(key, _)| (key.clone(), 2)).collect();
    let id = hold(&mut bench, &cart("all", &lines)).await;
    match reserve(&mut bench, &cart("more", &lines)).await {
        Reserved::SoldOut(short) => {
            let all: Vec<_> = (0..100).map(|line| ShortLine { line, available: 1 }).collect();
            assert_eq!(short, all);
        }
        other => panic!("{other:?}"),
    }
    end(&mut bench, id, ReservationState::Released, Vec::new()).await;
    hold(&mut bench, &cart("more", &lines)).await;
    audit(&mut bench).await;
    assert_eq!(find(&mut bench, id).await.jobs, Vec::<JobId>::new());
}
