//! Stock: what there is of an item at a location, how much of it is held, and how both change.

use std::fmt;

use sha2::{Digest, Sha256};

use super::{Invalid, Key};

/// An item at a location. Ordered byte for byte, item first: the order in which stock is locked.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StockKey {
    /// What it is.
    pub item: Key,
    /// Where it is.
    pub location: Key,
}

impl StockKey {
    /// The key in `field`.
    pub fn parse(field: &str, item: &str, location: &str) -> Result<Self, Invalid> {
        Ok(Self {
            item: Key::parse(&format!("{field}.item"), item)?,
            location: Key::parse(&format!("{field}.location"), location)?,
        })
    }
}

impl fmt::Display for StockKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.item, self.location)
    }
}

/// What there is under a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Balance {
    /// Units that are there, held ones among them.
    pub on_hand: i64,
    /// Units that reservations hold.
    pub held: i64,
}

impl Balance {
    /// Units on hand at most under one key: a million adjustments of the largest size, and far from the end of an integer.
    pub const MOST_ON_HAND: i64 = 1_000_000_000_000_000_000;

    /// Units that can be reserved.
    pub fn available(self) -> i64 {
        self.on_hand.saturating_sub(self.held)
    }

    /// This balance after `entry`; `None` where a figure would leave its bounds: held below nothing or above what is on
    /// hand, or on hand above [`Balance::MOST_ON_HAND`].
    pub fn after(self, entry: Movement) -> Option<Self> {
        let on_hand = self.on_hand.checked_add(entry.on_hand).filter(|units| *units <= Self::MOST_ON_HAND)?;
        let held = self.held.checked_add(entry.held).filter(|units| (0..=on_hand).contains(units))?;
        Some(Self { on_hand, held })
    }
}

/// Why a balance changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LedgerKind {
    /// Somebody counted, bought or lost units.
    Adjust,
    /// A reservation took hold of units.
    Reserve,
    /// Its units left.
    Commit,
    /// Its units were given back.
    Release,
    /// Its time was over and its units went back.
    Expire,
}

impl LedgerKind {
    /// All kinds there are.
    pub const ALL: [Self; 5] = [Self::Adjust, Self::Reserve, Self::Commit, Self::Release, Self::Expire];

    /// As every engine stores it: 1 adjust, 2 reserve, 3 commit, 4 release, 5 expire.
    pub fn code(self) -> i16 {
        match self {
            Self::Adjust => 1,
            Self::Reserve => 2,
            Self::Commit => 3,
            Self::Release => 4,
            Self::Expire => 5,
        }
    }

    /// The kind that is stored as `code`.
    pub fn of_code(code: i16) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
    }

    /// What an entry of this kind changes, of so many units: those added for an adjustment (which may be negative), those of
    /// the reservation's line for the others.
    pub fn movement(self, units: i64) -> Movement {
        let (on_hand, held) = match self {
            Self::Adjust => (units, 0),
            Self::Reserve => (0, units),
            Self::Commit => (-units, -units),
            Self::Release | Self::Expire => (0, -units),
        };
        Movement { on_hand, held }
    }
}

/// By how much an entry of the ledger changes a balance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Movement {
    /// Units on hand.
    pub on_hand: i64,
    /// Units held.
    pub held: i64,
}

/// One adjustment of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adjustment {
    /// Of which stock.
    pub key: StockKey,
    /// Units added; taken away where negative. Not 0.
    pub delta: i64,
}

impl Adjustment {
    /// Units that one adjustment changes at most, either way.
    pub const MOST: i64 = 1_000_000_000_000;
}

/// SHA-256 over what two adjusting calls with one reference must agree on: keys and units, in whatever order. The reason is
/// left out.
pub fn adjustments_hash(adjustments: &[Adjustment]) -> [u8; 32] {
    let mut sorted: Vec<(&StockKey, i64)> = adjustments.iter().map(|one| (&one.key, one.delta)).collect();
    sorted.sort();
    let mut hash = Sha256::new();
    for (key, units) in sorted {
        digest(&mut hash, key, units);
    }
    hash.finalize().into()
}

/// A key and a number of units, so that no two ways of writing them down meet.
pub(super) fn digest(hash: &mut Sha256, key: &StockKey, units: i64) {
    for part in [key.item.as_str().as_bytes(), key.location.as_str().as_bytes()] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.update(units.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(item: &str, location: &str) -> StockKey {
        StockKey::parse("key", item, location).expect("a key")
    }

    #[test]
    fn kinds_come_back_from_their_codes() {
        for kind in LedgerKind::ALL {
            assert_eq!(LedgerKind::of_code(kind.code()), Some(kind));
        }
        assert_eq!(LedgerKind::of_code(0), None);
        assert_eq!(LedgerKind::of_code(6), None);
    }

    #[test]
    fn a_reservation_that_ends_leaves_what_it_should() {
        let start = Balance { on_hand: 10, held: 0 };
        let held = start.after(LedgerKind::Reserve.movement(4)).expect("it fits");
        assert_eq!((held.on_hand, held.held, held.available()), (10, 4, 6));
        assert_eq!(held.after(LedgerKind::Commit.movement(4)), Some(Balance { on_hand: 6, held: 0 }));
        assert_eq!(held.after(LedgerKind::Release.movement(4)), Some(start));
        assert_eq!(held.after(LedgerKind::Expire.movement(4)), Some(start));
    }

    #[test]
    fn a_balance_never_leaves_its_bounds() {
        let balance = Balance { on_hand: 3, held: 2 };
        assert_eq!(balance.after(LedgerKind::Reserve.movement(2)), None);
        assert_eq!(balance.after(LedgerKind::Adjust.movement(-2)), None);
        assert_eq!(balance.after(LedgerKind::Release.movement(3)), None);
        let full = Balance { on_hand: Balance::MOST_ON_HAND, held: 0 };
        assert_eq!(full.after(LedgerKind::Adjust.movement(1)), None);
        assert_eq!(full.after(Movement { on_hand: i64::MAX, held: 0 }), None);
    }

    #[test]
    fn keys_are_ordered_byte_for_byte_with_the_item_first() {
        let mut keys = vec![key("b", "a"), key("a", "z"), key("B", "z"), key("a", "Z")];
        keys.sort();
        assert_eq!(keys, [key("B", "z"), key("a", "Z"), key("a", "z"), key("b", "a")]);
    }

    #[test]
    fn the_order_of_adjustments_is_no_part_of_their_content_but_where_a_name_ends_is() {
        let one = Adjustment { key: key("a", "b"), delta: 1 };
        let two = Adjustment { key: key("c", "d"), delta: 2 };
        assert_eq!(adjustments_hash(&[one.clone(), two.clone()]), adjustments_hash(&[two.clone(), one.clone()]));
        let moved = Adjustment { key: key("ab", "x"), delta: 1 };
        let other = Adjustment { key: key("a", "bx"), delta: 1 };
        assert_ne!(adjustments_hash(&[moved]), adjustments_hash(&[other]));
        assert_ne!(adjustments_hash(std::slice::from_ref(&one)), adjustments_hash(&[Adjustment { delta: -1, ..one }]));
    }
}
