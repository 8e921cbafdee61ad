//! Walks over the dead jobs of a queue.

use sqlx::mysql::MySqlRow;

use super::{
    session::{MysqlSession, Statement},
    value::{column, count, moment, name},
};
use crate::{
    model::{Caller, JobId, QueueId, Timestamp},
    store::{
        engine::{DeadFilter, DeadPlace},
        error::EngineError,
    },
};

impl MysqlSession {
    /// Those that died first first, behind a place and up to an instant.
    pub(super) fn walk_dead_up(
        &mut self,
        caller: &Caller,
        queue: QueueId,
        filter: &DeadFilter,
        (after, until): (Option<DeadPlace>, Timestamp),
        rows: usize,
    ) -> Statement {
        let after = after.unwrap_or(DeadPlace { dead_at: Timestamp(-1), job: JobId(0) });
        let walk = self.statement(caller, include_str!("sql/walk_dead_up.sql"));
        within(walk, queue, after, filter).bind(until.0).bind(count(rows))
    }

    /// The ones that died last first, before a place.
    pub(super) fn walk_dead_down(
        &mut self,
        caller: &Caller,
        queue: QueueId,
        filter: &DeadFilter,
        before: Option<DeadPlace>,
        rows: usize,
    ) -> Statement {
        let before = before.unwrap_or(DeadPlace { dead_at: Timestamp(i64::MAX), job: JobId(0) });
        let walk = self.statement(caller, include_str!("sql/walk_dead_down.sql"));
        within(walk, queue, before, filter).bind(count(rows))
    }
}

fn within(walk: Statement, queue: QueueId, place: DeadPlace, filter: &DeadFilter) -> Statement {
    walk.bind(filter.error_contains.clone().unwrap_or_default())
        .bind(queue.0)
        .bind(place.dead_at.0)
        .bind(place.dead_at.0)
        .bind(place.job.0)
        .bind(filter.died_after.map_or(-1, |at| at.0))
        .bind(filter.died_before.map_or(i64::MAX, |at| at.0))
}

/// Whether a row of such a walk is asked for.
pub(super) fn passes(row: &MySqlRow, filter: &DeadFilter) -> Result<bool, EngineError> {
    let error = filter.error_contains.is_none() || column::<i64>(row, "fits")? != 0;
    let key = filter.ordering_key.as_ref().map(|key| key.as_str().to_owned());
    let caller = filter.caller.clone();
    let has_key = key.is_none() || key == name(row, "ordering_key")?;
    let has_caller = caller.is_none() || caller == column::<Option<String>>(row, "caller")?;
    Ok(error && has_key && has_caller)
}

/// Where the rows of such a walk stand.
pub(super) fn dead_places(rows: &[MySqlRow]) -> Result<Vec<DeadPlace>, EngineError> {
    rows.iter().map(|row| Ok(DeadPlace { dead_at: moment(row, "dead_at")?, job: JobId(column(row, "id")?) })).collect()
}
