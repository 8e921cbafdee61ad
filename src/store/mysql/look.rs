//! Looking for work without taking it.
//!
//! Levels that are looked at from the beginning go into one query. Where there is a floor, each level has a query of its own
//! within the same statement: a walk that began at the left end would pass all that has left there and is not purged yet.

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

/// A queue, a level and a floor where no job can be: queues are numbered from 1.
const NOTHING: (i32, u8, i64) = (0, 0, i64::MAX);

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
        let mut looks = Vec::new();
        if parts.is_empty() && !whole.is_empty() {
            looks.push(self.statement(caller, include_str!("sql/look.sql")).bind(list(&whole)?));
        }
        let (size, sql) = LOOK_FROM.smallest(parts.len());
        for these in parts.chunks(size) {
            let mut look = self.statement(caller, sql).bind(list(&std::mem::take(&mut whole))?);
            for n in 0..size {
                // A query that is not needed asks for what is never there: a look at few queues is to be one statement.
                let (queue, tier, floor) = these.get(n).copied().unwrap_or(NOTHING);
                look = look.bind(queue).bind(tier).bind(floor);
            }
            looks.push(look);
        }
        let mut sightings = Vec::new();
        for look in looks {
            for row in self.read_alone(look, caller).await? {
                sightings.extend(sighting(&row)?);
            }
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
