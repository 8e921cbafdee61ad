//! Commit, release and expiry of one reservation at the same moment: it ends once, and whoever ended it is told so.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use leasehold::{
    model::{LedgerKind, QueueId, ReservationId, ReservationState, StockKey, Timestamp},
    store::engine::{Ended, ReservationRef, Reserved},
};
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};

use super::shop::{Shop, place};
use crate::contract::{
    bench::{Bench, job},
    database::{Database, caller},
    mariadb, postgres, sqlite,
};

const RACERS: usize = 16;
const ROUNDS: usize = 2_000;
const TIME_TO_LIVE: Duration = Duration::from_millis(80);
/// Around the end of its time.
const SPREAD: Duration = Duration::from_millis(50);
const FIRST: Duration = Duration::from_millis(30);

/// Where jobs go: of commits, and of expiries.
#[derive(Clone, Copy)]
struct Queues {
    paid: QueueId,
    lapsed: QueueId,
}

#[derive(Debug, Default)]
struct Tally {
    committed: AtomicUsize,
    released: AtomicUsize,
    expired: AtomicUsize,
    swept: AtomicUsize,
    over: AtomicBool,
}

async fn race(db: &dyn Database, rounds: usize) {
    // Two for each racer, as if they came through two replicas, and one sweeper of each replica.
    let shop = Arc::new(Shop::open(db, 2 * RACERS + 2, 100).await);
    let queues = {
        let mut bench = Bench::on(db).await;
        Queues { paid: bench.queue("paid").await, lapsed: bench.queue("lapsed").await }
    };
    let each = rounds / RACERS;
    let units = i64::try_from(each).expect("few");
    let keys: Vec<StockKey> = (0..RACERS).map(|number| place("seat", number)).collect();
    shop.deliver(&keys.iter().map(|key| (key.clone(), units)).collect::<Vec<_>>()).await;
    let tally = Arc::new(Tally::default());
    let mut sweepers = tokio::task::JoinSet::new();
    for number in [2 * RACERS, 2 * RACERS + 1] {
        sweepers.spawn(sweep(number, Arc::clone(&shop), Arc::clone(&tally)));
    }
    let mut racers = tokio::task::JoinSet::new();
    for (number, key) in keys.iter().cloned().enumerate() {
        racers.spawn(run(number, each, key, queues, Arc::clone(&shop), Arc::clone(&tally)));
    }
    while let Some(racer) = racers.join_next().await {
        racer.expect("no racer fails");
    }
    tally.over.store(true, SeqCst);
    while let Some(sweeper) = sweepers.join_next().await {
        sweeper.expect("no sweeper fails");
    }
    let [committed, released, expired] =
        [&tally.committed, &tally.released, &tally.expired].map(|one| one.load(SeqCst));
    let deadlocks = shop.deadlocks.load(SeqCst);
    println!(
        "{}: {} rounds: {committed} committed, {released} released, {expired} expired; deadlocks {deadlocks}",
        db.engine().system(),
        each * RACERS
    );
    assert_eq!(committed + released + expired, each * RACERS, "one end each");
    assert!(committed > 0 && released > 0 && expired > 0, "nobody ever won: that is no race");
    assert_eq!(tally.swept.load(SeqCst), expired, "ended by a sweep, or by nobody");
    assert_eq!(deadlocks, 0, "deadlocks");
    let jobs =
        async |queue: QueueId| db.number(&format!("select count(*) from job where queue_id = {}", queue.0)).await;
    assert_eq!(usize::try_from(jobs(queues.paid).await), Ok(committed), "a job for each commit");
    assert_eq!(usize::try_from(jobs(queues.lapsed).await), Ok(expired), "a job for each expiry");
    let (on_hand, held) = sums(&shop, &keys).await;
    assert_eq!((on_hand, held), (units * 16 - i64::try_from(committed).expect("few"), 0));
    shop.audit().await;
}

async fn sums(shop: &Shop, keys: &[StockKey]) -> (i64, i64) {
    let mut sums = (0, 0);
    for key in keys {
        let (on_hand, held) = shop.balance(key).await;
        sums = (sums.0 + on_hand, sums.1 + held);
    }
    sums
}

async fn sweep(number: usize, shop: Arc<Shop>, tally: Arc<Tally>) {
    while !tally.over.load(SeqCst) {
        let swept = shop.till(number).await.session.sweep_expired(&caller(), Timestamp::BEGINNING, 100).await;
        if let Some(swept) = shop.past(swept) {
            tally.swept.fetch_add(swept.lags.len(), SeqCst);
        }
        tokio::time::sleep(Duration::from_millis(3)).await;
    }
}

async fn run(number: usize, rounds: usize, key: StockKey, queues: Queues, shop: Arc<Shop>, tally: Arc<Tally>) {
    let mut dice = StdRng::seed_from_u64(number as u64);
    for round in 0..rounds {
        let mut cart = shop.cart(&format!("racer-{number}-{round}"), &key, 1);
        cart.time_to_live = TIME_TO_LIVE;
        cart.jobs_on_expiry = vec![job(queues.lapsed, "lapsed")];
        let Reserved::New { reservation, .. } = shop.reserve(number, &cart).await else {
            panic!("a unit for each round")
        };
        let mut offset = || FIRST + SPREAD.mul_f64(2.0 * dice.random::<f64>());
        let (first, second) = (offset(), offset());
        let id = reservation.id;
        let (committed, released) = tokio::join!(
            async {
                tokio::time::sleep(first).await;
                shop.end(number, id, ReservationState::Committed, vec![job(queues.paid, "paid")]).await
            },
            async {
                tokio::time::sleep(second).await;
                shop.end(RACERS + number, id, ReservationState::Released, Vec::new()).await
            },
        );
        let won = judge(&committed, &released);
        match won {
            ReservationState::Committed => &tally.committed,
            ReservationState::Released => &tally.released,
            ReservationState::Expired => &tally.expired,
            ReservationState::Held => panic!("nobody ended it: {committed:?} {released:?}"),
        }
        .fetch_add(1, SeqCst);
        settled(&shop, number, id, won, &key).await;
    }
}

/// Who ended it, by what both were told.
fn judge(committed: &Ended, released: &Ended) -> ReservationState {
    match (committed, released) {
        (Ended::Now { .. }, Ended::Before(row)) => {
            assert_eq!(row.state, ReservationState::Committed);
            ReservationState::Committed
        }
        (Ended::Before(row), Ended::Now { .. }) => {
            assert_eq!(row.state, ReservationState::Released);
            ReservationState::Released
        }
        (Ended::Before(one), Ended::Before(other)) => {
            assert_eq!((one.state, other.state), (ReservationState::Expired, ReservationState::Expired));
            ReservationState::Expired
        }
        other => panic!("two ends, or none: {other:?}"),
    }
}

/// That it stays as its end was told, with one entry of the ledger for it.
async fn settled(shop: &Shop, number: usize, id: ReservationId, won: ReservationState, key: &StockKey) {
    let mut till = shop.till(number).await;
    let found = till.session.find_reservation(&caller(), &ReservationRef::Id(id)).await.expect("an answer");
    assert_eq!(found.expect("the reservation").state, won);
    let entries = till.session.ledger(&caller(), key, None, 10).await.expect("entries");
    let kinds: Vec<LedgerKind> = entries.iter().filter(|one| one.reservation == Some(id)).map(|one| one.kind).collect();
    let end = match won {
        ReservationState::Committed => LedgerKind::Commit,
        ReservationState::Released => LedgerKind::Release,
        _ => LedgerKind::Expire,
    };
    assert_eq!(kinds, [end, LedgerKind::Reserve]);
}

macro_rules! on {
    ($engine:ident: $test:ident) => {
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $test() {
            let db = $engine::open().await;
            race(&db, ROUNDS).await;
            db.close().await;
        }
    };
}

on!(postgres: commit_release_and_expiry_at_once_are_one_end_on_postgres);
on!(mariadb: commit_release_and_expiry_at_once_are_one_end_on_mariadb);
on!(sqlite: commit_release_and_expiry_at_once_are_one_end_on_sqlite);
