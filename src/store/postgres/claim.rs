//! Turning ready jobs into leases, and undoing that.

use async_trait::async_trait;
use bytes::Bytes;
use sqlx::{postgres::PgRow, types::Uuid};

use super::{
    record::{headers, key, priority, trace},
    session::{Args, PgSession},
    value::{Moment, get, narrow, one_each, uuid},
};
use crate::{
    model::{Caller, JobId, LeaseId, QueueId, time::micros},
    store::{
        engine::{Claim, ClaimedJob, Claiming, LeaseRef, LookSpot, Sighting},
        error::EngineError,
    },
};

const CLAIM: &str = include_str!("sql/claim.sql");
const LOOK: &str = include_str!("sql/look.sql");
const GIVE_BACK: &str = include_str!("sql/give_back.sql");
const GIVE_BACK_UNSEEN: &str = include_str!("sql/give_back_unseen.sql");

#[async_trait]
impl Claiming for PgSession {
    async fn claim(&mut self, caller: &Caller, claim: &Claim) -> Result<Vec<ClaimedJob>, EngineError> {
        if claim.slots.is_empty() {
            return Ok(Vec::new());
        }
        let wanted: i64 = narrow(claim.slots.len(), "claim", "slots")?;
        let arguments = Args::new()
            .with(claim.queue.0)
            .with(claim.floors.map(Moment).to_vec())
            .with(claim.slots.iter().map(|slot| uuid(slot.lease)).collect::<Vec<_>>())
            .with(claim.slots.iter().map(|slot| micros(slot.duration)).collect::<Vec<_>>())
            .with(wanted)
            .with(claim.slots.iter().map(|slot| slot.stream.to_bits()).collect::<Vec<_>>());
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
    let moment = |column: &str| get::<Moment>(row, "job", column).map(|moment| moment.0);
    Ok(ClaimedJob {
        job: JobId(get(row, "job", "id")?),
        lease: LeaseId(get::<Uuid>(row, "job", "lease_id")?.as_u128()),
        payload: Bytes::copy_from_slice(get(row, "job", "payload")?),
        content_type: get(row, "job", "content_type")?,
        headers: headers(row)?,
        priority: priority(row, "job")?,
        attempt: narrow(get::<i32>(row, "job", "attempt")?, "job", "attempt")?,
        max_attempts: narrow(get::<i32>(row, "job", "max_attempts")?, "job", "max_attempts")?,
        lease_number: get(row, "job", "lease_number")?,
        enqueued_at: moment("enqueued_at")?,
        lease_expires_at: moment("lease_until")?,
        available_at: moment("available_at")?,
        ready_at: moment("ready_at")?,
        ordering_key: key(row, "ordering_key")?,
        idempotency_key: key(row, "idempotency_key")?,
        last_error: get(row, "job", "last_error")?,
        trace: trace(row)?,
    })
}
