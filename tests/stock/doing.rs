//! Acts with everything decided that chance or the past decides, so that they can be repeated.

use std::time::Duration;

use leasehold::{
    model::{
        Adjustment, Key, QueueId, ReservationLine, ReservationState, StockKey, Timestamp, reservation::lines_hash,
        stock::adjustments_hash,
    },
    store::engine::{AdjustCall, Adjusted, Cart, End, Ended, ReservationRow, Reserved},
};

use super::model::{Adjusting, Model};
use crate::contract::{
    bench::{Bench, job},
    database::caller,
};

/// Small, so that carts cross its edge.
const POOL: u32 = 8;
const HELD: Duration = Duration::from_hours(1);
const BRIEF: Duration = Duration::from_millis(1);

/// An act that is decided.
#[derive(Debug)]
pub(super) enum Doing {
    Nothing,
    /// The second says that it was made before.
    Adjust(Adjusting, bool),
    Reserve {
        reference: String,
        lines: Vec<(usize, u32)>,
        brief: bool,
        jobs: bool,
        /// The reservation that has this reference, and whether its lines were others.
        known: Option<(usize, bool)>,
    },
    End(usize, ReservationState),
    Extend(usize),
    Sweep(usize),
    Refill,
}

/// What a session said to it.
pub(super) enum Answer {
    Nothing,
    Adjusted(Adjusted),
    Reserved(Reserved),
    Ended(Ended),
    Row(Option<ReservationRow>),
}

/// Names of a run, and how its acts are asked for.
pub(super) struct Desk {
    pub(super) name: String,
    pub(super) queue: QueueId,
    pub(super) keys: Vec<StockKey>,
}

impl Desk {
    /// Does it; where it cannot be done at once, as the store does.
    pub(super) async fn send(&self, bench: &mut Bench, model: &Model, doing: &Doing) -> Answer {
        let session = &mut bench.session;
        match doing {
            Doing::Nothing => Answer::Nothing,
            Doing::Adjust(adjusting, _) => {
                Answer::Adjusted(session.adjust(&caller(), &self.call(adjusting)).await.expect("an adjustment"))
            }
            Doing::Reserve { reference, lines, brief, jobs, .. } => {
                let cart = self.cart(reference, lines, *brief, *jobs);
                let mut answer = session.reserve_fast(&caller(), &cart).await.expect("the fast way");
                while matches!(answer, Reserved::Short | Reserved::Busy) {
                    answer = session.reserve_slow(&caller(), &cart).await.expect("the slow way");
                }
                Answer::Reserved(answer)
            }
            Doing::End(place, state) => {
                let made = &model.made[*place];
                let with_job = made.jobs && *state == ReservationState::Committed;
                let jobs = with_job.then(|| job(self.queue, "committed")).into_iter().collect();
                let end = End { reservation: made.id, state: *state, jobs };
                Answer::Ended(session.end_reservation(&caller(), &end).await.expect("an end"))
            }
            Doing::Extend(place) => {
                let id = model.made[*place].id;
                Answer::Row(session.extend_reservation(&caller(), id, HELD).await.expect("an extension"))
            }
            Doing::Sweep(limit) => {
                session.sweep_expired(&caller(), Timestamp::BEGINNING, *limit).await.expect("a sweep");
                Answer::Nothing
            }
            Doing::Refill => {
                let keys = session.unfolded(&caller(), None, 1_000).await.expect("keys");
                for row in session.refill(&caller(), &keys, POOL).await.expect("a refill") {
                    assert!(row.depth <= POOL as usize, "{row:?}");
                }
                Answer::Nothing
            }
        }
    }

    fn call(&self, adjusting: &Adjusting) -> AdjustCall {
        let of = |&(key, delta): &(usize, i64)| Adjustment { key: self.keys[key].clone(), delta };
        let adjustments: Vec<Adjustment> = adjusting.deltas.iter().map(of).collect();
        let content = adjustments_hash(&adjustments);
        AdjustCall { reference: key(&adjusting.reference), adjustments, content, reason: "counted".into(), pool: POOL }
    }

    pub(super) fn lines(&self, lines: &[(usize, u32)]) -> Vec<ReservationLine> {
        lines.iter().map(|&(key, quantity)| ReservationLine { key: self.keys[key].clone(), quantity }).collect()
    }

    fn cart(&self, reference: &str, lines: &[(usize, u32)], brief: bool, jobs: bool) -> Cart {
        let lines = self.lines(lines);
        Cart {
            reference: key(reference),
            content: lines_hash(&lines),
            lines,
            time_to_live: if brief { BRIEF } else { HELD },
            jobs: if jobs { vec![job(self.queue, "one"), job(self.queue, "two")] } else { Vec::new() },
            jobs_on_expiry: jobs.then(|| job(self.queue, "expired")).into_iter().collect(),
            pool: POOL,
        }
    }
}

fn key(text: &str) -> Key {
    Key::parse("key", text).expect("a key")
}
