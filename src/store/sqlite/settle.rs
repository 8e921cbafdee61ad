//! Ending and moving leases.
//!
//! Each act first finds which of its leases hold, with what it must know of their jobs, then writes by job id. The write
//! lock is held all the while, so what was found stays true.

use std::{collections::HashMap, time::Duration};

use async_trait::async_trait;

use super::{
    fate::{Burial, FreedKey, Return},
    held::HeldLease,
    session::{SqliteSession, list},
};
use crate::{
    model::{Caller, JobId, NackAction, Timestamp},
    store::{
        engine::{
            AckedRow, ExtendRow, ExtendedRow, Held, LeaseRef, LeaseState, LockWait, NackRow, NackedRow, Settling,
        },
        error::EngineError,
    },
};

#[async_trait]
impl Settling for SqliteSession {
    async fn ack(
        &mut self,
        caller: &Caller,
        leases: &[LeaseRef],
        _wait: LockWait,
    ) -> Result<Vec<AckedRow>, EngineError> {
        let now = self.begin(caller).await?;
        let acked = self.ack_held(caller, leases, now).await;
        self.end(caller, now, acked).await
    }

    async fn nack(
        &mut self,
        caller: &Caller,
        items: &[NackRow],
        _wait: LockWait,
    ) -> Result<Vec<NackedRow>, EngineError> {
        let now = self.begin(caller).await?;
        let nacked = self.nack_held(caller, items, now).await;
        self.end(caller, now, nacked).await
    }

    async fn extend(&mut self, caller: &Caller, items: &[ExtendRow]) -> Result<Vec<ExtendedRow>, EngineError> {
        let now = self.begin(caller).await?;
        let extended = self.extend_held(caller, items, now).await;
        self.end(caller, now, extended).await
    }

    async fn inspect(&mut self, caller: &Caller, leases: &[LeaseRef]) -> Result<Vec<LeaseState>, EngineError> {
        let lost = LeaseState { holds: false, remaining: Duration::ZERO, cancel_requested: false };
        let mut states = vec![lost; leases.len()];
        let now = self.shared.clock.now();
        for found in self.find_held(caller, leases).await? {
            states[found.n] =
                LeaseState { holds: true, remaining: found.until.since(now), cancel_requested: found.cancel_requested };
        }
        Ok(states)
    }
}

impl SqliteSession {
    async fn ack_held(
        &mut self,
        caller: &Caller,
        leases: &[LeaseRef],
        now: Timestamp,
    ) -> Result<Vec<AckedRow>, EngineError> {
        let held = self.held(caller, leases).await?;
        let jobs: Vec<i64> = held.iter().map(|lease| lease.job.0).collect();
        if held.iter().any(|lease| lease.kept) {
            let keep = self.statement(caller, include_str!("sql/keep_acked.sql"));
            self.change(keep.bind(list(&jobs)?).bind(now.0)).await?;
        }
        self.remove(caller, &jobs).await?;
        let freed: Vec<FreedKey> = held.iter().filter_map(HeldLease::key).collect();
        let readied = self.advance(caller, &freed, now).await?;

        let mut answers: Vec<AckedRow> = self
            .missed(caller, leases, &held)
            .await?
            .into_iter()
            .map(|held| AckedRow { held, queue: None, readied: None })
            .collect();
        for lease in held {
            let next = lease.key().filter(|key| readied.contains(key));
            answers[lease.n] =
                AckedRow { held: Held::Ok, queue: Some(lease.queue), readied: next.map(|(queue, _)| queue) };
        }
        Ok(answers)
    }

    async fn nack_held(
        &mut self,
        caller: &Caller,
        items: &[NackRow],
        now: Timestamp,
    ) -> Result<Vec<NackedRow>, EngineError> {
        let leases: Vec<LeaseRef> = items.iter().map(|item| item.lease).collect();
        let held = self.held(caller, &leases).await?;
        let mut returns: Vec<Return> = Vec::new();
        let mut burials: Vec<Burial> = Vec::new();
        let mut going: Vec<i64> = Vec::new();
        let mut freed = Vec::new();
        let mut ready = HashMap::new();
        for lease in &held {
            let item = &items[lease.n];
            if lease.cancel_requested {
                going.push(lease.job.0);
                freed.extend(lease.key());
                continue;
            }
            if lease.dies(item.action) {
                burials.push((lease.job.0, Some(&item.error)));
                freed.extend(lease.key());
                continue;
            }
            let counted = item.action == NackAction::Retry;
            let delay = match item.delay {
                Some(delay) => delay,
                None if counted => lease.backoff.delay(lease.attempt, item.jitter),
                None => Duration::ZERO,
            };
            let ready_at = now.plus(delay);
            // A release is no failure: it takes nothing away from what the last one said.
            let error = (counted || !item.error.is_empty()).then_some(item.error.as_str());
            returns.push((lease.job.0, ready_at.0, counted, error));
            ready.insert(lease.n, ready_at);
        }
        self.return_jobs(caller, &returns).await?;
        self.bury(caller, &burials, now).await?;
        self.remove(caller, &going).await?;
        let readied = self.advance(caller, &freed, now).await?;

        let missed = self.missed(caller, &leases, &held).await?;
        let mut answers: Vec<NackedRow> = missed
            .into_iter()
            .map(|held| NackedRow { held, dead: false, queue: None, ready_at: None, ready_in: None, readied: None })
            .collect();
        for lease in held {
            let ready_at = ready.get(&lease.n).copied();
            let next = lease.key().filter(|key| readied.contains(key)).map(|(queue, _)| queue);
            answers[lease.n] = NackedRow {
                held: Held::Ok,
                dead: ready_at.is_none() && !lease.cancel_requested,
                queue: Some(lease.queue),
                ready_at,
                ready_in: ready_at.map(|at| at.since(now)),
                readied: ready_at.map(|_| lease.queue).or(next),
            };
        }
        Ok(answers)
    }

    async fn extend_held(
        &mut self,
        caller: &Caller,
        items: &[ExtendRow],
        now: Timestamp,
    ) -> Result<Vec<ExtendedRow>, EngineError> {
        let leases: Vec<LeaseRef> = items.iter().map(|item| item.lease).collect();
        let held = self.find_held(caller, &leases).await?;
        // A lease that comes twice ends at the later of its two ends, as if asked for one after the other.
        let mut ends: HashMap<JobId, Timestamp> = HashMap::new();
        for lease in &held {
            let asked =
                items[lease.n].duration.map_or(Timestamp(now.0.saturating_add(lease.granted_for)), |d| now.plus(d));
            let end = ends.entry(lease.job).or_insert(lease.until);
            *end = asked.max(*end);
        }
        if !ends.is_empty() {
            let ends: Vec<(i64, i64)> = ends.iter().map(|(job, end)| (job.0, end.0)).collect();
            let update = self.statement(caller, include_str!("sql/extend.sql")).bind(list(&ends)?);
            self.change(update).await?;
        }
        let mut answers: Vec<ExtendedRow> = self
            .missed(caller, &leases, &held)
            .await?
            .into_iter()
            .map(|held| ExtendedRow { held, expires_at: None, remaining: Duration::ZERO, cancel_requested: false })
            .collect();
        for lease in held {
            let end = ends[&lease.job];
            answers[lease.n] = ExtendedRow {
                held: Held::Ok,
                expires_at: Some(end),
                remaining: end.since(now),
                cancel_requested: lease.cancel_requested,
            };
        }
        Ok(answers)
    }
}
