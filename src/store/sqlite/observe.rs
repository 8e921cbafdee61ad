//! Looking at the database's other users, of which there are none: the file is this process's alone.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;

use super::session::SqliteSession;
use crate::{
    model::Caller,
    store::{
        engine::{
            HorizonSeen, LaneRole, Observing, Quoting, SessionKind, SessionRow, SessionState, SessionsSeen, TableRow,
        },
        error::EngineError,
    },
};

const QUOTING: Quoting = Quoting { backslashes: false, dollars: false, backticks: true, hashes: false, nesting: false };

/// The open connections of an engine, by numbers that are never given twice.
#[derive(Debug, Default)]
pub(super) struct Connections {
    open: Mutex<BTreeMap<i64, LaneRole>>,
    last: AtomicI64,
}

/// A connection among the others, as long as this lives.
#[derive(Debug)]
pub(super) struct Seat {
    number: i64,
    connections: Arc<Connections>,
}

impl Connections {
    /// A place for one more.
    pub(super) fn seat(self: &Arc<Self>, role: LaneRole) -> Seat {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        self.open.lock().unwrap_or_else(PoisonError::into_inner).insert(number, role);
        Seat { number, connections: Arc::clone(self) }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.connections.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.number);
    }
}

#[async_trait]
impl Observing for SqliteSession {
    async fn sessions(&mut self, _caller: &Caller, at_most: usize) -> Result<SessionsSeen, EngineError> {
        let open = self.seat.connections.open.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let connections = u32::try_from(open.len()).unwrap_or(u32::MAX);
        let sessions: Vec<SessionRow> = open
            .into_iter()
            .take(at_most)
            .map(|(number, role)| {
                let observer = number == self.seat.number;
                SessionRow {
                    id: number,
                    kind: SessionKind::Client,
                    leader: None,
                    broker: true,
                    observer,
                    state: if observer { SessionState::Active } else { SessionState::Hidden },
                    in_state: Duration::ZERO,
                    transaction_age: None,
                    waiting: false,
                    blocked_by: Vec::new(),
                    role: String::new(),
                    application_name: if role == LaneRole::Read { "reader" } else { "writer" }.to_owned(),
                    client_address: None,
                    statement: String::new(),
                    cut: false,
                }
            })
            .collect();
        Ok(SessionsSeen {
            at: self.shared.clock.now(),
            left_out: connections - u32::try_from(sessions.len()).unwrap_or(connections),
            sessions,
            connections,
            elsewhere: 0,
            max_connections: connections,
            quoting: QUOTING,
            alone: true,
            to_see_more: String::new(),
            blind_spots: vec![
                "An embedded database has no connections but this broker's lanes: ListCallers tells what they do."
                    .to_owned(),
            ],
        })
    }

    async fn horizon(&mut self, _caller: &Caller, _at_most: usize) -> Result<HorizonSeen, EngineError> {
        Ok(HorizonSeen {
            holders: Vec::new(),
            quoting: QUOTING,
            blind_spots: vec!["An embedded database removes rows at once: nobody can hold dead ones back.".to_owned()],
        })
    }

    async fn tables(&mut self, _caller: &Caller) -> Result<Vec<TableRow>, EngineError> {
        Ok(Vec::new()) // no statistics are kept, and counting would read every row
    }
}
