//! Ordering keys: whose turn it is.
//!
//! Whoever changes what a key's jobs may do locks its row first, several in the order of queue and key.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    session::MysqlSession,
    value::{column, list, moment, name, narrow, place},
};
use crate::{
    model::{Caller, QueueId, Timestamp},
    store::{error::EngineError, hex::hex},
};

/// An ordering key of a queue.
pub(super) type OrderingKey = (QueueId, String);

/// What this transaction found when it had the key.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeyState {
    /// The job that is not blocked.
    pub(super) head: i64,
    /// That job is still there.
    pub(super) head_lives: bool,
    /// The first job that is blocked: its place and its id.
    pub(super) next: Option<(i64, i64)>,
    /// When this was read.
    pub(super) now: Timestamp,
}

/// Head of a key that this transaction brings into being.
pub(super) const NEW: i64 = -1;

impl MysqlSession {
    /// Takes the keys' rows, which no service's transaction holds; those that are missing get `head`. Says how they stand.
    pub(super) async fn take_keys(
        &mut self,
        caller: &Caller,
        keys: &BTreeSet<OrderingKey>,
        head: i64,
    ) -> Result<Vec<KeyState>, EngineError> {
        let names: Vec<_> = keys.iter().map(|(queue, key)| (queue.0, hex(key.as_bytes()))).collect();
        let lock = self.statement(caller, include_str!("sql/lock_keys.sql")).bind(head).bind(list(&names)?);
        self.change(lock).await?;
        let places: Vec<_> = names.iter().enumerate().map(|(n, (queue, key))| (n, queue, key)).collect();
        let read = self.statement(caller, include_str!("sql/read_keys.sql")).bind(list(&places)?);
        let rows = self.read(read).await?;
        let mut states = vec![None; keys.len()];
        for row in &rows {
            states[place(row, keys.len())?] = Some(KeyState {
                head: column(row, "head")?,
                head_lives: column::<Option<i64>>(row, "live")?.is_some(),
                next: column::<Option<i64>>(row, "next")?.zip(column(row, "next_id")?),
                now: moment(row, "now")?,
            });
        }
        let found: Option<Vec<KeyState>> = states.into_iter().collect();
        found.ok_or_else(|| EngineError::Bug("a key that was taken is not there".into()))
    }

    /// Lets keys go on whose head is gone. Says which of them did.
    pub(super) async fn advance(
        &mut self,
        caller: &Caller,
        freed: impl IntoIterator<Item = OrderingKey>,
    ) -> Result<BTreeSet<OrderingKey>, EngineError> {
        let mut open: BTreeSet<OrderingKey> = freed.into_iter().collect();
        let mut went_on = BTreeSet::new();
        while !open.is_empty() {
            let states = self.take_keys(caller, &open, 0).await?;
            let now = states.iter().map(|state| state.now).max().unwrap_or(Timestamp::BEGINNING);
            let mut candidates = BTreeMap::new();
            let mut drained = Vec::new();
            for (key, state) in std::mem::take(&mut open).into_iter().zip(states) {
                match state.next {
                    _ if state.head_lives => {}
                    Some(next) => drop(candidates.insert(key, next)),
                    None => drained.push((key.0.0, hex(key.1.as_bytes()))),
                }
            }
            if !drained.is_empty() {
                let leave = self.statement(caller, include_str!("sql/leave_keys.sql")).bind(list(&drained)?);
                self.change(leave).await?;
            }
            // One that was cancelled meanwhile is not there any more: its key is looked at again.
            let unblocked = self.unblock(caller, &candidates, now).await?;
            open = candidates.into_keys().filter(|key| !unblocked.contains(key)).collect();
            went_on.extend(unblocked);
        }
        Ok(went_on)
    }

    /// Makes these blocked jobs the heads of their keys, where they are still there.
    async fn unblock(
        &mut self,
        caller: &Caller,
        candidates: &BTreeMap<OrderingKey, (i64, i64)>,
        now: Timestamp,
    ) -> Result<BTreeSet<OrderingKey>, EngineError> {
        if candidates.is_empty() {
            return Ok(BTreeSet::new());
        }
        let mut keys: Vec<(&OrderingKey, i64, i64)> =
            candidates.iter().map(|(key, (position, id))| (key, *position, *id)).collect();
        keys.sort_unstable_by_key(|(_, _, id)| *id);
        let asked: Vec<_> = keys
            .iter()
            .enumerate()
            .map(|(n, ((queue, key), position, id))| (n, queue.0, hex(key.as_bytes()), *position, *id))
            .collect();
        let lock = self.statement(caller, include_str!("sql/lock_blocked.sql")).bind(list(&asked)?);
        let mut places = Vec::new();
        let mut heads = Vec::new();
        let mut unblocked = BTreeSet::new();
        for row in self.read(lock).await? {
            let ((queue, key), position, id) = keys[place(&row, keys.len())?];
            places.push((queue.0, hex(key.as_bytes()), position));
            heads.push((queue.0, hex(key.as_bytes()), id));
            unblocked.insert((*queue, key.clone()));
        }
        if unblocked.is_empty() {
            return Ok(unblocked);
        }
        let ready = self.statement(caller, include_str!("sql/unblock.sql")).bind(now.0).bind(list(&places)?);
        let readied = self.change(ready).await?;
        if readied != unblocked.len() as u64 {
            return Err(EngineError::Bug(format!("{readied} of {} blocked jobs became ready", unblocked.len())));
        }
        let jobs: Vec<i64> = heads.iter().map(|(_, _, id)| *id).collect();
        let note = self.statement(caller, include_str!("sql/note_ready.sql")).bind(list(&jobs)?).bind(now.0);
        self.change(note).await?;
        self.leave_blocked(caller, &places).await?;
        self.set_heads(caller, &heads).await?;
        Ok(unblocked)
    }

    /// Takes jobs out of the line of their keys: queue, key in hexadecimal, position; each locked by this transaction.
    pub(super) async fn leave_blocked(
        &mut self,
        caller: &Caller,
        places: &[(i32, String, i64)],
    ) -> Result<(), EngineError> {
        if places.is_empty() {
            return Ok(());
        }
        let leave = self.statement(caller, include_str!("sql/leave_blocked.sql")).bind(list(places)?);
        self.change(leave).await.map(drop)
    }

    /// Queue, key in hexadecimal, head: each locked by this transaction.
    pub(super) async fn set_heads(&mut self, caller: &Caller, heads: &[(i32, String, i64)]) -> Result<(), EngineError> {
        if heads.is_empty() {
            return Ok(());
        }
        let set = self.statement(caller, include_str!("sql/set_heads.sql")).bind(list(heads)?);
        self.change(set).await.map(drop)
    }

    /// Moves jobs of these keys to their queues that services left when those did not exist yet: they come before jobs that
    /// are stored later. Waits for others who do the same.
    pub(super) async fn place_strays(
        &mut self,
        caller: &Caller,
        keys: &BTreeSet<OrderingKey>,
    ) -> Result<(), EngineError> {
        if keys.is_empty() {
            return Ok(());
        }
        let queues: Vec<QueueId> = keys.iter().map(|(queue, _)| *queue).collect();
        let names: Vec<_> =
            keys.iter().enumerate().map(|(n, (queue, key))| (n, queue.0, hex(key.as_bytes()))).collect();
        let find = self.statement(caller, include_str!("sql/find_strays.sql")).bind(list(&names)?);
        let mut targets = BTreeMap::new();
        for row in self.read(find).await? {
            let job: Option<i64> = column(&row, "job_id")?;
            let queue = queues[place(&row, queues.len())?];
            targets.extend(job.map(|job| (job, queue)));
        }
        self.move_strays(caller, &targets).await.map(drop)
    }

    /// Moves those of the jobs that have no queue yet to the one given; their keys are answered.
    pub(super) async fn move_strays(
        &mut self,
        caller: &Caller,
        targets: &BTreeMap<i64, QueueId>,
    ) -> Result<Vec<OrderingKey>, EngineError> {
        if targets.is_empty() {
            return Ok(Vec::new());
        }
        let jobs: Vec<i64> = targets.keys().copied().collect();
        let lock = self.statement(caller, include_str!("sql/lock_strays.sql")).bind(list(&jobs)?);
        let mut moved: Vec<(i64, i32)> = Vec::new();
        let mut blocked = Vec::new();
        let mut keys = Vec::new();
        for row in self.read(lock).await? {
            let job: i64 = narrow(&row, "id")?;
            let Some(queue) = targets.get(&job) else { continue };
            moved.push((job, queue.0));
            if let Some(key) = name(&row, "ordering_key")? {
                blocked.push((job, queue.0, hex(key.as_bytes())));
                keys.push((*queue, key));
            }
        }
        if !moved.is_empty() {
            let place = self.statement(caller, include_str!("sql/place_strays.sql")).bind(list(&moved)?);
            self.change(place).await?;
        }
        if !blocked.is_empty() {
            let place = self.statement(caller, include_str!("sql/place_blocked.sql")).bind(list(&blocked)?);
            self.change(place).await?;
        }
        Ok(keys)
    }
}
