//! Reservations: short holds on stock.

use std::fmt;

use sha2::{Digest, Sha256};

use super::{Invalid, StockKey, stock};

/// A reservation's identity, unique in its database for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReservationId(pub i64);

impl ReservationId {
    /// The id in `field`: a whole number from 1 on, as it was given out.
    pub fn parse(field: &str, id: &str) -> Result<Self, Invalid> {
        let digits = !id.is_empty() && !id.starts_with('0') && id.bytes().all(|byte| byte.is_ascii_digit());
        match id.parse() {
            Ok(number) if digits => Ok(Self(number)),
            _ => Err(Invalid::new(field, "must be an id that Reserve answered with")),
        }
    }
}

impl fmt::Display for ReservationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What became of a reservation. All but the first are ends, of which there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReservationState {
    /// Its units are held, be it past its time as long as nobody took them back.
    Held,
    /// Its units are gone.
    Committed,
    /// Its units were given back.
    Released,
    /// Its time was over and its units went back.
    Expired,
}

impl ReservationState {
    /// All there are.
    pub const ALL: [Self; 4] = [Self::Held, Self::Committed, Self::Released, Self::Expired];

    /// As every engine stores it: 1 held, 2 committed, 3 released, 4 expired.
    pub fn code(self) -> i16 {
        match self {
            Self::Held => 1,
            Self::Committed => 2,
            Self::Released => 3,
            Self::Expired => 4,
        }
    }

    /// The state that is stored as `code`.
    pub fn of_code(code: i16) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.code() == code)
    }

    /// In lower case, as people read it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Committed => "committed",
            Self::Released => "released",
            Self::Expired => "expired",
        }
    }
}

/// Units of one stock in a reservation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReservationLine {
    /// Of which stock.
    pub key: StockKey,
    /// How many, at least 1.
    pub quantity: u32,
}

/// SHA-256 over what two reserving calls with one reference must agree on: keys and quantities, in whatever order.
pub fn lines_hash(lines: &[ReservationLine]) -> [u8; 32] {
    let mut sorted: Vec<&ReservationLine> = lines.iter().collect();
    sorted.sort();
    let mut hash = Sha256::new();
    for line in sorted {
        stock::digest(&mut hash, &line.key, i64::from(line.quantity));
    }
    hash.finalize().into()
}

/// How an answer compares with that of another system, which answered before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// Both could hold the units, or neither.
    Agrees,
    /// One could and the other could not.
    Differs,
    /// Reservations of the items are stopped here, which says nothing of their stock.
    NotCompared,
}

impl Comparison {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Agrees, Self::Differs, Self::NotCompared];

    /// As metrics show it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::Differs => "differs",
            Self::NotCompared => "not_compared",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_come_back_from_their_codes() {
        for state in ReservationState::ALL {
            assert_eq!(ReservationState::of_code(state.code()), Some(state));
        }
        assert_eq!(ReservationState::of_code(5), None);
    }

    #[test]
    fn only_ids_that_were_given_out_are_read() {
        assert_eq!(ReservationId::parse("id", "17"), Ok(ReservationId(17)));
        assert_eq!(ReservationId::parse("id", "9223372036854775807"), Ok(ReservationId(i64::MAX)));
        for bad in ["", "0", "-1", "+1", " 1", "01", "1_0", "１", "9223372036854775808", "x"] {
            assert!(ReservationId::parse("id", bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn another_quantity_is_another_content_and_another_order_is_not() {
        let line =
            |item: &str, quantity| ReservationLine { key: StockKey::parse("key", item, "x").expect("a key"), quantity };
        let hash = lines_hash(&[line("a", 1), line("b", 2)]);
        assert_eq!(hash, lines_hash(&[line("b", 2), line("a", 1)]));
        assert_ne!(hash, lines_hash(&[line("a", 2), line("b", 1)]));
        assert_ne!(hash, lines_hash(&[line("a", 1)]));
    }
}
