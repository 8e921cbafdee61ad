//! Queues as such, and the schema: O13.

use std::{collections::BTreeSet, time::Duration};

use leasehold::{
    model::{Backoff, Priority, QueueSettings, Timestamp},
    store::{
        engine::{Backlog, Held, LockWait, LookSpot, NewQueues},
        error::EngineError,
    },
};

use super::{
    bench::{Bench, claim_of, job, keyed, lease, queue_name},
    database::{Database, caller},
};

pub(crate) async fn a_queue_comes_into_being_when_asked_to(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let names = [queue_name("a"), queue_name("b")];
    assert_eq!(bench.session.find_queues(&caller(), &names, None).await.expect("an answer"), []);
    let a = bench.queue("a").await;
    let found = bench.session.find_queues(&caller(), &names, None).await.expect("an answer");
    assert_eq!(found.iter().map(|queue| (queue.id, queue.name.as_str())).collect::<Vec<_>>(), [(a, "a")]);
    let both = bench.session.find_queues(&caller(), &names, Some(&NewQueues::default())).await.expect("both");
    assert_eq!(both.len(), 2);
    assert!(both.iter().any(|queue| queue.id == a));
}

pub(crate) async fn settings_are_kept_as_given(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let settings = QueueSettings {
        lease_duration: Duration::from_micros(1_234_567),
        max_attempts: 1_000,
        backoff: Backoff { base: Duration::from_millis(5), cap: Duration::from_secs(365 * 24 * 3_600) },
        idempotency_retention: Duration::from_secs(7),
        dead_retention: Duration::from_secs(400 * 24 * 3_600),
        max_backlog_jobs: Some(12),
        max_backlog_bytes: Some(1 << 40),
        paused: true,
        disabled_reason: Some("maintenance, é".to_owned()),
        time_to_live: Some(Duration::from_millis(1_500)),
        acked_retention: Some(Duration::from_secs(3)),
    };
    assert_eq!(bench.queue_with("given", &settings).await.settings, settings);
    let usual = QueueSettings::default();
    assert_eq!(bench.queue_with("usual", &usual).await.settings, usual);
    assert_eq!(bench.queue_with("given", &usual).await.settings, settings, "it exists: nothing changes");
}

pub(crate) async fn names_that_differ_in_one_byte_are_different_queues(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let longest = "q".repeat(128);
    let names = ["a", "a.", "a-", "a_", "aa", "b", "0", longest.as_str(), &longest[1..]];
    let mut ids = BTreeSet::new();
    for name in names {
        let id = bench.queue(name).await;
        assert!(ids.insert(id), "{name} is another queue");
        bench.enqueue_one(job(id, name)).await;
    }
    for (name, id) in names.iter().zip(&ids) {
        let claimed = bench.claim(*id, 10).await;
        assert_eq!(claimed.len(), 1);
        assert_eq!(claimed[0].payload, *name);
    }
}

pub(crate) async fn finding_a_queue_uses_up_no_number(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let first = bench.queue("a").await;
    for _ in 0..100 {
        assert_eq!(bench.queue("a").await, first);
    }
    assert!(bench.queue("b").await.0 <= first.0 + 2);
}

pub(crate) async fn many_sessions_create_one_queue_once(db: &dyn Database) {
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..5 {
        let mut bench = Bench::on(db).await;
        calls.spawn(async move {
            let mut ids = Vec::new();
            for n in 0..10 {
                let names = [queue_name(&format!("a{n}")), queue_name(&format!("b{n}"))];
                let usual = NewQueues::default();
                let mut rows = bench.session.find_queues(&caller(), &names, Some(&usual)).await.expect("queues");
                rows.sort_by(|a, b| a.name.cmp(&b.name));
                assert_eq!(rows.len(), 2);
                ids.extend(rows.into_iter().map(|row| row.id));
            }
            ids
        });
    }
    let mut all = BTreeSet::new();
    while let Some(ids) = calls.join_next().await {
        all.insert(ids.expect("no call fails"));
    }
    assert_eq!(all.len(), 1, "all sessions see the same numbers");
    assert_eq!(db.number("select count(*) from queue").await, 20);
}

pub(crate) async fn queues_past_their_bound_do_not_come_into_being(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let three = NewQueues { at_most: 3, ..NewQueues::default() };
    let mut named = async |names: &[&str]| {
        let names: Vec<_> = names.iter().map(|name| queue_name(name)).collect();
        let rows = bench.session.find_queues(&caller(), &names, Some(&three)).await.expect("an answer");
        let mut found: Vec<String> = rows.into_iter().map(|row| row.name.as_str().to_owned()).collect();
        found.sort();
        found
    };
    assert_eq!(named(&["a", "b"]).await, ["a", "b"]);
    assert_eq!(named(&["a", "c", "d"]).await, ["a"], "there is room for one of the two: none of them comes");
    assert_eq!(named(&["b", "c"]).await, ["b", "c"]);
    assert_eq!(named(&["a", "d"]).await, ["a"]);
    assert_eq!(db.number("select count(*) from queue").await, 3);
}

pub(crate) async fn a_backlog_counts_live_jobs_of_every_state(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let (queue, other) = (bench.queue("orders").await, bench.queue("other").await);
    let empty = bench.session.measure_backlog(&caller(), queue, 100).await.expect("a count");
    assert_eq!(empty, Backlog { jobs: 0, bytes: 0 });
    bench.enqueue(&[keyed(queue, "k", "ab"), keyed(queue, "k", "abc"), job(queue, ""), job(other, "other")]).await;
    bench.enqueue_one(job(queue, "abcd\0\0")).await;
    assert_eq!(bench.claim(queue, 1).await.len(), 1);
    assert_eq!(bench.claim(other, 1).await.len(), 1);
    let whole = bench.session.measure_backlog(&caller(), queue, 100).await.expect("a count");
    assert_eq!(whole, Backlog { jobs: 4, bytes: 11 });
    let part = bench.session.measure_backlog(&caller(), queue, 3).await.expect("a count");
    assert_eq!(part.jobs, 3);
}

pub(crate) async fn a_failed_act_is_an_error_and_never_an_empty_answer(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    bench.enqueue_one(job(queue, "x")).await;
    let claimed = bench.claim_one(queue).await;
    db.execute("alter table job rename to elsewhere").await;
    let spot = LookSpot { queue, floors: [Timestamp::BEGINNING; Priority::LEVELS] };
    let refused = [
        Bench::on(db).await.try_claim(&claim_of(queue, 10)).await.err(),
        Bench::on(db).await.try_enqueue(&[job(queue, "y")]).await.err(),
        Bench::on(db).await.session.look(&caller(), &[spot]).await.err(),
        Bench::on(db).await.session.ack(&caller(), &[lease(&claimed)], LockWait::Full).await.err(),
        Bench::on(db).await.session.reap(&caller(), Timestamp::BEGINNING, 0, 10).await.err(),
    ];
    for error in refused {
        let error = error.expect("an error");
        assert!(!matches!(error, EngineError::Unknown(_)), "{error:?}: it is certain that nothing was done");
        assert!(!error.to_string().contains("select") && !error.to_string().contains("update"), "{error}");
    }
    db.execute("alter table elsewhere rename to job").await;
    assert_eq!(bench.ack_one(lease(&claimed)).await, Held::Ok);
}

pub(crate) async fn the_schema_is_complete_after_its_migrations(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let known = db.engine().migrations();
    let names: Vec<_> = known.iter().map(|migration| (migration.number, migration.name)).collect();
    assert!(names.iter().map(|(number, _)| *number).eq(1..=i32::try_from(known.len()).expect("few")), "{names:?}");
    let applied = bench.session.migrations(&caller()).await.expect("an answer");
    assert!(applied.iter().map(|applied| (applied.number, applied.name.as_str())).eq(names));
    assert_eq!(bench.session.migrate_one(&caller()).await.expect("an answer"), None);
}

pub(crate) async fn a_session_answers(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    bench.session.ping(&caller()).await.expect("an answer");
    let queue = bench.queue("orders").await;
    bench.enqueue_one(job(queue, "x")).await;
    bench.session.ping(&caller()).await.expect("an answer");
    bench.session.notify(&caller(), &[]).await.expect("no wakes are no work");
    assert_eq!(bench.claim(queue, 1).await.len(), 1);
}
