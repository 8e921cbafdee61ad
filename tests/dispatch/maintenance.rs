//! Promise O3: purge, retention and reaping of very many rows go on in bounded steps, to their end, and jobs are leased and
//! acked all the while.

use std::{
    env,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};

use leasehold::{
    dispatch::{Dispatch, DispatchOptions},
    model::{JobState, QueueId, QueueName},
    store::{Purge, Store, StoreOptions},
    upkeep::{PassCounts, Upkeep, UpkeepOptions},
};

use super::broker::{Consumer, call, job, lease_of, spec};
use crate::lanes::stage::{Stage, until, until_within};

/// Rows of each kind.
fn rows() -> u64 {
    if env::var_os("LEASEHOLD_TEST_LONG").is_some() { 300_000 } else { 12_000 }
}

/// Rows of one statement at most.
const STEP: usize = 1_000;

/// Jobs to purge, dead jobs past their retention, and expired leases, as many of each; past the broker, which would take long.
async fn fill(stage: &Stage, queues: &[QueueId; 3], rows: u64) {
    let (now, past, blob, zero) = if stage.is_postgres() {
        ("now()", "now() - interval '1 hour'", "''::bytea", "false")
    } else {
        ("cast(unixepoch('subsec') * 1000000 as integer)", "cast(unixepoch() - 3600 as integer) * 1000000", "x''", "0")
    };
    let lease = if stage.is_postgres() { "gen_random_uuid()" } else { "randomblob(16)" };
    let schema = if stage.is_postgres() { "leasehold." } else { "" };
    let [purged, buried, expired] = queues.map(|queue| queue.0);
    let mut sql = stage.sql().await;
    let numbers = format!("with recursive n (i) as (select 1 union all select i + 1 from n where i < {rows})");
    sql.run(&format!(
        "{numbers} insert into {schema}job (enqueued_at, available_at, ready_at, queue_id, max_attempts, priority, blocked, \
         content_type, payload) select {past}, {past}, {past}, {purged}, 9, i % 10, {zero}, '', {blob} from n"
    ))
    .await;
    sql.run(&format!(
        "{numbers} insert into {schema}dead_job (id, lease_number, enqueued_at, available_at, dead_at, expires_at, queue_id, \
         attempt, max_attempts, priority, content_type, payload) \
         select -i, 1, {past}, {past}, {past}, {past}, {buried}, 1, 1, 4, '', {blob} from n"
    ))
    .await;
    sql.run(&format!(
        "{numbers} insert into {schema}job (enqueued_at, available_at, ready_at, queue_id, max_attempts, priority, blocked, \
         attempt, lease_number, lease_id, lease_until, lease_duration, content_type, payload) \
         select {past}, {past}, {past}, {expired}, 9, 4, {zero}, 1, 1, {lease}, {past}, 1, '', {blob} from n"
    ))
    .await;
    assert!(sql.number(&format!("select count(*) from {schema}job where ready_at <= {now}")).await > 0);
}

async fn queue(store: &Store, name: &str) -> QueueId {
    let name = QueueName::parse("queue", name).expect("a name");
    let (row, _) = store.change_queue(&call(), &name, true, |settings| Ok(settings.clone())).await.expect("a queue");
    row.id
}

fn pass(reader: &impl Fn() -> Vec<(&'static str, PassCounts)>, name: &str) -> PassCounts {
    reader().into_iter().find(|(pass, _)| *pass == name).expect("a pass").1
}

/// Enqueues, leases and acks until it is told to stop; how many jobs went through.
async fn serve(store: Store, dispatch: Dispatch, stop: Arc<AtomicBool>, through: Arc<AtomicU64>) {
    let mut consumer = Consumer::new(dispatch.open(spec(&["served"], 10)).expect("a stream"));
    while !stop.load(SeqCst) {
        let stored = store.enqueue(&call(), vec![job("served", "x"); 5]).await.expect("stored");
        let ready: Vec<_> = stored.iter().map(|stored| (stored.queue, stored.row.ready_in)).collect();
        dispatch.ready(&ready);
        let jobs = consumer.at_least(5).await;
        let tokens: Vec<_> = jobs.iter().map(|job| job.token).collect();
        store.ack(&call(), tokens.iter().map(lease_of).collect()).await.expect("acked");
        dispatch.settled(&tokens);
        through.fetch_add(jobs.len() as u64, SeqCst);
    }
}

async fn maintenance_goes_on_in_bounded_steps_while_jobs_are_leased(stage: Stage) {
    let rows = rows();
    let store = stage.store(StoreOptions { purge_step: STEP, ..StoreOptions::default() }).await;
    let queues = [queue(&store, "purged").await, queue(&store, "buried").await, queue(&store, "expired").await];
    fill(&stage, &queues, rows).await;
    let dispatch = Dispatch::start(store.clone(), DispatchOptions::default(), "test".to_owned());
    let (stop, through) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let served = tokio::spawn(serve(store.clone(), dispatch.clone(), stop.clone(), through.clone()));
    until("jobs go through before", async || through.load(SeqCst) > 0).await;

    let short = Duration::from_millis(100);
    let options =
        UpkeepOptions { reaper_interval: short, pruner_interval: short, step: STEP, ..UpkeepOptions::default() };
    let upkeep = Upkeep::start(store.clone(), dispatch, options);
    let reader = upkeep.reader();
    let mut purge = Purge::new(queues[0], &[JobState::Ready], None, None);
    let (mut removed, mut steps, mut idle, mut rested) = (0, 0, 0, Duration::ZERO);
    let before = through.load(SeqCst);
    loop {
        let seen = through.load(SeqCst);
        let progress = store.purge(&call(), &mut purge).await.expect("a step");
        assert!(progress.removed - removed <= STEP as u64, "a step of {}", progress.removed - removed);
        (removed, steps) = (progress.removed, steps + 1);
        if progress.done {
            break;
        }
        rested += progress.pause;
        tokio::time::sleep(progress.pause).await;
        idle += u64::from(through.load(SeqCst) == seen);
    }
    assert_eq!(removed, rows);
    assert!(steps >= rows / STEP as u64);
    assert!(!rested.is_zero(), "a purge leaves time to others");
    for name in ["reaper", "dead jobs"] {
        until_within(Duration::from_mins(5), name, async || pass(&reader, name).rows >= rows).await;
        let counts = pass(&reader, name);
        assert_eq!((counts.rows, counts.failures), (rows, 0), "{name}");
        assert!(counts.steps >= rows / STEP as u64, "{name}: {counts:?}");
    }
    let during = through.load(SeqCst) - before;
    assert!(during >= 5 * 5, "only {during} jobs went through beside {steps} steps, {idle} of them without any");
    stop.store(true, SeqCst);
    served.await.expect("it went on to the end");
    upkeep.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn maintenance_goes_on_in_bounded_steps_while_jobs_are_leased_on_postgres() {
    maintenance_goes_on_in_bounded_steps_while_jobs_are_leased(Stage::postgres().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn maintenance_goes_on_in_bounded_steps_while_jobs_are_leased_on_sqlite() {
    maintenance_goes_on_in_bounded_steps_while_jobs_are_leased(Stage::sqlite().await).await;
}
