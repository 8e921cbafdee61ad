//! Reservations that another system has answered: mirrored, compared, told of where they differ.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use tracing::info;

use super::{Call, NewReservation, Reservation, Store};
use crate::model::{Comparison, Failure, Key, Reason, ReservationLine, Shortage};

/// Differences that the log names one by one in a second.
const NAMED: u32 = 20;

/// What the other system answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// It holds the units.
    Held,
    /// It has too few.
    SoldOut,
}

/// What a mirrored reservation came to here.
#[derive(Debug)]
pub struct Mirrored {
    /// What is held, where the other system held and so could we.
    pub reservation: Option<Reservation>,
    /// Why it could not be held, where it could not.
    pub refused: Option<Failure>,
    /// How the two compare.
    pub comparison: Comparison,
}

impl Store {
    /// Mirrors what another system answered. Where that one held, reserves as [`Store::reserve`] does; where it was sold out,
    /// looks whether this could be held, and changes nothing. What lies in the data is no failure but part of the answer.
    pub async fn mirror(&self, call: &Call, new: NewReservation, expected: Expected) -> Result<Mirrored, Failure> {
        let reference = new.reference.clone();
        let held = match expected {
            Expected::Held => self.reserve(call, new).await.map(Some),
            Expected::SoldOut => self.look_whether(call, &new.lines).await.map(|()| None),
        };
        let (reservation, refused) = match held {
            Ok(reservation) => (reservation, None),
            Err(failure) if lies_in_the_data(failure.reason) => (None, Some(failure)),
            Err(failure) => return Err(failure),
        };
        let comparison = compared(expected, refused.as_ref().map(|failure| failure.reason));
        if let Some(metrics) = &self.inner.options.metrics {
            metrics.shadowed(expected == Expected::Held, comparison);
        }
        if comparison == Comparison::Differs {
            let here = refused.as_ref().map_or("free", |failure| failure.reason.as_str());
            self.inner.differences.tell(&reference, expected, here, Instant::now());
        }
        Ok(Mirrored { reservation, refused, comparison })
    }

    /// Whether all lines could be held at one instant of this call.
    async fn look_whether(&self, call: &Call, lines: &[ReservationLine]) -> Result<(), Failure> {
        self.go_by_switches().await?;
        self.see_that_items_are_on(lines.iter().map(|line| &line.key.item))?;
        let mut short = Vec::new();
        let stocks = self.stocks_of(call, lines.iter().map(|line| line.key.clone()).collect()).await?;
        for (line, stock) in lines.iter().zip(stocks) {
            let available = stock.map_or(0, |stock| stock.balance.available());
            let requested = u64::from(line.quantity);
            if available < i64::from(line.quantity) {
                short.push(Shortage { key: line.key.clone(), requested, available });
            }
        }
        if short.is_empty() { Ok(()) } else { Err(Failure::sold_out(short)) }
    }
}

fn compared(expected: Expected, refused: Option<Reason>) -> Comparison {
    match (expected, refused) {
        (_, Some(Reason::Disabled)) => Comparison::NotCompared,
        (Expected::Held, None) | (Expected::SoldOut, Some(_)) => Comparison::Agrees,
        (Expected::Held, Some(_)) | (Expected::SoldOut, None) => Comparison::Differs,
    }
}

/// The other system cannot know of it, and whoever mirrors must not fail for it.
fn lies_in_the_data(reason: Reason) -> bool {
    matches!(reason, Reason::SoldOut | Reason::KeyReused | Reason::Disabled | Reason::QueueFull | Reason::NotFound)
}

/// Keeps the log readable while everything differs.
#[derive(Debug, Default)]
pub(super) struct Differences(Mutex<Second>);

#[derive(Debug, Default)]
struct Second {
    began: Option<Instant>,
    named: u32,
    left_out: u64,
}

impl Differences {
    fn tell(&self, reference: &Key, expected: Expected, here: &'static str, now: Instant) {
        let (named, left_out) = self.0.lock().unwrap_or_else(PoisonError::into_inner).count(now);
        if left_out > 0 {
            info!(differences = left_out, "more shadows differ");
        }
        if named {
            let there = if expected == Expected::Held { "held" } else { "sold_out" };
            info!(reference = %reference, there, here, "the shadow differs");
        }
    }
}

impl Second {
    /// Whether this one is named, and how many of the second before were not.
    fn count(&mut self, now: Instant) -> (bool, u64) {
        let mut left_out = 0;
        if self.began.is_none_or(|began| now.duration_since(began) >= Duration::from_secs(1)) {
            left_out = self.left_out;
            *self = Self { began: Some(now), ..Self::default() };
        }
        if self.named == NAMED {
            self.left_out += 1;
            return (false, left_out);
        }
        self.named += 1;
        (true, left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_second_had_too_many_of_is_counted_and_told_by_the_next_one() {
        let (mut second, now) = (Second::default(), Instant::now());
        let told: Vec<(bool, u64)> = (0..NAMED + 3).map(|_| second.count(now)).collect();
        assert_eq!(told.iter().filter(|(named, _)| *named).count(), NAMED as usize);
        assert!(told.iter().all(|(_, left_out)| *left_out == 0));
        let later = now + Duration::from_secs(1);
        assert_eq!(second.count(later), (true, 3));
        assert_eq!(second.count(later), (true, 0));
    }

    #[test]
    fn a_stopped_item_neither_agrees_nor_differs() {
        use Comparison::{Agrees, Differs, NotCompared};
        let of = |refused| [Expected::Held, Expected::SoldOut].map(|expected| compared(expected, refused));
        assert_eq!(of(None), [Agrees, Differs]);
        assert_eq!(of(Some(Reason::SoldOut)), [Differs, Agrees]);
        assert_eq!(of(Some(Reason::KeyReused)), [Differs, Agrees]);
        assert_eq!(of(Some(Reason::Disabled)), [NotCompared, NotCompared]);
    }

    #[test]
    fn a_broker_that_is_away_or_busy_is_no_difference() {
        for reason in Reason::ALL {
            let passing = matches!(reason, Reason::Overloaded | Reason::DatabaseUnavailable | Reason::Deadline);
            assert!(!(passing && lies_in_the_data(reason)), "{reason:?}");
        }
        assert!(lies_in_the_data(Reason::SoldOut) && !lies_in_the_data(Reason::InvalidField));
    }
}
