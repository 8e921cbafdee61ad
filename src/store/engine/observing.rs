//! Looking at the database's other users: every connection, and who holds back the removal of dead rows.

use std::time::Duration;

use async_trait::async_trait;

use super::super::error::EngineError;
use crate::model::{Caller, Timestamp};

/// Reading what the database tells about its sessions. Each method is one statement that reads and takes no lock that anybody
/// could hold against it.
///
/// All works with whatever rights the broker's role has: what it may not see is absent, and a sentence in `blind_spots` says
/// so and what to do about it. Texts are other people's: of any content and length, made UTF-8 and otherwise left as they are.
#[async_trait]
pub trait Observing: Send {
    /// Connections to this database and what works beside them, as of one instant: `at_most` of them, those that hold
    /// something before the idle ones, the longest in their state first.
    async fn sessions(&mut self, caller: &Caller, at_most: usize) -> Result<SessionsSeen, EngineError>;

    /// Who keeps the database from removing dead rows, oldest first, `at_most` of them. The answering session is left out.
    async fn horizon(&mut self, caller: &Caller, at_most: usize) -> Result<HorizonSeen, EngineError>;

    /// What the database knows of the broker's own tables, by name. Reads statistics, never the tables.
    async fn tables(&mut self, caller: &Caller) -> Result<Vec<TableRow>, EngineError>;
}

/// What one look at the sessions saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionsSeen {
    /// When, by the database's clock.
    pub at: Timestamp,
    /// The sessions.
    pub sessions: Vec<SessionRow>,
    /// Sessions of this database past the bound asked for.
    pub left_out: u32,
    /// Clients' connections to the whole server.
    pub connections: u32,
    /// Those among them that are to other databases of it.
    pub elsewhere: u32,
    /// Connections that the server takes at most.
    pub max_connections: u32,
    /// How statements are written here.
    pub quoting: Quoting,
    /// Nobody else can ever be connected: looking again and again shows nothing.
    pub alone: bool,
    /// What to do where statements are cut, as the middle of a sentence: `raise this setting`.
    pub to_see_more: String,
    /// What else cannot be seen, one sentence each, with what to do about it.
    pub blind_spots: Vec<String>,
}

/// How the engine's statements write text, so that a comment can be told from what only looks like one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(clippy::struct_excessive_bools)] // each is a fact of its own
pub struct Quoting {
    /// In every `'…'` (and `"…"`, where that is text) a backslash takes the next character's meaning away, not only in
    /// `E'…'`.
    pub backslashes: bool,
    /// `$tag$…$tag$` is text.
    pub dollars: bool,
    /// `` `…` `` is a name.
    pub backticks: bool,
    /// `#` begins a comment that ends with its line.
    pub hashes: bool,
    /// `/* /* */ */` is one comment.
    pub nesting: bool,
}

/// One session.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // each is a fact of its own
pub struct SessionRow {
    /// The database's number of it.
    pub id: i64,
    /// What it is.
    pub kind: SessionKind,
    /// For whom it works, where it is a worker of another session.
    pub leader: Option<i64>,
    /// It is a lane or the listener of a broker: same role, and a broker's application name.
    pub broker: bool,
    /// It is the one that looked.
    pub observer: bool,
    /// What it does.
    pub state: SessionState,
    /// Since when.
    pub in_state: Duration,
    /// Since its transaction began, where it is in one.
    pub transaction_age: Option<Duration>,
    /// It waits for a lock that another session holds.
    pub waiting: bool,
    /// Sessions that it waits for; 0 is a prepared transaction, which has none. Asked of a bounded number of waiting sessions.
    pub blocked_by: Vec<i64>,
    /// Its role.
    pub role: String,
    /// How its program calls itself; empty where it does not.
    pub application_name: String,
    /// Where it comes from; absent for one on the server's own machine.
    pub client_address: Option<String>,
    /// The statement that it runs, or ran last. It may hold other people's data: names are read from its comments, and then
    /// it is dropped.
    pub statement: String,
    /// The database shows only the beginning of the statement.
    pub cut: bool,
}

/// What a session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SessionKind {
    /// A client's connection.
    Client,
    /// Helps the statement of another session, and is no connection.
    ParallelWorker,
    /// Sends changes to a standby or subscriber.
    Replication,
    /// The database's own upkeep, such as autovacuum.
    Maintenance,
    /// Another process inside of the database, such as a subscription or an extension's scheduler.
    Background,
}

/// What a session does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SessionState {
    /// Runs a statement.
    Active,
    /// Waits for its client inside of a transaction.
    IdleInTransaction,
    /// Waits for its client.
    Idle,
    /// The database does not say.
    Hidden,
}

/// What one look at the horizon saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HorizonSeen {
    /// Oldest first; those that hold back no rows of ours come last.
    pub holders: Vec<HolderRow>,
    /// How statements are written here.
    pub quoting: Quoting,
    /// As in [`SessionsSeen::blind_spots`].
    pub blind_spots: Vec<String>,
}

/// What keeps dead rows from being removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HolderRow {
    /// What it is.
    pub kind: HolderKind,
    /// A session's number, a transaction's or slot's name, a standby's application name.
    pub name: String,
    /// Transactions begun since its snapshot.
    pub transactions: u64,
    /// Since its transaction began, where the database says.
    pub age: Option<Duration>,
    /// It is a broker's session.
    pub broker: bool,
    /// How its program calls itself; empty where nothing does.
    pub application_name: String,
    /// As in [`SessionRow::statement`]; empty where there is none.
    pub statement: String,
    /// As in [`SessionRow::cut`].
    pub cut: bool,
    /// It holds back rows of the database's catalogs alone.
    pub catalogs_only: bool,
    /// What to do about it.
    pub advice: String,
}

/// What a holder is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HolderKind {
    /// A session with an open transaction.
    Session,
    /// A transaction prepared for two-phase commit.
    PreparedTransaction,
    /// A replication slot.
    ReplicationSlot,
    /// A standby that tells what its queries need.
    Standby,
}

/// What the database knows of one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableRow {
    /// Its name, without the schema.
    pub table: String,
    /// Rows, by estimate.
    pub live_rows: u64,
    /// Rows that are dead and not removed, by estimate.
    pub dead_rows: u64,
    /// When dead rows were last removed.
    pub last_vacuum: Option<Timestamp>,
    /// With indexes, as of the last time that the database measured it.
    pub bytes: u64,
}
