//! Rows that a service's open transaction holds: only calls about them wait, and not in the database.

use std::time::{Duration, Instant};

use leasehold::{
    model::NackAction,
    store::engine::{ExtendRow, Held, NackRow},
};

use super::stage::{Sql, Stage, calm, claim, few_lanes, job, lease, token};

/// Ten leased jobs, the first of them acked in a transaction that stays open.
async fn scene(stage: &Stage) -> (leasehold::store::Store, Vec<leasehold::store::engine::ClaimedJob>, Sql) {
    let store = stage.store(few_lanes()).await;
    let stored = store.enqueue(&calm("producer"), vec![job("q", "work"); 10]).await.expect("stored");
    let claimed = claim(&store, stored[0].queue, 10).await;
    assert_eq!(claimed.len(), 10);
    let mut service = stage.sql().await;
    service.run("begin").await;
    assert_eq!(service.number(&format!("select leasehold.ack('{}')::int::bigint", token(&claimed[0]))).await, 1);
    (store, claimed, service)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ack_of_a_job_that_an_open_transaction_holds_is_busy_in_time_and_delays_no_other() {
    let stage = Stage::postgres().await;
    let (store, claimed, mut service) = scene(&stage).await;
    let leases: Vec<_> = claimed.iter().map(lease).collect();

    let (started, by) = (Instant::now(), calm("checkout"));
    let mixed = store.ack(&by, leases[..5].to_vec());
    let others = async {
        let acked = store.ack(&by, leases[5..].to_vec()).await.expect("answered");
        let stored = store.enqueue(&by, vec![job("q", "meanwhile")]).await;
        stored.expect("stored");
        (acked, started.elapsed())
    };
    let (mixed, (others, others_took)) = tokio::join!(mixed, others);

    let took = started.elapsed();
    let held: Vec<Held> = mixed.expect("answered").iter().map(|row| row.held).collect();
    assert_eq!(held, [Held::Busy, Held::Ok, Held::Ok, Held::Ok, Held::Ok]);
    assert!(took >= Duration::from_millis(600) && took < Duration::from_millis(1_600), "{took:?}");
    assert!(others.iter().all(|row| row.held == Held::Ok));
    assert!(others_took < Duration::from_millis(500), "others waited {others_took:?}");

    service.run("rollback").await;
    let again = store.ack(&calm("checkout"), vec![leases[0]]).await.expect("answered");
    assert_eq!(again[0].held, Held::Ok, "rolled back: the lease stands");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_settlement_that_waits_for_a_transaction_hears_how_it_ended() {
    let stage = Stage::postgres().await;
    let (store, claimed, mut service) = scene(&stage).await;
    let by = calm("checkout");
    let acking = store.ack(&by, vec![lease(&claimed[0])]);
    let committing = async {
        tokio::time::sleep(Duration::from_millis(150)).await; // well inside the second for which it is tried again
        service.run("commit").await;
    };
    let (acked, ()) = tokio::join!(acking, committing);
    assert_eq!(acked.expect("answered")[0].held, Held::Gone);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nack_and_extend_of_a_held_job_are_busy_too_and_change_nothing() {
    let stage = Stage::postgres().await;
    let (store, claimed, mut service) = scene(&stage).await;
    let nack = |at: usize| NackRow {
        lease: lease(&claimed[at]),
        action: NackAction::Reject,
        delay: None,
        jitter: 0.5,
        error: "no".to_owned(),
    };
    let extend = |at: usize| ExtendRow { lease: lease(&claimed[at]), duration: Some(Duration::from_mins(5)) };
    let by = calm("checkout");
    let (nacked, extended) =
        tokio::join!(store.nack(&by, vec![nack(0), nack(1)]), store.extend(&by, vec![extend(0), extend(2)]));
    let nacked: Vec<Held> = nacked.expect("answered").iter().map(|row| row.held).collect();
    let extended: Vec<Held> = extended.expect("answered").iter().map(|row| row.held).collect();
    assert_eq!((nacked, extended), (vec![Held::Busy, Held::Ok], vec![Held::Busy, Held::Ok]));

    service.run("rollback").await;
    let until = claimed[0].lease_expires_at.0;
    let same = format!(
        "select count(*) from job where id = {} and lease_until = timestamptz 'epoch' + {until} * interval '1 us'",
        claimed[0].job
    );
    assert_eq!(service.number(&same).await, 1, "busy means unchanged");
}
