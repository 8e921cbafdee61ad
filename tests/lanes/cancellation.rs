//! Askers that vanish: the lane goes on, so nothing is left half done.

use std::{collections::HashSet, time::Duration};

use leasehold::{
    model::{JobId, Key, QueueId},
    store::{Store, StoreOptions, engine::Held},
};
use rand::{Rng, SeedableRng, rngs::StdRng};

use super::stage::{Sql, Stage, caller, calm, claim_of, job, lease, slots, until};

const CALLS: usize = 1_000;
const ASKERS: usize = 20;
const BATCH: usize = 5;

/// What the calls of an asker were told before it vanished.
#[derive(Default)]
struct Told {
    /// Enqueues that were answered.
    stored: Vec<String>,
    /// Jobs whose Ack was answered.
    acked: HashSet<JobId>,
    /// Jobs whose Ack was dropped.
    perhaps: HashSet<JobId>,
    dropped: usize,
}

async fn a_thousand_dropped_calls_leave_no_half_batch_and_lose_nothing(stage: Stage) {
    let seed: u64 = rand::random();
    println!("seed {seed}");
    let store = stage.store(StoreOptions::default()).await;
    let work = store.enqueue(&calm("producer"), vec![job("work", "work"); CALLS]).await.expect("stored");

    let queue = work[0].queue;
    let askers: Vec<_> = (0..ASKERS)
        .map(|n| tokio::spawn(ask(store.clone(), queue, n, StdRng::seed_from_u64(seed.wrapping_add(n as u64)))))
        .collect();
    let mut told = Told::default();
    for asker in askers {
        let one = asker.await.expect("it ran");
        told.stored.extend(one.stored);
        told.acked.extend(one.acked);
        told.perhaps.extend(one.perhaps);
        told.dropped += one.dropped;
    }
    until("a lane takes what was handed over", async || store.waiting() == 0).await;
    store.drain().await;

    let all: HashSet<JobId> = work.iter().map(|stored| stored.row.job).collect();
    let mut sql = stage.sql().await;
    check(&mut sql, &told, &all).await;
    if stage.is_postgres() {
        let open = "select count(*) from pg_stat_activity where datname = current_database() and xact_start is not null \
                    and pid <> pg_backend_pid()";
        sql.wait_for(open, 0).await;
    }
}

async fn ask(store: Store, work: QueueId, asker: usize, mut rng: StdRng) -> Told {
    let mut told = Told::default();
    for n in 0..CALLS / ASKERS {
        let name = format!("call-{asker}-{n}");
        let mut jobs = vec![job("q", &name); BATCH];
        if rng.random_bool(0.3) {
            for (at, job) in jobs.iter_mut().enumerate() {
                job.idempotency_key = Some(Key::parse("key", &format!("{name}-{at}")).expect("a key"));
            }
        }
        let patience = Duration::from_micros(rng.random_range(0..10_000));
        match tokio::time::timeout(patience, store.enqueue(&calm("producer"), jobs)).await {
            Ok(stored) => {
                assert_eq!(stored.expect("a database in good health").len(), BATCH);
                told.stored.push(name);
            }
            Err(_) => told.dropped += 1,
        }
        settle(&store, work, &mut rng, &mut told).await;
    }
    told
}

/// Claims with patience and acks with little.
async fn settle(store: &Store, work: QueueId, rng: &mut StdRng, told: &mut Told) {
    let claim = claim_of(work, slots(1, Duration::from_mins(10)));
    let claimed = store.claim(&caller("consumer"), vec![claim]).await.expect("a database in good health");
    let jobs = claimed.iter().map(|job| job.job);
    let patience = Duration::from_micros(rng.random_range(0..20_000));
    if let Ok(acked) =
        tokio::time::timeout(patience, store.ack(&calm("consumer"), claimed.iter().map(lease).collect())).await
    {
        let acked = acked.expect("a database in good health");
        assert!(acked.iter().all(|row| row.held == Held::Ok), "{acked:?}");
        told.acked.extend(jobs);
    } else {
        told.perhaps.extend(jobs);
        told.dropped += 1;
    }
}

async fn check(sql: &mut Sql, told: &Told, work: &HashSet<JobId>) {
    println!("{} dropped, {} stored, {} acked", told.dropped, told.stored.len(), told.acked.len());
    assert!(told.dropped > CALLS / 10, "too few calls were dropped to show anything");
    assert!(told.stored.len() > CALLS / 10, "too few calls were answered to show anything");

    let half = "select count(*) from (select 1 from job where content_type like 'call-%' group by content_type \
                having count(*) <> 5) half";
    assert_eq!(sql.number(half).await, 0, "half batches");
    for name in &told.stored {
        assert_eq!(sql.number(&format!("select count(*) from job where content_type = '{name}'")).await, 5, "{name}");
    }
    for job in work {
        let there = sql.number(&format!("select count(*) from job where id = {job}")).await == 1;
        assert!(there || told.acked.contains(job) || told.perhaps.contains(job), "job {job} is lost");
        assert!(!there || !told.acked.contains(job), "job {job} was acked and is there");
    }
}

on_both_engines!(a_thousand_dropped_calls_leave_no_half_batch_and_lose_nothing);
