//! What services leave by SQL, and when the broker takes it up.

use leasehold::store::{Store, engine::Held};

use super::stage::{Stage, calm, claim, few_lanes, keyed, lease, put, queue, until};

/// Adopts until nothing is left to adopt.
async fn adopt(store: &Store) {
    until("everything is adopted", async || store.adopt_arrivals(0, 100).await.expect("adopted").rows == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_left_for_a_queue_that_did_not_exist_comes_before_later_ones_of_its_key() {
    let stage = Stage::postgres().await;
    let store = stage.store(few_lanes()).await;
    let mut service = stage.sql().await;
    let first = service.number("select leasehold.enqueue('new', 'first', ordering_key => 'k')").await;
    // Committed, and not adopted: the queue comes into being by a call.
    let (second, id) = put(&store, keyed("new", "second", "k")).await;
    let (_, elsewhere) = put(&store, keyed("other", "second", "k")).await;
    assert_eq!(claim(&store, elsewhere, 1).await.len(), 1, "the same key in another queue waits for nothing");

    adopt(&store).await;
    for expected in [first, second.0] {
        let claimed = claim(&store, id, 2).await;
        assert_eq!(claimed.iter().map(|job| job.job.0).collect::<Vec<_>>(), [expected]);
        let acked = store.ack(&calm("consumer"), claimed.iter().map(lease).collect()).await.expect("acked");
        assert_eq!(acked[0].held, Held::Ok);
    }
    assert_eq!(service.number("select count(*) from ordering_key where queue_id = 1").await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_left_without_a_key_is_ready_once_it_is_adopted_and_brings_its_queue() {
    let stage = Stage::postgres().await;
    let store = stage.store(few_lanes()).await;
    let mut service = stage.sql().await;
    service.run("begin").await;
    let open = service.number("select leasehold.enqueue('new', 'work')").await;
    adopt(&store).await;
    assert_eq!(store.queue(&queue("new")).await.expect("looked for"), None, "nothing is there before the commit");
    service.run("commit").await;

    let adopted = store.adopt_arrivals(0, 100).await.expect("adopted");
    assert_eq!(adopted.rows, 1);
    let row = store.queue(&queue("new")).await.expect("looked for").expect("it came into being");
    assert_eq!(adopted.readied, [row.id]);
    let claimed = claim(&store, row.id, 2).await;
    assert_eq!(claimed.iter().map(|job| job.job.0).collect::<Vec<_>>(), [open]);
    assert!(claimed[0].ready_at >= claimed[0].available_at);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_that_commits_late_is_found_from_the_floor_of_the_passes_before() {
    let stage = Stage::postgres().await;
    let store = stage.store(few_lanes()).await;
    let (mut early, mut late) = (stage.sql().await, stage.sql().await);
    late.run("begin").await;
    late.number("select leasehold.enqueue('q', 'late')").await;
    let mut floor = 0;
    for n in 0..20 {
        early.number(&format!("select leasehold.enqueue('q', 'early-{n}')")).await;
        let adopted = store.adopt_arrivals(floor, 100).await.expect("adopted");
        assert_eq!(adopted.rows, 1);
        assert!(adopted.floor >= floor, "floors never go back");
        floor = adopted.floor;
    }
    late.run("commit").await;
    assert_eq!(store.adopt_arrivals(floor, 100).await.expect("adopted").rows, 1);
    // Once nothing older runs, the floor moves past what is gone.
    until("the floor moves on", async || {
        let before = floor;
        early.number("select leasehold.enqueue('q', 'more')").await;
        floor = store.adopt_arrivals(floor, 100).await.expect("adopted").floor;
        floor > before
    })
    .await;
}
