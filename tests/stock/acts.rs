//! What may be done to stock, at random.

use std::time::Duration;

use proptest::prelude::*;

/// Keys of a run: two items at two locations each.
pub(super) const KEYS: usize = 4;

/// Something that somebody does. Numbers of reservations and adjustments count those of the run, modulo how many there are.
#[derive(Debug, Clone)]
pub(super) enum Act {
    Adjust(Vec<(usize, i64)>),
    AdjustAgain(usize),
    Reserve {
        lines: Vec<(usize, u32)>,
        /// Its time is over at once.
        brief: bool,
        /// With jobs of its own, and one for its expiry.
        jobs: bool,
    },
    ReserveAgain(usize),
    /// With the reference of an earlier one and other lines.
    ReserveOther(usize),
    Commit(usize),
    Release(usize),
    Extend(usize),
    Sweep(usize),
    Refill,
    /// The connection is lost so long after the act began; it is repeated on another one.
    Crash(Duration, Box<Act>),
}

/// Keys, each once, with a number of units.
fn units<T: std::fmt::Debug + Clone + 'static>(
    units: impl Strategy<Value = T> + Clone + 'static,
) -> impl Strategy<Value = Vec<(usize, T)>> {
    let keys: Vec<usize> = (0..KEYS).collect();
    (proptest::sample::subsequence(keys, 1..=KEYS), proptest::collection::vec(units, KEYS))
        .prop_map(|(keys, units)| keys.into_iter().zip(units).collect())
}

/// Around the size of the pool, mostly below it.
fn quantity() -> impl Strategy<Value = u32> + Clone {
    prop_oneof![6 => 1..=3u32, 2 => 4..=12u32, 1 => 13..=60u32]
}

fn delta() -> impl Strategy<Value = i64> + Clone {
    prop_oneof![4 => 1..=10i64, 2 => 11..=60i64, 3 => -12..=-1i64, 1 => -60..=-13i64]
}

fn steady() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => units(delta()).prop_map(Act::Adjust),
        1 => any::<usize>().prop_map(Act::AdjustAgain),
        10 => (units(quantity()), prop::bool::weighted(0.25), prop::bool::weighted(0.3))
            .prop_map(|(lines, brief, jobs)| Act::Reserve { lines, brief, jobs }),
        1 => any::<usize>().prop_map(Act::ReserveAgain),
        1 => any::<usize>().prop_map(Act::ReserveOther),
        4 => any::<usize>().prop_map(Act::Commit),
        4 => any::<usize>().prop_map(Act::Release),
        1 => any::<usize>().prop_map(Act::Extend),
        2 => prop_oneof![Just(1), Just(100)].prop_map(Act::Sweep),
        2 => Just(Act::Refill),
    ]
}

/// Acts of a run.
pub(super) fn acts() -> impl Strategy<Value = Vec<Act>> {
    let crash =
        (0..4_000u64, steady()).prop_map(|(after, act)| Act::Crash(Duration::from_micros(after), Box::new(act)));
    proptest::collection::vec(prop_oneof![9 => steady(), 1 => crash], 10..50)
}
