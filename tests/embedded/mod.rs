//! What only the embedded database has to show: it is one process's alone, keeps its own time, and bounds its own files.

use std::{path::Path, time::Duration};

use futures_util::FutureExt as _;
use leasehold::{
    model::{
        Caller, Headers, JobId, LeaseId, NewJob, Priority, QueueId, QueueName, ReplicaId, Start, StreamId,
        StreamNumber, Timestamp,
    },
    store::{
        engine::{Claim, Engine, JobRow, LaneRole, LeaseRef, LockWait, LookSpot, NewQueues, Session, Slot},
        error::EngineError,
        sqlite::{SqliteEngine, SqliteOptions},
    },
};
use sqlx::{
    AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _, Row as _, sqlite::SqliteConnectOptions,
};

fn caller() -> Caller {
    Caller::parse("embedded").expect("a caller")
}

/// The engine on `path`, migrated, with its writer.
async fn open(path: &Path) -> (SqliteEngine, Box<dyn Session>) {
    let engine = SqliteEngine::open(SqliteOptions::new(path)).await.expect("an engine");
    let mut writer = engine.connect(LaneRole::Write).await.expect("a writer");
    while writer.migrate_one(&caller()).await.expect("a migration").is_some() {}
    (engine, writer)
}

async fn queue(writer: &mut dyn Session) -> QueueId {
    let name = QueueName::parse("queue", "orders").expect("a name");
    writer.find_queues(&caller(), &[name], Some(&NewQueues::default())).await.expect("a queue")[0].id
}

fn job(queue: QueueId, payload: Vec<u8>) -> JobRow {
    JobRow {
        job: NewJob {
            queue: QueueName::parse("queue", "orders").expect("a name"),
            payload: payload.into(),
            content_type: String::new(),
            headers: Headers::new(),
            priority: Priority::DEFAULT,
            start: Start::Now,
            max_attempts: None,
            idempotency_key: None,
            ordering_key: None,
            trace: None,
        },
        queue,
        max_attempts: 20,
        idempotency_retention: Duration::from_secs(60),
    }
}

async fn enqueue(writer: &mut dyn Session, jobs: &[JobRow]) -> Vec<JobId> {
    let stored = writer.enqueue(&caller(), jobs, LockWait::Full).await.expect("an enqueue");
    stored.into_iter().map(|row| row.job).collect()
}

async fn claim(writer: &mut dyn Session, queue: QueueId, count: usize) -> Vec<LeaseRef> {
    let stream = StreamId { replica: ReplicaId(1), number: StreamNumber(1) };
    let slot = || Slot { lease: LeaseId(rand::random()), stream, duration: Duration::from_secs(60) };
    let floors = [Timestamp::BEGINNING; Priority::LEVELS];
    let claim = Claim { queue, floors, slots: std::iter::repeat_with(slot).take(count).collect() };
    let claimed = writer.claim(&caller(), &[claim]).await.expect("a claim");
    claimed.into_iter().map(|job| LeaseRef { job: job.job, lease: job.lease }).collect()
}

/// The file's own view, past the engine.
async fn numbers(path: &Path, sql: &'static str) -> Vec<i64> {
    let mut raw = SqliteConnectOptions::new().filename(path).connect().await.expect("a connection");
    let rows = raw.fetch_all(sql).await.expect("an answer");
    raw.close().await.expect("closed");
    rows.iter().map(|row| row.get(0)).collect()
}

#[tokio::test]
async fn a_second_broker_on_the_file_is_refused_until_the_first_has_gone() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("below/and/below/jobs.db");
    let (engine, writer) = open(&path).await;
    let Err(refused) = SqliteEngine::open(SqliteOptions::new(&path)).await else { panic!("two on one file") };
    assert!(matches!(&refused, EngineError::Unfit(why) if why.contains("another process")), "{refused}");
    drop(engine);
    let refused = SqliteEngine::open(SqliteOptions::new(&path)).await.err();
    assert!(refused.is_some(), "a session that is still there may still write");
    drop(writer);
    open(&path).await;
}

#[tokio::test]
async fn two_connections_apply_each_migration_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("jobs.db");
    let engine = SqliteEngine::open(SqliteOptions::new(&path)).await.expect("an engine");
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..3 {
        let mut writer = engine.connect(LaneRole::Write).await.expect("a writer");
        calls.spawn(async move {
            let mut applied = 0;
            while writer.migrate_one(&caller()).await.expect("a migration").is_some() {
                applied += 1;
            }
            applied
        });
    }
    let applied: usize = calls.join_all().await.into_iter().sum();
    assert_eq!(applied, engine.migrations().len());
    let known: Vec<i64> = engine.migrations().iter().map(|migration| migration.number.into()).collect();
    assert_eq!(numbers(&path, "select number from schema_migration order by number").await, known);
}

#[tokio::test]
async fn a_file_opened_again_goes_on_where_it_was() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("jobs.db");
    let (engine, mut writer) = open(&path).await;
    let orders = queue(writer.as_mut()).await;
    let first = enqueue(writer.as_mut(), &[job(orders, b"1".into()), job(orders, b"2".into())]).await;
    let leases = claim(writer.as_mut(), orders, 2).await;
    writer.ack(&caller(), &leases, LockWait::Full).await.expect("an ack");
    drop((engine, writer));

    let (_engine, mut writer) = open(&path).await;
    assert_eq!(queue(writer.as_mut()).await, orders);
    let later = enqueue(writer.as_mut(), &[job(orders, b"3".into())]).await;
    assert!(later[0] > first[1], "the id of a job that is gone is never given again");
    assert_eq!(claim(writer.as_mut(), orders, 10).await.len(), 1);
}

#[tokio::test]
async fn time_never_goes_back_over_a_restart() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("jobs.db");
    let (engine, mut writer) = open(&path).await;
    let orders = queue(writer.as_mut()).await;
    enqueue(writer.as_mut(), &[job(orders, b"1".into())]).await;
    let marked = numbers(&path, "select last_at from clock").await;
    assert_eq!(marked, numbers(&path, "select enqueued_at from job").await, "the last thing that happened");
    drop((engine, writer));

    // As if the wall clock had been set back by an hour: the file's last instant is an hour ahead of it.
    let ahead = marked[0] + 3_600_000_000;
    let mut raw = SqliteConnectOptions::new().filename(&path).connect().await.expect("a connection");
    raw.execute(AssertSqlSafe(format!("update clock set last_at = {ahead}"))).await.expect("an update");
    raw.close().await.expect("closed");
    let (_engine, mut writer) = open(&path).await;
    enqueue(writer.as_mut(), &[job(orders, b"2".into())]).await;
    let instants = numbers(&path, "select enqueued_at from job order by id desc limit 1").await;
    assert!(instants[0] >= ahead && instants[0] < ahead + 60_000_000, "{instants:?} goes on from {ahead}");
}

#[tokio::test]
async fn a_lease_survives_a_restart_and_is_not_reaped_early() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("jobs.db");
    let (engine, mut writer) = open(&path).await;
    let orders = queue(writer.as_mut()).await;
    enqueue(writer.as_mut(), &[job(orders, b"1".into())]).await;
    let leases = claim(writer.as_mut(), orders, 1).await;
    drop((engine, writer));
    let (_engine, mut writer) = open(&path).await;
    let reaped = writer.reap(&caller(), Timestamp::BEGINNING, 0, 10).await.expect("a pass");
    assert_eq!(reaped.leases, []);
    let acked = writer.ack(&caller(), &leases, LockWait::Full).await.expect("an ack");
    assert_eq!(acked[0].held, leasehold::store::engine::Held::Ok);
}

#[tokio::test]
async fn an_act_dropped_half_way_leaves_nothing_in_the_next() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("jobs.db");
    let (_engine, mut writer) = open(&path).await;
    let orders = queue(writer.as_mut()).await;
    let mut stored = 0;
    for polls in 0..12_usize {
        let rows = [job(orders, b"half".into()), job(orders, b"half".into())];
        let who = caller();
        let mut act = writer.enqueue(&who, &rows, LockWait::Full);
        let mut ended = false;
        for _ in 0..polls {
            // Each poll gets one answer of the connection's thread further, at most.
            match act.as_mut().now_or_never() {
                Some(answer) => {
                    answer.expect("an enqueue");
                    ended = true;
                    break;
                }
                None => tokio::task::yield_now().await,
            }
        }
        drop(act);
        // Whole or not at all, and the next act begins on its own.
        let ids = enqueue(writer.as_mut(), &[job(orders, b"whole".into())]).await;
        assert_eq!(ids.len(), 1);
        let count = numbers(&path, "select count(*) from job").await[0];
        let added = count - stored;
        assert!(added == 3 || (added == 1 && !ended), "after {polls} polls: {added} rows");
        stored = count;
    }
}

#[tokio::test]
async fn the_log_stays_bounded_beside_readers_and_is_emptied_when_idle() {
    const ROUNDS: usize = 60;
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("jobs.db");
    let log = directory.path().join("jobs.db-wal");
    let (engine, mut writer) = open(&path).await;
    let orders = queue(writer.as_mut()).await;
    let mut readers = tokio::task::JoinSet::new();
    for _ in 0..2 {
        let mut reader = engine.connect(LaneRole::Read).await.expect("a reader");
        let spot = LookSpot { queue: orders, floors: [Timestamp::BEGINNING; Priority::LEVELS] };
        readers.spawn(async move {
            loop {
                reader.look(&caller(), &[spot]).await.expect("a look");
                tokio::task::yield_now().await;
            }
        });
    }
    // Twice the bound goes through it: 60 × 2 MiB, written at enqueue and again at claim.
    let mut longest = 0;
    for _ in 0..ROUNDS {
        enqueue(writer.as_mut(), &[job(orders, vec![7; 1 << 20]), job(orders, vec![8; 1 << 20])]).await;
        let leases = claim(writer.as_mut(), orders, 2).await;
        let acked = writer.ack(&caller(), &leases, LockWait::Full).await.expect("an ack");
        assert_eq!(acked.len(), 2);
        longest = longest.max(log.metadata().expect("a log").len());
    }
    assert!(longest <= 64 << 20, "{longest} bytes");
    readers.shutdown().await;
    writer.ping(&caller()).await.expect("an answer");
    assert_eq!(log.metadata().map_or(0, |log| log.len()), 0);
    let check = sqlx::query_scalar::<_, String>("pragma integrity_check");
    let mut raw = SqliteConnectOptions::new().filename(&path).connect().await.expect("a connection");
    assert_eq!(check.fetch_one(&mut raw).await.expect("an answer"), "ok");
}

#[tokio::test]
async fn an_empty_pass_writes_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("jobs.db");
    let log = directory.path().join("jobs.db-wal");
    let (_engine, mut writer) = open(&path).await;
    let orders = queue(writer.as_mut()).await;
    writer.ping(&caller()).await.expect("an answer");
    let unknown = [LeaseRef { job: JobId(7), lease: LeaseId(7) }];
    for _ in 0..10 {
        writer.reap(&caller(), Timestamp::BEGINNING, 0, 100).await.expect("a pass");
        writer.prune_dead(&caller(), Timestamp::BEGINNING, 100).await.expect("a pass");
        writer.prune_keys(&caller(), Timestamp::BEGINNING, 100).await.expect("a pass");
        writer.ack(&caller(), &unknown, LockWait::Full).await.expect("an ack");
        assert_eq!(claim(writer.as_mut(), orders, 10).await, []);
    }
    assert_eq!(log.metadata().map_or(0, |log| log.len()), 0, "an idle broker leaves the disk alone");
}

#[tokio::test]
async fn a_reader_cannot_write() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("jobs.db");
    let (engine, mut writer) = open(&path).await;
    let orders = queue(writer.as_mut()).await;
    let mut reader = engine.connect(LaneRole::Read).await.expect("a reader");
    let refused = reader.enqueue(&caller(), &[job(orders, b"x".into())], LockWait::Full).await;
    assert!(matches!(refused, Err(EngineError::Unavailable(_))), "{refused:?}");
    reader.ping(&caller()).await.expect("and still answers");
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("jobs.db");
    std::fs::write(&path, "this is a letter and no database at all, and a long one".repeat(50)).expect("a file");
    let Err(refused) = SqliteEngine::open(SqliteOptions::new(&path)).await else { panic!("a letter was opened") };
    assert!(matches!(refused, EngineError::Unfit(_)), "{refused:?}");
}

/// Statements that walk a bounded number of rows by an index, then number what they found, which SQLite calls sorting.
const SORTED: [&str; 8] = [
    "list_jobs.sql",
    "list_dead_by_id.sql",
    "list_acked.sql",
    "list_dead.sql",
    "count_dead.sql",
    "find_dead.sql",
    "list_streams.sql",
    "verify_stocks.sql",
];

#[tokio::test]
async fn every_statement_goes_by_an_index() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("jobs.db");
    let (_engine, writer) = open(&path).await;
    drop(writer);
    let mut raw = SqliteConnectOptions::new().filename(&path).connect().await.expect("a connection");
    let mut seen = 0;
    for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/store/sqlite/sql")).expect("texts") {
        let file = entry.expect("an entry").path();
        let name = file.file_name().expect("a name").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&file).expect("a text");
        let plan = raw.fetch_all(sqlx::raw_sql(AssertSqlSafe(format!("explain query plan {text}")))).await;
        for step in plan.unwrap_or_else(|error| panic!("{name}: {error}")) {
            let step: String = step.get("detail");
            for table in ["job", "next", "dead_job", "idempotency_key", "known", "queue"] {
                assert!(
                    step != format!("SCAN {table}") && !step.starts_with(&format!("SCAN {table} ")),
                    "{name} walks a whole table or index: {step}"
                );
            }
            let sorts = step.contains("TEMP B-TREE FOR ORDER BY");
            assert!(!sorts || SORTED.contains(&name.as_str()), "{name} sorts: {step}");
        }
        seen += 1;
    }
    assert!(seen > 20, "this test reads the texts");
}
