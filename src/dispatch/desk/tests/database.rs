//! What the database of the tests does with each act.

use std::time::Duration;

use bytes::Bytes;

use super::world::{Row, World};
use crate::model::{Headers, JobId, Priority, Timestamp};
use crate::store::engine::{Claim, ClaimedJob, LeaseRef, LeaseState, LookSpot, Sighting};

impl World {
    pub(super) fn claim(&mut self, claim: &Claim) -> Vec<ClaimedJob> {
        let floor = claim.floors[4];
        let now = Timestamp(self.clock);
        let mut ready: Vec<(&JobId, &mut Row)> = self
            .rows
            .iter_mut()
            .filter(|(_, row)| row.queue == claim.queue && row.lease.is_none())
            .filter(|(_, row)| row.ready_at > floor && row.ready_at <= now)
            .collect();
        ready.sort_by_key(|(job, row)| (row.ready_at, **job));
        let slots = claim.slots.iter();
        let claimed = ready.into_iter().zip(slots).map(|((job, row), slot)| {
            row.lease = Some(slot.lease);
            row.lease_until = now.plus(slot.duration);
            row.attempts += 1;
            ClaimedJob {
                job: *job,
                queue: row.queue,
                lease: slot.lease,
                payload: Bytes::from(vec![0; row.payload]),
                content_type: String::new(),
                headers: Headers::new(),
                priority: Priority::DEFAULT,
                attempt: row.attempts,
                max_attempts: 20,
                lease_number: 1,
                enqueued_at: row.ready_at,
                lease_expires_at: row.lease_until,
                available_at: row.ready_at,
                ready_at: row.ready_at,
                ordering_key: None,
                idempotency_key: None,
                last_error: None,
                trace: None,
            }
        });
        claimed.collect()
    }

    pub(super) fn give_back(&mut self, lease: LeaseRef) -> bool {
        self.clock += 1;
        let row = self.rows.get_mut(&lease.job).filter(|row| row.lease == Some(lease.lease));
        let Some(row) = row else { return false };
        row.lease = None;
        row.attempts -= 1;
        row.ready_at = Timestamp(self.clock);
        true
    }

    /// As the reaper of any replica does.
    pub(super) fn reap(&mut self) -> Vec<LeaseRef> {
        let now = Timestamp(self.clock);
        let mut reaped = Vec::new();
        for (job, row) in &mut self.rows {
            if row.lease_until <= now
                && let Some(lease) = row.lease.take()
            {
                row.ready_at = now;
                reaped.push(LeaseRef { job: *job, lease });
            }
        }
        reaped
    }

    pub(super) fn look(&self, spots: &[LookSpot]) -> Vec<Sighting> {
        let now = Timestamp(self.clock);
        let first = |spot: &LookSpot| {
            let waiting = self.rows.values().filter(|row| row.queue == spot.queue && row.lease.is_none());
            let ready_at = waiting.map(|row| row.ready_at).filter(|at| *at > spot.floors[4]).min()?;
            let ready_in = ready_at.since(now);
            Some(Sighting { queue: spot.queue, priority: Priority::DEFAULT, ready_at, ready_in })
        };
        spots.iter().filter_map(first).collect()
    }

    pub(super) fn inspect(&self, lease: LeaseRef) -> LeaseState {
        let row = self.rows.get(&lease.job).filter(|row| row.lease == Some(lease.lease));
        LeaseState {
            holds: row.is_some(),
            remaining: row.map_or(Duration::ZERO, |row| row.lease_until.since(Timestamp(self.clock))),
            cancel_requested: row.is_some_and(|row| row.cancel_requested),
        }
    }
}
