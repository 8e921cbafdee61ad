//! What many sessions share that buy and return at once.

use std::{
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    time::Duration,
};

use leasehold::{
    model::{
        Adjustment, Key, ReservationId, ReservationLine, ReservationState, StockKey, reservation::lines_hash,
        stock::adjustments_hash,
    },
    store::{
        engine::{AdjustCall, Adjusted, Cart, End, Ended, JobRow, Reserved, VerifyWalk},
        error::EngineError,
    },
};
use tokio::sync::{Mutex, MutexGuard};

use crate::contract::{
    bench::Bench,
    database::{Database, caller},
};

/// Sessions for everybody, and what they met.
pub(super) struct Shop {
    tills: Vec<Mutex<Bench>>,
    pub(super) pool: u32,
    pub(super) deadlocks: AtomicUsize,
    /// Locks not had in the two seconds that a statement waits: on a busy machine sixty-four may stand in front of one.
    pub(super) late: AtomicUsize,
    /// Answers that asked for patience.
    pub(super) busy: AtomicUsize,
}

impl Shop {
    /// One session for each of `most`, or a single one where the engine has one writer.
    pub(super) async fn open(db: &dyn Database, most: usize, pool: u32) -> Self {
        let many = if db.engine().system() == "sqlite" { 1 } else { most };
        let mut tills = Vec::new();
        for _ in 0..many {
            tills.push(Mutex::new(Bench::on(db).await));
        }
        Self { tills, pool, deadlocks: AtomicUsize::new(0), late: AtomicUsize::new(0), busy: AtomicUsize::new(0) }
    }

    pub(super) async fn till(&self, number: usize) -> MutexGuard<'_, Bench> {
        self.tills[number % self.tills.len()].lock().await
    }

    /// `None` where it has to be asked for again.
    pub(super) fn past<T>(&self, answer: Result<T, EngineError>) -> Option<T> {
        match answer {
            Ok(answer) => Some(answer),
            Err(EngineError::Conflict(what)) => {
                // A lock not had in time, as PostgreSQL and MariaDB say it; whatever else conflicts is a circle.
                let late = what.contains("55P03") || what.contains("1205");
                if late { &self.late } else { &self.deadlocks }.fetch_add(1, SeqCst);
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    pub(super) async fn deliver(&self, stock: &[(StockKey, i64)]) {
        let adjustments: Vec<_> =
            stock.iter().map(|(key, delta)| Adjustment { key: key.clone(), delta: *delta }).collect();
        let content = adjustments_hash(&adjustments);
        let reference = name(&format!("delivery-{:016x}", rand::random::<u64>()));
        let call = AdjustCall { reference, adjustments, content, reason: "delivered".into(), pool: self.pool };
        let made = self.till(0).await.session.adjust(&caller(), &call).await.expect("a delivery");
        assert!(matches!(made, Adjusted::Made { duplicate: false, .. }), "{made:?}");
    }

    /// Reserves as the store does: by the fast way, and where that comes up short, by the slow one.
    pub(super) async fn reserve(&self, number: usize, cart: &Cart) -> Reserved {
        let mut slow = false;
        loop {
            let mut till = self.till(number).await;
            let answer = if slow {
                till.session.reserve_slow(&caller(), cart).await
            } else {
                till.session.reserve_fast(&caller(), cart).await
            };
            drop(till);
            match self.past(answer) {
                Some(Reserved::Short) => slow = true,
                Some(Reserved::Busy) => {
                    self.busy.fetch_add(1, SeqCst);
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                Some(answer) => return answer,
                None => {}
            }
        }
    }

    pub(super) async fn end(
        &self,
        number: usize,
        reservation: ReservationId,
        state: ReservationState,
        jobs: Vec<JobRow>,
    ) -> Ended {
        let end = End { reservation, state, jobs };
        loop {
            let answer = self.till(number).await.session.end_reservation(&caller(), &end).await;
            if let Some(answer) = self.past(answer) {
                return answer;
            }
        }
    }

    /// (on hand, held) as buyers see it.
    pub(super) async fn balance(&self, key: &StockKey) -> (i64, i64) {
        let row = self
            .till(0)
            .await
            .session
            .stocks_of(&caller(), std::slice::from_ref(key))
            .await
            .expect("an answer")
            .remove(0)
            .expect("stock");
        (row.balance.on_hand, row.balance.held)
    }

    /// That the books agree with each other.
    pub(super) async fn audit(&self) {
        let walk = VerifyWalk { item: None, after: None, limit: 1_000 };
        let verified = self.till(0).await.session.verify(&caller(), &walk).await.expect("a comparison");
        assert!(verified.compared > 0, "nothing to compare");
        assert_eq!(verified.differences, [], "books that do not agree");
    }

    /// A cart of one line.
    pub(super) fn cart(&self, reference: &str, key: &StockKey, quantity: u32) -> Cart {
        let lines = vec![ReservationLine { key: key.clone(), quantity }];
        Cart {
            reference: name(reference),
            content: lines_hash(&lines),
            lines,
            time_to_live: Duration::from_hours(1),
            jobs: Vec::new(),
            jobs_on_expiry: Vec::new(),
            pool: self.pool,
        }
    }
}

/// What `item` is called at location `number`.
pub(super) fn place(item: &str, number: usize) -> StockKey {
    StockKey::parse("key", item, &format!("store-{number:02}")).expect("a key")
}

fn name(text: &str) -> Key {
    Key::parse("reference", text).expect("a reference")
}
