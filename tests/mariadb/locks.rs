//! What a claim and a cart lock: the rows that they take, once each, and nothing beside them.

use std::time::{Duration, Instant};

use leasehold::store::engine::{LockWait, Reserved};
use sqlx::{AssertSqlSafe, Executor as _, MySqlConnection, Row as _};

use crate::contract::{
    bench::{Bench, job},
    database::caller,
    mariadb,
    reservations::cart,
    stocks::{POOL, at, deliver},
};

const READY: &str = include_str!("../../src/store/mysql/sql/claim_ready.sql");
const TAKE: &str = include_str!("../../src/store/mysql/sql/leave_ready.sql");
const UNITS: &str = include_str!("../../src/store/mysql/sql/reserve_units.sql");
const TAKE_UNITS: &str = include_str!("../../src/store/mysql/sql/take_units.sql");
const GRANT: &str = include_str!("../../src/store/mysql/sql/claim_grant.sql");

/// Rows that the session's open transaction has locked, as another session sees it.
async fn locked(watcher: &mut MySqlConnection, session: u64) -> i64 {
    let look = format!(
        "select cast(trx_rows_locked as signed) from information_schema.innodb_trx where trx_mysql_thread_id = {session}"
    );
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        // The server renews this table when nobody has read it for a tenth of a second.
        tokio::time::sleep(Duration::from_millis(200)).await;
        let rows = watcher.fetch_all(AssertSqlSafe(look.clone())).await.expect("a look");
        if let Some(row) = rows.first() {
            return row.get(0);
        }
        assert!(Instant::now() < deadline, "the transaction does not show");
    }
}

#[tokio::test]
async fn a_claim_locks_one_row_for_each_job_that_it_takes_and_no_gap() {
    const TAKEN: i64 = 10;
    let db = mariadb::open().await;
    let mut bench = Bench::on(&db).await;
    let queue = bench.queue("orders").await;
    bench.enqueue(&(0..100).map(|n| job(queue, format!("{n}"))).collect::<Vec<_>>()).await;
    let mut claimer = mariadb::session(db.name()).await;
    let mut watcher = mariadb::session(db.name()).await;
    let number: u64 = claimer.fetch_one("select connection_id()").await.expect("its number").get(0);

    claimer.execute("begin").await.expect("a transaction");
    let find = sqlx::query(READY).bind(queue.0).bind(5).bind(0_i64).bind(i64::MAX).bind(TAKEN);
    let rows = claimer.fetch_all(find).await.expect("ready jobs");
    assert_eq!(rows.len(), 10);
    assert_eq!(locked(&mut watcher, number).await, TAKEN, "one row each");

    let place = |row: &sqlx::mysql::MySqlRow| {
        format!("[{},5,{},{}]", queue.0, row.get::<i64, _>("ready_at"), row.get::<i64, _>("id"))
    };
    let places: Vec<String> = rows.iter().map(place).collect();
    claimer.execute(sqlx::query(TAKE).bind(format!("[{}]", places.join(",")))).await.expect("taken");
    let grants: Vec<String> = rows
        .iter()
        .enumerate()
        .map(|(n, row)| format!("[{},\"{n:032x}\",{},1,1,1,null,{}]", row.get::<i64, _>("id"), i64::MAX, queue.0))
        .collect();
    let grant = sqlx::query(GRANT).bind(format!("[{}]", grants.join(",")));
    claimer.execute(grant).await.expect("granted");
    let rows_locked = locked(&mut watcher, number).await;
    assert!(rows_locked <= 2 * TAKEN, "{rows_locked} rows");

    // Nobody who stores jobs or leases others waits, before, between and behind what is locked.
    let started = Instant::now();
    bench.enqueue(&(0..10).map(|n| job(queue, format!("more {n}"))).collect::<Vec<_>>()).await;
    for at in [1, rows[3].get::<i64, _>("ready_at"), i64::MAX] {
        let insert = format!("insert into leasehold_ready values ({}, 5, {at}, 7000000, 0, 0)", queue.0);
        watcher.execute(AssertSqlSafe(insert)).await.expect("no gap is locked");
        let gone = format!(
            "delete from leasehold_ready where queue_id = {} and tier = 5 and ready_at = {at} and id = 7000000",
            queue.0
        );
        watcher.execute(AssertSqlSafe(gone)).await.expect("gone");
    }
    let claimed = bench.claim(queue, 200).await;
    assert_eq!(claimed.len(), 100, "all but those ten");
    let leases = crate::contract::bench::leases(&claimed);
    let acked = bench.session.ack(&caller(), &leases, LockWait::Full).await.expect("acked");
    assert_eq!(acked.len(), 100);
    assert!(started.elapsed() < Duration::from_secs(10), "nobody waited for a lock");
    claimer.execute("rollback").await.expect("undone");
    assert_eq!(bench.claim(queue, 200).await.len(), 10);
    drop((claimer, watcher));
    db.close().await;
}

#[tokio::test]
async fn a_cart_locks_one_row_for_each_unit_that_it_takes_and_neither_stock_nor_gap() {
    const TAKEN: i64 = 3;
    let db = mariadb::open().await;
    let mut bench = Bench::on(&db).await;
    let key = at("hat");
    let free = i64::from(POOL);
    deliver(&mut bench, &[(key.clone(), free)]).await;
    let mut buyer = mariadb::session(db.name()).await;
    let mut watcher = mariadb::session(db.name()).await;
    let number: u64 = buyer.fetch_one("select connection_id()").await.expect("its number").get(0);

    // Whoever has the lock of the stock is not waited for.
    watcher.execute("begin").await.expect("a transaction");
    watcher.execute("update leasehold_stock set delta_floor = delta_floor").await.expect("locked");
    buyer.execute("begin").await.expect("a transaction");
    let mut find = sqlx::query(UNITS).bind(0);
    for _ in 0..3 {
        find = find.bind("hat").bind("here");
    }
    let rows = buyer.fetch_all(find.bind(TAKEN)).await.expect("units");
    assert_eq!(rows.len(), 3);
    assert_eq!(locked(&mut watcher, number).await, TAKEN, "one row each");
    watcher.execute("rollback").await.expect("unlocked");
    let units: Vec<String> = rows
        .iter()
        .map(|row| format!("[\"{}\",\"{}\",{}]", hex("hat"), hex("here"), row.get::<i64, _>("unit")))
        .collect();
    buyer.execute(sqlx::query(TAKE_UNITS).bind(format!("[{}]", units.join(",")))).await.expect("taken");
    assert_eq!(locked(&mut watcher, number).await, TAKEN, "and none more to take them away");

    // Units can be put and taken before, between and behind what is locked.
    let first: i64 = rows[0].get("unit");
    for unit in [first - 1, 1_000_000] {
        let put = format!("insert into leasehold_stock_unit values ('hat', 'here', {unit})");
        watcher.execute(AssertSqlSafe(put)).await.expect("no gap is locked");
        let gone =
            format!("delete from leasehold_stock_unit where item = 'hat' and location = 'here' and unit = {unit}");
        watcher.execute(AssertSqlSafe(gone)).await.expect("gone");
    }
    let all_but_those = cart("other", &[(key.clone(), POOL - 3)]);
    let other = bench.session.reserve_fast(&caller(), &all_but_those).await.expect("an answer");
    assert!(matches!(other, Reserved::New { .. }), "{other:?}");
    buyer.execute("rollback").await.expect("undone");
    let those = cart("those", &[(key.clone(), 3)]);
    let rest = bench.session.reserve_fast(&caller(), &those).await.expect("an answer");
    assert!(matches!(rest, Reserved::New { .. }), "{rest:?}");
    drop((buyer, watcher));
    db.close().await;
}

fn hex(text: &str) -> String {
    text.bytes()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|digit| char::from(b"0123456789abcdef"[usize::from(digit)]))
        .collect()
}
