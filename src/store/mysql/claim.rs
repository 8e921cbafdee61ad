//! Turning ready jobs into leases, and back.

use std::collections::{BTreeSet, HashMap};

use async_trait::async_trait;
use sqlx::mysql::MySqlRow;

use super::{
    fate::{Place, Return},
    held::HeldLease,
    literal::{filled, literal},
    record::{headers, key, priority, trace},
    session::MysqlSession,
    value::{column, count, lease, list, moment, narrow},
};
use crate::{
    model::{Caller, JobId, LeaseId, QueueId, Timestamp},
    store::{
        engine::{Claim, ClaimedJob, Claiming, LeaseRef, LockWait, LookSpot, Sighting},
        error::EngineError,
        hex::lease_hex,
    },
};

/// A job that a claim has locked, and the lease that it gets.
struct Grant {
    queue: QueueId,
    tier: u8,
    ready_at: Timestamp,
    job: i64,
    lease: LeaseId,
    ends: Timestamp,
    duration: i64,
    stream: i64,
    attempt: u32,
    lease_number: i64,
}

#[async_trait]
impl Claiming for MysqlSession {
    async fn claim(&mut self, caller: &Caller, claims: &[Claim]) -> Result<Vec<ClaimedJob>, EngineError> {
        let mut claims = claims.iter().filter(|claim| !claim.slots.is_empty());
        let Some(first) = claims.next() else { return Ok(Vec::new()) };
        let (now, [tiers]) = self.begin_with_first(caller, LockWait::Full, [&tiers_of(first)?]).await?;
        let claimed = self.lease_ready(caller, (first, &tiers.rows), claims, now).await;
        self.end(caller, claimed).await
    }

    async fn give_back(&mut self, caller: &Caller, leases: &[LeaseRef]) -> Result<Vec<bool>, EngineError> {
        if leases.is_empty() {
            return Ok(Vec::new());
        }
        self.begin(caller).await?;
        let undone = self.undo_grants(caller, leases).await;
        self.end(caller, undone).await
    }

    async fn give_back_unseen(&mut self, caller: &Caller, leases: &[LeaseId]) -> Result<Vec<QueueId>, EngineError> {
        self.begin(caller).await?;
        let queues = self.undo_unseen(caller, leases).await;
        self.end(caller, queues).await
    }

    async fn look(&mut self, caller: &Caller, spots: &[LookSpot]) -> Result<Vec<Sighting>, EngineError> {
        self.look_at(caller, spots).await
    }
}

impl MysqlSession {
    async fn lease_ready(
        &mut self,
        caller: &Caller,
        (first, tiers): (&Claim, &[MySqlRow]),
        others: impl Iterator<Item = &Claim>,
        now: Timestamp,
    ) -> Result<Vec<ClaimedJob>, EngineError> {
        let mut grants: Vec<Grant> = Vec::new();
        self.lock_ready(caller, first, tiers, now, &mut grants).await?;
        for claim in others {
            let [tiers] = self.answers(caller, [&tiers_of(claim)?]).await?;
            self.lock_ready(caller, claim, &tiers.rows, now, &mut grants).await?;
        }
        if grants.is_empty() { Ok(Vec::new()) } else { self.grant(caller, grants).await }
    }

    /// Locks ready jobs of one queue, one after the other of the tiers in which there are any.
    async fn lock_ready(
        &mut self,
        caller: &Caller,
        claim: &Claim,
        tiers: &[MySqlRow],
        now: Timestamp,
        grants: &mut Vec<Grant>,
    ) -> Result<(), EngineError> {
        let mut tiers: Vec<u8> = tiers.iter().map(|row| narrow(row, "tier")).collect::<Result<_, _>>()?;
        tiers.sort_unstable();
        let mut slots = claim.slots.as_slice();
        for tier in tiers {
            if slots.is_empty() {
                break;
            }
            let find = self
                .statement(caller, include_str!("sql/claim_ready.sql"))
                .bind(claim.queue.0)
                .bind(tier)
                .bind(floor(claim, tier).0)
                .bind(now.0)
                .bind(count(slots.len()));
            let ready = self.read(find).await?;
            let (taken, left) = slots.split_at(ready.len().min(slots.len()));
            slots = left;
            for (row, slot) in ready.iter().zip(taken) {
                let ends = moment(row, "now")?.plus(slot.duration);
                grants.push(Grant {
                    queue: claim.queue,
                    tier,
                    ready_at: moment(row, "ready_at")?,
                    job: column(row, "id")?,
                    lease: slot.lease,
                    stream: slot.stream.to_bits(),
                    ends,
                    duration: ends.0.saturating_sub(moment(row, "now")?.0),
                    attempt: narrow::<u32>(row, "attempt")?.saturating_add(1),
                    lease_number: column::<i64>(row, "lease_number")?.saturating_add(1),
                });
            }
        }
        Ok(())
    }

    async fn grant(&mut self, caller: &Caller, grants: Vec<Grant>) -> Result<Vec<ClaimedJob>, EngineError> {
        let places: Vec<Place> =
            grants.iter().map(|grant| (grant.queue.0, grant.tier, grant.ready_at.0, grant.job)).collect();
        let leases: Vec<_> = grants
            .iter()
            .map(|grant| {
                let Grant { queue, job, ends, duration, attempt, lease_number, stream, .. } = grant;
                (job, lease_hex(grant.lease), ends.0, duration, attempt, lease_number, stream, queue.0)
            })
            .collect();
        let jobs: Vec<i64> = grants.iter().map(|grant| grant.job).collect();
        let leave = filled(include_str!("sql/leave_ready.sql"), &[&literal(&list(&places)?)?])?;
        let lease = filled(include_str!("sql/claim_grant.sql"), &[&literal(&list(&leases)?)?])?;
        let read = filled(include_str!("sql/claim_jobs.sql"), &[&literal(&list(&jobs)?)?])?;
        let [left, leased, rows] = self.answers(caller, [&leave, &lease, &read]).await?;
        let (rows, expected) = (rows.rows, grants.len() as u64);
        if [left.changed, leased.changed, rows.len() as u64] != [expected; 3] {
            return Err(EngineError::Bug(format!(
                "{expected} jobs claimed, {} left, {} leased, {} read",
                left.changed,
                leased.changed,
                rows.len()
            )));
        }
        let grants: HashMap<i64, Grant> = grants.into_iter().map(|grant| (grant.job, grant)).collect();
        rows.iter().map(|row| claimed_job(row, &grants)).collect()
    }

    async fn undo_grants(&mut self, caller: &Caller, leases: &[LeaseRef]) -> Result<Vec<bool>, EngineError> {
        let mut undone = vec![false; leases.len()];
        let held = self.held(caller, leases).await?;
        for lease in &held {
            undone[lease.n] = true;
        }
        self.make_unsent(caller, &held).await?;
        Ok(undone)
    }

    async fn undo_unseen(&mut self, caller: &Caller, leases: &[LeaseId]) -> Result<Vec<QueueId>, EngineError> {
        let bits: Vec<String> = leases.iter().map(|lease| lease_hex(*lease)).collect();
        let find = self.statement(caller, include_str!("sql/find_unseen.sql")).bind(list(&bits)?);
        let found = self.read(find).await?;
        let found: Vec<LeaseRef> = found
            .iter()
            .map(|row| Ok(LeaseRef { job: JobId(column(row, "job_id")?), lease: lease(row, "token")? }))
            .collect::<Result<_, EngineError>>()?;
        let held = self.held(caller, &found).await?;
        self.make_unsent(caller, &held).await?;
        let queues: BTreeSet<QueueId> = held.iter().map(|lease| lease.queue).collect();
        Ok(queues.into_iter().collect())
    }

    /// As if these grants had not been, but for the lease numbers, which only grow. Jobs that are to be cancelled go.
    async fn make_unsent(&mut self, caller: &Caller, held: &[HeldLease]) -> Result<(), EngineError> {
        let (going, back): (Vec<&HeldLease>, Vec<&HeldLease>) = held.iter().partition(|lease| lease.cancel_requested);
        let returns: Vec<Return> = back
            .into_iter()
            .map(|lease| Return::of(lease, lease.now.max(lease.available_at), None).uncounted())
            .collect();
        self.return_jobs(caller, &returns).await?;
        let jobs: Vec<i64> = going.iter().map(|lease| lease.job.0).collect();
        self.remove(caller, &jobs).await?;
        self.advance(caller, going.into_iter().filter_map(HeldLease::key)).await.map(drop)
    }
}

/// Asks in which tiers of a claim's queue something is ready.
fn tiers_of(claim: &Claim) -> Result<String, EngineError> {
    let floors: Vec<String> = (0..=9).map(|tier| floor(claim, tier).0.to_string()).collect();
    let queue = claim.queue.0.to_string();
    let values: Vec<&str> = floors.iter().flat_map(|floor| [queue.as_str(), floor]).collect();
    filled(include_str!("sql/claim_tiers.sql"), &values)
}

/// Where ready jobs of a tier begin.
fn floor(claim: &Claim, tier: u8) -> Timestamp {
    claim.floors[usize::from(9 - tier)]
}

fn claimed_job(row: &MySqlRow, grants: &HashMap<i64, Grant>) -> Result<ClaimedJob, EngineError> {
    let id: i64 = column(row, "id")?;
    let grant = grants.get(&id).ok_or_else(|| EngineError::Bug("a job that was not claimed".into()))?;
    Ok(ClaimedJob {
        job: JobId(id),
        queue: grant.queue,
        lease: grant.lease,
        payload: column::<Vec<u8>>(row, "payload")?.into(),
        content_type: column(row, "content_type")?,
        headers: headers(row)?,
        priority: priority(column(row, "priority")?)?,
        attempt: grant.attempt,
        max_attempts: narrow(row, "max_attempts")?,
        lease_number: grant.lease_number,
        enqueued_at: moment(row, "enqueued_at")?,
        lease_expires_at: grant.ends,
        available_at: moment(row, "available_at")?,
        ready_at: grant.ready_at,
        ordering_key: key(row, "ordering_key")?,
        idempotency_key: key(row, "idempotency_key")?,
        last_error: column(row, "last_error")?,
        trace: trace(row)?,
    })
}
