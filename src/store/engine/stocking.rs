//! Stock and its books.
//!
//! How units, the ledger and locks go together is said above [`super::Reserving`].

use async_trait::async_trait;

use super::ShortLine;
use crate::{
    model::{Adjustment, Balance, Caller, Key, LedgerKind, Movement, ReservationId, StockKey, Timestamp},
    store::error::EngineError,
};

/// Changing what is on hand, and reading and keeping the books.
#[async_trait]
pub trait Stocking: Send {
    /// Makes all adjustments or none, one entry of the ledger each, with the rows of their stock locked in the order of their
    /// keys; a key that is new comes into being. What is taken away is found as [`super::Reserving::reserve_slow`] finds it,
    /// with the same meaning of sold out and busy, and pools are filled as there.
    ///
    /// A reference that is known answers as [`super::Reserving::reserve_fast`] does: the stocks as they are now, `duplicate`,
    /// and nothing changed but a note. References are kept for as long as the ledger.
    async fn adjust(&mut self, caller: &Caller, call: &AdjustCall) -> Result<Adjusted, EngineError>;

    /// Stocks of `item` at locations behind `after` (from the first one on where absent), in the order of their locations,
    /// `limit` at most. Each figure is of one instant. What reservations past their time hold counts as free. Never counts
    /// the rows of a pool. Reads alone.
    async fn stocks(
        &mut self,
        caller: &Caller,
        item: &Key,
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Vec<StockRow>, EngineError>;

    /// The stocks of these keys, one for each in their order, all of one instant; `None` where nothing was ever adjusted.
    /// Otherwise as [`Stocking::stocks`].
    async fn stocks_of(&mut self, caller: &Caller, keys: &[StockKey]) -> Result<Vec<Option<StockRow>>, EngineError>;

    /// Keys behind `after` (from the first one on where absent) that have something to fold, in their order, `limit` at most.
    /// Empty for an engine that folds nothing. Reads alone.
    async fn unfolded(
        &mut self,
        caller: &Caller,
        after: Option<&StockKey>,
        limit: usize,
    ) -> Result<Vec<StockKey>, EngineError>;

    /// Of each of these keys, which are given in their order: folds what was left to be folded, and fills its pool up to
    /// `pool` where it is less than half full. Rows of stock that others hold are passed over. One row for each key that was
    /// not, in their order.
    async fn refill(&mut self, caller: &Caller, keys: &[StockKey], pool: u32) -> Result<Vec<Refilled>, EngineError>;

    /// Compares the books of keys behind `after` (from the first one on where absent), in their order, `limit` keys at most:
    /// with their ledger, with the lines of reservations that are held, and with where free units are. Keys are those that
    /// have stock or an entry in the ledger. All figures of one key are of one instant. Reads alone.
    async fn verify(&mut self, caller: &Caller, walk: &VerifyWalk) -> Result<Verified, EngineError>;

    /// Entries of the ledger of one key with numbers below `before` (from the newest on where absent), newest first, `limit`
    /// at most. Reads alone.
    async fn ledger(
        &mut self,
        caller: &Caller,
        key: &StockKey,
        before: Option<i64>,
        limit: usize,
    ) -> Result<Vec<LedgerRow>, EngineError>;

    /// All switches, by prefix, `at_most` of them. Reads alone.
    async fn stock_switches(&mut self, caller: &Caller, at_most: usize) -> Result<Vec<StockSwitch>, EngineError>;

    /// Sets the switch of `prefix` with this reason, in the place of what was set before; `None` takes it away. The switch as
    /// it is then. A prefix that has none yet is not taken where `at_most` have one already: [`SwitchSet::Full`].
    async fn set_stock_switch(
        &mut self,
        caller: &Caller,
        prefix: &str,
        reason: Option<&str>,
        at_most: usize,
    ) -> Result<SwitchSet, EngineError>;
}

/// Adjustments that stand or fall together.
#[derive(Debug, Clone)]
pub struct AdjustCall {
    /// Names the call.
    pub reference: Key,
    /// At least one, each key once, in the order of their keys.
    pub adjustments: Vec<Adjustment>,
    /// What calls with one reference must agree on; see [`crate::model::stock::adjustments_hash`].
    pub content: [u8; 32],
    /// For people; may be empty.
    pub reason: String,
    /// As in [`super::Cart::pool`].
    pub pool: u32,
}

/// What became of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Adjusted {
    /// They are made.
    Made {
        /// The stocks of the adjusted keys, in their order, as they are now.
        stocks: Vec<StockRow>,
        /// They had been made before.
        duplicate: bool,
    },
    /// The reference was known with other adjustments.
    KeyReused,
    /// Too little is free to be taken away: of which adjustments.
    SoldOut(Vec<ShortLine>),
    /// As [`super::Reserved::Busy`].
    Busy,
    /// This adjustment would make more units on hand than [`Balance::MOST_ON_HAND`].
    TooMany {
        /// Its place.
        adjustment: usize,
    },
}

/// A stock as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StockRow {
    /// Which.
    pub key: StockKey,
    /// On hand, and held by reservations whose time is not over.
    pub balance: Balance,
}

/// What was done for the pool of one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refilled {
    /// Which.
    pub key: StockKey,
    /// Rows folded.
    pub folded: usize,
    /// Units put into the pool.
    pub added: usize,
    /// Units in the pool now.
    pub depth: usize,
}

/// A step of a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyWalk {
    /// Of this item alone.
    pub item: Option<Key>,
    /// Behind this key.
    pub after: Option<StockKey>,
    /// Keys at most.
    pub limit: usize,
}

/// What a step found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// Keys compared.
    pub compared: usize,
    /// What does not agree, in the order of the keys.
    pub differences: Vec<StockDifference>,
    /// The last key compared, where there may be more behind it.
    pub next: Option<StockKey>,
}

/// Two figures that should be the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StockDifference {
    /// Of which stock.
    pub key: StockKey,
    /// Which figure.
    pub figure: StockFigure,
    /// What it should be.
    pub expected: i64,
    /// What it is.
    pub found: i64,
}

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StockFigure {
    /// On hand, with the sum of the ledger.
    OnHand,
    /// Held, with the sum of the ledger.
    Held,
    /// Held, with the lines of reservations that are held.
    HeldLines,
    /// Units in the pool and beside it, with on hand less held; engines without a pool have nothing to compare.
    Free,
}

/// An entry of the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerRow {
    /// Its number, which rises with the entries of a key.
    pub id: i64,
    /// Why.
    pub kind: LedgerKind,
    /// By how much.
    pub movement: Movement,
    /// The reservation, for all but adjustments.
    pub reservation: Option<ReservationId>,
    /// The call's name, for adjustments.
    pub reference: Option<Key>,
    /// What the call said, for adjustments.
    pub reason: String,
    /// When.
    pub entered_at: Timestamp,
}

/// New reservations of some items are stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StockSwitch {
    /// Of items that begin with this; of all where empty.
    pub prefix: String,
    /// Why.
    pub reason: String,
    /// Since when.
    pub set_at: Timestamp,
}

/// What became of a switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SwitchSet {
    /// It is set.
    Set(StockSwitch),
    /// There is none.
    Cleared,
    /// There are as many as there may be.
    Full,
}
