//! Sixty-four buyers after the same stock: all of it is sold, nothing more, and nobody is sent away while there is some.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, AtomicUsize, Ordering::SeqCst},
    },
    time::Instant,
};

use leasehold::{
    model::{ReservationState, StockKey},
    store::engine::{Ended, Reserved},
};
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};

use super::{
    explained::{Refusal, Story},
    shop::{Shop, place},
};
use crate::contract::{database::Database, mariadb, postgres, sqlite};

const BUYERS: usize = 64;

/// What they come for.
#[derive(Debug, Clone, Copy)]
struct Sale {
    locations: usize,
    units: i64,
    most_in_cart: u32,
    /// Of a hundred that had something, so many put it back.
    returns: u32,
    pool: u32,
}

#[derive(Debug, Default)]
struct Outcomes {
    held: AtomicUsize,
    returned: AtomicUsize,
    sold: AtomicI64,
    story: Mutex<Story>,
}

async fn sell(db: &dyn Database, sale: Sale) {
    let shop = Arc::new(Shop::open(db, BUYERS, sale.pool).await);
    let keys: Arc<Vec<StockKey>> = Arc::new((0..sale.locations).map(|number| place("hat", number)).collect());
    let each = sale.units / i64::try_from(sale.locations).expect("few");
    let outcomes = Arc::new(Outcomes::default());
    let begun = Instant::now();
    for key in keys.iter() {
        outcomes.story.lock().expect("not poisoned").begins_with(key, each, begun);
    }
    shop.deliver(&keys.iter().map(|key| (key.clone(), each)).collect::<Vec<_>>()).await;
    let mut buyers = tokio::task::JoinSet::new();
    for number in 0..BUYERS {
        buyers.spawn(buy(number, sale, Arc::clone(&shop), Arc::clone(&keys), Arc::clone(&outcomes)));
    }
    while let Some(buyer) = buyers.join_next().await {
        buyer.expect("no buyer fails");
    }
    let took = begun.elapsed();
    let (falsely, refusals) = {
        let mut story = outcomes.story.lock().expect("not poisoned");
        (story.false_refusals(), story.refusals())
    };
    let (sold, deadlocks) = (outcomes.sold.load(SeqCst), shop.deadlocks.load(SeqCst));
    println!(
        "{}: {BUYERS} buyers, {} units at {} locations, carts up to {}: held {}, put back {}, units sold {sold}, \
         SOLD_OUT {} ({} of them false), deadlocks {deadlocks}, locks not had in time {}, asked for patience {}; {took:.1?}",
        db.engine().system(),
        sale.units,
        sale.locations,
        sale.most_in_cart,
        outcomes.held.load(SeqCst),
        outcomes.returned.load(SeqCst),
        refusals,
        falsely.len(),
        shop.late.load(SeqCst),
        shop.busy.load(SeqCst),
    );
    assert_eq!(sold, sale.units, "sold what was there, all of it");
    assert!(falsely.is_empty(), "sent away while there was some: {:?}", &falsely[..falsely.len().min(3)]);
    assert!(refusals >= BUYERS, "everybody asked until there was nothing");
    assert_eq!(deadlocks, 0, "deadlocks");
    for key in keys.iter() {
        assert_eq!(shop.balance(key).await, (each, each), "everything is held");
    }
    shop.audit().await;
}

/// Buys until everything is sold, then asks once more.
async fn buy(number: usize, sale: Sale, shop: Arc<Shop>, keys: Arc<Vec<StockKey>>, outcomes: Arc<Outcomes>) {
    let mut dice = StdRng::seed_from_u64(number as u64);
    let mut open = keys.to_vec();
    let mut most = vec![sale.most_in_cart; open.len()];
    let mut asked_before = 0;
    while !open.is_empty() {
        let at = dice.random_range(0..open.len());
        let key = open[at].clone();
        let quantity = dice.random_range(1..=most[at]);
        let all_sold = outcomes.sold.load(SeqCst) == sale.units;
        asked_before += 1;
        let cart = shop.cart(&format!("buyer-{number}-{asked_before}"), &key, quantity);
        let asked = Instant::now();
        let answer = shop.reserve(number, &cart).await;
        let answered = Instant::now();
        match answer {
            Reserved::New { reservation, .. } => {
                assert!(!all_sold, "more than there was");
                outcomes.held.fetch_add(1, SeqCst);
                let units = i64::from(quantity);
                outcomes.story.lock().expect("not poisoned").took(&key, units, asked);
                if dice.random_range(0..100) < sale.returns {
                    let ended = shop.end(number, reservation.id, ReservationState::Released, Vec::new()).await;
                    assert!(matches!(ended, Ended::Now { .. }), "{ended:?}");
                    outcomes.returned.fetch_add(1, SeqCst);
                    outcomes.story.lock().expect("not poisoned").gave_back(&key, units, Instant::now());
                } else {
                    outcomes.sold.fetch_add(units, SeqCst);
                }
            }
            Reserved::SoldOut(lines) => {
                let [line] = lines[..] else { panic!("one line was asked for: {lines:?}") };
                let requested = i64::from(quantity);
                assert!((0..requested).contains(&line.available), "{requested} of {line:?}");
                let refusal = Refusal { key, requested, asked, answered };
                outcomes.story.lock().expect("not poisoned").refused(refusal);
                most[at] = u32::try_from(line.available).expect("fewer than asked for").max(1);
                let nothing_returns = sale.returns == 0 && line.available == 0;
                if nothing_returns || all_sold {
                    open.swap_remove(at);
                    most.swap_remove(at);
                }
            }
            other => panic!("{other:?}"),
        }
    }
}

fn is_long() -> bool {
    std::env::var_os("LEASEHOLD_TEST_LONG").is_some()
}

/// One unit a cart in the long run.
fn fifty_thousand() -> Sale {
    let most_in_cart = if is_long() { 1 } else { 120 };
    Sale { locations: 10, units: 50_000, most_in_cart, returns: 0, pool: 1_000 }
}

const LAST_HUNDRED: Sale = Sale { locations: 1, units: 100, most_in_cart: 3, returns: 40, pool: 1_000 };

macro_rules! on {
    ($engine:ident: $fifty_thousand:ident $last_hundred:ident) => {
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $fifty_thousand() {
            let db = $engine::open().await;
            sell(&db, fifty_thousand()).await;
            db.close().await;
        }

        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $last_hundred() {
            for pool in [1_000, 16] {
                let db = $engine::open().await;
                sell(&db, Sale { pool, ..LAST_HUNDRED }).await;
                db.close().await;
            }
        }
    };
}

on!(postgres: buyers_sell_out_ten_locations_on_postgres buyers_of_the_last_hundred_units_are_told_the_truth_on_postgres);
on!(mariadb: buyers_sell_out_ten_locations_on_mariadb buyers_of_the_last_hundred_units_are_told_the_truth_on_mariadb);
on!(sqlite: buyers_sell_out_ten_locations_on_sqlite buyers_of_the_last_hundred_units_are_told_the_truth_on_sqlite);
