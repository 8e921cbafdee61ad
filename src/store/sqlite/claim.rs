//! Turning ready jobs into leases, and back.

use async_trait::async_trait;
use sqlx::sqlite::SqliteRow;

use super::{
    fate::FreedKey,
    record::{headers, key, priority, trace},
    session::{SqliteSession, column, lease, list, narrow},
};
use crate::{
    model::{Caller, JobId, LeaseId, QueueId, Timestamp},
    store::{
        engine::{Claim, ClaimedJob, Claiming, LeaseRef, LookSpot, Sighting},
        error::EngineError,
        hex::lease_hex,
    },
};

#[async_trait]
impl Claiming for SqliteSession {
    async fn claim(&mut self, caller: &Caller, claims: &[Claim]) -> Result<Vec<ClaimedJob>, EngineError> {
        let now = self.begin(caller).await?;
        let claimed = self.lease_ready(caller, claims, now).await;
        self.end(caller, now, claimed).await
    }

    async fn give_back(&mut self, caller: &Caller, leases: &[LeaseRef]) -> Result<Vec<bool>, EngineError> {
        let now = self.begin(caller).await?;
        let undone = self.undo_grants(caller, leases, now).await;
        self.end(caller, now, undone).await
    }

    async fn give_back_unseen(&mut self, caller: &Caller, leases: &[LeaseId]) -> Result<Vec<QueueId>, EngineError> {
        let now = self.begin(caller).await?;
        let queues = self.undo_unseen(caller, leases, now).await;
        self.end(caller, now, queues).await
    }

    async fn look(&mut self, caller: &Caller, spots: &[LookSpot]) -> Result<Vec<Sighting>, EngineError> {
        let now = self.shared.clock.now();
        let levels: Vec<(i32, usize, i64)> = spots
            .iter()
            .flat_map(|spot| spot.floors.iter().enumerate().map(|(level, floor)| (spot.queue.0, level, floor.0)))
            .collect();
        let look = self.statement(caller, include_str!("sql/look.sql")).bind(list(&levels)?);
        let mut sightings = Vec::new();
        for row in self.read(look).await? {
            let Some(ready_at) = column::<Option<i64>>(&row, "ready_at")?.map(Timestamp) else {
                continue; // nothing waits at this level
            };
            sightings.push(Sighting {
                queue: QueueId(narrow(&row, "queue_id")?),
                priority: priority(&row)?,
                ready_at,
                ready_in: ready_at.since(now),
            });
        }
        Ok(sightings)
    }
}

impl SqliteSession {
    async fn lease_ready(
        &mut self,
        caller: &Caller,
        claims: &[Claim],
        now: Timestamp,
    ) -> Result<Vec<ClaimedJob>, EngineError> {
        let mut grants: Vec<(i64, String, i64, i64, i64)> = Vec::new();
        for claim in claims {
            let floors = claim.floors.map(|floor| floor.0);
            let find = self
                .statement(caller, include_str!("sql/claim_ready.sql"))
                .bind(claim.queue.0)
                .bind(now.0)
                .bind(list(&floors)?)
                .bind(i64::try_from(claim.slots.len()).unwrap_or(i64::MAX));
            for (row, slot) in self.read(find).await?.iter().zip(&claim.slots) {
                let until = now.plus(slot.duration);
                let (lease, stream) = (lease_hex(slot.lease), slot.stream.to_bits());
                grants.push((column(row, "id")?, lease, until.0, until.0 - now.0, stream));
            }
        }
        if grants.is_empty() {
            return Ok(Vec::new());
        }
        let grant = self.statement(caller, include_str!("sql/claim.sql")).bind(list(&grants)?);
        self.change_returning(grant).await?.iter().map(claimed_job).collect()
    }

    async fn undo_grants(
        &mut self,
        caller: &Caller,
        leases: &[LeaseRef],
        now: Timestamp,
    ) -> Result<Vec<bool>, EngineError> {
        let mut undone = vec![false; leases.len()];
        let mut unsent = Vec::new();
        for held in self.held(caller, leases).await? {
            undone[held.n] = true;
            unsent.push((held.job.0, held.cancel_requested, held.key()));
        }
        self.make_unsent(caller, unsent, now).await?;
        Ok(undone)
    }

    async fn undo_unseen(
        &mut self,
        caller: &Caller,
        leases: &[LeaseId],
        now: Timestamp,
    ) -> Result<Vec<QueueId>, EngineError> {
        let bits: Vec<String> = leases.iter().map(|lease| lease_hex(*lease)).collect();
        let find = self.statement(caller, include_str!("sql/find_unseen.sql")).bind(list(&bits)?);
        let found = self.read(find).await?;
        let mut unsent: Vec<Unsent> = Vec::with_capacity(found.len());
        for row in &found {
            let queue = QueueId(narrow(row, "queue_id")?);
            let key = column::<Option<String>>(row, "ordering_key")?.map(|key| (queue, key));
            unsent.push((column(row, "id")?, column::<i64>(row, "cancel_requested")? != 0, key));
        }
        self.make_unsent(caller, unsent, now).await?;
        let mut queues: Vec<QueueId> =
            found.iter().map(|row| narrow(row, "queue_id").map(QueueId)).collect::<Result<_, _>>()?;
        queues.sort_unstable();
        queues.dedup();
        Ok(queues)
    }

    /// As if these grants had not been, but for the lease numbers, which only grow. Jobs that are to be cancelled go.
    async fn make_unsent(&mut self, caller: &Caller, unsent: Vec<Unsent>, now: Timestamp) -> Result<(), EngineError> {
        let (going, back): (Vec<Unsent>, Vec<Unsent>) = unsent.into_iter().partition(|(_, goes, _)| *goes);
        let ids = |jobs: &[Unsent]| jobs.iter().map(|(job, ..)| *job).collect::<Vec<_>>();
        if !back.is_empty() {
            let update = self.statement(caller, include_str!("sql/give_back.sql"));
            self.change(update.bind(list(&ids(&back))?).bind(now.0)).await?;
        }
        self.remove(caller, &ids(&going)).await?;
        let freed: Vec<FreedKey> = going.into_iter().filter_map(|(.., key)| key).collect();
        self.advance(caller, &freed, now).await?;
        Ok(())
    }
}

/// A job whose grant was never sent: whether it is to be cancelled, and its key.
type Unsent = (i64, bool, Option<FreedKey>);

fn claimed_job(row: &SqliteRow) -> Result<ClaimedJob, EngineError> {
    Ok(ClaimedJob {
        job: JobId(column(row, "id")?),
        queue: QueueId(narrow(row, "queue_id")?),
        lease: lease(row, "lease_id")?,
        payload: column::<Vec<u8>>(row, "payload")?.into(),
        content_type: column(row, "content_type")?,
        headers: headers(row)?,
        priority: priority(row)?,
        attempt: narrow(row, "attempt")?,
        max_attempts: narrow(row, "max_attempts")?,
        lease_number: column(row, "lease_number")?,
        enqueued_at: Timestamp(column(row, "enqueued_at")?),
        lease_expires_at: Timestamp(column(row, "lease_until")?),
        available_at: Timestamp(column(row, "available_at")?),
        ready_at: Timestamp(column(row, "ready_at")?),
        ordering_key: key(row, "ordering_key")?,
        idempotency_key: key(row, "idempotency_key")?,
        last_error: column(row, "last_error")?,
        trace: trace(row)?,
    })
}
