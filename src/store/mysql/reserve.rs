//! Reservations.
//!
//! A cart is held by units that lie ready where those suffice. Nothing is waited for then but another call with the same
//! reference; the keys of its jobs come last, when nobody can wait for what is held here but for those who have the lock of
//! a stock, and they hold no key yet.

use std::time::{Duration, Instant};

use async_trait::async_trait;

use super::{
    enqueue::headers,
    repeated::{KEEP_EXPIRY_JOBS, RESERVE_UNITS},
    reservation::stored,
    session::MysqlSession,
    units::{self, Others},
    value::{column, count, list, place},
};
use crate::{
    model::{Caller, JobId, ReservationId, ReservationState, Start, StockKey, Timestamp, time::micros},
    store::{
        engine::{
            Cart, End, Ended, EnqueuedRow, JobRow, Pruned, ReservationRef, ReservationRow, Reserved, Reserving, Swept,
        },
        error::EngineError,
    },
};

/// A cart of more units than this is none for units that lie ready: each is a row.
const UNITS_AT_ONCE: u64 = 1_000;

/// What each job on expiry weighs beside its payload.
const JOB_WEIGHT: usize = 4_096;

/// After a longer wait it is worth a look whether anything is left.
const WAITED: Duration = Duration::from_millis(5);

/// Which try of the slow way this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Try {
    /// Leaves alone what is there for the fast way: a pool that somebody filled meanwhile, units that others may give back.
    First,
    /// Takes them, and waits for the others.
    Last,
}

/// A reservation that this transaction has made.
pub(super) struct Named {
    pub(super) id: ReservationId,
    pub(super) created_at: Timestamp,
    pub(super) expires_at: Timestamp,
}

/// Units that are locked, and the lines whose pools run low.
type Ready = (Vec<(String, String, i64)>, Vec<usize>);

#[async_trait]
impl Reserving for MysqlSession {
    async fn reserve_fast(&mut self, caller: &Caller, cart: &Cart) -> Result<Reserved, EngineError> {
        if cart.lines.iter().map(|line| u64::from(line.quantity)).sum::<u64>() > UNITS_AT_ONCE {
            // Known or not: that is said where the stock is locked.
            return Ok(Reserved::Short);
        }
        let now = self.begin(caller).await?;
        let reserved = self.hold_ready(caller, cart, now).await;
        self.conclude(caller, reserved).await
    }

    async fn reserve_slow(&mut self, caller: &Caller, cart: &Cart) -> Result<Reserved, EngineError> {
        let now = self.begin(caller).await?;
        let reserved = self.hold_any(caller, cart, now, Try::First).await;
        let reserved = self.conclude(caller, reserved).await?;
        if reserved != Reserved::Short {
            return Ok(reserved);
        }
        // Those who waited for somebody else to fill the pool go on side by side and not one after the other.
        let reserved = self.reserve_fast(caller, cart).await?;
        if reserved != Reserved::Short {
            return Ok(reserved);
        }
        let now = self.begin(caller).await?;
        let reserved = self.hold_any(caller, cart, now, Try::Last).await;
        self.conclude(caller, reserved).await
    }

    async fn end_reservation(&mut self, caller: &Caller, end: &End) -> Result<Ended, EngineError> {
        self.begin(caller).await?;
        let ended = self.end_held(caller, end).await;
        self.end(caller, ended).await
    }

    async fn extend_reservation(
        &mut self,
        caller: &Caller,
        reservation: ReservationId,
        time_to_live: Duration,
    ) -> Result<Option<ReservationRow>, EngineError> {
        self.begin(caller).await?;
        let extended = self.extend_held_reservation(caller, reservation, time_to_live).await;
        self.end(caller, extended).await
    }

    async fn find_reservation(
        &mut self,
        caller: &Caller,
        by: &ReservationRef,
    ) -> Result<Option<ReservationRow>, EngineError> {
        let find = self.reservation_by(caller, by);
        let rows = self.read_alone(find, caller).await?;
        Ok(stored(&rows)?.map(|(row, _)| row))
    }

    async fn sweep_expired(&mut self, caller: &Caller, floor: Timestamp, limit: usize) -> Result<Swept, EngineError> {
        let now = self.begin(caller).await?;
        let swept = self.end_expired(caller, floor, limit, now).await;
        self.end(caller, swept).await
    }

    async fn prune_reservations(
        &mut self,
        caller: &Caller,
        floor: Timestamp,
        retention: Duration,
        limit: usize,
    ) -> Result<Pruned, EngineError> {
        let now = self.begin(caller).await?;
        let pruned = self.remove_ended_reservations(caller, floor, now.minus(retention), limit).await;
        self.end(caller, pruned).await
    }
}

impl MysqlSession {
    /// Commits what is to stay and takes back the rest.
    async fn conclude(
        &mut self,
        caller: &Caller,
        reserved: Result<Reserved, EngineError>,
    ) -> Result<Reserved, EngineError> {
        match reserved {
            Ok(Reserved::New { .. } | Reserved::Known(_) | Reserved::KeyReused) | Err(_) => {
                self.end(caller, reserved).await
            }
            Ok(Reserved::Short | Reserved::Busy | Reserved::SoldOut(_)) => {
                self.roll_back(caller).await?;
                reserved
            }
        }
    }

    async fn hold_ready(&mut self, caller: &Caller, cart: &Cart, now: Timestamp) -> Result<Reserved, EngineError> {
        let named = match self.name_reservation(caller, cart, now).await? {
            Ok(named) => named,
            Err(known) => return Ok(known),
        };
        let Some((taken, low)) = self.find_ready(caller, cart).await? else { return Ok(Reserved::Short) };
        self.enter_at_once(caller, cart, &named, &taken).await?;
        self.complete(caller, cart, named, low).await
    }

    /// [`Reserved::Short`] where the first try leaves something alone.
    async fn hold_any(
        &mut self,
        caller: &Caller,
        cart: &Cart,
        now: Timestamp,
        attempt: Try,
    ) -> Result<Reserved, EngineError> {
        let mut named = match self.name_reservation(caller, cart, now).await? {
            Ok(named) => named,
            Err(known) => return Ok(known),
        };
        let wanted: Vec<_> = cart.lines.iter().map(|line| (&line.key, i64::from(line.quantity))).collect();
        let before = self.supply(caller, &wanted).await?;
        if !before.short.is_empty() {
            return Ok(Reserved::SoldOut(before.short));
        }
        let asked = Instant::now();
        let keys: Vec<&StockKey> = wanted.iter().map(|(key, _)| *key).collect();
        let locked = self.lock_stocks(caller, &keys, include_str!("sql/lock_stocks.sql")).await?;
        if attempt == Try::First && before.was_filled(&locked) {
            return Ok(Reserved::Short);
        }
        if asked.elapsed() > WAITED {
            let short = self.supply(caller, &wanted).await?.short;
            if !short.is_empty() {
                return Ok(Reserved::SoldOut(short));
            }
        }
        let others = if attempt == Try::First { Others::PassedOver } else { Others::WaitedFor };
        let mut stocks = match self.take_any(caller, locked, &wanted, (now, others)).await? {
            units::Taken::All(stocks) => stocks,
            units::Taken::Contended => return Ok(Reserved::Short),
            units::Taken::Short(lines) => return Ok(Reserved::SoldOut(lines)),
            units::Taken::Busy => return Ok(Reserved::Busy),
        };
        let now = self.now_within(caller).await?;
        named.created_at = now;
        named.expires_at = now.plus(cart.time_to_live);
        let time = self
            .statement(caller, include_str!("sql/time_reservation.sql"))
            .bind(now.0)
            .bind(named.expires_at.0)
            .bind(named.expires_at.0)
            .bind(cart.reference.as_str().as_bytes().to_vec());
        self.change(time).await?;
        let mut low = Vec::new();
        for (n, (stock, line)) in stocks.iter_mut().zip(&cart.lines).enumerate() {
            stock.hold(i64::from(line.quantity))?;
            self.fill(caller, stock, cart.pool).await?;
            self.write_stock(caller, stock).await?;
            if stock.is_low(cart.pool) {
                low.push(n);
            }
        }
        self.enter(caller, cart, &named).await?;
        self.complete(caller, cart, named, low).await
    }

    /// Takes the reference; what is to be answered where it is known.
    async fn name_reservation(
        &mut self,
        caller: &Caller,
        cart: &Cart,
        now: Timestamp,
    ) -> Result<Result<Named, Reserved>, EngineError> {
        let expires_at = now.plus(cart.time_to_live);
        let weight: usize = cart.jobs_on_expiry.iter().map(|row| row.job.payload.len() + JOB_WEIGHT).sum();
        let name = self
            .statement(caller, include_str!("sql/reserve_name.sql"))
            .bind(cart.reference.as_str().as_bytes().to_vec())
            .bind(now.0)
            .bind(expires_at.0)
            .bind(expires_at.0)
            .bind(caller.as_str().to_owned())
            .bind(cart.content.to_vec())
            .bind(count(weight));
        let (touched, id) = self.upsert(name).await?;
        if touched == 1 {
            return Ok(Ok(Named { id: ReservationId(id), created_at: now, expires_at }));
        }
        let find = self.reservation_by(caller, &ReservationRef::Reference(cart.reference.clone()));
        let rows = self.read(find).await?;
        let (row, content) =
            stored(&rows)?.ok_or_else(|| EngineError::Bug("a reservation that is known is not there".into()))?;
        Ok(Err(if content == cart.content { Reserved::Known(row) } else { Reserved::KeyReused }))
    }

    /// Locks units that nobody else is about to take, for all lines or not at all; and the lines whose pools run low.
    async fn find_ready(&mut self, caller: &Caller, cart: &Cart) -> Result<Option<Ready>, EngineError> {
        let mut taken = Vec::new();
        let mut low = Vec::new();
        let (size, sql) = RESERVE_UNITS.smallest(cart.lines.len());
        for (part, lines) in cart.lines.chunks(size).enumerate() {
            let mut find = self.statement(caller, sql);
            for n in 0..size {
                // A query that is not needed asks for nothing.
                let line = lines.get(n);
                let (item, location) = line.map_or((Vec::new(), Vec::new()), |line| units::bytes(&line.key));
                find = find.bind(count(n));
                for _ in 0..3 {
                    find = find.bind(item.clone()).bind(location.clone());
                }
                find = find.bind(line.map_or(0, |line| i64::from(line.quantity)));
            }
            let mut had = vec![0_u32; lines.len()];
            let mut ahead = vec![i64::MAX; lines.len()];
            for row in self.read(find).await? {
                let n = place(&row, lines.len())?;
                let unit: i64 = column(&row, "unit")?;
                let next: Option<i64> = column(&row, "next_unit")?;
                let (item, location) = units::hexed(&lines[n].key);
                taken.push((item, location, unit));
                had[n] += 1;
                ahead[n] = ahead[n].min(next.unwrap_or(0).saturating_sub(unit).saturating_sub(1));
            }
            if had.iter().zip(lines).any(|(had, line)| *had < line.quantity) {
                return Ok(None);
            }
            // Units behind the last one taken: no more are left, whatever others took.
            let is_low = |ahead: &i64| ahead.saturating_mul(2) < i64::from(cart.pool);
            low.extend(ahead.iter().enumerate().filter(|(_, ahead)| is_low(ahead)).map(|(n, _)| part * size + n));
        }
        Ok(Some((taken, low)))
    }

    /// The jobs, last of all, since their keys may have to be waited for.
    async fn complete(
        &mut self,
        caller: &Caller,
        cart: &Cart,
        named: Named,
        low: Vec<usize>,
    ) -> Result<Reserved, EngineError> {
        self.keep_jobs(caller, named.id, &cart.jobs_on_expiry).await?;
        let name = include_str!("sql/name_reserved_jobs.sql");
        let jobs = self.store_with(caller, &cart.jobs, named.created_at, (name, cart.reference.as_str())).await?;
        let reservation = ReservationRow {
            id: named.id,
            reference: cart.reference.clone(),
            state: ReservationState::Held,
            lines: cart.lines.clone(),
            created_at: named.created_at,
            expires_at: named.expires_at,
            ended_at: None,
            jobs: jobs.iter().map(|job| job.job).collect(),
            commit_jobs: Vec::new(),
        };
        Ok(Reserved::New { reservation, jobs, low })
    }

    /// Stores jobs with a reservation that is locked, and writes down which they are.
    pub(super) async fn store_with(
        &mut self,
        caller: &Caller,
        jobs: &[JobRow],
        now: Timestamp,
        (name, reference): (&'static str, &str),
    ) -> Result<Vec<EnqueuedRow>, EngineError> {
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        let stored = self.store(caller, jobs, now).await?;
        let ids: Vec<i64> = stored.iter().map(|EnqueuedRow { job: JobId(id), .. }| *id).collect();
        let name = self.statement(caller, name).bind(list(&ids)?).bind(reference.as_bytes().to_vec());
        self.change(name).await?;
        Ok(stored)
    }

    async fn keep_jobs(
        &mut self,
        caller: &Caller,
        reservation: ReservationId,
        jobs: &[JobRow],
    ) -> Result<(), EngineError> {
        let limit = self.fitness.statement_bytes;
        let mut rest: Vec<(usize, &JobRow)> = jobs.iter().enumerate().collect();
        while !rest.is_empty() {
            let (size, sql) = KEEP_EXPIRY_JOBS.largest(|size| {
                let these = rest.get(..size);
                these.is_some_and(|these| these.iter().map(|(_, row)| row.job.weight()).sum::<usize>() <= limit)
            });
            let others = rest.split_off(size);
            let mut keep = self.statement(caller, sql);
            for (n, JobRow { job, queue, max_attempts, .. }) in rest {
                let delay = match job.start {
                    Start::Now => Duration::ZERO,
                    Start::After(delay) => delay,
                    Start::At(_) => return Err(EngineError::Bug("a job on expiry with a fixed start".into())),
                };
                keep = keep
                    .bind(reservation.0)
                    .bind(count(n))
                    .bind(queue.0)
                    .bind(micros(delay))
                    .bind(job.priority.level())
                    .bind(*max_attempts)
                    .bind(job.ordering_key.as_ref().map(|key| key.as_str().as_bytes().to_vec()))
                    .bind(caller.as_str().to_owned())
                    .bind(job.content_type.clone())
                    .bind(job.trace.as_ref().map(|trace| trace.traceparent.clone()))
                    .bind(job.trace.as_ref().map(|trace| trace.tracestate.clone()).filter(|state| !state.is_empty()))
                    .bind(headers(job)?)
                    .bind(job.payload.to_vec());
            }
            self.change(keep).await?;
            rest = others;
        }
        Ok(())
    }
}
