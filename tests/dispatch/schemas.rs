//! Brokers of different schemas in one database.

use std::{collections::BTreeSet, time::Duration};

use leasehold::{
    dispatch::DispatchOptions,
    model::Caller,
    store::engine::{Engine, LaneRole},
};
use sqlx::{
    ConnectOptions as _, Executor as _, Row as _,
    postgres::{PgConnectOptions, PgListener},
};
use tokio::time::timeout;

use super::broker::{Broker, jobs, spec};
use crate::lanes::stage::Stage;

const OTHER: &str = "jobs_of_others";

/// So rarely that whatever happens within a test happened by a hint.
fn deaf() -> DispatchOptions {
    DispatchOptions { look_interval: Duration::from_hours(1), ..DispatchOptions::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn brokers_of_two_schemas_neither_share_jobs_nor_wake_each_other() {
    let ours = Stage::postgres().await;
    let theirs = ours.in_schema(OTHER);
    let (first, second) = (Broker::on(&ours, deaf()).await, Broker::on(&ours, deaf()).await);
    let (third, fourth) = (Broker::on(&theirs, deaf()).await, Broker::on(&theirs, deaf()).await);
    let mut ear = ear(&ours).await;

    let mut here = second.open(spec(&["orders"], 10));
    let mut there = fourth.open(spec(&["orders"], 10));
    first.enqueue(jobs("orders", 1)).await;
    assert_eq!(here.jobs().await.len(), 1, "a hint within the schema arrives");
    third.enqueue(jobs("orders", 2)).await;
    let mut came = there.jobs().await.len();
    while came < 2 {
        came += there.jobs().await.len();
    }
    assert_eq!(came, 2, "and nothing from the other one");

    // each on a channel of its own, in whatever order: the brokers know nothing of each other
    let mut heard = BTreeSet::new();
    while heard.len() < 2 {
        let notice = timeout(Duration::from_secs(20), ear.recv()).await.expect("in time").expect("a notification");
        heard.insert(notice.channel().to_owned());
    }
}

async fn ear(stage: &Stage) -> PgListener {
    let mut ear = PgListener::connect(&stage.server().url(None)).await.expect("a listener");
    ear.listen_all(["leasehold_ready", "jobs_of_others_ready"]).await.expect("both channels");
    ear
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_schema_is_migrated_while_another_ones_migration_is_under_way() {
    let ours = Stage::postgres().await;
    let theirs = ours.in_schema(OTHER);
    let mut migrating = ours.sql().await;
    migrating.run("begin").await;
    // the lock of the schema leasehold, in this version and in the first
    migrating.run("select pg_advisory_xact_lock(5500148632171246573)").await;
    migrate(theirs.engine.as_ref()).await;
    migrating.run("rollback").await;
    migrate(ours.engine.as_ref()).await;

    let mut sql = ours.sql().await;
    let count = |of: &str, schema: &str| format!("select count(1) from {of} where table_schema = '{schema}'");
    let (tables, others) = (count("information_schema.tables", "leasehold"), count("information_schema.tables", OTHER));
    assert!(sql.number(&tables).await > 5);
    assert_eq!(sql.number(&tables).await, sql.number(&others).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn functions_of_a_schema_name_no_other_one() {
    let stage = Stage::postgres().await.in_schema(OTHER);
    migrate(stage.engine.as_ref()).await;
    let mut sql = stage.sql().await;
    let strays = "select count(1) from pg_proc p where p.pronamespace = 'jobs_of_others'::regnamespace \
                  and (p.prosrc ~ '\\mleasehold\\M' or p.proconfig::text ~ '\\mleasehold\\M')";
    assert_eq!(sql.number(strays).await, 0);
    let all = "select count(1) from pg_proc p where p.pronamespace = 'jobs_of_others'::regnamespace";
    assert!(sql.number(all).await > 10);
    assert_eq!(sql.number("select count(1) from pg_namespace where nspname = 'leasehold'").await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn services_enqueue_and_ack_by_sql_in_a_schema_of_another_name() {
    let stage = Stage::postgres().await.in_schema(OTHER);
    let broker = Broker::on(&stage, DispatchOptions::default()).await;
    let mut consumer = broker.open(spec(&["orders"], 1));
    let options: PgConnectOptions = stage.server().url(None).parse().expect("a URL");
    let mut service = options.connect().await.expect("a service");
    service.execute("select jobs_of_others.enqueue('orders', 'x'::bytea)").await.expect("enqueued");
    let sent = consumer.jobs().await;
    let token = sent[0].token.encode();
    let acked = sqlx::query("select jobs_of_others.ack($1)").bind(&token).fetch_one(&mut service).await.expect("acked");
    assert!(acked.get::<bool, _>(0));
    let again = sqlx::query("select jobs_of_others.ack_or_fail($1)").bind(&token).execute(&mut service).await;
    assert!(again.is_err(), "it is done");
}

async fn migrate(engine: &dyn Engine) {
    let mut session = engine.connect(LaneRole::Any).await.expect("a session");
    while session.migrate_one(&Caller::broker("migrate")).await.expect("a migration").is_some() {}
}
