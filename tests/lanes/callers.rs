//! Many callers on one store: statements stay few, and none carries another's name.

use std::{env, time::Duration};

use leasehold::store::{Store, StoreOptions};
use tokio::task::JoinSet;

use super::stage::{Stage, caller, calm, claim_of, job, lease, queue, slots};

/// Callers, each with four calls.
fn names() -> usize {
    if env::var_os("LEASEHOLD_TEST_LONG").is_some() { 50_000 } else { 500 }
}

/// Calls under way at once.
const AT_ONCE: usize = 16;
/// What a session may keep prepared.
const PREPARED: i64 = 200;

/// Notes for each statement that writes jobs: the name in its comment, what the session has prepared, how many jobs it wrote, and
/// how many of them are another caller's. A job names its caller by its content type.
const WATCH: &str = "
    create schema watch;
    create table watch.seen (by text not null, prepared bigint not null, jobs bigint not null, strangers bigint not null);
    create function watch.look() returns trigger language plpgsql as $$
    declare
        named text := coalesce(substring(current_query() from '^/\\* conn_tag:([a-z0-9_.-]+) \\*/ '), '');
    begin
        insert into watch.seen
        select named, (select count(*) from pg_prepared_statements), count(*),
            count(*) filter (where named <> 'other' and written.content_type <> named)
        from written;
        return null;
    end
    $$;
    create trigger stored after insert on leasehold.job referencing new table as written
        for each statement execute function watch.look();
    create trigger ended after delete on leasehold.job referencing old table as written
        for each statement execute function watch.look();";

/// Two Enqueues, a claim of both jobs and their Acks: what one business process does on a queue of its own.
async fn work(store: &Store, by: &str, to: &str) {
    for _ in 0..2 {
        store.enqueue(&calm(by), vec![job(to, by)]).await.expect("stored");
    }
    let queue = store.queue(&queue(to)).await.expect("an answer").expect("it has jobs").id;
    let claim = claim_of(queue, slots(2, Duration::from_mins(1)));
    let claimed = store.claim(&caller(by), vec![claim]).await.expect("claimed");
    assert!(claimed.len() == 2 && claimed.iter().all(|job| job.content_type == by), "{claimed:?}");
    store.ack(&calm(by), claimed.iter().map(lease).collect()).await.expect("acked");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_of_callers_without_end_stay_few_and_none_names_another() {
    let stage = Stage::postgres().await;
    let store = stage.store(StoreOptions::default()).await;
    let mut sql = stage.sql().await;
    sql.run(WATCH).await;

    let mut works = JoinSet::new();
    for part in 0..AT_ONCE {
        let store = store.clone();
        works.spawn(async move {
            for n in (part..names()).step_by(AT_ONCE) {
                work(&store, &format!("caller-{n}"), &format!("q{part}")).await;
            }
        });
    }
    while let Some(worked) = works.join_next().await {
        worked.expect("every call is answered");
    }
    store.drain().await;

    let written = i64::try_from(4 * names()).expect("a few");
    assert_eq!(sql.number("select sum(jobs)::bigint from watch.seen").await, written, "all came and went");
    assert_eq!(
        sql.number("select sum(strangers)::bigint from watch.seen").await,
        0,
        "jobs under another caller's name"
    );
    let own = sql.number("select count(distinct by) from watch.seen where by <> 'other'").await;
    // 64 at a time. In a long run one that was unused for ten minutes has given its place up.
    assert!((64..=128).contains(&own), "{own} callers with a text of their own");
    assert!(sql.number("select count(*) from watch.seen where by = 'other'").await > 0);
    let prepared = sql.number("select max(prepared) from watch.seen").await;
    assert!((10..=PREPARED).contains(&prepared), "{prepared} statements prepared in one session");
}
