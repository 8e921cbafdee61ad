//! What a pass costs while somebody holds an old snapshot, so that nothing of the jobs that are done can be cleaned up.

use std::{env, time::Duration};

use leasehold::{
    model::Timestamp,
    store::engine::{LaneRole, Session},
};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Executor, PgConnection, Row as _};
use tokio::time::Instant;

use crate::contract::{
    database::{Database, caller},
    postgres,
};

/// Jobs that were leased and settled while the snapshot was held.
fn settled() -> u32 {
    if env::var_os("LEASEHOLD_TEST_LONG").is_some() { 300_000 } else { 30_000 }
}

/// Pages that a pass with nothing to do may touch: its way down the index and a little of what lies around its end.
const PAGES: i64 = 50;

/// Pages that a pass of the reaper from `floor` on touches.
async fn pages(session: &mut PgConnection, floor: &str) -> i64 {
    let text = format!("explain (analyze, buffers, costs off) select from leasehold.reap_leases({floor}, 1000)");
    let plan = session.fetch_all(sqlx::raw_sql(AssertSqlSafe(text))).await.expect("a plan");
    let lines: Vec<String> = plan.iter().map(|line| line.get(0)).collect();
    let buffers = lines.iter().find(|line| line.contains("Buffers:")).unwrap_or_else(|| panic!("{lines:#?}"));
    let shared = buffers.split_whitespace().filter_map(|word| word.split_once('='));
    shared
        .filter(|(kind, _)| matches!(*kind, "hit" | "read"))
        .map(|(_, n)| n.trim_end_matches(',').parse::<i64>().expect("a number"))
        .sum()
}

/// The shortest of twenty passes, since a machine that does something else too makes single ones slow.
async fn shortest(session: &mut dyn Session, floor: Timestamp) -> Duration {
    let mut shortest = Duration::MAX;
    for _ in 0..20 {
        let began = Instant::now();
        let reaped = session.reap(&caller(), floor, 0, 1_000).await.expect("a pass");
        shortest = shortest.min(began.elapsed());
        assert_eq!(reaped.leases, []);
    }
    shortest
}

#[tokio::test]
async fn an_empty_reaper_pass_stays_cheap_under_a_held_snapshot() {
    let db = postgres::open().await;
    let mut holder = db.options().connect().await.expect("a session");
    holder.execute("begin isolation level repeatable read; select count(*) from job").await.expect("a snapshot");
    // Each job writes a row of the index on leases, and leaves it there dead.
    db.execute(&format!(
        "insert into job (
            enqueued_at, available_at, ready_at, queue_id, max_attempts, priority, lease_id, lease_until, lease_duration, payload
        )
        select now(), now(), now(), 1, 9, 4, gen_random_uuid(), now() - interval '1 hour' + n * interval '1 ms', 1, ''
        from generate_series(1, {}) n",
        settled()
    ))
    .await;
    db.execute("delete from job").await;

    let mut session = db.engine().connect(LaneRole::Any).await.expect("a session");
    let floor = session.reap(&caller(), Timestamp::BEGINNING, 0, 1_000).await.expect("a pass").floor;
    let mut looker = db.options().connect().await.expect("a session");
    let (whole, from_floor) = (pages(&mut looker, "'-infinity'").await, pages(&mut looker, &db.instant(floor)).await);
    assert!(whole > 10 * PAGES, "only {whole} pages: the test makes no dead rows");
    assert!(from_floor <= PAGES, "{from_floor} pages from the floor on, {whole} from the beginning");
    let took = shortest(&mut *session, floor).await;
    assert!(took < Duration::from_millis(5), "{took:?}");

    holder.execute("rollback").await.expect("the end of the snapshot");
    drop((holder, looker, session));
    db.close().await;
}
