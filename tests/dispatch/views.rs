//! Failure case 52: those who look at a long queue share what one count found, and see what they did themselves.

use std::time::Duration;

use leasehold::{
    model::{JobState, QueueId},
    store::{Pace, Purge, Store, StoreOptions},
};

use super::broker::{call, job};
use crate::lanes::stage::Stage;

/// More than the counts have that are not shared.
const MANY: u64 = 2_500;

async fn store_and(stage: &Stage, jobs: u64) -> (Store, QueueId) {
    let (count_age, pace) = (Duration::from_hours(1), Pace { share: 1.0, ..Pace::default() });
    let store = stage.store(StoreOptions { count_age, pace, ..StoreOptions::default() }).await;
    let mut queue = None;
    for _ in 0..jobs / 500 {
        queue = store.enqueue(&call(), vec![job("long", "x"); 500]).await.expect("stored").first().map(|one| one.queue);
    }
    (store, queue.expect("a queue"))
}

async fn ready(store: &Store, queue: QueueId) -> u64 {
    store.view_jobs(&call(), &[queue]).await.expect("counts").first().expect("of a queue").ready.value
}

async fn viewers_of_a_long_queue_share_a_count_until_it_is_changed_by_an_operator(stage: Stage) {
    let (store, queue) = store_and(&stage, MANY).await;
    assert_eq!(ready(&store, queue).await, MANY);
    store.enqueue(&call(), vec![job("long", "x"); 10]).await.expect("stored");
    let mut viewers = tokio::task::JoinSet::new();
    for _ in 0..10 {
        let store = store.clone();
        viewers.spawn(async move { ready(&store, queue).await });
    }
    assert_eq!(viewers.join_all().await, [MANY; 10], "what the first one counted");
    let fresh = store.count_jobs(&call(), &[queue]).await.expect("counts");
    assert_eq!(fresh[0].ready.value, MANY + 10, "who has to know counts");

    let mut purge = Purge::new(queue, &[JobState::Ready], None, Some(100));
    while !store.purge(&call(), &mut purge).await.expect("a step").done {}
    assert_eq!(ready(&store, queue).await, MANY + 10 - 100, "whoever purges sees that at once");
}

async fn counts_of_few_jobs_are_of_the_moment(stage: Stage) {
    let (store, queue) = store_and(&stage, 500).await;
    for n in 0..3 {
        assert_eq!(ready(&store, queue).await, 500 + n);
        store.enqueue(&call(), vec![job("long", "x")]).await.expect("stored");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn viewers_of_a_long_queue_share_a_count_until_it_is_changed_by_an_operator_on_postgres() {
    viewers_of_a_long_queue_share_a_count_until_it_is_changed_by_an_operator(Stage::postgres().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn viewers_of_a_long_queue_share_a_count_until_it_is_changed_by_an_operator_on_sqlite() {
    viewers_of_a_long_queue_share_a_count_until_it_is_changed_by_an_operator(Stage::sqlite().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn counts_of_few_jobs_are_of_the_moment_on_postgres() {
    counts_of_few_jobs_are_of_the_moment(Stage::postgres().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn counts_of_few_jobs_are_of_the_moment_on_sqlite() {
    counts_of_few_jobs_are_of_the_moment(Stage::sqlite().await).await;
}
