//! Producers: over the store, and by SQL in transactions that stay open or roll back.

use std::time::Duration;

use leasehold::model::{Key, NewJob, Start};
use rand::{Rng, rngs::StdRng};

use super::{
    history::Label,
    scene::{QUEUE, Scene, linger},
    service::Service,
};
use crate::lanes::stage::{calm, keyed};

/// Enqueues over the store until the run calms down.
pub(super) async fn run(scene: Scene, mut rng: StdRng) {
    while scene.is_wild() {
        linger(&mut rng, Duration::from_millis(4)).await;
        if !scene.wants_jobs() {
            continue;
        }
        let (mut jobs, mut labels) = (Vec::new(), Vec::new());
        for _ in 0..rng.random_range(1..=3) {
            let key = scene.key(&mut rng).to_owned();
            let label = scene.history.sending(&key);
            let mut job = keyed(QUEUE, "ordered", &key);
            job.payload = label.to_string().into_bytes().into();
            job.max_attempts = Some(1_000);
            if rng.random_bool(0.05) {
                job.start = Start::After(Duration::from_millis(rng.random_range(0..50)));
            }
            jobs.push(job);
            labels.push(label);
        }
        if rng.random_bool(0.3) {
            for (job, label) in jobs.iter_mut().zip(&labels) {
                job.idempotency_key = Some(Key::parse("key", &format!("once-{label}")).expect("a key"));
            }
        }
        enqueue(&scene, &mut rng, jobs, &labels).await;
    }
}

/// With keys, an unknown outcome is resolved by asking again; without, it stays unknown.
async fn enqueue(scene: &Scene, rng: &mut StdRng, jobs: Vec<NewJob>, labels: &[Label]) {
    let repeatable = jobs[0].idempotency_key.is_some();
    let mut unknown = false;
    loop {
        match scene.store(rng).enqueue(&calm("producer"), jobs.clone()).await {
            Ok(_) => return scene.history.stored(labels),
            Err(failure) => {
                unknown |= !scene.is_not_applied(&failure);
                if !unknown {
                    return scene.history.never(labels);
                }
                if !repeatable {
                    return;
                }
            }
        }
    }
}

/// Enqueues by SQL until the run calms down.
pub(super) async fn run_service(scene: Scene, mut rng: StdRng) {
    let mut service = Service::new(&scene);
    while scene.is_wild() {
        linger(&mut rng, Duration::from_millis(20)).await;
        if !scene.wants_jobs() {
            continue;
        }
        let mut labels = Vec::new();
        let committed = transact(&scene, &mut service, &mut rng, &mut labels).await;
        match committed {
            Some(true) => scene.history.stored(&labels),
            Some(false) => scene.history.never(&labels),
            None => {}
        }
    }
}

/// Whether the transaction was committed, where that is known.
async fn transact(scene: &Scene, service: &mut Service<'_>, rng: &mut StdRng, labels: &mut Vec<Label>) -> Option<bool> {
    if service.begin().await.is_err() {
        return Some(false);
    }
    for _ in 0..rng.random_range(1..=3) {
        let key = scene.key(rng).to_owned();
        let label = scene.history.sending(&key);
        labels.push(label);
        if service.enqueue(label, &key).await.is_err() {
            return Some(false);
        }
    }
    let long = rng.random_bool(0.2);
    linger(rng, Duration::from_millis(if long { 400 } else { 20 })).await;
    if rng.random_bool(0.3) {
        drop(service.run("rollback").await); // cut or not, it is rolled back
        return Some(false);
    }
    service.run("commit").await.ok().map(|()| true)
}
