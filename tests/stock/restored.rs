//! Stock whose rows were restored from a server that had counted more transactions than this one.

use leasehold::{
    model::ReservationState,
    store::engine::{Reserved, VerifyWalk},
};

use super::shop::{Shop, place};
use crate::contract::{
    database::{Database, caller},
    postgres,
};

const POOL: u32 = 10;
const FLOOR: &str = "select delta_floor from stock";
const NEXT: &str = "select pg_snapshot_xmax(pg_current_snapshot())::text::bigint";

#[tokio::test]
async fn what_a_restored_stock_is_left_is_counted_and_folded_as_anywhere() {
    let db = postgres::open().await;
    let shop = Shop::open(&db, 1, POOL).await;
    let cup = place("cup", 0);
    shop.deliver(&[(cup.clone(), 20)]).await;
    let held = async |reference: &str, units| match shop.reserve(0, &shop.cart(reference, &cup, units)).await {
        Reserved::New { reservation, .. } => reservation.id,
        other => panic!("{other:?}"),
    };
    held("before", 3).await;
    // As a restore leaves it: a row that this server wrote, with a floor that lies far ahead of all that it counted.
    db.execute("update stock set delta_floor = pg_snapshot_xmax(pg_current_snapshot())::text::bigint + 1000000").await;
    assert_eq!(shop.balance(&cup).await, (20, 3), "what was left before");
    let back = held("back", 4).await;
    shop.end(0, back, ReservationState::Released, Vec::new()).await;
    let sold = held("sold", 2).await;
    shop.end(0, sold, ReservationState::Committed, Vec::new()).await;
    assert_eq!(shop.balance(&cup).await, (18, 3), "what was left since");
    let walk = VerifyWalk { item: None, after: None, limit: 10 };
    let verified = shop.till(0).await.session.verify(&caller(), &walk).await.expect("a comparison");
    assert_eq!(verified.differences, [], "as it is counted");

    held("rest", 15).await;
    assert!(db.number(FLOOR).await < db.number(NEXT).await, "whoever has the lock sets the floor right");
    assert_eq!(shop.balance(&cup).await, (18, 18), "to the last unit");
    shop.audit().await;
    db.close().await;
}

#[tokio::test]
async fn a_comparison_says_what_is_not_counted_any_more() {
    let db = postgres::open().await;
    let shop = Shop::open(&db, 1, POOL).await;
    let cup = place("cup", 0);
    shop.deliver(&[(cup.clone(), 20)]).await;
    assert!(matches!(shop.reserve(0, &shop.cart("held", &cup, 3)).await, Reserved::New { .. }));
    // Somebody wrote a floor by hand, and the row's own number says that it may be so.
    db.execute("update stock set delta_floor = pg_current_xact_id()::text::bigint").await;
    let walk = VerifyWalk { item: None, after: None, limit: 10 };
    let verified = shop.till(0).await.session.verify(&caller(), &walk).await.expect("a comparison");
    assert!(!verified.differences.is_empty(), "three units are held that nobody counts");
    db.close().await;
}

#[tokio::test]
async fn a_floor_counts_where_the_row_was_written_at_it_or_later_also_past_a_turn_of_the_short_numbers() {
    let db = postgres::open().await;
    let of = async |floor: &str, written: &str| {
        let next = "pg_snapshot_xmax(pg_current_snapshot())::text::bigint";
        let written = format!("((({next} + {written}) & 4294967295)::text)::xid");
        db.number(&format!("select delta_floor({next} + {floor}, {written}) - {next}")).await
    };
    let next = db.number(NEXT).await;
    assert_eq!(of("-9", "-3").await, -9, "older than its row");
    assert_eq!(of("-3", "-3").await, -3, "its row's own");
    assert_eq!(of("0", "1").await, 0, "of the transaction that asks");
    let none = async |floor: &str, written: &str| {
        let found = of(floor, written).await;
        assert!(found <= -next, "{floor} {written}: {found}");
    };
    none("-2", "-3").await;
    none("5", "-3").await;
    none("9000000000", "-3").await;
    assert_eq!(of("-5000000000", "-3").await, -5_000_000_000, "long ago");
    db.close().await;
}
