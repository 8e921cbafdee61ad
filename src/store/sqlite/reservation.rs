//! Reservations that exist: ended, extended, as rows show them.

use std::time::Duration;

use sqlx::sqlite::SqliteRow;

use super::{
    record::key,
    session::{SqliteSession, column, list, narrow},
};
use crate::{
    model::{Caller, JobId, Key, LedgerKind, ReservationId, ReservationLine, ReservationState, StockKey, Timestamp},
    store::{
        engine::{End, Ended, ReservationRef, ReservationRow, Reserving},
        error::EngineError,
    },
};

impl SqliteSession {
    pub(super) async fn end_held(&mut self, caller: &Caller, end: &End, now: Timestamp) -> Result<Ended, EngineError> {
        let by = ReservationRef::Id(end.reservation);
        let Some(found) = self.find_reservation(caller, &by).await? else { return Ok(Ended::Gone) };
        if found.state != ReservationState::Held {
            let note = self.statement(caller, include_str!("sql/note_reservation.sql")).bind(end.reservation.0);
            self.change(note).await?;
            return Ok(Ended::Before(found));
        }
        let kind = match end.state {
            ReservationState::Committed => LedgerKind::Commit,
            ReservationState::Released => LedgerKind::Release,
            ReservationState::Held | ReservationState::Expired => {
                return Err(EngineError::Bug("an end that nobody may ask for".to_owned()));
            }
        };
        let id = end.reservation.0;
        self.end_all(caller, &[id], (end.state, kind), now).await?;
        self.drop_expiry_jobs(caller, &[id]).await?;
        let jobs = self.store_with(caller, &end.jobs, now, (include_str!("sql/name_committed_jobs.sql"), id)).await?;
        Ok(Ended::Now { reservation: self.known(caller, end.reservation).await?, jobs })
    }

    /// Ends reservations that are held: how late each is.
    pub(super) async fn end_all(
        &mut self,
        caller: &Caller,
        ids: &[i64],
        (state, kind): (ReservationState, LedgerKind),
        now: Timestamp,
    ) -> Result<Vec<Duration>, EngineError> {
        let end = self.statement(caller, include_str!("sql/end_reservations.sql")).bind(list(ids)?);
        let ended = self.change_returning(end.bind(state.code()).bind(now.0)).await?;
        if ended.len() != ids.len() {
            return Err(EngineError::Bug(format!("{} of {} reservations ended", ended.len(), ids.len())));
        }
        let lines = self.statement(caller, include_str!("sql/end_lines.sql")).bind(list(ids)?);
        self.change(lines).await?;
        self.book(caller, ids, kind, now).await?;
        ended.iter().map(|row| Ok(now.since(Timestamp(column(row, "expires_at")?)))).collect()
    }

    /// Changes the stocks by the lines of these reservations, and enters that into the ledger.
    pub(super) async fn book(
        &mut self,
        caller: &Caller,
        ids: &[i64],
        kind: LedgerKind,
        now: Timestamp,
    ) -> Result<(), EngineError> {
        let sign = kind.movement(1);
        let balance = self.statement(caller, include_str!("sql/balance_lines.sql")).bind(list(ids)?);
        self.change(balance.bind(sign.on_hand).bind(sign.held)).await?;
        let enter = self.statement(caller, include_str!("sql/enter_lines.sql")).bind(list(ids)?).bind(kind.code());
        self.change(enter.bind(sign.on_hand).bind(sign.held).bind(now.0)).await.map(drop)
    }

    pub(super) async fn drop_expiry_jobs(&mut self, caller: &Caller, ids: &[i64]) -> Result<(), EngineError> {
        let drop_jobs = self.statement(caller, include_str!("sql/drop_expiry_jobs.sql")).bind(list(ids)?);
        self.change(drop_jobs).await.map(drop)
    }

    /// Moves the expiry of one that is held to a later instant.
    pub(super) async fn move_expiry(
        &mut self,
        caller: &Caller,
        id: ReservationId,
        expires_at: Timestamp,
    ) -> Result<Option<ReservationRow>, EngineError> {
        let extend = self.statement(caller, include_str!("sql/extend_reservation.sql")).bind(id.0).bind(expires_at.0);
        if self.change(extend).await? > 0 {
            let lines = self.statement(caller, include_str!("sql/extend_lines.sql")).bind(id.0).bind(expires_at.0);
            self.change(lines).await?;
        }
        self.find_reservation(caller, &ReservationRef::Id(id)).await
    }
}

/// The reservation that these rows show; nothing where there are none.
pub(super) fn stored(rows: &[SqliteRow]) -> Result<Option<ReservationRow>, EngineError> {
    let Some(first) = rows.first() else { return Ok(None) };
    let instant = |name: &str| column(first, name).map(Timestamp);
    let line = |row: &SqliteRow| Ok(ReservationLine { key: stock_key(row)?, quantity: narrow(row, "quantity")? });
    let state = ReservationState::of_code(narrow(first, "state")?);
    Ok(Some(ReservationRow {
        id: ReservationId(column(first, "id")?),
        reference: some_key(first, "reference")?,
        state: state.ok_or_else(|| EngineError::Bug("a state that no reservation has".to_owned()))?,
        lines: rows.iter().map(line).collect::<Result<_, EngineError>>()?,
        created_at: instant("created_at")?,
        expires_at: instant("expires_at")?,
        ended_at: column::<Option<i64>>(first, "ended_at")?.map(Timestamp),
        jobs: jobs(first, "jobs")?,
        commit_jobs: jobs(first, "commit_jobs")?,
    }))
}

/// The item and location of a row.
pub(super) fn stock_key(row: &SqliteRow) -> Result<StockKey, EngineError> {
    Ok(StockKey { item: some_key(row, "item")?, location: some_key(row, "location")? })
}

/// As it stands in a column.
pub(super) fn reference_of(key: &Key) -> String {
    key.as_str().to_owned()
}

fn some_key(row: &SqliteRow, name: &str) -> Result<Key, EngineError> {
    key(row, name)?.ok_or_else(|| EngineError::Bug(format!("column {name} is null")))
}

fn jobs(row: &SqliteRow, name: &str) -> Result<Vec<JobId>, EngineError> {
    let ids: Result<Vec<i64>, _> = serde_json::from_str(&column::<String>(row, name)?);
    let ids = ids.map_err(|_| EngineError::Bug(format!("column {name} is no list")))?;
    Ok(ids.into_iter().map(JobId).collect())
}
