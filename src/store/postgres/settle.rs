//! Ending and moving leases.

use std::time::Duration;

use async_trait::async_trait;
use sqlx::postgres::PgRow;

use super::{
    session::{Args, PgSession},
    value::{Moment, get, one_each, uuid},
};
use crate::{
    model::{Caller, NackAction, QueueId, Timestamp, time::micros},
    store::{
        engine::{
            AckedRow, ExtendRow, ExtendedRow, Held, LeaseRef, LeaseState, LockWait, NackRow, NackedRow, Settling,
        },
        error::EngineError,
    },
};

const ACK: &str = include_str!("sql/ack.sql");
const NACK: &str = include_str!("sql/nack.sql");
const EXTEND: &str = include_str!("sql/extend.sql");
const INSPECT: &str = include_str!("sql/inspect.sql");

#[async_trait]
impl Settling for PgSession {
    async fn ack(
        &mut self,
        caller: &Caller,
        leases: &[LeaseRef],
        wait: LockWait,
    ) -> Result<Vec<AckedRow>, EngineError> {
        if leases.is_empty() {
            return Ok(Vec::new());
        }
        let arguments = named(leases.iter().copied()).with(wait == LockWait::Short);
        let row = self.row(caller, ACK, arguments).await?;
        let outcomes = outcomes(&row, leases.len(), "ack")?;
        // Left out as a whole where no key went on, which is most of the time.
        let readied: Option<Vec<Option<i32>>> = get(&row, "ack", "readied")?;
        let readied = one_each(readied.unwrap_or_else(|| vec![None; leases.len()]), leases.len(), "ack", "readied")?;
        let queues: Vec<Option<i32>> = one_each(get(&row, "ack", "queues")?, leases.len(), "ack", "queues")?;
        let rows = outcomes.into_iter().zip(queues).zip(readied);
        let acked = |((held, queue), readied): ((Held, Option<i32>), Option<i32>)| AckedRow {
            held,
            queue: queue.map(QueueId),
            readied: readied.map(QueueId),
        };
        Ok(rows.map(acked).collect())
    }

    async fn nack(
        &mut self,
        caller: &Caller,
        items: &[NackRow],
        wait: LockWait,
    ) -> Result<Vec<NackedRow>, EngineError> {
        if items.is_empty() {
            return Ok(Vec::new());
        }
        let arguments = named(items.iter().map(|item| item.lease))
            .with(items.iter().map(|item| action(item.action)).collect::<Vec<_>>())
            .with(items.iter().map(|item| item.delay.map(micros)).collect::<Vec<_>>())
            .with(items.iter().map(|item| item.jitter.clamp(0.0, 1.0)).collect::<Vec<_>>())
            .with(items.iter().map(|item| item.error.as_str()).collect::<Vec<_>>())
            .with(wait == LockWait::Short);
        let row = self.row(caller, NACK, arguments).await?;
        let outcomes = outcomes(&row, items.len(), "nack")?;
        let deads: Vec<bool> = one_each(get(&row, "nack", "deads")?, items.len(), "nack", "deads")?;
        let queues: Vec<Option<i32>> = one_each(get(&row, "nack", "queues")?, items.len(), "nack", "queues")?;
        let ready_ats = moments(&row, items.len(), "nack", "ready_ats")?;
        let readied: Vec<Option<i32>> = one_each(get(&row, "nack", "readied")?, items.len(), "nack", "readied")?;
        let settled_at = get::<Moment>(&row, "nack", "settled_at")?.0;
        let rows = outcomes.into_iter().zip(deads).zip(queues).zip(ready_ats).zip(readied);
        Ok(rows
            .map(|((((held, dead), queue), ready_at), readied)| NackedRow {
                held,
                dead,
                queue: queue.map(QueueId),
                ready_at,
                ready_in: ready_at.map(|ready_at| ready_at.since(settled_at)),
                readied: readied.map(QueueId),
            })
            .collect())
    }

    async fn extend(&mut self, caller: &Caller, items: &[ExtendRow]) -> Result<Vec<ExtendedRow>, EngineError> {
        if items.is_empty() {
            return Ok(Vec::new());
        }
        let arguments = named(items.iter().map(|item| item.lease))
            .with(items.iter().map(|item| item.duration.map(micros)).collect::<Vec<_>>());
        let row = self.row(caller, EXTEND, arguments).await?;
        let outcomes = outcomes(&row, items.len(), "extend")?;
        let untils = moments(&row, items.len(), "extend", "untils")?;
        let cancels: Vec<bool> = one_each(get(&row, "extend", "cancels")?, items.len(), "extend", "cancels")?;
        let extended_at = get::<Moment>(&row, "extend", "extended_at")?.0;
        let rows = outcomes.into_iter().zip(untils).zip(cancels);
        Ok(rows
            .map(|((held, expires_at), cancel_requested)| ExtendedRow {
                held,
                expires_at,
                remaining: left(expires_at, extended_at),
                cancel_requested,
            })
            .collect())
    }

    async fn inspect(&mut self, caller: &Caller, leases: &[LeaseRef]) -> Result<Vec<LeaseState>, EngineError> {
        if leases.is_empty() {
            return Ok(Vec::new());
        }
        let row = self.row(caller, INSPECT, named(leases.iter().copied())).await?;
        let holds: Vec<bool> = one_each(get(&row, "inspect", "holds")?, leases.len(), "inspect", "holds")?;
        let untils = moments(&row, leases.len(), "inspect", "untils")?;
        let cancels: Vec<bool> = one_each(get(&row, "inspect", "cancels")?, leases.len(), "inspect", "cancels")?;
        let looked_at = get::<Moment>(&row, "inspect", "looked_at")?.0;
        let rows = holds.into_iter().zip(untils).zip(cancels);
        Ok(rows
            .map(|((holds, until), cancel_requested)| LeaseState {
                holds,
                remaining: left(until.filter(|_| holds), looked_at),
                cancel_requested: holds && cancel_requested,
            })
            .collect())
    }
}

/// The jobs and leases that every statement here begins with.
fn named(leases: impl Iterator<Item = LeaseRef>) -> Args {
    let (jobs, leases): (Vec<i64>, Vec<_>) = leases.map(|lease| (lease.job.0, uuid(lease.lease))).unzip();
    Args::new().with(jobs).with(leases)
}

fn action(action: NackAction) -> i16 {
    match action {
        NackAction::Retry => 1,
        NackAction::Release => 2,
        NackAction::Reject => 3,
    }
}

fn outcomes(row: &PgRow, asked: usize, act: &str) -> Result<Vec<Held>, EngineError> {
    let codes: Vec<i16> = one_each(get(row, act, "outcomes")?, asked, act, "outcomes")?;
    let held = |code| match code {
        1 => Ok(Held::Ok),
        2 => Ok(Held::Gone),
        3 => Ok(Held::LeaseLost),
        4 => Ok(Held::Busy),
        _ => Err(EngineError::Bug(format!("{act}: outcome {code}"))),
    };
    codes.into_iter().map(held).collect()
}

fn moments(row: &PgRow, asked: usize, act: &str, column: &str) -> Result<Vec<Option<Timestamp>>, EngineError> {
    let moments: Vec<Option<Moment>> = one_each(get(row, act, column)?, asked, act, column)?;
    Ok(moments.into_iter().map(|moment| moment.map(|moment| moment.0)).collect())
}

fn left(until: Option<Timestamp>, now: Timestamp) -> Duration {
    until.map_or(Duration::ZERO, |until| until.since(now))
}
