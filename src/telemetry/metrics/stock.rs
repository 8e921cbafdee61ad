//! Stock and reservations.

use std::time::Duration;

use opentelemetry::{
    KeyValue,
    metrics::{Counter, Histogram},
};

use super::{Maker, Metrics};
use crate::{
    model::{Comparison, ReservationState},
    telemetry::names::{
        HOLD_LENGTH, POOL_DEPTH, REFILLED, RESERVATIONS_ENDED, RESERVES, RESERVES_SLOW, SHADOWS, STOCK_SWITCHES,
        SWEEP_LAG, key,
    },
};

pub(super) struct StockInstruments {
    reserves: Counter<u64>,
    slow: Counter<u64>,
    ended: Counter<u64>,
    hold_length: Histogram<f64>,
    sweep_lag: Histogram<f64>,
    pool_depth: Histogram<f64>,
    refilled: Counter<u64>,
    shadows: Counter<u64>,
}

/// What a Reserve came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReserveResult {
    /// The units are held.
    Held,
    /// The reference was known.
    Duplicate,
    /// Too little was free.
    SoldOut,
    /// An operator has stopped reservations of such items.
    Disabled,
    /// All else: a known reference with other lines, no lane, no database.
    Failure,
}

impl ReserveResult {
    const ALL: [Self; 5] = [Self::Held, Self::Duplicate, Self::SoldOut, Self::Disabled, Self::Failure];

    fn as_str(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Duplicate => "duplicate",
            Self::SoldOut => "sold_out",
            Self::Disabled => "disabled",
            Self::Failure => "failure",
        }
    }
}

impl StockInstruments {
    pub(super) fn new(maker: &Maker) -> Self {
        let made = Self {
            reserves: maker.counter(&RESERVES),
            slow: maker.counter(&RESERVES_SLOW),
            ended: maker.counter(&RESERVATIONS_ENDED),
            hold_length: maker.histogram(&HOLD_LENGTH),
            sweep_lag: maker.histogram(&SWEEP_LAG),
            pool_depth: maker.histogram(&POOL_DEPTH),
            refilled: maker.counter(&REFILLED),
            shadows: maker.counter(&SHADOWS),
        };
        made.begin();
        made
    }

    /// Begins every series at 0, as those of jobs.
    fn begin(&self) {
        for result in ReserveResult::ALL {
            self.reserves.add(0, &[KeyValue::new(key::RESULT, result.as_str())]);
        }
        for end in ReservationState::ALL.into_iter().filter(|state| *state != ReservationState::Held) {
            self.ended.add(0, &[KeyValue::new(key::END, end.as_str())]);
        }
        for result in Comparison::ALL {
            self.shadows.add(0, &shadow(true, result));
            self.shadows.add(0, &shadow(false, result));
        }
        self.slow.add(0, &[]);
        self.refilled.add(0, &[]);
    }
}

fn shadow(expected: bool, result: Comparison) -> [KeyValue; 2] {
    [
        KeyValue::new(key::EXPECTED, if expected { "held" } else { "sold_out" }),
        KeyValue::new(key::RESULT, result.as_str()),
    ]
}

impl Metrics {
    /// A Reserve came to this.
    pub fn reserved(&self, result: ReserveResult) {
        self.0.stock.reserves.add(1, &[KeyValue::new(key::RESULT, result.as_str())]);
    }

    /// A Reserve found too few units ready in the pools.
    pub fn reserve_goes_slow(&self) {
        self.0.stock.slow.add(1, &[]);
    }

    /// A reservation ended so, after it had held its units for so long.
    pub fn reservation_ended(&self, end: ReservationState, held: Duration) {
        let end = [KeyValue::new(key::END, end.as_str())];
        self.0.stock.ended.add(1, &end);
        self.0.stock.hold_length.record(held.as_secs_f64(), &end);
    }

    /// A reservation was found so long past its time, and its units went back.
    pub fn reservation_swept(&self, lag: Duration) {
        self.0.stock.ended.add(1, &[KeyValue::new(key::END, ReservationState::Expired.as_str())]);
        self.0.stock.sweep_lag.record(lag.as_secs_f64(), &[]);
    }

    /// A pool that had `left` units got `added` more.
    #[expect(clippy::cast_precision_loss, reason = "a pool is far smaller than 2^52")]
    pub fn pool_refilled(&self, left: usize, added: usize) {
        self.0.stock.pool_depth.record(left as f64, &[]);
        self.0.stock.refilled.add(added as u64, &[]);
    }

    /// Another system answered that it held (or not), and here the comparison came to this.
    pub fn shadowed(&self, held_there: bool, result: Comparison) {
        self.0.stock.shadows.add(1, &shadow(held_there, result));
    }

    /// Reads how many switches stop reservations whenever somebody asks for metrics. Once per handle.
    #[expect(clippy::cast_precision_loss, reason = "switches are bounded far below 2^52")]
    pub fn watch_stock_switches(&self, read: impl Fn() -> usize + Send + Sync + 'static) {
        self.0.maker.observed(&STOCK_SWITCHES, move |say| say(read() as f64, &[]));
    }
}
