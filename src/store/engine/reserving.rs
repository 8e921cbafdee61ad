//! Reservations.
//!
//! What an engine keeps, in whatever tables: for each key a balance (on hand, held) and where its free units are; the ledger,
//! to which every act below appends one entry for each key that it changes, in its own transaction; the reservations with
//! their lines, and the jobs to be stored should they expire. Entries' numbers are drawn after the units were had, so that in
//! the order of their numbers no entry takes what an earlier one did not leave.
//!
//! Locks are taken in this order, which all acts keep: the reservation's own row (by its reference or id); rows of stock in
//! the order of their keys; other reservations and units, passed over where others hold them; keys of jobs last, as Enqueue
//! does.

use std::time::Duration;

use async_trait::async_trait;

use super::{EnqueuedRow, JobRow};
use crate::{
    model::{Caller, JobId, Key, QueueId, ReservationId, ReservationLine, ReservationState, Timestamp},
    store::error::EngineError,
};

/// Holding units, and ending that. Jobs are stored as by [`super::Enqueueing::enqueue`], whose errors these acts have too:
/// [`EngineError::KeyReused`] and [`EngineError::QueueClosed`] mean that nothing was done.
#[async_trait]
pub trait Reserving: Send {
    /// Holds every line by units that lie ready and that nobody else is about to take, and waits for nothing but another call
    /// with the same reference and the keys of its own jobs. Where they do not suffice: [`Reserved::Short`], nothing changed;
    /// or, where one plain look sees that too little is free, with what is held past its time counted as free,
    /// [`Reserved::SoldOut`] at once. An engine without a pool says what is so at once, as [`Reserving::reserve_slow`] does.
    ///
    /// A reference that is known answers [`Reserved::Known`] where its lines were the same and [`Reserved::KeyReused`]
    /// otherwise, and writes to the reservation's row, so that the answer is as durable as the first one.
    async fn reserve_fast(&mut self, caller: &Caller, cart: &Cart) -> Result<Reserved, EngineError>;

    /// The same with the rows of the cart's stock locked, in the order of their keys: ends reservations of these keys whose
    /// time is over, as [`Reserving::sweep_expired`] does and as many as it takes, folds what others left to be folded, takes
    /// free units wherever they are, fills pools that are less than half full, up to [`Cart::pool`]. [`Reserved::SoldOut`]
    /// is answered only where at one instant, with these locks held, fewer units were free, units of reservations past their
    /// time counted as free; where some of those cannot be had since somebody else is ending their reservation,
    /// [`Reserved::Busy`]. With both nothing is held; what was found to be over may have been ended, and folded, all the same.
    async fn reserve_slow(&mut self, caller: &Caller, cart: &Cart) -> Result<Reserved, EngineError>;

    /// Ends a reservation that is held, also one past its time, and stores `jobs` with it (none where it is not a commit).
    /// One change of the reservation's state decides between this, other ends, and its expiry. One that has ended, however,
    /// is not changed but for a note that it was asked for. Locks no row of stock.
    async fn end_reservation(&mut self, caller: &Caller, end: &End) -> Result<Ended, EngineError>;

    /// Moves the expiry of a reservation that is held, also of one past its time, to so long after now; never to an earlier
    /// instant than it was. The answer is the reservation as it is then: of one that has ended, unchanged. `None` where there
    /// is none.
    async fn extend_reservation(
        &mut self,
        caller: &Caller,
        reservation: ReservationId,
        time_to_live: Duration,
    ) -> Result<Option<ReservationRow>, EngineError>;

    /// A reservation as it is. Reads alone.
    async fn find_reservation(
        &mut self,
        caller: &Caller,
        by: &ReservationRef,
    ) -> Result<Option<ReservationRow>, EngineError>;

    /// Ends reservations whose time is over: of those that expire after `floor`, the longest overdue first, `limit` at most;
    /// rows that others hold are passed over. Their jobs on expiry are stored, ready their delay after this. A disabled or
    /// full queue takes them all the same; one that is gone, or being deleted, does not, and its jobs are dropped.
    async fn sweep_expired(&mut self, caller: &Caller, floor: Timestamp, limit: usize) -> Result<Swept, EngineError>;

    /// Removes reservations that ended more than `retention` ago, in the order of their ends from behind `floor` on, `limit`
    /// at most; rows that others hold are passed over. Their references may come again. The ledger stays.
    async fn prune_reservations(
        &mut self,
        caller: &Caller,
        floor: Timestamp,
        retention: Duration,
        limit: usize,
    ) -> Result<super::Pruned, EngineError>;
}

/// What is to be held.
#[derive(Debug, Clone)]
pub struct Cart {
    /// Names the reservation.
    pub reference: Key,
    /// At least one, each key once, in the order of their keys: that in which stock is locked, and in which the reservation
    /// shows them.
    pub lines: Vec<ReservationLine>,
    /// What calls with one reference must agree on; see [`crate::model::reservation::lines_hash`].
    pub content: [u8; 32],
    /// It expires so long after it was made.
    pub time_to_live: Duration,
    /// Stored with it.
    pub jobs: Vec<JobRow>,
    /// Kept with it and stored by whoever ends it by expiry. They have neither idempotency keys nor fixed starts.
    pub jobs_on_expiry: Vec<JobRow>,
    /// Units that a pool holds when it is full, for engines that have pools.
    pub pool: u32,
}

/// What became of a cart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reserved {
    /// It is held.
    New {
        /// The reservation.
        reservation: ReservationRow,
        /// Its jobs, in their order.
        jobs: Vec<EnqueuedRow>,
        /// Lines, by their places, whose pools are less than half full now, as far as the engine saw it on its way.
        low: Vec<usize>,
    },
    /// The reference was known: the reservation as it is.
    Known(ReservationRow),
    /// The reference was known with other lines.
    KeyReused,
    /// Not enough lay ready.
    Short,
    /// Somebody else is ending a reservation whose units may be what is missing: ask again.
    Busy,
    /// Too little is free: of which lines.
    SoldOut(Vec<ShortLine>),
}

/// A line of which too little is free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShortLine {
    /// Its place in the request's rows.
    pub line: usize,
    /// Units that were free at the instant at which it was decided, expired holds counted as free.
    pub available: i64,
}

/// A reservation as the database has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReservationRow {
    /// Its id.
    pub id: ReservationId,
    /// Its name.
    pub reference: Key,
    /// What became of it.
    pub state: ReservationState,
    /// What it holds or held, in the order of the keys.
    pub lines: Vec<ReservationLine>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When its time is over.
    pub expires_at: Timestamp,
    /// When it ended, where it did.
    pub ended_at: Option<Timestamp>,
    /// Jobs that came with it, in their order.
    pub jobs: Vec<JobId>,
    /// Jobs that came with its commit, in their order.
    pub commit_jobs: Vec<JobId>,
}

/// How to find a reservation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReservationRef {
    /// By its id.
    Id(ReservationId),
    /// By its reference.
    Reference(Key),
}

/// Ending a reservation.
#[derive(Debug, Clone)]
pub struct End {
    /// Which one.
    pub reservation: ReservationId,
    /// How: [`ReservationState::Committed`] or [`ReservationState::Released`].
    pub state: ReservationState,
    /// Stored with it.
    pub jobs: Vec<JobRow>,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// It ended here.
    Now {
        /// The reservation.
        reservation: ReservationRow,
        /// The jobs, in their order.
        jobs: Vec<EnqueuedRow>,
    },
    /// It had ended: the reservation as it is. Nothing was stored.
    Before(ReservationRow),
    /// There is no such reservation.
    Gone,
}

/// What a pass over overdue reservations did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Swept {
    /// Reservations that are expired now, and how late that was for each.
    pub lags: Vec<Duration>,
    /// Jobs stored.
    pub jobs: usize,
    /// Queues in which jobs became ready, as far as this act made them so; those that wait for their adoption as arrivals are
    /// not among them.
    pub readied: Vec<QueueId>,
    /// Where the next pass may begin: no reservation that is held expires between the floor given and this one.
    pub floor: Timestamp,
}
