//! Looking for work without taking it.
//!
//! Levels that are looked at from the beginning go into one statement. Where there is a floor, each level has a query of its
//! own within a statement: a walk that began at the left end would pass all that has left there and is not purged yet.

use sqlx::mysql::MySqlRow;

use super::{
    record::priority,
    repeated::LOOK_FROM,
    session::MysqlSession,
    value::{column, list, moment, narrow},
};
use crate::{
    model::{Caller, QueueId, Timestamp},
    store::{
        engine::{LookSpot, Sighting},
        error::EngineError,
    },
};

impl MysqlSession {
    pub(super) async fn look_at(&mut self, caller: &Caller, spots: &[LookSpot]) -> Result<Vec<Sighting>, EngineError> {
        let mut whole = Vec::new();
        let mut parts = Vec::new();
        for spot in spots {
            for (tier, floor) in (0..=9_u8).zip(spot.floors.iter().rev()) {
                if *floor <= Timestamp::BEGINNING {
                    whole.push((spot.queue.0, tier));
                } else {
                    parts.push((spot.queue.0, tier, floor.0));
                }
            }
        }
        let mut sightings = Vec::new();
        if !whole.is_empty() {
            let look = self.statement(caller, include_str!("sql/look.sql")).bind(list(&whole)?);
            for row in self.read_alone(look, caller).await? {
                sightings.extend(sighting(&row)?);
            }
        }
        let mut rest = parts.as_slice();
        while !rest.is_empty() {
            let (size, sql) = LOOK_FROM.largest(|size| size <= rest.len());
            let (these, others) = rest.split_at(size);
            let mut look = self.statement(caller, sql);
            for (queue, tier, floor) in these {
                look = look.bind(*queue).bind(*tier).bind(*floor);
            }
            for row in self.read_alone(look, caller).await? {
                sightings.extend(sighting(&row)?);
            }
            rest = others;
        }
        Ok(sightings)
    }
}

/// Nothing where nothing waits at the level.
fn sighting(row: &MySqlRow) -> Result<Option<Sighting>, EngineError> {
    let Some(ready_at) = column::<Option<i64>>(row, "ready_at")?.map(Timestamp) else { return Ok(None) };
    Ok(Some(Sighting {
        queue: QueueId(narrow(row, "queue_id")?),
        priority: priority(9 - column::<i64>(row, "tier")?)?,
        ready_at,
        ready_in: ready_at.since(moment(row, "now")?),
    }))
}
