//! Ending and moving leases.
//!
//! Each act first locks the jobs of its leases, passing over those that others hold, and finds which leases hold; then it
//! writes by job id. The locks stay all the while, so what was found stays true.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use async_trait::async_trait;

use super::{
    fate::{Burial, Return},
    held::{HeldLease, find_held_in, held_in, held_texts},
    keys::OrderingKey,
    session::{Answer, MysqlSession},
    value::{column, list, moment, place},
};
use crate::{
    model::{Caller, JobId, NackAction, Timestamp},
    store::{
        engine::{
            AckedRow, ExtendRow, ExtendedRow, Held, LeaseRef, LeaseState, LockWait, NackRow, NackedRow, Settling,
        },
        error::EngineError,
        hex::lease_hex,
    },
};

#[async_trait]
impl Settling for MysqlSession {
    async fn ack(
        &mut self,
        caller: &Caller,
        leases: &[LeaseRef],
        wait: LockWait,
    ) -> Result<Vec<AckedRow>, EngineError> {
        if leases.is_empty() {
            return Ok(Vec::new());
        }
        let [lock, read] = held_texts(leases)?;
        let (now, found) = self.begin_with_first(caller, wait, [&lock, &read]).await?;
        let acked = self.ack_held(caller, leases, &found, now).await;
        self.end(caller, acked).await
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
        let leases: Vec<LeaseRef> = items.iter().map(|item| item.lease).collect();
        let [lock, read] = held_texts(&leases)?;
        let (now, found) = self.begin_with_first(caller, wait, [&lock, &read]).await?;
        let nacked = self.nack_held(caller, items, &found, now).await;
        self.end(caller, nacked).await
    }

    async fn extend(&mut self, caller: &Caller, items: &[ExtendRow]) -> Result<Vec<ExtendedRow>, EngineError> {
        if items.is_empty() {
            return Ok(Vec::new());
        }
        let leases: Vec<LeaseRef> = items.iter().map(|item| item.lease).collect();
        let [lock, read] = held_texts(&leases)?;
        let (_, found) = self.begin_with_first(caller, LockWait::Full, [&lock, &read]).await?;
        let extended = self.extend_held(caller, items, &found).await;
        self.end(caller, extended).await
    }

    async fn inspect(&mut self, caller: &Caller, leases: &[LeaseRef]) -> Result<Vec<LeaseState>, EngineError> {
        let lost = LeaseState { holds: false, remaining: Duration::ZERO, cancel_requested: false };
        let mut states = vec![lost; leases.len()];
        if leases.is_empty() {
            return Ok(states);
        }
        let asked: Vec<_> =
            leases.iter().enumerate().map(|(n, lease)| (n, lease.job.0, lease_hex(lease.lease))).collect();
        let look = self.statement(caller, include_str!("sql/inspect.sql")).bind(list(&asked)?);
        for row in self.read_alone(look, caller).await? {
            states[place(&row, leases.len())?] = LeaseState {
                holds: true,
                remaining: moment(&row, "lease_until")?.since(moment(&row, "now")?),
                cancel_requested: column::<i64>(&row, "cancel_requested")? != 0,
            };
        }
        Ok(states)
    }
}

impl MysqlSession {
    async fn ack_held(
        &mut self,
        caller: &Caller,
        leases: &[LeaseRef],
        found: &[Answer; 2],
        now: Timestamp,
    ) -> Result<Vec<AckedRow>, EngineError> {
        let held = held_in(leases, found)?;
        let jobs: Vec<i64> = held.iter().map(|lease| lease.job.0).collect();
        if held.iter().any(|lease| lease.kept) {
            let keep = self.statement(caller, include_str!("sql/keep_acked.sql"));
            self.change(keep.bind(now.0).bind(now.0).bind(list(&jobs)?)).await?;
        }
        self.remove(caller, &jobs).await?;
        let readied = self.advance(caller, held.iter().filter_map(HeldLease::key)).await?;

        let missed = self.missed(caller, leases, &held).await?;
        let mut answers: Vec<AckedRow> =
            missed.into_iter().map(|held| AckedRow { held, queue: None, readied: None }).collect();
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
        found: &[Answer; 2],
        now: Timestamp,
    ) -> Result<Vec<NackedRow>, EngineError> {
        let leases: Vec<LeaseRef> = items.iter().map(|item| item.lease).collect();
        let held = held_in(&leases, found)?;
        let now = held.iter().map(|lease| lease.now).fold(now, Timestamp::max);
        let mut returns: Vec<Return> = Vec::new();
        let mut burials: Vec<Burial> = Vec::new();
        let mut going: Vec<i64> = Vec::new();
        let mut freed: Vec<OrderingKey> = Vec::new();
        let mut ready: BTreeMap<usize, Timestamp> = BTreeMap::new();
        for lease in &held {
            let item = &items[lease.n];
            let error = Some(item.error.as_str()).filter(|error| !error.is_empty());
            let dies = !lease.cancel_requested && lease.dies(item.action);
            if dies {
                burials.push((lease.job.0, error, lease.attempt, lease.lease_number));
            }
            if dies || lease.cancel_requested {
                going.push(lease.job.0);
                freed.extend(lease.key());
                continue;
            }
            let counted = item.action == NackAction::Retry;
            let delay = match item.delay {
                Some(delay) => delay,
                None if counted => lease.backoff.delay(lease.attempt, item.jitter),
                None => Duration::ZERO,
            };
            let ready_at = now.plus(delay).max(lease.available_at);
            // A release is no failure: it takes nothing away from what the last one said.
            let kept = (counted || error.is_some()).then_some(error);
            let back = Return::of(lease, ready_at, kept);
            returns.push(if counted { back } else { back.uncounted() });
            ready.insert(lease.n, ready_at);
        }
        self.return_jobs(caller, &returns).await?;
        self.bury(caller, &burials, now).await?;
        self.remove(caller, &going).await?;
        let readied = self.advance(caller, freed).await?;

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
        found: &[Answer; 2],
    ) -> Result<Vec<ExtendedRow>, EngineError> {
        let leases: Vec<LeaseRef> = items.iter().map(|item| item.lease).collect();
        let held = find_held_in(&leases, found)?;
        // A lease that comes twice ends at the later of its two ends, as if asked for one after the other.
        let mut ends: HashMap<JobId, Timestamp> = HashMap::new();
        for lease in &held {
            let asked = match items[lease.n].duration {
                Some(duration) => lease.now.plus(duration),
                None => Timestamp(lease.now.0.saturating_add(lease.granted_for)),
            };
            let end = ends.entry(lease.job).or_insert(lease.until);
            *end = asked.max(*end);
        }
        if !ends.is_empty() {
            let ends: Vec<(i64, i64)> = ends.iter().map(|(job, end)| (job.0, end.0)).collect();
            let update = self.statement(caller, include_str!("sql/extend.sql")).bind(list(&ends)?);
            self.change(update).await?;
        }
        let missed = self.missed(caller, &leases, &held).await?;
        let mut answers: Vec<ExtendedRow> = missed
            .into_iter()
            .map(|held| ExtendedRow { held, expires_at: None, remaining: Duration::ZERO, cancel_requested: false })
            .collect();
        for lease in held {
            let end = ends[&lease.job];
            answers[lease.n] = ExtendedRow {
                held: Held::Ok,
                expires_at: Some(end),
                remaining: end.since(lease.now),
                cancel_requested: lease.cancel_requested,
            };
        }
        Ok(answers)
    }
}
