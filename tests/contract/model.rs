//! Random acts, each answer compared with what a plain model of the promises allows.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    time::Duration,
};

use leasehold::{
    model::{JobId, NackAction, QueueId},
    store::{
        engine::{ClaimedJob, Held, JobRow, LeaseRef},
        error::EngineError,
    },
};
use rand::{Rng as _, SeedableRng as _, rngs::StdRng, seq::IndexedRandom as _};

use super::{
    bench::{Bench, changed, job, key, lease, nack_row, priority},
    database::Database,
};

const ACTS: usize = 250;
const ATTEMPTS: u16 = 3;

/// A live job as the model has it.
struct Live {
    level: u8,
    ordering_key: Option<String>,
    /// The act that made it ready: those of one act have no order among them.
    ready_since: usize,
    attempt: u32,
    lease_number: i64,
    lease: Option<LeaseRef>,
}

#[derive(Default)]
struct Model {
    /// By id, which is also the order within a key.
    live: BTreeMap<JobId, Live>,
    dead: BTreeMap<JobId, u32>,
    /// By idempotency key: job and payload.
    keys: BTreeMap<String, (JobId, u8)>,
    /// Every lease ever granted.
    granted: Vec<LeaseRef>,
    act: usize,
}

impl Model {
    fn is_head(&self, id: JobId) -> bool {
        let Some(name) = &self.live[&id].ordering_key else { return true };
        self.live.range(..id).all(|(_, earlier)| earlier.ordering_key.as_ref() != Some(name))
    }

    fn ready(&self) -> Vec<JobId> {
        self.live.iter().filter(|(id, job)| job.lease.is_none() && self.is_head(**id)).map(|(id, _)| *id).collect()
    }

    fn decides(&self, lease: LeaseRef) -> Held {
        match self.live.get(&lease.job) {
            Some(job) if job.lease == Some(lease) => Held::Ok,
            Some(_) => Held::LeaseLost,
            None if self.dead.contains_key(&lease.job) => Held::LeaseLost,
            None => Held::Gone,
        }
    }

    /// A job leaves its key: the next one becomes ready by this act.
    fn remove(&mut self, id: JobId) -> Live {
        let gone = self.live.remove(&id).expect("it lives");
        if let Some(name) = &gone.ordering_key
            && let Some(next) = self.live.values_mut().find(|job| job.ordering_key.as_ref() == Some(name))
        {
            next.ready_since = self.act;
        }
        gone
    }

    /// An attempt ended without an ack.
    fn fail(&mut self, id: JobId, for_good: bool) -> bool {
        let job = self.live.get_mut(&id).expect("it lives");
        job.lease = None;
        job.ready_since = self.act;
        let dies = for_good || job.attempt >= u32::from(ATTEMPTS);
        if dies {
            let gone = self.remove(id);
            assert!(self.dead.insert(id, gone.attempt).is_none(), "dead once");
        }
        dies
    }

    fn undo(&mut self, id: JobId) {
        let job = self.live.get_mut(&id).expect("it lives");
        (job.lease, job.ready_since, job.attempt) = (None, self.act, job.attempt - 1);
    }

    /// Whether a claim of `wanted` may have answered with these jobs, and what follows from it.
    fn claim(&mut self, claimed: &[ClaimedJob], wanted: usize) {
        let ready = self.ready();
        assert_eq!(claimed.len(), wanted.min(ready.len()), "as many as were asked for, or all");
        let place = |id: &JobId| (std::cmp::Reverse(self.live[id].level), self.live[id].ready_since);
        let last = claimed.iter().map(|job| place(&job.job)).max();
        for id in ready {
            let taken = claimed.iter().any(|job| job.job == id);
            assert!(taken || Some(place(&id)) >= last, "job {id} comes before one that was claimed");
        }
        for answer in claimed {
            assert!(
                self.is_head(answer.job) && self.live[&answer.job].lease.is_none(),
                "job {} is not free",
                answer.job
            );
            let job = self.live.get_mut(&answer.job).expect("it lives");
            job.attempt += 1;
            job.lease_number += 1;
            job.lease = Some(lease(answer));
            assert_eq!((answer.attempt, answer.lease_number), (job.attempt, job.lease_number));
            self.granted.push(lease(answer));
        }
    }
}

fn random_job(rng: &mut StdRng, queue: QueueId) -> JobRow {
    let payload: u8 = rng.random_range(0..2);
    let mut row = changed(job(queue, [payload]), |job| {
        job.priority = priority(rng.random_range(3..6));
        if rng.random_bool(0.4) {
            job.ordering_key = Some(key(&format!("o{}", rng.random_range(0..3))));
        }
        if rng.random_bool(0.2) {
            // One content per key and payload, so that some agree and some do not.
            job.idempotency_key = Some(key(&format!("i{}", rng.random_range(0..40))));
            job.ordering_key = None;
            job.priority = priority(4);
        }
    });
    row.max_attempts = ATTEMPTS;
    row
}

async fn enqueue(bench: &mut Bench, model: &mut Model, rng: &mut StdRng, queue: QueueId) {
    let batch: Vec<JobRow> = (0..rng.random_range(1..6)).map(|_| random_job(rng, queue)).collect();
    let answer = bench.try_enqueue(&batch).await;
    let mut keys = model.keys.clone();
    let mut expected = Vec::new();
    for (index, row) in batch.iter().enumerate() {
        let payload = row.job.payload[0];
        let known = row.job.idempotency_key.as_ref().map(|key| keys.entry(key.as_str().to_owned()));
        match known {
            Some(Entry::Occupied(known)) if known.get().1 != payload => {
                assert_eq!(answer, Err(EngineError::KeyReused { index }));
                return;
            }
            Some(Entry::Occupied(known)) => expected.push(Some(known.get().0)),
            known => {
                let id = answer.as_ref().map_or(JobId(0), |rows| rows[index].job);
                if let Some(Entry::Vacant(free)) = known {
                    free.insert((id, payload));
                }
                expected.push(None);
            }
        }
    }
    let rows = answer.expect("nothing speaks against it");
    model.keys = keys;
    for ((row, answer), known) in batch.iter().zip(rows).zip(expected) {
        assert_eq!(answer.duplicate, known.is_some());
        if let Some(known) = known {
            assert_eq!(answer.job, known);
            continue;
        }
        assert!(model.live.last_key_value().is_none_or(|(last, _)| *last < answer.job), "ids rise");
        let ordering_key = row.job.ordering_key.as_ref().map(|key| key.as_str().to_owned());
        let live = Live {
            level: row.job.priority.level(),
            ordering_key,
            ready_since: model.act,
            attempt: 0,
            lease_number: 0,
            lease: None,
        };
        model.live.insert(answer.job, live);
        assert_eq!(answer.ready_in.is_some(), model.is_head(answer.job), "ready or blocked");
    }
}

async fn reap(db: &dyn Database, bench: &mut Bench, model: &mut Model) {
    db.expire_leases().await;
    let mut reaped = bench.reap().await.leases;
    reaped.sort_by_key(|taken| taken.lease.job);
    let held: Vec<LeaseRef> = model.live.values().filter_map(|job| job.lease).collect();
    assert_eq!(reaped.iter().map(|taken| taken.lease).collect::<Vec<_>>(), held);
    for taken in reaped {
        assert_eq!(taken.dead, model.fail(taken.lease.job, false));
    }
}

/// One random act on leases, most of them live ones.
async fn settle(bench: &mut Bench, model: &mut Model, rng: &mut StdRng) {
    let live: Vec<LeaseRef> = model.live.values().filter_map(|job| job.lease).collect();
    let from = if rng.random_bool(0.8) && !live.is_empty() { &live } else { &model.granted };
    let Some(&chosen) = from.choose(rng) else { return };
    let expected = model.decides(chosen);
    let holds = expected == Held::Ok;
    match rng.random_range(0..6) {
        0 | 1 => {
            assert_eq!(bench.ack_one(chosen).await, expected);
            if holds {
                model.remove(chosen.job);
            }
        }
        2 => {
            let nacked = bench.nack_one(nack_row(chosen, NackAction::Retry)).await;
            assert_eq!((nacked.held, nacked.dead), (expected, holds && model.fail(chosen.job, false)));
        }
        3 => {
            let action = if rng.random_bool(0.2) { NackAction::Reject } else { NackAction::Release };
            let nacked = bench.nack_one(nack_row(chosen, action)).await;
            assert_eq!((nacked.held, nacked.dead), (expected, holds && action == NackAction::Reject));
            match (holds, action) {
                (true, NackAction::Reject) => drop(model.fail(chosen.job, true)),
                (true, _) => model.undo(chosen.job),
                (false, _) => {}
            }
        }
        4 => {
            let extended = bench.extend_one(chosen, Some(Duration::from_secs(rng.random_range(1..1_000)))).await;
            assert_eq!((extended.held, extended.expires_at.is_some()), (expected, holds));
        }
        _ => {
            assert_eq!(bench.give_back(&[chosen]).await, [holds]);
            if holds {
                model.undo(chosen.job);
            }
        }
    }
}

pub(crate) async fn random_acts_are_answered_as_a_plain_model_says(db: &dyn Database) {
    let seed =
        std::env::var("LEASEHOLD_TEST_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or_else(rand::random);
    let mut rng = StdRng::seed_from_u64(seed);
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let mut model = Model::default();
    let _said_on_failure = Seed(seed);
    for act in 0..ACTS {
        model.act = act;
        match rng.random_range(0..10) {
            0..3 => enqueue(&mut bench, &mut model, &mut rng, queue).await,
            3..6 => {
                let wanted = rng.random_range(0..6);
                let claimed = bench.claim(queue, wanted).await;
                model.claim(&claimed, wanted);
            }
            6..9 => settle(&mut bench, &mut model, &mut rng).await,
            _ if rng.random_bool(0.2) => reap(db, &mut bench, &mut model).await,
            _ => {}
        }
        let rows = (db.number("select count(*) from job").await, db.number("select count(*) from dead_job").await);
        let counted = |n: usize| i64::try_from(n).expect("a count");
        assert_eq!(rows, (counted(model.live.len()), counted(model.dead.len())), "act {act}: live and dead");
    }
    // Whatever is left can be worked off.
    while !model.live.is_empty() {
        model.act += 1;
        reap(db, &mut bench, &mut model).await;
        let claimed = bench.claim(queue, 100).await;
        model.claim(&claimed, 100);
        assert!(!claimed.is_empty() || model.live.is_empty(), "jobs are left that nobody can have");
        for job in claimed {
            assert_eq!(bench.ack_one(lease(&job)).await, Held::Ok);
            model.remove(job.job);
        }
    }
    assert_eq!(db.number("select count(*) from job").await, 0);
}

/// Says the seed where the case fails.
struct Seed(u64);

impl Drop for Seed {
    #[allow(clippy::print_stderr)] // the test's own word to whoever reads its failure
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("again with LEASEHOLD_TEST_SEED={}", self.0);
        }
    }
}
