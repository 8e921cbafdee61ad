//! Ordering keys under everything at once: enqueued, settled and acked by the store and by SQL in transactions that stay
//! open or roll back, expiring, rejected, dropped, with sessions cut. At the end nothing is left and nothing was out of order.

use std::{collections::HashSet, env, fs, time::Duration};

use tokio::task::JoinSet;

use super::{
    consumer, producer,
    scene::{Scene, dice},
    trouble,
};
use crate::lanes::stage::{Sql, Stage, until, until_within};

const PRODUCERS: u64 = 4;
const CONSUMERS: u64 = 5;

fn length() -> Duration {
    Duration::from_secs(if env::var_os("LEASEHOLD_TEST_LONG").is_some() { 60 } else { 5 })
}

async fn jobs_of_one_key_stay_in_order(stage: Stage) {
    stress(stage, 1).await;
}

async fn jobs_of_many_keys_stay_in_order(stage: Stage) {
    stress(stage, 40).await;
}

#[expect(clippy::print_stdout, reason = "shown where the test fails, so that it can be run again")]
async fn stress(stage: Stage, keys: usize) {
    let seed = env::var("LEASEHOLD_TEST_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or_else(rand::random);
    println!("LEASEHOLD_TEST_SEED={seed}");
    let scene = Scene::new(stage, keys).await;
    let mut actors = (0..).map(|actor| dice(seed, actor));
    let mut dice = || actors.next().expect("as many as wanted");

    let (mut producers, mut others) = (JoinSet::new(), JoinSet::new());
    for _ in 0..PRODUCERS {
        producers.spawn(producer::run(scene.clone(), dice()));
    }
    for _ in 0..CONSUMERS {
        others.spawn(consumer::run(scene.clone(), dice()));
    }
    others.spawn(trouble::reap(scene.clone(), dice()));
    others.spawn(trouble::adopt(scene.clone(), dice()));
    let cutting = scene.stage.is_server().then(|| {
        for _ in 0..2 {
            producers.spawn(producer::run_service(scene.clone(), dice()));
        }
        tokio::spawn(trouble::cut_sessions(scene.clone(), dice()))
    });

    // The length of the run; nothing is waited for.
    tokio::time::sleep(length()).await;
    if scene.stage.is_server() {
        // Chance decides how soon enough went wrong to show anything: with one key, a lost claim stops all for its lease.
        until_within(Duration::from_secs(90), "enough transactions rolled back and leases expired", async || {
            let sums = scene.history.sums();
            sums.never > 5 && sums.expired > 2
        })
        .await;
    }
    scene.calm_down();
    producers.join_all().await;
    let cut = match cutting {
        Some(cutting) => cutting.await.expect("it ran"),
        None => 0,
    };

    let mut sql = scene.stage.sql().await;
    for table in tables(&scene.stage) {
        run_empty(&mut sql, &table).await;
    }
    scene.close();
    others.join_all().await;
    for store in &scene.stores {
        store.drain().await;
    }

    for table in tables(&scene.stage) {
        assert_eq!(sql.number(&format!("select count(*) from {table}")).await, 0, "{table} at the end");
    }
    let sums = scene.history.sums();
    println!("{sums:?}, {cut} sessions cut");
    let faults = scene.history.faults(&dead(&scene.stage, &mut sql).await);
    assert!(faults.is_empty(), "{} faults, such as\n{}", faults.len(), faults[..faults.len().min(5)].join("\n"));
    assert_eq!(sums.conflicts, 0, "nobody waits for anybody for long");
    assert!(sums.stored > 50 && sums.grants > sums.stored, "too little happened to show anything: {sums:?}");
    if scene.stage.is_server() {
        assert!(cut > 2, "too little went wrong to show anything: {sums:?} {cut}");
        no_deadlock(&scene.stage, &mut sql).await;
    }
}

/// Returns once the table has no rows; one key's jobs go one by one, so that the time it takes is the machine's.
async fn run_empty(sql: &mut Sql, table: &str) {
    let mut left = i64::MAX;
    while left > 0 {
        until("another row goes", async || {
            let rows = sql.number(&format!("select count(*) from {table}")).await;
            let goes = rows < left;
            left = left.min(rows);
            goes
        })
        .await;
    }
}

fn tables(stage: &Stage) -> Vec<String> {
    if stage.schema().is_some() {
        const TABLES: [&str; 6] = ["job", "ready", "blocked", "lease", "arrival", "ordering_key"];
        TABLES.map(|table| format!("leasehold_{table}")).into()
    } else if stage.is_postgres() {
        ["job", "arrival", "ordering_key"].map(str::to_owned).into()
    } else {
        vec!["job".to_owned()]
    }
}

async fn dead(stage: &Stage, sql: &mut Sql) -> HashSet<i64> {
    let labels = if stage.schema().is_some() {
        "select cast(convert(payload using utf8mb4) as signed) from leasehold_dead_job"
    } else if stage.is_postgres() {
        "select convert_from(payload, 'UTF8')::bigint from dead_job"
    } else {
        "select cast(cast(payload as text) as integer) from dead_job"
    };
    sql.numbers(labels).await.into_iter().collect()
}

async fn no_deadlock(stage: &Stage, sql: &mut Sql) {
    if let Some(schema) = stage.schema() {
        let deadlocks = schema.deadlocks();
        assert!(deadlocks.is_empty(), "the server's log names {deadlocks:#?}");
        return;
    }
    let counted = "select deadlocks from pg_stat_database where datname = current_database()";
    assert_eq!(sql.number(counted).await, 0);
    if let Ok(log) = env::var("LEASEHOLD_TEST_POSTGRES_LOG") {
        let text = String::from_utf8_lossy(&fs::read(log).expect("the server's log can be read")).into_owned();
        let mine = format!("db={} ", stage.server().database);
        let deadlock = text.lines().find(|line| line.contains(&mine) && line.contains("deadlock detected"));
        assert_eq!(deadlock, None);
    }
}

on_both_engines!(jobs_of_one_key_stay_in_order, jobs_of_many_keys_stay_in_order);

mod mariadb {
    use crate::lanes::stage::Stage;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn jobs_of_one_key_stay_in_order() {
        super::jobs_of_one_key_stay_in_order(Stage::mariadb().await).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn jobs_of_many_keys_stay_in_order() {
        super::jobs_of_many_keys_stay_in_order(Stage::mariadb().await).await;
    }
}
