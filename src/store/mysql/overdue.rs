//! Reservations past their time, and those that ended long ago.
//!
//! Their jobs on expiry are left as services leave theirs, to be adopted: so whoever ends them locks no key, and no key that
//! somebody holds keeps them from ending.

use std::{collections::BTreeSet, time::Duration};

use sqlx::mysql::MySqlRow;

use super::{
    reservation::stock_key,
    session::{MysqlSession, Statement},
    units,
    value::{column, count, list, moment, name, narrow},
    walk::Walk,
};
use crate::{
    model::{Caller, LedgerKind, ReservationState, StockKey, Timestamp},
    store::{
        engine::{Pruned, Swept},
        error::EngineError,
        hex::hex,
    },
};

/// A reservation that is not committed yet is not seen. It cannot expire earlier than a second after it was begun.
const UNSEEN: Duration = Duration::from_secs(1);

/// The same for what ended.
const UNSEEN_END: Duration = Duration::from_mins(1);

/// The jobs of reservations that end in one transaction weigh so much at most, or are those of one reservation.
const WEIGHT_AT_ONCE: i64 = 4 << 20;

/// What a pass found by a plain read.
struct Overdue {
    id: i64,
    until: Timestamp,
    weight: i64,
}

/// What was ended.
struct Expired {
    id: i64,
    until: Timestamp,
    now: Timestamp,
}

impl MysqlSession {
    /// Ends reservations of a stock that are past their time, where nobody else is about to; how many.
    pub(super) async fn end_overdue(
        &mut self,
        caller: &Caller,
        key: &StockKey,
        limit: usize,
    ) -> Result<usize, EngineError> {
        let (item, location) = units::bytes(key);
        let find = self.statement(caller, include_str!("sql/find_overdue.sql"));
        let rows = self.read(find.bind(item).bind(location).bind(count(limit))).await?;
        let overdue = light(rows.iter().map(Overdue::from_row).collect::<Result<_, _>>()?);
        let (ended, _) = self.expire_locked(caller, &overdue).await?;
        Ok(ended.len())
    }

    pub(super) async fn end_expired(
        &mut self,
        caller: &Caller,
        floor: Timestamp,
        limit: usize,
        now: Timestamp,
    ) -> Result<Swept, EngineError> {
        let find = self.statement(caller, include_str!("sql/find_expired_reservations.sql"));
        let rows = self.read(find.bind(floor.0).bind(now.0).bind(count(limit))).await?;
        let found: Vec<Overdue> = rows.iter().map(Overdue::from_row).collect::<Result<_, _>>()?;
        let seen = found.len();
        let overdue = light(found);
        // A pass that leaves some out is a full one.
        let mut walk = Walk::new(floor, if overdue.len() < seen { overdue.len() } else { limit });
        for reservation in &overdue {
            walk.saw(reservation.until);
        }
        let (ended, jobs) = self.expire_locked(caller, &overdue).await?;
        let mut lags = Vec::with_capacity(ended.len());
        for reservation in &ended {
            lags.push(reservation.now.since(reservation.until));
            let found = overdue.iter().find(|found| found.id == reservation.id);
            walk.took(found.map_or(reservation.until, |found| found.until));
        }
        Ok(Swept { lags, jobs, readied: Vec::new(), floor: walk.next(now.minus(UNSEEN)) })
    }

    /// Ends those that are still past their time and that nobody has; and the number of their jobs that were stored.
    async fn expire_locked(
        &mut self,
        caller: &Caller,
        overdue: &[Overdue],
    ) -> Result<(Vec<Expired>, usize), EngineError> {
        if overdue.is_empty() {
            return Ok((Vec::new(), 0));
        }
        let ids: BTreeSet<i64> = overdue.iter().map(|reservation| reservation.id).collect();
        let lock = self.statement(caller, include_str!("sql/lock_overdue.sql")).bind(list(&ids)?);
        let rows = self.read(lock).await?;
        let ended: Vec<Expired> = rows
            .iter()
            .map(|row| {
                Ok(Expired { id: column(row, "id")?, until: moment(row, "live_until")?, now: moment(row, "now")? })
            })
            .collect::<Result<_, EngineError>>()?;
        let Some(now) = ended.iter().map(|reservation| reservation.now).max() else { return Ok((ended, 0)) };
        let ids: Vec<i64> = ended.iter().map(|reservation| reservation.id).collect();
        self.end_locked(caller, &ids, (ReservationState::Expired, LedgerKind::Expire), now).await?;
        let has_jobs = |expired: &&Expired| overdue.iter().any(|found| found.id == expired.id && found.weight > 0);
        let with_jobs: Vec<i64> = ended.iter().filter(has_jobs).map(|reservation| reservation.id).collect();
        let jobs = self.store_expiry_jobs(caller, &with_jobs, now).await?;
        Ok((ended, jobs))
    }

    /// Stores the jobs on expiry of these reservations as arrivals; how many. Those whose queues are gone or going are dropped.
    async fn store_expiry_jobs(&mut self, caller: &Caller, ids: &[i64], now: Timestamp) -> Result<usize, EngineError> {
        if ids.is_empty() {
            return Ok(0);
        }
        let find = self.statement(caller, include_str!("sql/find_expiry_jobs.sql")).bind(list(ids)?);
        let mut arrivals: Vec<(i64, i32, String)> = Vec::new();
        let mut blocked: Vec<(i64, i32, String)> = Vec::new();
        for row in self.read(find).await? {
            let store = self
                .statement(caller, include_str!("sql/store_expiry_job.sql"))
                .bind(now.0)
                .bind(now.0)
                .bind(now.0)
                .bind(column::<i64>(&row, "reservation_id")?)
                .bind(column::<i64>(&row, "place")?);
            let job = self.insert(store).await?;
            let queue: i32 = narrow(&row, "queue_id")?;
            let key = name(&row, "ordering_key")?.map(|key| hex(key.as_bytes()));
            blocked.extend(key.clone().map(|key| (job, queue, key)));
            arrivals.push((job, queue, key.unwrap_or_default()));
        }
        if !blocked.is_empty() {
            let block = self.statement(caller, include_str!("sql/block.sql")).bind(list(&blocked)?);
            self.change(block).await?;
        }
        if !arrivals.is_empty() {
            let arrive = self.statement(caller, include_str!("sql/arrive.sql")).bind(now.0).bind(list(&arrivals)?);
            self.change(arrive).await?;
        }
        self.drop_expiry_jobs(caller, ids).await?;
        Ok(arrivals.len())
    }

    pub(super) async fn remove_ended_reservations(
        &mut self,
        caller: &Caller,
        floor: Timestamp,
        last: Timestamp,
        limit: usize,
    ) -> Result<Pruned, EngineError> {
        let find = self.statement(caller, include_str!("sql/find_ended_reservations.sql"));
        let rows = self.read(find.bind(floor.0).bind(last.0).bind(count(limit))).await?;
        let mut walk = Walk::new(floor, limit);
        let mut found = Vec::new();
        for row in &rows {
            found.push((column::<i64>(row, "id")?, moment(row, "ended_at")?));
            walk.saw(moment(row, "ended_at")?);
        }
        let mut locked: BTreeSet<i64> = BTreeSet::new();
        if !found.is_empty() {
            let ids: BTreeSet<i64> = found.iter().map(|(id, _)| *id).collect();
            let lock = self.statement(caller, include_str!("sql/lock_ended_reservations.sql")).bind(list(&ids)?);
            locked = self.read(lock).await?.iter().map(|row| column(row, "id")).collect::<Result<_, _>>()?;
        }
        if !locked.is_empty() {
            let lines = self.statement(caller, include_str!("sql/remove_lines.sql")).bind(list(&locked)?);
            self.change(lines).await?;
            let remove = self.statement(caller, include_str!("sql/remove_reservations.sql")).bind(list(&locked)?);
            self.change(remove).await?;
        }
        for (_, at) in found.iter().filter(|(id, _)| locked.contains(id)) {
            walk.took(*at);
        }
        Ok(Pruned { rows: locked.len(), floor: walk.next(last.minus(UNSEEN_END)) })
    }

    /// Keys that a statement answers with.
    pub(super) async fn keys_of(&mut self, find: Statement) -> Result<Vec<StockKey>, EngineError> {
        self.read(find).await?.iter().map(stock_key).collect()
    }
}

impl Overdue {
    fn from_row(row: &MySqlRow) -> Result<Self, EngineError> {
        Ok(Self { id: column(row, "id")?, until: moment(row, "live_until")?, weight: column(row, "expiry_bytes")? })
    }
}

/// The first of them whose jobs fit one transaction; one at least.
fn light(mut overdue: Vec<Overdue>) -> Vec<Overdue> {
    let mut weight = 0_i64;
    let fits = overdue
        .iter()
        .take_while(|reservation| {
            weight = weight.saturating_add(reservation.weight);
            weight <= WEIGHT_AT_ONCE
        })
        .count();
    overdue.truncate(fits.max(1));
    overdue
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(weights: &[i64]) -> usize {
        let found = weights.iter().map(|&weight| Overdue { id: 1, until: Timestamp(0), weight });
        light(found.collect()).len()
    }

    #[test]
    fn reservations_with_heavy_jobs_end_a_few_at_a_time_and_never_none() {
        assert_eq!(kept(&[]), 0);
        assert_eq!(kept(&[0; 100]), 100);
        assert_eq!(kept(&[WEIGHT_AT_ONCE, 0, 1, 0]), 2);
        assert_eq!(kept(&[WEIGHT_AT_ONCE * 30, 1]), 1);
    }
}
