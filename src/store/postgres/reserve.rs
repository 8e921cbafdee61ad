//! Reservations.

use std::time::Duration;

use async_trait::async_trait;
use sqlx::postgres::PgRow;

use super::{
    enqueue::{stored, with_jobs, with_later_jobs},
    session::{Args, PgSession},
    value::{Moment, get, narrow, one_each},
};
use crate::{
    model::{Caller, JobId, Key, ReservationId, ReservationLine, ReservationState, StockKey, Timestamp, time::micros},
    store::{
        engine::{
            Cart, End, Ended, EnqueuedRow, Pruned, ReservationRef, ReservationRow, Reserved, Reserving, ShortLine,
            Swept,
        },
        error::EngineError,
    },
};

const RESERVE: &str = include_str!("sql/reserve.sql");
const END_RESERVATION: &str = include_str!("sql/end_reservation.sql");
const EXTEND_RESERVATION: &str = include_str!("sql/extend_reservation.sql");
const FIND_RESERVATION: &str = include_str!("sql/find_reservation.sql");
const SWEEP_EXPIRED: &str = include_str!("sql/sweep_expired.sql");
const PRUNE_RESERVATIONS: &str = include_str!("sql/prune_reservations.sql");

#[async_trait]
impl Reserving for PgSession {
    async fn reserve_fast(&mut self, caller: &Caller, cart: &Cart) -> Result<Reserved, EngineError> {
        self.reserve(caller, cart, false).await
    }

    async fn reserve_slow(&mut self, caller: &Caller, cart: &Cart) -> Result<Reserved, EngineError> {
        self.reserve(caller, cart, true).await
    }

    async fn end_reservation(&mut self, caller: &Caller, end: &End) -> Result<Ended, EngineError> {
        let arguments = Args::new().with(end.reservation.0).with(end.state.code()).with(caller.as_str());
        let row = self.row(caller, END_RESERVATION, with_jobs(arguments, &end.jobs)?).await?;
        match get::<Option<i16>>(&row, "end_reservation", "outcome")? {
            None => Ok(Ended::Gone),
            Some(1) => {
                let jobs = jobs(&row, "end_reservation", end.jobs.len())?;
                Ok(Ended::Now { reservation: reservation(&row, "end_reservation")?, jobs })
            }
            Some(2) => Ok(Ended::Before(reservation(&row, "end_reservation")?)),
            Some(code) => Err(EngineError::Bug(format!("end_reservation: outcome {code}"))),
        }
    }

    async fn extend_reservation(
        &mut self,
        caller: &Caller,
        id: ReservationId,
        time_to_live: Duration,
    ) -> Result<Option<ReservationRow>, EngineError> {
        let row = self.row(caller, EXTEND_RESERVATION, Args::new().with(id.0).with(micros(time_to_live))).await?;
        found(&row, "extend_reservation")
    }

    async fn find_reservation(
        &mut self,
        caller: &Caller,
        by: &ReservationRef,
    ) -> Result<Option<ReservationRow>, EngineError> {
        let arguments = match by {
            ReservationRef::Id(id) => Args::new().with(Some(id.0)).with(None::<&str>),
            ReservationRef::Reference(reference) => Args::new().with(None::<i64>).with(Some(reference.as_str())),
        };
        let row = self.row(caller, FIND_RESERVATION, arguments).await?;
        found(&row, "find_reservation")
    }

    async fn sweep_expired(&mut self, caller: &Caller, floor: Timestamp, limit: usize) -> Result<Swept, EngineError> {
        let arguments = Args::new().with(Moment(floor)).with(narrow::<i32, _>(limit, "sweep_expired", "limit")?);
        let row = self.row(caller, SWEEP_EXPIRED, arguments).await?;
        let lags: Vec<i64> = get(&row, "sweep_expired", "lags")?;
        Ok(Swept {
            lags: lags.into_iter().map(|lag| Duration::from_micros(u64::try_from(lag).unwrap_or(0))).collect(),
            jobs: narrow(get::<i64>(&row, "sweep_expired", "stored")?, "sweep_expired", "stored")?,
            readied: Vec::new(),
            floor: get::<Moment>(&row, "sweep_expired", "next_floor")?.0,
        })
    }

    async fn prune_reservations(
        &mut self,
        caller: &Caller,
        floor: Timestamp,
        retention: Duration,
        limit: usize,
    ) -> Result<Pruned, EngineError> {
        let arguments = Args::new().with(Moment(floor)).with(micros(retention)).with(narrow::<i32, _>(
            limit,
            "prune_reservations",
            "limit",
        )?);
        let row = self.row(caller, PRUNE_RESERVATIONS, arguments).await?;
        Ok(Pruned {
            rows: narrow(get::<i64>(&row, "prune_reservations", "removed")?, "prune_reservations", "removed")?,
            floor: get::<Moment>(&row, "prune_reservations", "next_floor")?.0,
        })
    }
}

impl PgSession {
    async fn reserve(&mut self, caller: &Caller, cart: &Cart, slow: bool) -> Result<Reserved, EngineError> {
        let (items, locations) = keys(cart.lines.iter().map(|line| &line.key));
        let quantities: Vec<i32> =
            cart.lines.iter().map(|line| narrow(line.quantity, "reserve", "quantity")).collect::<Result<_, _>>()?;
        let arguments = Args::new()
            .with(slow)
            .with(cart.reference.as_str())
            .with(&cart.content[..])
            .with(micros(cart.time_to_live))
            .with(caller.as_str())
            .with(narrow::<i32, _>(cart.pool, "reserve", "pool")?)
            .with(items)
            .with(locations)
            .with(quantities);
        let arguments = with_later_jobs(with_jobs(arguments, &cart.jobs)?, &cart.jobs_on_expiry)?;
        let row = self.row(caller, RESERVE, arguments).await?;
        match get::<i16>(&row, "reserve", "outcome")? {
            1 => {
                let low: Option<Vec<i16>> = get(&row, "reserve", "low")?;
                Ok(Reserved::New {
                    reservation: reservation(&row, "reserve")?,
                    jobs: jobs(&row, "reserve", cart.jobs.len())?,
                    low: places(low.unwrap_or_default())?,
                })
            }
            2 => Ok(Reserved::Known(reservation(&row, "reserve")?)),
            3 => Ok(Reserved::KeyReused),
            4 => Ok(Reserved::Short),
            5 => Ok(Reserved::Busy),
            6 => {
                let wanted: Vec<i64> = cart.lines.iter().map(|line| line.quantity.into()).collect();
                Ok(Reserved::SoldOut(short(&row, "reserve", &wanted)?))
            }
            code => Err(EngineError::Bug(format!("reserve: outcome {code}"))),
        }
    }
}

/// Items and locations of keys.
pub(super) fn keys<'k>(keys: impl Iterator<Item = &'k StockKey>) -> (Vec<&'k str>, Vec<&'k str>) {
    keys.map(|key| (key.item.as_str(), key.location.as_str())).unzip()
}

/// A key as it is stored.
pub(super) fn stock_key(item: &str, location: &str, act: &str) -> Result<StockKey, EngineError> {
    StockKey::parse("", item, location).map_err(|_| EngineError::Bug(format!("{act}: a key that cannot be one")))
}

/// Those of which less is free than is wanted.
pub(super) fn short(row: &PgRow, act: &str, wanted: &[i64]) -> Result<Vec<ShortLine>, EngineError> {
    let free: Vec<i64> = one_each(get(row, act, "free")?, wanted.len(), act, "free")?;
    let lines = free.into_iter().zip(wanted).enumerate();
    Ok(lines
        .filter(|(_, (free, wanted))| free < wanted)
        .map(|(line, (available, _))| ShortLine { line, available })
        .collect())
}

/// Places that the server counts from 1.
fn places(places: Vec<i16>) -> Result<Vec<usize>, EngineError> {
    places.into_iter().map(|place| narrow(place - 1, "reserve", "low")).collect()
}

fn jobs(row: &PgRow, act: &str, asked: usize) -> Result<Vec<EnqueuedRow>, EngineError> {
    if asked == 0 {
        return Ok(Vec::new());
    }
    let duplicates: Vec<bool> = one_each(get(row, act, "duplicates")?, asked, act, "duplicates")?;
    stored(row, act, &duplicates)
}

fn found(row: &PgRow, act: &str) -> Result<Option<ReservationRow>, EngineError> {
    match get::<Option<i64>>(row, act, "id")? {
        Some(_) => reservation(row, act).map(Some),
        None => Ok(None),
    }
}

fn reservation(row: &PgRow, act: &str) -> Result<ReservationRow, EngineError> {
    let nonsense = |column: &str| EngineError::Bug(format!("{act}: column {column} cannot be that"));
    let items: Vec<String> = get(row, act, "items")?;
    let locations: Vec<String> = one_each(get(row, act, "locations")?, items.len(), act, "locations")?;
    let quantities: Vec<i32> = one_each(get(row, act, "quantities")?, items.len(), act, "quantities")?;
    let lines = items.into_iter().zip(locations).zip(quantities).map(|((item, location), quantity)| {
        Ok(ReservationLine { key: stock_key(&item, &location, act)?, quantity: narrow(quantity, act, "quantities")? })
    });
    let ids = |column: &str| Ok(get::<Vec<i64>>(row, act, column)?.into_iter().map(JobId).collect());
    Ok(ReservationRow {
        id: ReservationId(get(row, act, "id")?),
        reference: Key::parse("reference", get(row, act, "reference")?).map_err(|_| nonsense("reference"))?,
        state: ReservationState::of_code(get(row, act, "state")?).ok_or_else(|| nonsense("state"))?,
        lines: lines.collect::<Result<_, EngineError>>()?,
        created_at: get::<Moment>(row, act, "created_at")?.0,
        expires_at: get::<Moment>(row, act, "expires_at")?.0,
        ended_at: get::<Option<Moment>>(row, act, "ended_at")?.map(|moment| moment.0),
        jobs: ids("jobs")?,
        commit_jobs: ids("commit_jobs")?,
    })
}
