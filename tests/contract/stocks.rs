//! Stock and its books: R3, adjusting, listing, comparing, pools.

use leasehold::{
    model::{Adjustment, Balance, LedgerKind, Movement, ReservationState, StockKey, stock::adjustments_hash},
    store::engine::{
        AdjustCall, Adjusted, End, ShortLine, StockDifference, StockFigure, StockRow, SwitchSet, VerifyWalk,
    },
};

use super::{
    bench::{Bench, key},
    database::{Database, caller},
    reservations::{audit, balance, cart, reserve},
};

/// Units of a full pool in these cases: few, so that they run out of it.
pub(crate) const POOL: u32 = 10;

/// An item at the place where most of it is.
pub(crate) fn at(item: &str) -> StockKey {
    StockKey::parse("key", item, "here").expect("a key")
}

fn adjustments(reference: &str, deltas: &[(StockKey, i64)]) -> AdjustCall {
    let mut adjustments: Vec<_> =
        deltas.iter().map(|(key, delta)| Adjustment { key: key.clone(), delta: *delta }).collect();
    adjustments.sort_by(|one, other| one.key.cmp(&other.key));
    AdjustCall {
        reference: key(reference),
        content: adjustments_hash(&adjustments),
        adjustments,
        reason: "counted".into(),
        pool: POOL,
    }
}

async fn adjust(bench: &mut Bench, reference: &str, deltas: &[(StockKey, i64)]) -> Adjusted {
    bench.session.adjust(&caller(), &adjustments(reference, deltas)).await.expect("an answer")
}

/// Puts units on hand.
pub(crate) async fn deliver(bench: &mut Bench, stock: &[(StockKey, i64)]) {
    let made = adjust(bench, &format!("delivery-{:016x}", rand::random::<u64>()), stock).await;
    assert!(matches!(made, Adjusted::Made { duplicate: false, .. }), "{made:?}");
}

fn row(key: &StockKey, on_hand: i64, held: i64) -> StockRow {
    StockRow { key: key.clone(), balance: Balance { on_hand, held } }
}

pub(crate) async fn adjustments_are_made_together_or_not_at_all(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let (cup, pot) = (at("cup"), at("pot"));
    let made = adjust(&mut bench, "first", &[(pot.clone(), 3), (cup.clone(), 5)]).await;
    assert_eq!(made, Adjusted::Made { stocks: vec![row(&cup, 5, 0), row(&pot, 3, 0)], duplicate: false });
    let refused = adjust(&mut bench, "second", &[(cup.clone(), 1), (pot.clone(), -4)]).await;
    assert_eq!(refused, Adjusted::SoldOut(vec![ShortLine { line: 1, available: 3 }]));
    let made = adjust(&mut bench, "second", &[(cup.clone(), 1), (pot.clone(), -3)]).await;
    assert_eq!(made, Adjusted::Made { stocks: vec![row(&cup, 6, 0), row(&pot, 0, 0)], duplicate: false });
    let nothing = adjust(&mut bench, "third", &[(at("never"), -1)]).await;
    assert_eq!(nothing, Adjusted::SoldOut(vec![ShortLine { line: 0, available: 0 }]));
    assert_eq!(bench.session.stocks_of(&caller(), &[at("never")]).await.expect("an answer"), [None]);
    audit(&mut bench).await;
}

pub(crate) async fn an_adjustment_is_made_once(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let cup = at("cup");
    let call = [(cup.clone(), 5)];
    adjust(&mut bench, "r", &call).await;
    assert_eq!(adjust(&mut bench, "r", &call).await, Adjusted::Made { stocks: vec![row(&cup, 5, 0)], duplicate: true });
    assert_eq!(adjust(&mut bench, "r", &[(cup.clone(), 6)]).await, Adjusted::KeyReused);
    assert_eq!(adjust(&mut bench, "r", &[(at("pot"), 5)]).await, Adjusted::KeyReused);
    adjust(&mut bench, "R", &call).await;
    let now = Adjusted::Made { stocks: vec![row(&cup, 10, 0)], duplicate: true };
    assert_eq!(adjust(&mut bench, "r", &call).await, now, "as they are now");
    assert_eq!(bench.session.ledger(&caller(), &cup, None, 10).await.expect("entries").len(), 2);
}

pub(crate) async fn on_hand_never_falls_below_what_is_held(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let cup = at("cup");
    deliver(&mut bench, &[(cup.clone(), 50)]).await;
    reserve(&mut bench, &cart("held", &[(cup.clone(), 20)])).await;
    let refused = adjust(&mut bench, "a", &[(cup.clone(), -31)]).await;
    assert_eq!(refused, Adjusted::SoldOut(vec![ShortLine { line: 0, available: 30 }]));
    let made = adjust(&mut bench, "a", &[(cup.clone(), -30)]).await;
    assert_eq!(made, Adjusted::Made { stocks: vec![row(&cup, 20, 20)], duplicate: false });
    audit(&mut bench).await;
}

pub(crate) async fn more_units_than_there_may_be_are_refused(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let (cup, pot) = (at("cup"), at("pot"));
    deliver(&mut bench, &[(cup.clone(), Balance::MOST_ON_HAND - 1), (pot.clone(), 7)]).await;
    let refused = adjust(&mut bench, "a", &[(cup.clone(), 2), (pot.clone(), -7)]).await;
    assert_eq!(refused, Adjusted::TooMany { adjustment: 0 });
    assert_eq!(balance(&mut bench, &pot).await, (7, 0), "all or none");
    let made = adjust(&mut bench, "a", &[(cup.clone(), 1), (pot.clone(), -7)]).await;
    assert!(matches!(made, Adjusted::Made { .. }), "{made:?}");
    audit(&mut bench).await;
}

pub(crate) async fn stocks_of_an_item_are_listed_by_location(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let places: Vec<StockKey> =
        ["a", "B", "b", "~"].iter().map(|place| StockKey::parse("key", "cup", place).expect("a key")).collect();
    let stock: Vec<_> = places.iter().cloned().zip(1..).collect();
    deliver(&mut bench, &stock).await;
    deliver(&mut bench, &[(at("cups"), 9), (at("cu"), 9)]).await;
    reserve(&mut bench, &cart("held", &[(places[3].clone(), 3)])).await;
    let all = bench.session.stocks(&caller(), &key("cup"), None, 10).await.expect("stocks");
    let expected = [row(&places[1], 2, 0), row(&places[0], 1, 0), row(&places[2], 3, 0), row(&places[3], 4, 3)];
    assert_eq!(all, expected, "byte for byte");
    let some = bench.session.stocks(&caller(), &key("cup"), Some(&key("B")), 2).await.expect("stocks");
    assert_eq!(some, expected[1..3]);
    assert_eq!(bench.session.stocks(&caller(), &key("none"), None, 10).await.expect("stocks"), []);
    let asked = [places[3].clone(), at("none"), places[1].clone()];
    let found = bench.session.stocks_of(&caller(), &asked).await.expect("stocks");
    assert_eq!(found, [Some(expected[3].clone()), None, Some(expected[0].clone())], "in the order of the keys");
}

pub(crate) async fn the_ledger_says_what_happened_in_its_order(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let cup = at("cup");
    adjust(&mut bench, "counted", &[(cup.clone(), 9)]).await;
    for (reference, state) in [("sold", ReservationState::Committed), ("back", ReservationState::Released)] {
        reserve(&mut bench, &cart(reference, &[(cup.clone(), 2)])).await;
        let by = leasehold::store::engine::ReservationRef::Reference(key(reference));
        let row = bench.session.find_reservation(&caller(), &by).await.expect("an answer").expect("a row");
        let end = End { reservation: row.id, state, jobs: Vec::new() };
        bench.session.end_reservation(&caller(), &end).await.expect("an answer");
    }
    let entries = bench.session.ledger(&caller(), &cup, None, 10).await.expect("entries");
    let shown: Vec<_> =
        entries.iter().rev().map(|entry| (entry.kind, entry.movement.on_hand, entry.movement.held)).collect();
    assert_eq!(
        shown,
        [
            (LedgerKind::Adjust, 9, 0),
            (LedgerKind::Reserve, 0, 2),
            (LedgerKind::Commit, -2, -2),
            (LedgerKind::Reserve, 0, 2),
            (LedgerKind::Release, 0, -2)
        ]
    );
    let last = entries.last().expect("the first entry");
    assert_eq!(last.reference.as_ref().map(leasehold::model::Key::as_str), Some("counted"));
    assert_eq!(
        (last.reason.as_str(), last.reservation, last.movement),
        ("counted", None, Movement { on_hand: 9, held: 0 })
    );
    assert_eq!(entries[0].reservation, entries[1].reservation);
    assert!(entries[0].reservation.is_some() && entries[0].reference.is_none());
    let page = bench.session.ledger(&caller(), &cup, Some(entries[1].id), 2).await.expect("entries");
    assert_eq!(page, entries[2..4]);
    audit(&mut bench).await;
}

pub(crate) async fn a_comparison_says_every_difference(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let (cup, pot) = (at("cup"), at("pot"));
    deliver(&mut bench, &[(cup.clone(), 9), (pot.clone(), 9), (at("tea"), 1)]).await;
    reserve(&mut bench, &cart("held", &[(pot.clone(), 2)])).await;
    audit(&mut bench).await;
    db.execute("update stock set on_hand = on_hand + 1 where item = 'cup'").await;
    let walk = VerifyWalk { item: None, after: None, limit: 1 };
    let first = bench.session.verify(&caller(), &walk).await.expect("a comparison");
    assert_eq!((first.compared, &first.next), (1, &Some(cup.clone())));
    let on_hand = StockDifference { key: cup.clone(), figure: StockFigure::OnHand, expected: 9, found: 10 };
    assert_eq!(first.differences[0], on_hand);
    let rest = VerifyWalk { item: None, after: first.next, limit: 10 };
    let rest = bench.session.verify(&caller(), &rest).await.expect("a comparison");
    assert_eq!((rest.compared, rest.differences, rest.next), (2, Vec::new(), None));

    // A reservation that vanished: somebody removed its lines.
    db.execute("delete from reservation_line").await;
    let only = VerifyWalk { item: Some(key("pot")), after: None, limit: 10 };
    let only = bench.session.verify(&caller(), &only).await.expect("a comparison");
    let lines = StockDifference { key: pot.clone(), figure: StockFigure::HeldLines, expected: 0, found: 2 };
    assert_eq!((only.compared, only.differences, only.next), (1, vec![lines], None));
}

pub(crate) async fn pools_are_filled_from_what_is_free_beside_them(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let pooled = db.engine().system() != "sqlite";
    let (cup, pot) = (at("cup"), at("pot"));
    deliver(&mut bench, &[(cup.clone(), 35), (pot.clone(), 3)]).await;
    assert_eq!(bench.session.unfolded(&caller(), None, 10).await.expect("keys"), [], "a delivery leaves nothing");
    for n in 0..8 {
        reserve(&mut bench, &cart(&format!("{n}"), &[(cup.clone(), 1), (pot.clone(), 1)][..if n < 3 { 2 } else { 1 }]))
            .await;
    }
    let unfolded = bench.session.unfolded(&caller(), None, 10).await.expect("keys");
    let behind = bench.session.unfolded(&caller(), Some(&cup), 10).await.expect("keys");
    if !pooled {
        assert_eq!((unfolded, behind), (Vec::new(), Vec::new()));
        return;
    }
    assert_eq!((&unfolded, &behind), (&vec![cup.clone(), pot.clone()], &vec![pot.clone()]));
    assert_eq!(bench.session.unfolded(&caller(), None, 1).await.expect("keys"), std::slice::from_ref(&cup));
    let refilled = bench.session.refill(&caller(), &unfolded, POOL).await.expect("a pass");
    let shown: Vec<_> = refilled.iter().map(|one| (&one.key, one.folded, one.added, one.depth)).collect();
    assert_eq!(shown, [(&cup, 8, 8, 10), (&pot, 3, 0, 0)]);
    assert_eq!(bench.session.unfolded(&caller(), None, 10).await.expect("keys"), []);
    let again = bench.session.refill(&caller(), std::slice::from_ref(&cup), POOL).await.expect("a pass");
    assert_eq!((again[0].folded, again[0].added, again[0].depth), (0, 0, 10));
    assert_eq!((balance(&mut bench, &cup).await, balance(&mut bench, &pot).await), ((35, 8), (3, 3)));
    audit(&mut bench).await;
}

pub(crate) async fn switches_are_kept_by_prefix(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    assert_eq!(bench.session.stock_switches(&caller(), 10).await.expect("switches"), []);
    for (prefix, reason) in [("shoes/", "recount"), ("", "everything"), ("Shoes/", "é\u{1f980}"), ("shoes/", "moved")]
    {
        match bench.session.set_stock_switch(&caller(), prefix, Some(reason), 3).await.expect("an answer") {
            SwitchSet::Set(switch) => assert_eq!((switch.prefix.as_str(), switch.reason.as_str()), (prefix, reason)),
            other => panic!("{other:?}"),
        }
    }
    let full = bench.session.set_stock_switch(&caller(), "hats/", Some("full"), 3).await.expect("an answer");
    assert_eq!(full, SwitchSet::Full);
    let kept = bench.session.stock_switches(&caller(), 10).await.expect("switches");
    let shown: Vec<_> = kept.iter().map(|switch| (switch.prefix.as_str(), switch.reason.as_str())).collect();
    assert_eq!(shown, [("", "everything"), ("Shoes/", "é\u{1f980}"), ("shoes/", "moved")]);
    for _ in 0..2 {
        let cleared = bench.session.set_stock_switch(&caller(), "", None, 3).await.expect("an answer");
        assert_eq!(cleared, SwitchSet::Cleared);
    }
    assert_eq!(bench.session.stock_switches(&caller(), 10).await.expect("switches").len(), 2);
}
