//! Leases outstanding: whose credit they use and how it comes back.

use std::time::{Duration, Instant};

use super::{Act, Desk};
use crate::{
    dispatch::{agenda::Alarm, buffer::Unsent, frame::RevokedLease},
    model::{Failure, JobId, LeaseId, LeaseToken, StreamNumber},
    store::engine::{LeaseRef, LeaseState},
};

/// Leases in one look at the database.
const INSPECTED: usize = 1_000;
/// A lease that is about to run out is looked at again no sooner than this.
const SOON: Duration = Duration::from_millis(10);
/// How long the reaper has to take a lease that ran out, before its credit comes back without that.
const REAPING: Duration = Duration::from_millis(1_200);

/// A lease that uses a stream's credit.
pub(super) struct Lease {
    id: LeaseId,
    stream: StreamNumber,
    bytes: u64,
    granted_at: Instant,
    expires_at: Instant,
    /// The database said that it ran out.
    lapsed: bool,
    cancel_told: bool,
}

#[cfg(test)]
impl Lease {
    pub(super) fn grant(&self) -> (LeaseId, StreamNumber) {
        (self.id, self.stream)
    }
}

impl Desk {
    /// Uses a stream's credit for a job; says no where there is no such stream or the job does not fit.
    pub(super) fn grant(&mut self, unsent: &Unsent) -> bool {
        let token = unsent.token;
        if self.leases.contains_key(&token.job) {
            self.revoke(token.job); // it has a new lease, so the one that we know of is lost
        }
        let bytes = unsent.job.payload.len() as u64;
        let Some(stream) = self.streams.get_mut(&token.stream) else { return false };
        if !stream.credit.admit(bytes) {
            stream.bytes_full = true;
            return false;
        }
        stream.jobs.insert(token.job);
        stream.granted.insert((unsent.started, token.job));
        let expires_at = unsent.started + unsent.duration;
        let lease = Lease {
            id: token.lease,
            stream: token.stream,
            bytes,
            granted_at: unsent.started,
            expires_at,
            lapsed: false,
            cancel_told: false,
        };
        self.leases.insert(token.job, lease);
        self.agenda.set(expires_at, Alarm::Expiry(token.job));
        true
    }

    /// The lease is outstanding no more: its credit comes back.
    pub(super) fn release(&mut self, lease: LeaseRef) -> bool {
        if self.leases.get(&lease.job).is_none_or(|known| known.id != lease.lease) {
            return false;
        }
        let Some(known) = self.forget_lease(lease.job) else { return false };
        if let Some(stream) = self.streams.get_mut(&known.stream) {
            stream.jobs.remove(&lease.job);
            stream.granted.remove(&(known.granted_at, lease.job));
            stream.credit.release(known.bytes);
            stream.bytes_full = false;
            if stream.credit.used() == 0 {
                stream.empty_since = self.sequence + 1;
            }
            self.touched.insert(known.stream);
        }
        true
    }

    /// The lease is gone, and its holder is told.
    fn revoke(&mut self, job: JobId) {
        let Some(known) = self.leases.get(&job) else { return };
        let (lease, stream) = (known.id, known.stream);
        self.tell_holder(job, lease, stream, false);
        self.release(LeaseRef { job, lease });
    }

    fn tell_holder(&mut self, job: JobId, lease: LeaseId, stream: StreamNumber, cancel_requested: bool) {
        if let Some(open) = self.streams.get(&stream) {
            let token = LeaseToken { job, lease, replica: self.replica, stream };
            open.buffer.revoke(RevokedLease { token, cancel_requested });
        }
    }

    /// Drops what is known of a job's lease, and nothing else.
    pub(super) fn forget_lease(&mut self, job: JobId) -> Option<Lease> {
        let known = self.leases.remove(&job)?;
        self.agenda.cancel(known.expires_at, Alarm::Expiry(job));
        self.suspects.remove(&job);
        Some(known)
    }

    /// Takes in what this replica learned of leases.
    pub(super) fn read_hints(
        &mut self,
        settled: &[LeaseRef],
        extended: &[(LeaseRef, Instant)],
        reaped: &[LeaseRef],
        now: Instant,
    ) {
        for &(lease, expires_at) in extended {
            if self.leases.get(&lease.job).is_some_and(|known| known.id == lease.lease) {
                self.move_expiry(lease.job, expires_at.max(now));
            }
        }
        for &lease in settled {
            self.release(lease);
        }
        for lease in reaped {
            if self.leases.get(&lease.job).is_some_and(|known| known.id == lease.lease) {
                self.revoke(lease.job);
            }
        }
    }

    fn move_expiry(&mut self, job: JobId, at: Instant) {
        if let Some(known) = self.leases.get_mut(&job) {
            self.agenda.cancel(known.expires_at, Alarm::Expiry(job));
            known.expires_at = at;
            known.lapsed = false;
            self.agenda.set(at, Alarm::Expiry(job));
        }
    }

    /// Another replica says that these jobs were settled. A hint: it is looked at, not believed.
    pub(super) fn suspect(&mut self, jobs: &[JobId]) {
        self.suspects.extend(jobs.iter().filter(|job| self.leases.contains_key(job)));
    }

    /// The next leases of streams that hang on an end of one, in turn: settled elsewhere and the hint got lost, or to be cancelled.
    pub(super) fn suspect_in_turn(&mut self) {
        let start = self.inspect_turn;
        let mut next = None;
        let streams = self.compared.range(start.0..).chain(self.compared.range(..start.0));
        'streams: for number in streams {
            let Some(stream) = self.streams.get(number) else { continue };
            for &job in &stream.jobs {
                if *number == start.0 && job < start.1 {
                    continue;
                }
                if self.suspects.len() >= INSPECTED {
                    next = Some((*number, job));
                    break 'streams;
                }
                self.suspects.insert(job);
            }
        }
        self.inspect_turn = next.unwrap_or((StreamNumber(0), JobId(i64::MIN)));
    }

    pub(super) fn start_inspection(&mut self) {
        if self.inspecting || self.draining || self.suspects.is_empty() {
            return;
        }
        let mut leases = Vec::new();
        while leases.len() < INSPECTED
            && let Some(job) = self.suspects.pop_first()
        {
            if let Some(known) = self.leases.get(&job) {
                leases.push(LeaseRef { job, lease: known.id });
            }
        }
        if !leases.is_empty() {
            self.inspecting = true;
            self.acts.push(Act::Inspect(leases));
        }
    }

    pub(super) fn inspected(&mut self, leases: &[LeaseRef], result: Result<Vec<LeaseState>, Failure>, now: Instant) {
        self.inspecting = false;
        let Ok(states) = result else {
            // Those that ran out are asked about again; the rest has its turn anyway.
            for lease in leases {
                if self.leases.get(&lease.job).is_some_and(|known| known.expires_at <= now) {
                    self.move_expiry(lease.job, now + self.options.reconcile_interval);
                }
            }
            return;
        };
        for (lease, state) in leases.iter().zip(states) {
            if self.leases.get(&lease.job).is_some_and(|known| known.id == lease.lease) {
                self.judge(*lease, state, now);
            }
        }
    }

    fn judge(&mut self, lease: LeaseRef, state: LeaseState, now: Instant) {
        let Some(known) = self.leases.get_mut(&lease.job) else { return };
        if !state.holds {
            self.revoke(lease.job);
            return;
        }
        if state.cancel_requested && !known.cancel_told {
            known.cancel_told = true;
            let stream = known.stream;
            self.tell_holder(lease.job, lease.lease, stream, true);
        }
        let Some(known) = self.leases.get(&lease.job) else { return };
        if !state.remaining.is_zero() {
            self.move_expiry(lease.job, now + state.remaining.max(SOON));
        } else if known.lapsed && known.expires_at <= now {
            self.release(lease); // the reaper cannot take it at present; outstanding it is not
        } else if !known.lapsed {
            self.move_expiry(lease.job, now + REAPING);
            if let Some(known) = self.leases.get_mut(&lease.job) {
                known.lapsed = true;
            }
        }
    }
}
