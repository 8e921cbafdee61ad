//! What counting costs: of a queue with very many jobs it reads a bounded number of rows, and under an old snapshot it begins
//! where the last claim did.

use sqlx::{AssertSqlSafe, ConnectOptions as _, Executor, PgConnection, Row as _};

use super::{PLANNER, explained::explained};
use crate::contract::{database::Database, postgres};

/// Rows of an index that one count reads at most.
const BOUND: f64 = 10_001.0;
/// Jobs of each state.
const ROWS: u32 = 25_000;

const FILL: &str = "
    insert into leasehold.queue (id, name) values (920, 'counted');
    insert into leasehold.job (enqueued_at, available_at, ready_at, queue_id, max_attempts, priority, payload)
        select now(), now(), now() - interval '1 minute', 920, 9, n % 10, '' from generate_series(1, ROWS) n;
    insert into leasehold.job (enqueued_at, available_at, ready_at, queue_id, max_attempts, priority, payload)
        select now(), now(), now() + interval '1 day', 920, 9, n % 10, '' from generate_series(1, ROWS) n;
    insert into leasehold.job (enqueued_at, available_at, ready_at, queue_id, max_attempts, priority, payload, ordering_key,
            position, blocked)
        select now(), now(), now(), 920, 9, 4, '', 'k' || n % 10, n, true from generate_series(1, ROWS) n;
    insert into leasehold.job (enqueued_at, available_at, ready_at, queue_id, max_attempts, priority, payload, lease_id,
            lease_until, lease_duration)
        select now(), now(), now(), 920, 9, 4, '', gen_random_uuid(), now() + interval '1 hour', 1
        from generate_series(1, ROWS) n;
    insert into leasehold.dead_job (id, lease_number, enqueued_at, available_at, dead_at, expires_at, queue_id, attempt,
            max_attempts, priority, content_type, payload)
        select -n, 1, now(), now(), now(), now() + interval '1 day', 920, 1, 1, 4, '', '' from generate_series(1, ROWS) n;";

async fn filled() -> (postgres::Postgres, PgConnection) {
    let db = postgres::open().await;
    let mut owner = db.options().connect().await.expect("a session");
    owner.execute(sqlx::raw_sql(AssertSqlSafe(FILL.replace("ROWS", &ROWS.to_string())))).await.expect("rows");
    let session = db.options().options(PLANNER).connect().await.expect("a session");
    (db, session)
}

/// Lines of the plans of all statements within `text`, as they ran.
async fn ran(session: &mut PgConnection, text: &str) -> Vec<String> {
    explained(session, "select 1").await;
    let told = "set auto_explain.log_analyze = on; set auto_explain.log_timing = off";
    session.execute(told).await.expect("a superuser's session");
    explained(session, text).await.into_iter().flatten().collect()
}

/// Rows that a line's node brought, over all its loops.
fn rows(line: &str) -> Option<f64> {
    let number = |name: &str| -> Option<f64> {
        let rest = line.split(name).nth(1)?;
        rest.split(|c: char| !c.is_ascii_digit() && c != '.').next()?.parse().ok()
    };
    let actual = line.contains("actual").then(|| number("rows="))??;
    Some(actual * number("loops=")?)
}

fn assert_bounded(plan: &[String], scans: usize) {
    let mut seen = 0;
    for line in plan
        .iter()
        .filter(|line| line.contains("Index Scan") || line.contains("Index Only Scan") || line.contains("Seq Scan"))
    {
        let rows = rows(line).unwrap_or(0.0); // never run
        assert!(rows <= BOUND, "{line}\n{plan:#?}");
        seen += 1;
    }
    assert!(seen >= scans, "only {seen} index scans: {plan:#?}");
}

#[tokio::test]
async fn a_count_reads_no_more_rows_than_its_bound_however_many_there_are() {
    let (db, mut session) = filled().await;
    let floors = "array_fill('epoch'::timestamptz, array[10])";
    let plan =
        ran(&mut session, &format!("select from leasehold.count_jobs(array[920], {floors}, 10001, 'epoch')")).await;
    assert_bounded(&plan, 6);
    let all = "select from leasehold.count_purgeable(920, true, true, true, true, true, now(), 10001)";
    assert_bounded(&ran(&mut session, all).await, 5);
    drop(session);
    db.close().await;
}

#[tokio::test]
async fn a_step_of_a_purge_reads_and_locks_no_more_rows_than_its_limit_asks_for() {
    let (db, mut session) = filled().await;
    for act in [
        "leasehold.purge_waiting(920, true, now() + interval '1 hour', 'epoch', 0, 100)",
        "leasehold.purge_waiting(920, false, now() + interval '1 hour', 'epoch', 0, 100)",
        "leasehold.purge_blocked(920, now() + interval '1 hour', '', 0, 100)",
        "leasehold.purge_dead(920, now() + interval '1 hour', 'epoch', 0, 100)",
    ] {
        let before = db.number("select count(*) from job").await + db.number("select count(*) from dead_job").await;
        let text = format!("explain (analyze, buffers, costs off, timing off) select from {act}");
        let plan = session.fetch_all(sqlx::raw_sql(AssertSqlSafe(text))).await.expect("a plan");
        let lines: Vec<String> = plan.iter().map(|line| line.get(0)).collect();
        let after = db.number("select count(*) from job").await + db.number("select count(*) from dead_job").await;
        assert_eq!(before - after, 100, "{act}");
        let buffers = lines.iter().find(|line| line.contains("Buffers:")).unwrap_or_else(|| panic!("{lines:#?}"));
        let pages: f64 = buffers
            .split_whitespace()
            .filter_map(|word| word.split_once('='))
            .filter(|(kind, _)| matches!(*kind, "hit" | "read"))
            .map(|(_, n)| n.trim_end_matches(',').parse::<f64>().expect("a number"))
            .sum();
        // Ten levels of a hundred rows, then a hundred rows found by their ids, locked and removed from their indexes.
        assert!(pages < 6_000.0, "{act}: {pages} pages");
    }
    drop(session);
    db.close().await;
}

#[tokio::test]
async fn a_count_under_a_held_snapshot_begins_at_its_floors() {
    let (db, mut session) = filled().await;
    let mut holder = db.options().connect().await.expect("a session");
    holder.execute("begin isolation level repeatable read; select count(*) from job").await.expect("a snapshot");
    db.execute("delete from job where queue_id = 920 and lease_id is null and not blocked and ready_at < now()").await;
    let mut pages = async |floor: &str| {
        let script = format!(
            "explain (analyze, buffers, costs off, timing off) select from leasehold.count_jobs(
                array[920], array_fill({floor}::timestamptz, array[10]), 10001, 'epoch'
            )"
        );
        let plan = session.fetch_all(sqlx::raw_sql(AssertSqlSafe(script))).await.expect("a plan");
        let lines: Vec<String> = plan.iter().map(|line| line.get(0)).collect();
        let buffers = lines.iter().find(|line| line.contains("Buffers:")).expect("its pages").clone();
        buffers
            .split_whitespace()
            .filter_map(|word| word.split_once('='))
            .filter(|(kind, _)| matches!(*kind, "hit" | "read"))
            .map(|(_, n)| n.trim_end_matches(',').parse::<i64>().expect("a number"))
            .sum::<i64>()
    };
    let (whole, from_floor) = (pages("'epoch'").await, pages("now()").await);
    // The counts of the other states are the same in both.
    assert!(whole > from_floor + 500, "{from_floor} pages from the floor on, {whole} from the beginning");
    holder.execute("rollback").await.expect("the end of the snapshot");
    drop((holder, session));
    db.close().await;
}
