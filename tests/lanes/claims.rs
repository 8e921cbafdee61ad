//! Claims whose answer is lost.

use std::time::Duration;

use leasehold::{
    model::{Outcome, QueueId, Reason},
    store::engine::Wake,
};

use super::{
    proxy::Mode,
    stage::{Stage, caller, calm, claim, claim_of, job, one_lane, slots, until},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_whose_answer_is_lost_is_undone_without_an_attempt() {
    let stage = Stage::postgres_behind_a_proxy().await;
    // One lane, with its statement prepared: nothing else is asked before it is sent.
    let options = one_lane();
    assert_eq!(stage.writers(&options), 1);
    let store = stage.store(options).await;
    let stored = store.enqueue(&calm("producer"), vec![job("q", "work"); 5]).await.expect("stored");
    let queue = stored[0].queue;
    let mut wakes = store.take_wakes().expect("nobody took them");
    let mut watcher = stage.sql().await;
    store
        .claim(&caller("consumer"), vec![claim_of(QueueId(0), slots(1, Duration::from_secs(1)))])
        .await
        .expect("no such queue");

    stage.proxy().set(Mode::LoseAnswers);
    let claiming = {
        let store = store.clone();
        let claim = claim_of(queue, slots(10, Duration::from_hours(1)));
        tokio::spawn(async move { store.claim(&caller("consumer"), vec![claim]).await })
    };
    watcher.wait_for("select count(*) from job where lease_id is not null", 5).await;
    stage.proxy().cut();
    stage.proxy().set(Mode::Pass);
    let lost = claiming.await.expect("it ran").expect_err("its answer was lost");
    assert_eq!((lost.reason, lost.outcome), (Reason::OutcomeUnknown, Outcome::Unknown), "{lost}");

    watcher.wait_for("select count(*) from job where lease_id is null and attempt = 0 and ready_at <= now()", 5).await;
    while let Ok(wake) = tokio::time::timeout(Duration::from_secs(10), wakes.recv()).await {
        if wake == Some(Wake::Everything) {
            break;
        }
    }
    let mut claimed = Vec::new();
    until("all five are claimed again", async || {
        claimed.extend(claim(&store, queue, 5).await);
        claimed.len() == 5
    })
    .await;
    assert!(claimed.iter().all(|job| job.attempt == 1 && job.lease_number == 2), "{claimed:?}");
}
