//! Consumers that do everything a consumer can do to a job.

use std::time::{Duration, Instant};

use leasehold::{
    model::{NackAction, QueueId},
    store::engine::{ClaimedJob, ExtendRow, Held, NackRow},
};
use rand::{Rng, rngs::StdRng};

use super::{
    history::Label,
    scene::{Scene, linger},
    service::Service,
};
use crate::lanes::stage::{caller, calm, claim_of, lease, slots};

/// Claims and settles until the run is closed; from its calming down on, by Acks alone.
pub(super) async fn run(scene: Scene, mut rng: StdRng) {
    let mut service = Service::new(&scene);
    while scene.is_open() {
        let claimed = claim(&scene, scene.queue, &mut rng).await;
        if claimed.is_empty() {
            linger(&mut rng, Duration::from_millis(10)).await;
        }
        for (job, duration) in claimed {
            if scene.is_wild() {
                treat(&scene, &mut service, &mut rng, &job, duration).await;
            } else {
                ack(&scene, &mut rng, &job).await;
            }
        }
    }
}

async fn claim(scene: &Scene, queue: QueueId, rng: &mut StdRng) -> Vec<(ClaimedJob, Duration)> {
    let short = scene.is_wild() && rng.random_bool(0.2);
    let duration = Duration::from_millis(if short { rng.random_range(20..150) } else { 2_000 });
    let wanted = rng.random_range(1..=4);
    let asked = Instant::now();
    match scene.store(rng).claim(&caller("consumer"), vec![claim_of(queue, slots(wanted, duration))]).await {
        Ok(claimed) => {
            for job in &claimed {
                scene.history.granted(job, duration, asked);
            }
            claimed.into_iter().map(|job| (job, duration)).collect()
        }
        Err(failure) => {
            scene.is_not_applied(&failure);
            Vec::new()
        }
    }
}

async fn treat(scene: &Scene, service: &mut Service<'_>, rng: &mut StdRng, job: &ClaimedJob, duration: Duration) {
    match rng.random_range(0..100) {
        0..8 => nack(scene, rng, job, NackAction::Retry).await,
        8..16 => nack(scene, rng, job, NackAction::Release).await,
        16..19 => nack(scene, rng, job, NackAction::Reject).await,
        19..45 if duration < Duration::from_secs(1) => {} // left to expire
        19..24 => {
            extend(scene, rng, job).await;
            ack(scene, rng, job).await;
        }
        24..28 => give_back(scene, rng, job).await,
        28..45 if scene.stage.is_server() => ack_by_sql(scene, service, rng, job).await,
        45..50 => impatient_ack(scene, rng, job).await,
        50..54 => {
            linger(rng, duration.min(Duration::from_millis(200))).await; // may be too late by now
            ack(scene, rng, job).await;
        }
        _ => ack(scene, rng, job).await,
    }
}

async fn ack(scene: &Scene, rng: &mut StdRng, job: &ClaimedJob) {
    scene.history.ending(job.lease);
    match scene.store(rng).ack(&calm("consumer"), vec![lease(job)]).await {
        Ok(acked) if acked[0].held == Held::Ok => scene.history.acked(job.lease),
        Ok(_) => scene.history.kept(job.lease),
        Err(failure) => {
            if scene.is_not_applied(&failure) {
                scene.history.kept(job.lease);
            }
        }
    }
}

/// An asker that does not wait for the answer.
async fn impatient_ack(scene: &Scene, rng: &mut StdRng, job: &ClaimedJob) {
    scene.history.ending(job.lease);
    let patience = Duration::from_micros(rng.random_range(0..3_000));
    drop(tokio::time::timeout(patience, scene.store(rng).ack(&calm("consumer"), vec![lease(job)])).await);
}

async fn nack(scene: &Scene, rng: &mut StdRng, job: &ClaimedJob, action: NackAction) {
    scene.history.returning(job.lease);
    let delay = Some(Duration::from_millis(rng.random_range(0..30)));
    let row = NackRow { lease: lease(job), action, delay, jitter: 0.5, error: "no luck".to_owned() };
    if let Err(failure) = scene.store(rng).nack(&calm("consumer"), vec![row]).await {
        scene.is_not_applied(&failure);
    }
}

async fn extend(scene: &Scene, rng: &mut StdRng, job: &ClaimedJob) {
    let row = ExtendRow { lease: lease(job), duration: Some(Duration::from_millis(rng.random_range(1_000..3_000))) };
    match scene.store(rng).extend(&calm("consumer"), vec![row]).await {
        Ok(extended) => {
            if let Some(expires) = extended[0].expires_at {
                scene.history.extended(job.lease, expires);
            }
        }
        Err(failure) => {
            scene.is_not_applied(&failure);
        }
    }
}

async fn give_back(scene: &Scene, rng: &mut StdRng, job: &ClaimedJob) {
    scene.history.returning(job.lease);
    if let Err(failure) = scene.store(rng).give_back(vec![lease(job)]).await {
        scene.is_not_applied(&failure);
    }
}

/// Acks in a transaction that stays open for a while, then is committed, rolled back or cut; then sends the plain Ack, as
/// the documentation has it.
async fn ack_by_sql(scene: &Scene, service: &mut Service<'_>, rng: &mut StdRng, job: &ClaimedJob) {
    if service.begin().await.is_err() {
        return;
    }
    scene.history.ending(job.lease);
    let mut follow_up = Vec::new();
    match transact(scene, service, rng, job, &mut follow_up).await {
        Some(true) => {
            scene.history.acked(job.lease);
            scene.history.stored(&follow_up);
            // The plain Ack that gives the credit back finds nothing to do.
            match scene.store(rng).ack(&calm("consumer"), vec![lease(job)]).await {
                Ok(again) => assert_eq!(again[0].held, Held::Gone),
                Err(failure) => {
                    scene.is_not_applied(&failure);
                }
            }
        }
        Some(false) => {
            scene.history.never(&follow_up);
            ack(scene, rng, job).await;
        }
        None => {}
    }
}

/// Whether the job was acked, where that is known.
async fn transact(
    scene: &Scene,
    service: &mut Service<'_>,
    rng: &mut StdRng,
    job: &ClaimedJob,
    follow_up: &mut Vec<Label>,
) -> Option<bool> {
    let Ok(held) = service.ack(job).await else { return Some(false) };
    if held && rng.random_bool(0.3) {
        let key = scene.key(rng).to_owned();
        let label = scene.history.sending(&key);
        follow_up.push(label);
        if service.enqueue(label, &key).await.is_err() {
            return Some(false);
        }
    }
    let long = rng.random_bool(0.2);
    linger(rng, Duration::from_millis(if long { 300 } else { 20 })).await;
    if !held || rng.random_bool(0.3) {
        drop(service.run("rollback").await); // cut or not, it is rolled back
        return Some(false);
    }
    service.run("commit").await.ok().map(|()| true)
}
