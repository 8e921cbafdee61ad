//! Which way PostgreSQL goes: no statement, and none within a function, may read a whole table or a whole index, however the
//! tables looked when it was prepared. The worst moment is right after a migration: empty tables, freshly analysed.

mod acts;
mod counts;
mod explained;
mod held;
mod queue_acts;
mod stock_acts;

use std::{fs, path::Path};

use sqlx::{AssertSqlSafe, ConnectOptions, Executor, PgConnection, Row, postgres::PgConnectOptions};

use self::explained::{detours, explained};
use crate::contract::{database::Database, postgres};

/// What sessions of the engine ask of the planner.
const PLANNER: [(&str, &str); 6] = [
    ("plan_cache_mode", "force_generic_plan"),
    ("enable_seqscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
    ("jit", "off"),
    ("search_path", "pg_catalog, leasehold"),
];

/// What the tables hold when they are analysed and the session's plans are made.
const MOMENTS: [&str; 2] = [
    "select 'empty tables'",
    "insert into leasehold.job (id, enqueued_at, available_at, ready_at, queue_id, max_attempts, priority, payload)
     select 1000000000 + n, now(), now(), now(), 1000000000, 5, 4, 'x' from generate_series(1, 20000) n",
];

/// A session like the engine's, in a database that was migrated, filled and analysed a moment ago.
async fn fresh(moment: &'static str) -> (postgres::Postgres, PgConnection) {
    let db = postgres::open().await;
    db.execute(moment).await;
    db.execute("analyze").await;
    let session = db.options().options(PLANNER).connect().await.expect("a session");
    (db, session)
}

#[tokio::test]
async fn every_statement_goes_by_an_index() {
    for moment in MOMENTS {
        explain_statements(moment).await;
    }
}

async fn explain_statements(moment: &'static str) {
    let (db, mut session) = fresh(moment).await;
    let texts = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/store/postgres/sql");
    let mut seen = 0;
    for entry in fs::read_dir(texts).expect("the statements") {
        let file = entry.expect("an entry").path();
        let name = file.file_stem().expect("a name").to_string_lossy().into_owned();
        if name.starts_with("examine") {
            continue; // the doctor's, which read the catalog and run when somebody asks
        }
        let text = fs::read_to_string(&file).expect("a text");
        let arguments = (1..=40).take_while(|n| text.contains(&format!("${n}"))).map(|_| "null").collect::<Vec<_>>();
        let arguments = if arguments.is_empty() { String::new() } else { format!("({})", arguments.join(", ")) };
        let script = format!("prepare {name}_plan as {text}; explain (costs off) execute {name}_plan{arguments}");
        let lines = session.fetch_all(sqlx::raw_sql(AssertSqlSafe(script))).await;
        let plan: Vec<String> =
            lines.unwrap_or_else(|error| panic!("{name}: {error}")).iter().map(|l| l.get(0)).collect();
        let detours = detours(&plan);
        assert!(detours.is_empty(), "{name} reads a whole table or index: {detours:#?}\n{plan:#?}");
        seen += 1;
    }
    assert!(seen > 20, "this test reads the statements");
    drop(session);
    db.close().await;
}

#[tokio::test]
async fn every_statement_within_a_function_goes_by_an_index() {
    for moment in MOMENTS {
        explain_functions(moment).await;
    }
}

async fn explain_functions(moment: &'static str) {
    let (db, mut session) = fresh(moment).await;
    let options: PgConnectOptions = db.options();
    let mut owner = options.connect().await.expect("a session");
    let mut statements = 0;
    for act in acts::ACTS.iter().chain(queue_acts::ACTS).chain(stock_acts::ACTS) {
        // What the act needs to find, put there past it; the plans of the session under test are not made by that.
        owner.execute(sqlx::raw_sql(act.before)).await.unwrap_or_else(|error| panic!("before {}: {error}", act.name));
        for plan in explained(&mut session, act.text).await {
            let detours = detours(&plan);
            assert!(detours.is_empty(), "within {}: {detours:#?}\n{plan:#?}", act.name);
            statements += 1;
        }
    }
    assert!(statements > 80, "only {statements} statements were explained");
    drop((session, owner));
    db.close().await;
}
