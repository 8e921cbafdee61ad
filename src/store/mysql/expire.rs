//! Burying jobs that were ready for longer than their queue's time to live.

use std::{collections::BTreeSet, time::Duration};

use super::{
    fate::Burial,
    session::MysqlSession,
    value::{list, narrow, place},
    walk::Walk,
};
use crate::{
    model::{Caller, QueueId, Timestamp},
    store::{engine::Expired, error::EngineError},
};

/// Why a job died that nobody leased in time.
const TOO_OLD: &str = "time to live is over";

/// Jobs become ready in transactions that may take so long to commit.
const UNSEEN: Duration = Duration::from_secs(10);

impl MysqlSession {
    /// Buries jobs that were ready for too long.
    pub(super) async fn bury_old(
        &mut self,
        caller: &Caller,
        queues: &[(QueueId, Timestamp)],
        limit: usize,
        now: Timestamp,
    ) -> Result<Expired, EngineError> {
        let asked: Vec<_> = queues.iter().enumerate().map(|(n, (queue, _))| (n, queue.0)).collect();
        let find = self.statement(caller, include_str!("sql/times_to_live.sql")).bind(list(&asked)?);
        let mut floors: Vec<Timestamp> = queues.iter().map(|(_, floor)| *floor).collect();
        let mut expired = Expired { jobs: 0, readied: Vec::new(), floors: Vec::new() };
        let mut freed = Vec::new();
        for row in self.read(find).await? {
            let n = place(&row, queues.len())?;
            let (queue, floor) = queues[n];
            let cutoff = now.minus(Duration::from_micros(narrow(&row, "time_to_live")?));
            let room = limit.saturating_sub(expired.jobs);
            if room == 0 {
                break;
            }
            let old = self.walk_waiting(caller, queue, (floor, i64::MAX), cutoff, room).await?;
            let mut walk = Walk::new(floor, room);
            for waiting in &old {
                walk.saw(waiting.ready_at);
            }
            let jobs = old.iter().map(|waiting| waiting.job).collect();
            let taken = self.take_waiting(caller, &jobs).await?;
            let burials: Vec<Burial> =
                taken.iter().map(|(job, turn)| (job.id, Some(TOO_OLD), turn.attempt, turn.lease_number)).collect();
            self.bury(caller, &burials, now).await?;
            let going: Vec<i64> = taken.iter().map(|(job, _)| job.id).collect();
            self.remove_jobs(caller, &going).await?;
            freed.extend(taken.iter().filter_map(|(job, _)| job.key()));
            for (job, _) in &taken {
                walk.took(job.ready_at);
            }
            expired.jobs += taken.len();
            floors[n] = walk.next(cutoff.minus(UNSEEN));
        }
        let readied: BTreeSet<QueueId> =
            self.advance(caller, freed).await?.into_iter().map(|(queue, _)| queue).collect();
        expired.readied = readied.into_iter().collect();
        expired.floors = floors;
        Ok(expired)
    }
}
