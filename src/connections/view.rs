//! What was seen of the database's sessions, ready to be shown.

use std::time::{Duration, Instant};

use super::{attribution::Attribution, name::Name, places::Holder, window::Estimate};
use crate::{
    model::Timestamp,
    store::engine::{SessionKind, SessionState},
};

/// All that the last sample saw, and what the last minute of samples adds up to.
#[derive(Debug, Clone)]
pub struct View {
    /// When the last sample was taken, by the database's clock.
    pub at: Timestamp,
    /// The same by this process's.
    pub taken: Instant,
    /// Samples of the last minute.
    pub samples: usize,
    /// The time that they stand for.
    pub covered: Duration,
    /// Clients' connections to the whole server.
    pub connections: u32,
    /// Those among them that are to other databases of it.
    pub elsewhere: u32,
    /// Connections that the server takes at most.
    pub max_connections: u32,
    /// By estimated hold time, longest first.
    pub callers: Vec<CallerTotals>,
    /// Those that hold something first, then the idle ones, each the longest in its state first.
    pub sessions: Vec<SessionView>,
    /// What cannot be seen, one sentence each, with what to do about it.
    pub blind_spots: Vec<String>,
}

/// Connections of one holder.
#[derive(Debug, Clone, PartialEq)]
pub struct CallerTotals {
    /// Whose.
    pub holder: Holder,
    /// The best word for it among its sessions.
    pub attribution: Attribution,
    /// Connections, as of the last sample.
    pub sessions: u32,
    /// Those that run a statement.
    pub active: u32,
    /// Those that wait for their client inside of a transaction.
    pub idle_in_transaction: u32,
    /// Those that the database says nothing of.
    pub hidden: u32,
    /// Those among the active ones that wait for a lock.
    pub waiting_on_lock: u32,
    /// Over the last minute.
    pub estimate: Estimate,
}

/// One session. Texts are other people's, cut to a bounded length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionView {
    /// The database's number of it.
    pub id: i64,
    /// What it is.
    pub kind: SessionKind,
    /// For whom it works, where it is a worker of another session.
    pub leader: Option<i64>,
    /// The process that it works for.
    pub caller: Name,
    /// What says so.
    pub attribution: Attribution,
    /// It is a broker's lane or listener.
    pub broker: bool,
    /// What it does.
    pub state: SessionState,
    /// Since when.
    pub in_state: Duration,
    /// Since its transaction began, where it is in one.
    pub transaction_age: Option<Duration>,
    /// It waits for a lock.
    pub waiting: bool,
    /// Sessions that it waits for; 0 is a prepared transaction.
    pub blocked_by: Vec<i64>,
    /// Its role.
    pub role: String,
    /// How its program calls itself.
    pub application_name: String,
    /// Where it comes from.
    pub client_address: Option<String>,
}
