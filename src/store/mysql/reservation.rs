//! Reservations that exist: read, ended, extended.

use std::time::Duration;

use sqlx::mysql::MySqlRow;

use super::{
    record::key,
    session::{MysqlSession, Statement},
    value::{column, list, moment, narrow},
};
use crate::{
    model::{Caller, JobId, Key, LedgerKind, ReservationId, ReservationLine, ReservationState, StockKey, Timestamp},
    store::{
        engine::{End, Ended, ReservationRef, ReservationRow},
        error::EngineError,
    },
};

/// A reservation whose row this transaction has locked.
struct LockedReservation {
    reference: Key,
    held: bool,
    expires_at: Timestamp,
    now: Timestamp,
}

impl MysqlSession {
    /// The statement that reads it, a row for each line.
    pub(super) fn reservation_by(&mut self, caller: &Caller, by: &ReservationRef) -> Statement {
        match by {
            ReservationRef::Id(id) => self.statement(caller, include_str!("sql/read_reservation_by_id.sql")).bind(id.0),
            ReservationRef::Reference(reference) => self
                .statement(caller, include_str!("sql/read_reservation_by_reference.sql"))
                .bind(reference.as_str().as_bytes().to_vec()),
        }
    }

    /// Its row, locked, waiting for others who have it.
    async fn lock_reservation(
        &mut self,
        caller: &Caller,
        reservation: ReservationId,
    ) -> Result<Option<LockedReservation>, EngineError> {
        let lock = self.statement(caller, include_str!("sql/lock_reservation.sql")).bind(reservation.0);
        let rows = self.read(lock).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        Ok(Some(LockedReservation {
            reference: some_key(row, "reference")?,
            held: state(row)? == ReservationState::Held,
            expires_at: moment(row, "expires_at")?,
            now: moment(row, "now")?,
        }))
    }

    /// As it is in the open transaction, which has its row.
    async fn locked_reservation(
        &mut self,
        caller: &Caller,
        reservation: ReservationId,
    ) -> Result<ReservationRow, EngineError> {
        let find = self.reservation_by(caller, &ReservationRef::Id(reservation));
        let found = stored(&self.read(find).await?)?;
        found.map(|(row, _)| row).ok_or_else(|| EngineError::Bug("a locked reservation is not there".into()))
    }

    pub(super) async fn end_held(&mut self, caller: &Caller, end: &End) -> Result<Ended, EngineError> {
        let Some(locked) = self.lock_reservation(caller, end.reservation).await? else { return Ok(Ended::Gone) };
        if !locked.held {
            let note = self.statement(caller, include_str!("sql/note_reservation.sql"));
            self.change(note.bind(locked.reference.as_str().as_bytes().to_vec())).await?;
            return Ok(Ended::Before(self.locked_reservation(caller, end.reservation).await?));
        }
        let kind = match end.state {
            ReservationState::Committed => LedgerKind::Commit,
            ReservationState::Released => LedgerKind::Release,
            ReservationState::Held | ReservationState::Expired => {
                return Err(EngineError::Bug("an end that nobody may ask for".into()));
            }
        };
        // Read after the lock was had: no end lies before what it ends.
        let now = self.now_within(caller).await?;
        self.end_locked(caller, &[end.reservation.0], (end.state, kind), now).await?;
        self.drop_expiry_jobs(caller, &[end.reservation.0]).await?;
        let name = include_str!("sql/name_committed_jobs.sql");
        let jobs = self.store_with(caller, &end.jobs, now, (name, locked.reference.as_str())).await?;
        let reservation = self.locked_reservation(caller, end.reservation).await?;
        Ok(Ended::Now { reservation, jobs })
    }

    /// Ends reservations that are held and locked by this transaction.
    pub(super) async fn end_locked(
        &mut self,
        caller: &Caller,
        ids: &[i64],
        (state, kind): (ReservationState, LedgerKind),
        now: Timestamp,
    ) -> Result<(), EngineError> {
        let end = self.statement(caller, include_str!("sql/end_reservations.sql")).bind(list(ids)?);
        let ended = self.change(end.bind(state.code()).bind(now.0)).await?;
        if ended != ids.len() as u64 {
            return Err(EngineError::Bug(format!("{ended} of {} locked reservations ended", ids.len())));
        }
        let lines = self.statement(caller, include_str!("sql/end_lines.sql")).bind(list(ids)?);
        self.change(lines).await?;
        self.enter_lines(caller, kind, ids, now).await?;
        self.leave_deltas(caller, kind, ids, now).await
    }

    pub(super) async fn drop_expiry_jobs(&mut self, caller: &Caller, ids: &[i64]) -> Result<(), EngineError> {
        let drop_jobs = self.statement(caller, include_str!("sql/drop_expiry_jobs.sql")).bind(list(ids)?);
        self.change(drop_jobs).await.map(drop)
    }

    /// An entry of the ledger for each line of these reservations.
    pub(super) async fn enter_lines(
        &mut self,
        caller: &Caller,
        kind: LedgerKind,
        ids: &[i64],
        now: Timestamp,
    ) -> Result<(), EngineError> {
        let sign = kind.movement(1);
        let enter = self.statement(caller, include_str!("sql/enter_lines.sql")).bind(kind.code());
        self.change(enter.bind(sign.on_hand).bind(sign.held).bind(now.0).bind(list(ids)?)).await.map(drop)
    }

    /// Leaves to whoever locks the stocks next what these reservations change.
    pub(super) async fn leave_deltas(
        &mut self,
        caller: &Caller,
        kind: LedgerKind,
        ids: &[i64],
        now: Timestamp,
    ) -> Result<(), EngineError> {
        let sign = kind.movement(1);
        // What a reservation takes was free in the pool, and what is given back does not go there by itself.
        let free = if kind == LedgerKind::Reserve { 0 } else { sign.on_hand - sign.held };
        let leave = self.statement(caller, include_str!("sql/leave_deltas.sql")).bind(kind.code()).bind(now.0);
        self.change(leave.bind(sign.on_hand).bind(sign.held).bind(free).bind(list(ids)?)).await.map(drop)
    }

    pub(super) async fn extend_held_reservation(
        &mut self,
        caller: &Caller,
        reservation: ReservationId,
        time_to_live: Duration,
    ) -> Result<Option<ReservationRow>, EngineError> {
        let Some(locked) = self.lock_reservation(caller, reservation).await? else { return Ok(None) };
        let expires_at = locked.now.plus(time_to_live);
        if locked.held && expires_at > locked.expires_at {
            let extend = self
                .statement(caller, include_str!("sql/extend_reservation.sql"))
                .bind(expires_at.0)
                .bind(expires_at.0)
                .bind(locked.reference.as_str().as_bytes().to_vec());
            self.change(extend).await?;
            let lines = self.statement(caller, include_str!("sql/extend_lines.sql"));
            self.change(lines.bind(expires_at.0).bind(reservation.0)).await?;
        }
        self.locked_reservation(caller, reservation).await.map(Some)
    }
}

/// The reservation that these rows show, and its content; nothing where there are none.
pub(super) fn stored(rows: &[MySqlRow]) -> Result<Option<(ReservationRow, Vec<u8>)>, EngineError> {
    let Some(first) = rows.first() else { return Ok(None) };
    let line = |row: &MySqlRow| Ok(ReservationLine { key: stock_key(row)?, quantity: narrow(row, "quantity")? });
    let row = ReservationRow {
        id: ReservationId(column(first, "id")?),
        reference: some_key(first, "reference")?,
        state: state(first)?,
        lines: rows.iter().map(line).collect::<Result<_, EngineError>>()?,
        created_at: moment(first, "created_at")?,
        expires_at: moment(first, "expires_at")?,
        ended_at: column::<Option<i64>>(first, "ended_at")?.map(Timestamp),
        jobs: jobs(first, "jobs")?,
        commit_jobs: jobs(first, "commit_jobs")?,
    };
    Ok(Some((row, column(first, "content")?)))
}

/// The item and location of a row.
pub(super) fn stock_key(row: &MySqlRow) -> Result<StockKey, EngineError> {
    Ok(StockKey { item: some_key(row, "item")?, location: some_key(row, "location")? })
}

fn some_key(row: &MySqlRow, name: &str) -> Result<Key, EngineError> {
    key(row, name)?.ok_or_else(|| EngineError::Bug(format!("column {name} is null")))
}

fn state(row: &MySqlRow) -> Result<ReservationState, EngineError> {
    let state = ReservationState::of_code(narrow(row, "state")?);
    state.ok_or_else(|| EngineError::Bug("a state that no reservation has".into()))
}

fn jobs(row: &MySqlRow, name: &str) -> Result<Vec<JobId>, EngineError> {
    let Some(json) = column::<Option<String>>(row, name)? else { return Ok(Vec::new()) };
    let ids: Vec<i64> =
        serde_json::from_str(&json).map_err(|_| EngineError::Bug(format!("column {name} is no list")))?;
    Ok(ids.into_iter().map(JobId).collect())
}
