//! What the store does about stock beyond its engines: the fast way and the slow one, switches, refills, jobs by the rules of
//! Enqueue.

use std::time::Duration;

use leasehold::{
    model::{
        Adjustment, Failure, Key, NewJob, Outcome, QueueName, QueueSettings, Reason, ReservationLine, ReservationState,
        StockKey,
    },
    store::{NewAdjustments, NewReservation, Reservation, StockOptions, Store, StoreOptions},
};

use super::stage::{Stage, calm, claim, few_lanes, job, until};

const POOL: u32 = 10;

on_both_engines! {
    a_buyer_is_served_to_the_last_unit_and_hears_of_what_too_little_is_free,
    a_switch_stops_new_reservations_of_its_items_and_nothing_else,
    another_replica_goes_by_a_switch_once_it_has_read_it,
    jobs_that_cannot_be_stored_are_told_as_enqueue_tells_them,
    what_was_done_is_answered_again_also_while_its_queue_takes_no_jobs,
    a_reservation_that_is_over_or_not_there_says_so,
    adjustments_are_answered_in_the_order_of_the_request,
}

mod mariadb {
    use super::Stage;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_switch_stops_new_reservations_of_its_items_and_nothing_else() {
        super::a_switch_stops_new_reservations_of_its_items_and_nothing_else(Stage::mariadb().await).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn what_was_done_is_answered_again_also_while_its_queue_takes_no_jobs() {
        super::what_was_done_is_answered_again_also_while_its_queue_takes_no_jobs(Stage::mariadb().await).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_buyer_who_waited_too_long_for_a_lock_is_told_to_try_again_and_not_that_nothing_is_left() {
        super::a_lock_not_had_in_time(Stage::mariadb().await, "select 1 from leasehold_stock for update").await;
    }
}

fn options() -> StoreOptions {
    let stock = StockOptions { pool: POOL, ..StockOptions::default() };
    StoreOptions { stock, ..few_lanes() }
}

fn name(text: &str) -> Key {
    Key::parse("key", text).expect("a key")
}

fn cup() -> StockKey {
    at("cups/blue")
}

fn at(item: &str) -> StockKey {
    StockKey { item: name(item), location: name("here") }
}

async fn deliver(store: &Store, stock: &[(StockKey, i64)]) {
    let adjustments = stock.iter().map(|(key, delta)| Adjustment { key: key.clone(), delta: *delta }).collect();
    let reference = name(&format!("delivery-{:016x}", rand::random::<u64>()));
    store
        .adjust_stock(&calm("deliveries"), NewAdjustments { reference, adjustments, reason: String::new() })
        .await
        .expect("a delivery");
}

fn cart(reference: &str, lines: &[(StockKey, u32)]) -> NewReservation {
    let lines = lines.iter().map(|(key, quantity)| ReservationLine { key: key.clone(), quantity: *quantity });
    NewReservation {
        reference: name(reference),
        lines: lines.collect(),
        time_to_live: Duration::from_mins(15),
        jobs: Vec::new(),
        jobs_on_expiry: Vec::new(),
    }
}

async fn reserve(store: &Store, new: NewReservation) -> Result<Reservation, Failure> {
    store.reserve(&calm("checkout"), new).await
}

async fn a_buyer_is_served_to_the_last_unit_and_hears_of_what_too_little_is_free(stage: Stage) {
    let store = stage.store(options()).await;
    deliver(&store, &[(cup(), 3 * i64::from(POOL)), (at("pot"), 1)]).await;
    for n in 0..3 * POOL {
        let held = reserve(&store, cart(&format!("{n}"), &[(cup(), 1)])).await.expect("there is stock");
        assert!(!held.duplicate);
    }
    let refused = reserve(&store, cart("late", &[(at("pot"), 1), (cup(), 2)])).await.expect_err("nothing is left");
    assert_eq!((refused.reason, refused.outcome), (Reason::SoldOut, Outcome::NotApplied));
    let short = &refused.sold_out.as_ref().expect("of what").shortages;
    assert_eq!(
        short.iter().map(|short| (&short.key, short.requested, short.available)).collect::<Vec<_>>(),
        [(&cup(), 2, 0)]
    );
    assert!(refused.message.contains("cups/blue at here: 2 wanted, 0 free"), "{}", refused.message);
    let again = reserve(&store, cart("7", &[(cup(), 1)])).await.expect("it is known");
    assert!(again.duplicate);
    let other = reserve(&store, cart("7", &[(cup(), 2)])).await.expect_err("other lines");
    assert_eq!((other.reason, other.subject.as_deref()), (Reason::KeyReused, Some("7")));
    store.drain().await;
}

async fn a_switch_stops_new_reservations_of_its_items_and_nothing_else(stage: Stage) {
    let store = stage.store(options()).await;
    deliver(&store, &[(cup(), 9), (at("pot"), 9)]).await;
    let held = reserve(&store, cart("held", &[(cup(), 1)])).await.expect("there is stock").row.id;
    let operator = calm("operator");
    let switch =
        store.set_stock_switch(&operator, "cups/", Some("recount".into())).await.expect("set").expect("a switch");
    assert_eq!((switch.prefix.as_str(), switch.reason.as_str()), ("cups/", "recount"));

    let refused = reserve(&store, cart("new", &[(at("pot"), 1), (cup(), 1)])).await.expect_err("stopped");
    assert_eq!((refused.reason, refused.outcome), (Reason::Disabled, Outcome::NotApplied));
    assert!(refused.message.contains("recount"), "{}", refused.message);
    reserve(&store, cart("pot", &[(at("pot"), 1)])).await.expect("another item");
    let repeated = reserve(&store, cart("held", &[(cup(), 1)])).await.expect("what is held stays held");
    assert_eq!((repeated.duplicate, repeated.row.id), (true, held));
    let reused = reserve(&store, cart("held", &[(cup(), 2)])).await.expect_err("another cart");
    assert_eq!(reused.reason, Reason::KeyReused);
    store.extend_reservation(&operator, held, Duration::from_hours(1)).await.expect("extended");
    store.commit_reservation(&operator, held, Vec::new()).await.expect("committed");
    deliver(&store, &[(cup(), 1)]).await;

    assert_eq!(
        store.set_stock_switch(&operator, "", Some("all".into())).await.expect("set").expect("a switch").prefix,
        ""
    );
    let refused = reserve(&store, cart("pots", &[(at("pot"), 1)])).await.expect_err("everything is stopped");
    assert!(refused.message.contains("all items"), "{}", refused.message);
    for prefix in ["", "cups/"] {
        assert_eq!(store.set_stock_switch(&operator, prefix, None).await.expect("taken away"), None);
    }
    reserve(&store, cart("new", &[(cup(), 1)])).await.expect("it goes on");
    store.drain().await;
}

async fn another_replica_goes_by_a_switch_once_it_has_read_it(stage: Stage) {
    let store = stage.store(options()).await;
    deliver(&store, &[(cup(), 9), (at("pot"), 9)]).await;
    let mut sql = stage.sql().await;
    let set_at = if stage.is_postgres() { "now()" } else { "0" };
    sql.run(&format!("insert into stock_switch (prefix, reason, set_at) values ('pot', 'gone', {set_at})")).await;
    let refused = reserve(&store, cart("first", &[(at("pot"), 1)])).await.expect_err("the first one reads them");
    assert_eq!(refused.reason, Reason::Disabled);
    sql.run(&format!("insert into stock_switch (prefix, reason, set_at) values ('cups/', 'moved', {set_at})")).await;
    reserve(&store, cart("early", &[(cup(), 1)])).await.expect("nobody told this replica yet");
    assert!(store.refresh_stock_switches().await.expect("read"));
    assert!(!store.refresh_stock_switches().await.expect("read"), "nothing changed");
    let refused = reserve(&store, cart("late", &[(cup(), 1)])).await.expect_err("stopped");
    assert_eq!(refused.reason, Reason::Disabled);
    let known = store.stock_switches(&calm("operator")).await.expect("switches");
    assert_eq!(known.iter().map(|switch| switch.reason.as_str()).collect::<Vec<_>>(), ["moved", "gone"]);
    store.drain().await;
}

async fn jobs_that_cannot_be_stored_are_told_as_enqueue_tells_them(stage: Stage) {
    let store = stage.store(options()).await;
    deliver(&store, &[(cup(), 9)]).await;
    let once = |key: &str, text: &str| NewJob { idempotency_key: Some(name(key)), ..job("q", text) };
    let with = |reference: &str, jobs: Vec<NewJob>| NewReservation { jobs, ..cart(reference, &[(cup(), 1)]) };
    let held = reserve(&store, with("one", vec![once("k", "a"), job("q", "b")])).await.expect("held");
    assert_eq!(held.stored.len(), 2);
    assert_eq!(held.row.jobs, held.stored.iter().map(|stored| stored.row.job).collect::<Vec<_>>());
    let reused = reserve(&store, with("two", vec![job("q", "x"), once("k", "other")])).await.expect_err("reused");
    assert_eq!(reused.reason, Reason::KeyReused);
    assert!(reused.message.contains("jobs[1]"), "{}", reused.message);
    let queue = held.stored[0].queue;
    assert_eq!(claim(&store, queue, 9).await.len(), 2);
    let row = store.stock(&calm("anybody"), cup()).await.expect("an answer").expect("stock");
    assert_eq!((row.balance.on_hand, row.balance.held), (9, 1), "what was refused holds nothing");
    assert_eq!(
        store.queue(&QueueName::parse("queue", "q").expect("a name")).await.expect("known").map(|q| q.id),
        Some(queue)
    );
    store.drain().await;
}

async fn what_was_done_is_answered_again_also_while_its_queue_takes_no_jobs(stage: Stage) {
    let store = stage.store(options()).await;
    deliver(&store, &[(cup(), 9)]).await;
    let call = calm("checkout");
    let with = |reference: &str, jobs| NewReservation { jobs, ..cart(reference, &[(cup(), 1)]) };
    let jobs = || vec![job("q", "x")];
    let held = reserve(&store, with("held", jobs())).await.expect("held").row;
    let sold = reserve(&store, cart("sold", &[(cup(), 1)])).await.expect("held").row.id;
    store.commit_reservation(&call, sold, jobs()).await.expect("committed");
    let queue = QueueName::parse("queue", "q").expect("a name");
    let off =
        |settings: &QueueSettings| Ok(QueueSettings { disabled_reason: Some("moved".into()), ..settings.clone() });
    store.change_queue(&call, &queue, false, off).await.expect("disabled");

    let again = reserve(&store, with("held", jobs())).await.expect("what is held stays held");
    assert_eq!((again.duplicate, again.row.id, &again.row.jobs), (true, held.id, &held.jobs));
    let again = store.commit_reservation(&call, sold, jobs()).await.expect("what is sold stays sold");
    assert_eq!((again.duplicate, again.row.state, again.row.commit_jobs.len()), (true, ReservationState::Committed, 1));
    let refused = reserve(&store, with("new", jobs())).await.expect_err("the queue takes no jobs");
    assert_eq!((refused.reason, refused.outcome), (Reason::Disabled, Outcome::NotApplied));
    let refused = store.commit_reservation(&call, held.id, jobs()).await.expect_err("the queue takes no jobs");
    assert_eq!((refused.reason, refused.outcome), (Reason::Disabled, Outcome::NotApplied));
    store.commit_reservation(&call, held.id, Vec::new()).await.expect("it was held still");
    store.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_buyer_who_waited_too_long_for_a_lock_is_told_to_try_again_and_not_that_nothing_is_left() {
    a_lock_not_had_in_time(Stage::postgres().await, "select 1 from leasehold.stock for update").await;
}

/// Of a stock that somebody has for longer than a statement waits.
async fn a_lock_not_had_in_time(stage: Stage, lock: &str) {
    let store = stage.store(options()).await;
    deliver(&store, &[(cup(), 3 * i64::from(POOL))]).await;
    let mut holder = stage.sql().await;
    holder.run("begin").await;
    holder.run(lock).await;
    let late = reserve(&store, cart("patient", &[(cup(), POOL + 1)])).await.expect_err("somebody has the stock");
    assert_eq!((late.reason, late.outcome), (Reason::Conflict, Outcome::NotApplied), "{late}");
    assert!(late.message.contains("try again") && late.sold_out.is_none(), "{late}");
    holder.run("rollback").await;
    let held = reserve(&store, cart("patient", &[(cup(), POOL + 1)])).await.expect("it is free again");
    assert!(!held.duplicate);
    store.drain().await;
}

async fn a_reservation_that_is_over_or_not_there_says_so(stage: Stage) {
    let store = stage.store(options()).await;
    deliver(&store, &[(cup(), 9)]).await;
    let call = calm("checkout");
    let id = reserve(&store, cart("r", &[(cup(), 1)])).await.expect("held").row.id;
    assert!(!store.release_reservation(&call, id).await.expect("released").duplicate);
    assert!(store.release_reservation(&call, id).await.expect("released before").duplicate);
    let over = store.commit_reservation(&call, id, Vec::new()).await.expect_err("it is over");
    assert_eq!((over.reason, over.outcome), (Reason::ReservationEnded, Outcome::NotApplied));
    assert!(over.message.contains("released"), "{}", over.message);
    let over = store.extend_reservation(&call, id, Duration::from_hours(1)).await.expect_err("it is over");
    assert_eq!(over.reason, Reason::ReservationEnded);
    let nobody = leasehold::model::ReservationId(i64::MAX);
    let none = store.commit_reservation(&call, nobody, Vec::new()).await.expect_err("there is none");
    assert_eq!((none.reason, none.kind), (Reason::NotFound, Some("reservation")));
    let by = leasehold::store::engine::ReservationRef::Reference(name("other"));
    assert_eq!(store.reservation(&call, by).await.expect_err("there is none").reason, Reason::NotFound);
    let by = leasehold::store::engine::ReservationRef::Reference(name("r"));
    assert_eq!(store.reservation(&call, by).await.expect("it is there").state, ReservationState::Released);
    store.drain().await;
}

async fn adjustments_are_answered_in_the_order_of_the_request(stage: Stage) {
    let store = stage.store(options()).await;
    let one = |item: &str, delta| Adjustment { key: at(item), delta };
    let ask = |reference: &str, adjustments: Vec<Adjustment>| {
        let new = NewAdjustments { reference: name(reference), adjustments, reason: "counted".into() };
        let store = store.clone();
        async move { store.adjust_stock(&calm("deliveries"), new).await }
    };
    let made = ask("a", vec![one("z", 1), one("a", 2), one("m", 3)]).await.expect("made");
    let shown: Vec<_> = made.stocks.iter().map(|row| (row.key.item.as_str(), row.balance.on_hand)).collect();
    assert_eq!(shown, [("z", 1), ("a", 2), ("m", 3)]);
    let short = ask("b", vec![one("z", -2), one("a", 1)]).await.expect_err("too little");
    assert_eq!(short.reason, Reason::SoldOut);
    let much = ask("c", vec![one("z", 1), one("a", leasehold::model::Balance::MOST_ON_HAND)]).await;
    assert_eq!(much.expect_err("too much").invalid[0].field, "adjustments[1].delta");
    store.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pool_that_ran_low_is_filled_in_the_background() {
    let stage = Stage::postgres().await;
    let store = stage.store(options()).await;
    deliver(&store, &[(cup(), 100)]).await;
    for n in 0..=POOL / 2 {
        reserve(&store, cart(&format!("{n}"), &[(cup(), 1)])).await.expect("there is stock");
    }
    let mut sql = stage.sql().await;
    until("the pool is full", async || sql.number("select count(*) from stock_unit").await == i64::from(POOL)).await;
    store.drain().await;
}

/// A floor is the number of a transaction, and another server, into which a backup was restored, counts its own.
#[tokio::test]
async fn stock_from_another_servers_backup_is_counted_and_folded() {
    let stage = Stage::postgres().await;
    let store = stage.store(options()).await;
    deliver(&store, &[(cup(), 9)]).await;
    let mut sql = stage.sql().await;
    sql.run("update stock set delta_floor = 1::bigint << 60").await;
    let operator = calm("operator");
    let seen = async || {
        let row = store.stock(&operator, cup()).await.expect("an answer").expect("stock");
        (row.balance.on_hand, row.balance.held)
    };

    let held = reserve(&store, cart("nine", &[(cup(), 9)])).await.expect("there are nine").row.id;
    assert_eq!(seen().await, (9, 9));
    store.release_reservation(&operator, held).await.expect("released");
    assert_eq!(seen().await, (9, 0));
    let held = reserve(&store, cart("nine again", &[(cup(), 9)])).await.expect("they are back").row.id;
    store.commit_reservation(&operator, held, Vec::new()).await.expect("committed");
    assert_eq!(seen().await, (0, 0));

    store.refill_from(None).await.expect("a pass");
    assert_eq!(sql.number("select count(*) from stock_delta").await, 0);
    assert_eq!(sql.number("select count(*) from stock where delta_floor = 1::bigint << 60").await, 0);
    assert_eq!(seen().await, (0, 0));
    store.drain().await;
}
