//! The one task that owns the desk: brings it the news, does what it asks for.

use std::{collections::HashMap, panic::AssertUnwindSafe, sync::Arc, time::Instant};

use futures_util::{FutureExt, future::join_all};
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
    time::sleep_until,
};
use tokio_util::sync::CancellationToken;
use tracing::error;

use super::{
    Shared,
    desk::{Act, Desk, Done},
};
use crate::{
    model::{Caller, Failure},
    store::{BudgetList, Store, engine::Wake},
};

/// Wake-ups taken in before one turn.
const WAKES: usize = 1_000;

/// Runs until `stop`, or until a drain has nothing left to do.
pub(super) async fn run(mut desk: Desk, store: Store, shared: Arc<Shared>, stop: CancellationToken) {
    let mut wakes = store.take_wakes();
    let mut availability = store.availability();
    let mut news = News { available: Some(*availability.borrow_and_update()), ..News::default() };
    let mut availability = Some(availability);
    let mut budgets = store.budgets();
    desk.set_claims_at_most(claims_at_most(&budgets.borrow_and_update()));
    let mut works: JoinSet<Done> = JoinSet::new();
    loop {
        let now = Instant::now();
        if let Some(available) = news.available.take() {
            desk.set_available(available, now);
        }
        if budgets.has_changed().is_ok_and(|changed| changed) {
            desk.set_claims_at_most(claims_at_most(&budgets.borrow_and_update()));
        }
        if shared.inbox.is_draining() && !desk.is_draining() {
            desk.drain();
        }
        desk.turn(shared.inbox.empty(), std::mem::take(&mut news.done), std::mem::take(&mut news.wakes), now);
        for act in desk.take_acts() {
            start(act, &store, &mut works);
        }
        shared.show(desk.snapshot());
        if desk.is_drained() && shared.inbox.open() == 0 {
            break;
        }
        let alarm = desk.next_turn().unwrap_or(now + std::time::Duration::from_secs(1));
        tokio::select! {
            () = stop.cancelled() => break,
            () = shared.inbox.news() => {}
            Some(done) = works.join_next() => news.take_done(done),
            wake = next_wake(&mut wakes) => news.wakes.push(wake),
            available = next_availability(&mut availability) => news.available = Some(available),
            () = sleep_until(alarm.into()) => {}
        }
        news.gather(&mut works, wakes.as_mut());
    }
    shared.done.cancel();
}

/// Claims that callers with a budget of lanes may have under way: the last lane is for settling.
fn claims_at_most(budgets: &BudgetList) -> HashMap<Caller, usize> {
    let most = |lanes: u32| (lanes as usize).saturating_sub(1).max(1);
    let capped = budgets.iter().filter_map(|(caller, held)| Some((caller.clone(), most(held.budget.max_lanes?))));
    capped.collect()
}

#[derive(Default)]
struct News {
    done: Vec<Done>,
    wakes: Vec<Wake>,
    available: Option<bool>,
}

impl News {
    /// Whatever else is there already belongs to the same turn.
    fn gather(&mut self, works: &mut JoinSet<Done>, wakes: Option<&mut mpsc::Receiver<Wake>>) {
        while let Some(done) = works.try_join_next() {
            self.take_done(done);
        }
        if let Some(wakes) = wakes {
            while self.wakes.len() < WAKES
                && let Ok(wake) = wakes.try_recv()
            {
                self.wakes.push(wake);
            }
        }
    }

    fn take_done(&mut self, done: Result<Done, tokio::task::JoinError>) {
        match done {
            Ok(done) => self.done.push(done),
            // The works catch their own panics, so this is a runtime that shuts down.
            Err(failure) => error!(%failure, "a piece of the dispatcher's work has ended early"),
        }
    }
}

async fn next_wake(wakes: &mut Option<mpsc::Receiver<Wake>>) -> Wake {
    if let Some(receiver) = wakes {
        if let Some(wake) = receiver.recv().await {
            return wake;
        }
        *wakes = None; // the store has none any more
    }
    std::future::pending().await
}

async fn next_availability(availability: &mut Option<watch::Receiver<bool>>) -> bool {
    if let Some(receiver) = availability {
        if receiver.changed().await.is_ok() {
            return *receiver.borrow_and_update();
        }
        *availability = None;
    }
    std::future::pending().await
}

fn start(act: Act, store: &Store, works: &mut JoinSet<Done>) {
    let store = store.clone();
    match act {
        Act::Notify(wake) => store.notify(wake),
        Act::Claim { number, caller, claims } => drop(works.spawn(async move {
            let result = caught(store.claim(&caller, claims)).await;
            Done::Claim { number, result }
        })),
        Act::GiveBack(returned) => drop(works.spawn(async move {
            let result = caught(store.give_back(returned.iter().map(|one| one.lease).collect())).await;
            Done::GiveBack { returned, result }
        })),
        Act::Look(spots) => drop(works.spawn(async move { Done::Look { result: caught(store.look(spots)).await } })),
        Act::Inspect(leases) => drop(works.spawn(async move {
            let result = caught(store.inspect(leases.clone())).await;
            Done::Inspect { leases, result }
        })),
        Act::ReadSettings(names) => drop(works.spawn(async move {
            let result = caught(store.queues_now(names.clone())).await;
            Done::ReadSettings { names, result }
        })),
        Act::Resolve { number, names } => drop(works.spawn(async move {
            let results = join_all(names.into_iter().map(|name| async {
                let result = caught(store.queue(&name)).await;
                (name, result)
            }));
            Done::Resolve { number, results: results.await }
        })),
    }
}

/// A panic in there is a bug of ours, but the streams must not wait for its answer for ever.
async fn caught<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|_| {
        error!("a piece of the dispatcher's work panicked");
        Err(Failure::internal("the broker met a bug of its own"))
    })
}
