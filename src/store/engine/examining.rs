//! What a database says about itself, for `leasehold doctor`.
//!
//! Facts alone: whether they are good or bad, and what to do about it, is decided elsewhere and without I/O.

use std::time::Duration;

use async_trait::async_trait;

use super::AppliedMigration;
use crate::{model::Caller, store::error::EngineError};

/// Looking at a database without working on it.
#[async_trait]
pub trait Examining: Send + Sync {
    /// Opens a connection of its own, without the checks that a lane begins with, reads, and closes it. Changes nothing and
    /// makes no database. Each statement is bounded in rows and time. A part that the role may not see, or that did not
    /// answer in time, is [`Unseen`]; an error means that the database cannot be reached at all.
    async fn examine(&self, caller: &Caller) -> Result<Facts, EngineError>;
}

/// A part of the facts, or why it cannot be seen.
pub type Seen<T> = Result<T, Unseen>;

/// Why a part of the facts cannot be seen, as a sentence without a full stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unseen(pub String);

/// What a database says about itself.
#[derive(Debug, Clone)]
pub struct Facts {
    /// What answered.
    pub server: ServerFacts,
    /// Settings that something depends on, as they hold for the broker's sessions.
    pub settings: Seen<Vec<SettingFact>>,
    /// What stands between, where it shows: why a session may not be what it seems.
    pub pooler: Option<String>,
    /// Who we are there; `None` where there are no roles.
    pub role: Seen<Option<RoleFacts>>,
    /// How many connections there may be; `None` where that is nobody's concern.
    pub connections: Seen<Option<ConnectionFacts>>,
    /// How far its clock is from ours.
    pub clock: ClockFacts,
    /// What keeps finished jobs' rows from being removed.
    pub snapshots: Seen<SnapshotFacts>,
    /// Migrations that this binary knows, lowest first.
    pub known: Vec<AppliedMigration>,
    /// Migrations that the database has, lowest first; none where it has no schema of ours.
    pub applied: Seen<Vec<AppliedMigration>>,
    /// Our tables.
    pub tables: Seen<TableFacts>,
    /// Indexes on them.
    pub indexes: Seen<IndexFacts>,
}

/// What answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerFacts {
    /// Its name: `PostgreSQL`.
    pub product: &'static str,
    /// Its version as it says it.
    pub version: String,
    /// The oldest version that the broker works with.
    pub oldest: &'static str,
    /// Whether it is that or newer.
    pub new_enough: bool,
    /// Where it is, without any password: `db.internal:5432, database app, schema leasehold`.
    pub place: String,
    /// Why it takes no writes, where it takes none.
    pub read_only: Option<String>,
}

/// A setting that something depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingFact {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub value: String,
    /// What it must or should be, as an operator would say it: `on`, `read committed`.
    pub wanted: &'static str,
    /// Whether it is.
    pub fits: bool,
    /// What depends on it.
    pub purpose: Purpose,
    /// What to change, as a sentence without a full stop.
    pub change: &'static str,
}

/// What depends on a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// That a job whose Enqueue was answered survives a crash and a power cut.
    Durability,
    /// That it survives the loss of the primary.
    Failover,
    /// That acts see what they must see.
    Isolation,
    /// That the broker's statements go by their indexes.
    Session,
    /// That finished jobs' rows are removed.
    Maintenance,
    /// That all text can be stored.
    Text,
}

/// The role that the broker connects as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleFacts {
    /// Its name.
    pub name: String,
    /// What it may do beyond what any broker needs: `superuser`, `may create roles`.
    pub powers: Vec<&'static str>,
    /// It may change the shape of our tables, as the role that migrates must.
    pub shapes_tables: bool,
    /// What it lacks to serve, as statements that give it.
    pub lacks: Vec<String>,
}

/// Connections that the server allows and those that there are, this look's own left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionFacts {
    /// All together.
    pub allowed: u64,
    /// Of these, kept for administrators.
    pub reserved: u64,
    /// In use.
    pub in_use: u64,
    /// Of these, replicas of this broker's.
    pub ours: u64,
    /// The role's own limit and how many of it are in use, where it has one.
    pub role: Option<(u64, u64)>,
    /// The same for the database.
    pub database: Option<(u64, u64)>,
}

/// The database's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockFacts {
    /// How far it is ahead of this machine's, in microseconds.
    pub ahead: i64,
    /// The difference may be wrong by so much: half of the time that asking took.
    pub give_or_take: Duration,
}

/// Old snapshots.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SnapshotFacts {
    /// Who holds one, those that hold most first; a bounded number.
    pub holders: Vec<SnapshotHolder>,
    /// Sessions whose snapshots the role may not see.
    pub hidden: u64,
}

/// Somebody who keeps old row versions alive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotHolder {
    /// Who, for people: `session 4711 of role shop (psql), idle in transaction`.
    pub who: String,
    /// For how long; not known of slots and standbys.
    pub age: Option<Duration>,
    /// Transactions since.
    pub transactions: u64,
    /// Bytes of log that it keeps, where it keeps any.
    pub log_bytes: u64,
    /// How it is ended, as a sentence without a full stop.
    pub release: String,
}

/// Our tables.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TableFacts {
    /// Those that the applied migrations made and that are not there.
    pub missing: Vec<String>,
    /// Those that are there.
    pub present: Vec<TableFact>,
}

/// One of our tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableFact {
    /// Its name.
    pub name: String,
    /// Nothing removes its finished rows by itself.
    pub vacuum_off: bool,
    /// Settings that are not as the migrations made them, as statements that mend them.
    pub strayed: Vec<String>,
    /// Live rows, estimated.
    pub live: u64,
    /// Row versions that wait to be removed, estimated.
    pub dead: u64,
}

/// Indexes on our tables.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IndexFacts {
    /// Those that the applied migrations made and that are not there, as statements that make them.
    pub missing: Vec<String>,
    /// Those that are there and cannot be used, as statements that mend them.
    pub invalid: Vec<String>,
    /// Those that no migration known to this binary makes.
    pub foreign: Vec<ForeignIndex>,
    /// How many of ours are there and in order.
    pub in_order: usize,
}

/// An index on one of our tables that no known migration makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignIndex {
    /// Its name with its table's: `job_payload on job`.
    pub name: String,
    /// How often it was used, where that is counted.
    pub scans: Option<u64>,
}
