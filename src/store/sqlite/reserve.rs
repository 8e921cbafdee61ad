//! Reservations. With one writer there are no units that lie ready: a cart is held where its stocks have them.

use std::{collections::BTreeSet, time::Duration};

use async_trait::async_trait;

use super::{
    enqueue::headers,
    maintain::next_floor,
    reservation::{reference_of, stored},
    session::{SqliteSession, column, list, narrow, place},
};
use crate::{
    model::{
        Balance, Caller, JobId, Key, LedgerKind, QueueId, ReservationId, ReservationState, Start, StockKey, Timestamp,
        time::micros,
    },
    store::{
        engine::{
            Cart, End, Ended, EnqueuedRow, JobRow, Pruned, ReservationRef, ReservationRow, Reserved, Reserving,
            ShortLine, Swept,
        },
        error::EngineError,
    },
};

/// What each job on expiry weighs beside its payload.
const JOB_WEIGHT: usize = 4_096;

/// The jobs of reservations that one pass ends weigh so much at most, or are those of one reservation.
const WEIGHT_AT_ONCE: i64 = 4 << 20;

/// Reservations that are ended at once to have their units.
const OVERDUE_AT_ONCE: i64 = 100;

/// Reservations that ended by expiry, and what became of their jobs.
#[derive(Default)]
struct Expired {
    lags: Vec<Duration>,
    jobs: usize,
    readied: BTreeSet<QueueId>,
}

#[async_trait]
impl Reserving for SqliteSession {
    async fn reserve_fast(&mut self, caller: &Caller, cart: &Cart) -> Result<Reserved, EngineError> {
        self.reserve_slow(caller, cart).await
    }

    async fn reserve_slow(&mut self, caller: &Caller, cart: &Cart) -> Result<Reserved, EngineError> {
        let now = self.begin(caller).await?;
        let reserved = self.hold(caller, cart, now).await;
        if let Ok(Reserved::SoldOut(_)) = reserved {
            self.roll_back(caller).await?;
            return reserved;
        }
        self.end(caller, now, reserved).await
    }

    async fn end_reservation(&mut self, caller: &Caller, end: &End) -> Result<Ended, EngineError> {
        let now = self.begin(caller).await?;
        let ended = self.end_held(caller, end, now).await;
        self.end(caller, now, ended).await
    }

    async fn extend_reservation(
        &mut self,
        caller: &Caller,
        reservation: ReservationId,
        time_to_live: Duration,
    ) -> Result<Option<ReservationRow>, EngineError> {
        let now = self.begin(caller).await?;
        let extended = self.move_expiry(caller, reservation, now.plus(time_to_live)).await;
        self.end(caller, now, extended).await
    }

    async fn find_reservation(
        &mut self,
        caller: &Caller,
        by: &ReservationRef,
    ) -> Result<Option<ReservationRow>, EngineError> {
        self.reservation(caller, by).await
    }

    async fn sweep_expired(&mut self, caller: &Caller, floor: Timestamp, limit: usize) -> Result<Swept, EngineError> {
        let now = self.begin(caller).await?;
        let swept = self.sweep(caller, floor, limit, now).await;
        self.end(caller, now, swept).await
    }

    async fn prune_reservations(
        &mut self,
        caller: &Caller,
        floor: Timestamp,
        retention: Duration,
        limit: usize,
    ) -> Result<Pruned, EngineError> {
        let now = self.begin(caller).await?;
        let pruned = self.remove_ended(caller, floor, now.minus(retention), limit).await;
        self.end(caller, now, pruned).await
    }
}

impl SqliteSession {
    async fn hold(&mut self, caller: &Caller, cart: &Cart, now: Timestamp) -> Result<Reserved, EngineError> {
        let known = self.statement(caller, include_str!("sql/reserve_known.sql")).bind(reference_of(&cart.reference));
        if let Some(row) = self.change_returning(known).await?.first() {
            if column::<Vec<u8>>(row, "content")? != cart.content {
                return Ok(Reserved::KeyReused);
            }
            let id = ReservationId(column(row, "id")?);
            return Ok(Reserved::Known(self.known(caller, id).await?));
        }
        let wanted: Vec<(&StockKey, i64)> =
            cart.lines.iter().map(|line| (&line.key, i64::from(line.quantity))).collect();
        let short = self.free_up(caller, &wanted, now).await?;
        if !short.is_empty() {
            return Ok(Reserved::SoldOut(short));
        }
        let expires_at = now.plus(cart.time_to_live);
        let weight: usize = cart.jobs_on_expiry.iter().map(|row| row.job.payload.len() + JOB_WEIGHT).sum();
        let hold = self
            .statement(caller, include_str!("sql/hold_reservation.sql"))
            .bind(reference_of(&cart.reference))
            .bind(now.0)
            .bind(expires_at.0)
            .bind(caller.as_str().to_owned())
            .bind(cart.content.to_vec())
            .bind(i64::try_from(weight).unwrap_or(i64::MAX));
        let held = self.change_returning(hold).await?;
        let held = held.first().ok_or_else(|| EngineError::Bug("a reservation without an id".to_owned()))?;
        let id: i64 = column(held, "id")?;
        let lines: Vec<(&str, &str, u32)> =
            cart.lines.iter().map(|line| (line.key.item.as_str(), line.key.location.as_str(), line.quantity)).collect();
        let lines =
            self.statement(caller, include_str!("sql/hold_lines.sql")).bind(id).bind(expires_at.0).bind(list(&lines)?);
        self.change(lines).await?;
        self.book(caller, &[id], LedgerKind::Reserve, now).await?;
        self.keep_jobs(caller, id, &cart.jobs_on_expiry).await?;
        let jobs = self.store_with(caller, &cart.jobs, now, (include_str!("sql/name_reserved_jobs.sql"), id)).await?;
        let reservation = self.known(caller, ReservationId(id)).await?;
        Ok(Reserved::New { reservation, jobs, low: Vec::new() })
    }

    /// Sees that so many units of each are free, ending reservations past their time for them; of which too few are, and then
    /// nothing is ended.
    pub(super) async fn free_up(
        &mut self,
        caller: &Caller,
        wanted: &[(&StockKey, i64)],
        now: Timestamp,
    ) -> Result<Vec<ShortLine>, EngineError> {
        let keys: Vec<(&str, &str)> =
            wanted.iter().map(|(key, _)| (key.item.as_str(), key.location.as_str())).collect();
        let look = self.statement(caller, include_str!("sql/cart_stocks.sql")).bind(list(&keys)?).bind(now.0);
        let mut free = vec![(0_i64, 0_i64); wanted.len()];
        for row in self.read(look).await? {
            let balance = Balance { on_hand: column(&row, "on_hand")?, held: column(&row, "held")? };
            free[place(&row, wanted.len())?] = (balance.available(), column(&row, "overdue")?);
        }
        let lines = || wanted.iter().zip(&free).enumerate();
        let short: Vec<ShortLine> = lines()
            .map(|(line, ((_, units), (free, overdue)))| (line, units, free.saturating_add(*overdue)))
            .filter(|(_, units, available)| available < *units)
            .map(|(line, _, available)| ShortLine { line, available })
            .collect();
        if short.is_empty() {
            let lacking: Vec<&StockKey> =
                lines().filter(|(_, ((_, units), (free, _)))| free < units).map(|(_, ((key, _), _))| *key).collect();
            for key in lacking {
                self.end_overdue(caller, key, now).await?;
            }
        }
        Ok(short)
    }

    /// Ends all reservations of a stock that are past their time.
    async fn end_overdue(&mut self, caller: &Caller, key: &StockKey, now: Timestamp) -> Result<(), EngineError> {
        loop {
            let find = self
                .statement(caller, include_str!("sql/find_overdue.sql"))
                .bind(reference_of(&key.item))
                .bind(reference_of(&key.location))
                .bind(now.0)
                .bind(OVERDUE_AT_ONCE);
            let found = self.read(find).await?;
            if found.is_empty() {
                return Ok(());
            }
            let ids: Vec<i64> = found.iter().map(|row| column(row, "id")).collect::<Result<_, _>>()?;
            self.expire_reservations(caller, &ids, now).await?;
        }
    }

    async fn sweep(
        &mut self,
        caller: &Caller,
        floor: Timestamp,
        limit: usize,
        now: Timestamp,
    ) -> Result<Swept, EngineError> {
        let find = self.statement(caller, include_str!("sql/find_expired_reservations.sql"));
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let found = self.read(find.bind(floor.0).bind(now.0).bind(limit).bind(WEIGHT_AT_ONCE)).await?;
        let ids: Vec<i64> = found.iter().map(|row| column(row, "id")).collect::<Result<_, _>>()?;
        let expired = self.expire_reservations(caller, &ids, now).await?;
        // Just before the last one of a pass that may have left some, since others may share its instant.
        let mut last = now;
        if let Some(row) = found.last() {
            let all: i64 = column(row, "found")?;
            if all >= limit || usize::try_from(all) != Ok(found.len()) {
                last = Timestamp(column(row, "expires_at")?);
            }
        }
        Ok(Swept {
            lags: expired.lags,
            jobs: expired.jobs,
            readied: expired.readied.into_iter().collect(),
            floor: last.minus(Duration::from_micros(1)).max(floor),
        })
    }

    async fn expire_reservations(
        &mut self,
        caller: &Caller,
        ids: &[i64],
        now: Timestamp,
    ) -> Result<Expired, EngineError> {
        let mut expired = Expired::default();
        if ids.is_empty() {
            return Ok(expired);
        }
        expired.lags = self.end_all(caller, ids, (ReservationState::Expired, LedgerKind::Expire), now).await?;
        let find = self.statement(caller, include_str!("sql/find_expiry_jobs.sql")).bind(list(ids)?);
        for row in self.read(find).await? {
            let store = self
                .statement(caller, include_str!("sql/store_expiry_job.sql"))
                .bind(column::<i64>(&row, "reservation_id")?)
                .bind(column::<i64>(&row, "place")?)
                .bind(now.0);
            for job in self.change_returning(store).await? {
                expired.jobs += 1;
                if column::<i64>(&job, "blocked")? == 0 {
                    expired.readied.insert(QueueId(narrow(&job, "queue_id")?));
                }
            }
        }
        self.drop_expiry_jobs(caller, ids).await?;
        Ok(expired)
    }

    /// Stores jobs with a reservation and writes down which they are.
    pub(super) async fn store_with(
        &mut self,
        caller: &Caller,
        jobs: &[JobRow],
        now: Timestamp,
        (name, reservation): (&'static str, i64),
    ) -> Result<Vec<EnqueuedRow>, EngineError> {
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        let stored = self.store(caller, jobs, now).await?;
        let ids: Vec<i64> = stored.iter().map(|EnqueuedRow { job: JobId(id), .. }| *id).collect();
        let name = self.statement(caller, name).bind(reservation).bind(list(&ids)?);
        self.change(name).await?;
        Ok(stored)
    }

    async fn keep_jobs(&mut self, caller: &Caller, reservation: i64, jobs: &[JobRow]) -> Result<(), EngineError> {
        if jobs.is_empty() {
            return Ok(());
        }
        let mut rows = Vec::with_capacity(jobs.len());
        let mut payloads = Vec::with_capacity(jobs.iter().map(|row| row.job.payload.len()).sum());
        for JobRow { job, queue, max_attempts, .. } in jobs {
            let delay = match job.start {
                Start::Now => Duration::ZERO,
                Start::After(delay) => delay,
                Start::At(_) => return Err(EngineError::Bug("a job on expiry with a fixed start".to_owned())),
            };
            rows.push((
                queue.0,
                micros(delay),
                job.priority.level(),
                *max_attempts,
                job.ordering_key.as_ref().map(Key::as_str),
                &job.content_type,
                headers(job)?,
                job.trace.as_ref().map(|trace| trace.traceparent.as_str()),
                job.trace.as_ref().map(|trace| trace.tracestate.as_str()),
                payloads.len() + 1,
                job.payload.len(),
            ));
            payloads.extend_from_slice(&job.payload);
        }
        let keep = self.statement(caller, include_str!("sql/keep_expiry_jobs.sql")).bind(reservation);
        self.change(keep.bind(list(&rows)?).bind(payloads).bind(caller.as_str().to_owned())).await.map(drop)
    }

    async fn remove_ended(
        &mut self,
        caller: &Caller,
        floor: Timestamp,
        last: Timestamp,
        limit: usize,
    ) -> Result<Pruned, EngineError> {
        let remove = self.statement(caller, include_str!("sql/prune_reservations.sql"));
        let limit_rows = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = self.change_returning(remove.bind(floor.0).bind(last.0).bind(limit_rows)).await?;
        let ids: Vec<i64> = rows.iter().map(|row| column(row, "id")).collect::<Result<_, _>>()?;
        if !ids.is_empty() {
            let lines = self.statement(caller, include_str!("sql/prune_lines.sql")).bind(list(&ids)?);
            self.change(lines).await?;
        }
        Ok(Pruned { rows: ids.len(), floor: next_floor(&rows, "ended_at", limit, last)? })
    }

    /// As it is in the open transaction, which found it.
    pub(super) async fn known(&mut self, caller: &Caller, id: ReservationId) -> Result<ReservationRow, EngineError> {
        let found = self.reservation(caller, &ReservationRef::Id(id)).await?;
        found.ok_or_else(|| EngineError::Bug("a reservation that is known is not there".to_owned()))
    }

    async fn reservation(
        &mut self,
        caller: &Caller,
        by: &ReservationRef,
    ) -> Result<Option<ReservationRow>, EngineError> {
        let find = match by {
            ReservationRef::Id(id) => self.statement(caller, include_str!("sql/read_reservation_by_id.sql")).bind(id.0),
            ReservationRef::Reference(reference) => self
                .statement(caller, include_str!("sql/read_reservation_by_reference.sql"))
                .bind(reference_of(reference)),
        };
        stored(&self.read(find).await?)
    }
}
