//! Turning ready jobs into leases, and undoing that.

use async_trait::async_trait;
use bytes::Bytes;
use sqlx::{postgres::PgRow, types::Uuid};

use super::{
    record::{headers_of, key_of, level, priority, trace_of},
    session::{Args, PgSession},
    value::{InOrder, Moment, get, narrow, one_each, uuid},
};
use crate::{
    model::{Caller, JobId, LeaseId, QueueId, time::micros},
    store::{
        engine::{Claim, ClaimedJob, Claiming, LeaseRef, LookSpot, Sighting, Slot},
        error::EngineError,
    },
};

const CLAIM: &str = include_str!("sql/claim.sql");
const LOOK: &str = include_str!("sql/look.sql");
const GIVE_BACK: &str = include_str!("sql/give_back.sql");
const GIVE_BACK_UNSEEN: &str = include_str!("sql/give_back_unseen.sql");

#[async_trait]
impl Claiming for PgSession {
    async fn claim(&mut self, caller: &Caller, claims: &[Claim]) -> Result<Vec<ClaimedJob>, EngineError> {
        let slots: Vec<&Slot> = claims.iter().flat_map(|claim| &claim.slots).collect();
        if slots.is_empty() {
            return Ok(Vec::new());
        }
        let wanted: Vec<i64> =
            claims.iter().map(|claim| narrow(claim.slots.len(), "claim", "slots")).collect::<Result<_, _>>()?;
        let arguments = Args::new()
            .with(claims.iter().map(|claim| claim.queue.0).collect::<Vec<_>>())
            .with(wanted)
            .with(claims.iter().flat_map(|claim| claim.floors.map(Moment)).collect::<Vec<_>>())
            .with(slots.iter().map(|slot| uuid(slot.lease)).collect::<Vec<_>>())
            .with(slots.iter().map(|slot| micros(slot.duration)).collect::<Vec<_>>())
            .with(slots.iter().map(|slot| slot.stream.to_bits()).collect::<Vec<_>>())
            .with(self.unflushed_claims);
        let rows = self.rows(caller, CLAIM, arguments).await?;
        rows.iter().map(claimed).collect()
    }

    async fn give_back(&mut self, caller: &Caller, leases: &[LeaseRef]) -> Result<Vec<bool>, EngineError> {
        if leases.is_empty() {
            return Ok(Vec::new());
        }
        let arguments = Args::new()
            .with(leases.iter().map(|lease| lease.job.0).collect::<Vec<_>>())
            .with(leases.iter().map(|lease| uuid(lease.lease)).collect::<Vec<_>>());
        let row = self.row(caller, GIVE_BACK, arguments).await?;
        one_each(get(&row, "give_back", "undone")?, leases.len(), "give_back", "undone")
    }

    async fn give_back_unseen(&mut self, caller: &Caller, leases: &[LeaseId]) -> Result<Vec<QueueId>, EngineError> {
        let arguments = Args::new().with(leases.iter().copied().map(uuid).collect::<Vec<_>>());
        let row = self.row(caller, GIVE_BACK_UNSEEN, arguments).await?;
        let queues: Vec<i32> = get(&row, "give_back_unseen", "queues")?;
        Ok(queues.into_iter().map(QueueId).collect())
    }

    async fn look(&mut self, caller: &Caller, spots: &[LookSpot]) -> Result<Vec<Sighting>, EngineError> {
        let arguments = Args::new()
            .with(spots.iter().map(|spot| spot.queue.0).collect::<Vec<_>>())
            .with(spots.iter().flat_map(|spot| spot.floors.map(Moment)).collect::<Vec<_>>());
        let rows = self.rows(caller, LOOK, arguments).await?;
        rows.iter().map(seen).collect()
    }
}

fn seen(row: &PgRow) -> Result<Sighting, EngineError> {
    let ready_at = get::<Moment>(row, "look", "ready_at")?.0;
    Ok(Sighting {
        queue: QueueId(get(row, "look", "queue_id")?),
        priority: priority(row, "look")?,
        ready_at,
        ready_in: ready_at.since(get::<Moment>(row, "look", "looked_at")?.0),
    })
}

fn claimed(row: &PgRow) -> Result<ClaimedJob, EngineError> {
    let mut row = InOrder::of(row, "job");
    Ok(ClaimedJob {
        job: JobId(row.take("id")?),
        queue: QueueId(row.take("queue_id")?),
        lease: LeaseId(row.take::<Uuid>("lease_id")?.as_u128()),
        payload: Bytes::copy_from_slice(row.take("payload")?),
        content_type: row.take("content_type")?,
        headers: headers_of(row.take("headers")?)?,
        priority: level(row.take("priority")?, "job")?,
        attempt: narrow(row.take::<i32>("attempt")?, "job", "attempt")?,
        max_attempts: narrow(row.take::<i32>("max_attempts")?, "job", "max_attempts")?,
        lease_number: row.take("lease_number")?,
        enqueued_at: row.take::<Moment>("enqueued_at")?.0,
        lease_expires_at: row.take::<Moment>("lease_until")?.0,
        available_at: row.take::<Moment>("available_at")?.0,
        ready_at: row.take::<Moment>("ready_at")?.0,
        ordering_key: key_of(row.take("ordering_key")?, "ordering_key")?,
        idempotency_key: key_of(row.take("idempotency_key")?, "idempotency_key")?,
        last_error: row.take("last_error")?,
        trace: trace_of(row.take("traceparent")?, row.take("tracestate")?),
    })
}
