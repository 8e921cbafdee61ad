//! The embedded database: one process, one writer lane and two readers on one file.
//!
//! Every act that writes is one `BEGIN IMMEDIATE … COMMIT` on the writer, so acts never meet half-way and nothing here is
//! ever busy: what the server engines do with row locks is plain reading and writing. Reads are single statements on the
//! readers. Lists travel as one JSON value each. Times come from [`clock::Clock`].

mod attend;
mod budgets;
mod claim;
mod clock;
mod enqueue;
mod error;
mod examine;
mod fate;
mod held;
mod inspect;
mod link;
mod maintain;
mod observe;
mod purge;
mod queues;
mod record;
mod reservation;
mod reserve;
mod session;
mod settle;
mod steer;
mod stock;

use std::{
    fs::{self, File, TryLockError},
    io,
    path::{self, Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use sqlx::{ConnectOptions as _, sqlite::SqliteConnectOptions};

pub use self::examine::SqliteFile;
use self::{
    clock::Clock,
    error::{Step, classify},
    observe::Connections,
    session::SqliteSession,
};
use super::{
    comment::Comments,
    engine::{Engine, LaneRole, Listener, Migration, Session},
    error::EngineError,
};
use crate::model::{Caller, ReplicaId};

/// Prepared statements that a connection keeps: some twenty acts of the callers that are busy at one time. One writer works
/// for all of them, and what falls out is prepared anew within 50 µs.
const STATEMENTS: usize = 256;

/// Where the database is and how to use it.
#[derive(Debug, Clone)]
pub struct SqliteOptions {
    /// The database file; it and its directory come into being where they do not exist.
    pub path: PathBuf,
    /// How long a statement waits for the file's write lock. Within one broker only the writer lane takes it.
    pub busy_timeout: Duration,
    /// Callers that have statement texts of their own at most.
    pub callers_with_text: usize,
    /// Callers that always have.
    pub configured_callers: Vec<Caller>,
}

impl SqliteOptions {
    /// The defaults for `path`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            busy_timeout: Duration::from_secs(5),
            callers_with_text: 64,
            configured_callers: Vec::new(),
        }
    }
}

/// SQLite on a file of which this process is the only user as long as the engine or one of its sessions lives.
pub struct SqliteEngine {
    shared: Arc<Shared>,
}

/// What all sessions of an engine share.
struct Shared {
    path: PathBuf,
    connect: SqliteConnectOptions,
    comments: Comments,
    clock: Clock,
    connections: Arc<Connections>,
    /// The statement that makes a connection as patient as the options say, after it was made impatient for a moment.
    patience: String,
    /// Locked; the lock goes when it is closed.
    _lock: File,
}

impl SqliteEngine {
    /// Takes the file for this process alone, creates it where it does not exist, and starts the clock.
    pub async fn open(options: SqliteOptions) -> Result<Self, EngineError> {
        // Absolute, so that no name (`:memory:`, `file:…`) is anything but a file's.
        let path = path::absolute(&options.path).map_err(|error| unusable(&options.path, &error))?;
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory).map_err(|error| unusable(directory, &error))?;
        }
        let lock = lock(&path)?;
        let connect = SqliteConnectOptions::new()
            .filename(&path)
            .create_if_missing(true)
            .busy_timeout(options.busy_timeout)
            .statement_cache_capacity(STATEMENTS)
            .thread_name(|n| format!("sqlite-{n}"))
            .disable_statement_logging(); // it would log SQL text

        let comments = Comments::new(options.callers_with_text, options.configured_callers);
        let caller = Caller::broker("connect");
        let mut connection = connect.connect().await.map_err(|error| classify(&error, Step::Connect))?;
        link::prepare(&mut connection, &comments, &caller, LaneRole::Write).await?;
        let last = link::last_instant(&mut connection, &comments, &caller).await?;
        let clock = Clock::starting_after(last);

        // A pragma takes no bound values; this one is a number from our own options.
        let patience = format!("pragma busy_timeout = {}", options.busy_timeout.as_millis());
        let connections = Arc::default();
        Ok(Self { shared: Arc::new(Shared { path, connect, comments, clock, connections, patience, _lock: lock }) })
    }
}

fn unusable(path: &Path, error: &io::Error) -> EngineError {
    EngineError::Unavailable(format!("{} cannot be used: {error}", path.display()))
}

/// Keeps a second process off the file. SQLite itself would let it in, and its clock would not be ours.
fn lock(path: &Path) -> Result<File, EngineError> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let file = File::options().create(true).truncate(false).write(true).open(&name);
    let file = file.map_err(|error| unusable(path, &error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(EngineError::Unfit(format!(
            "{} is in use by another process: an embedded database serves one broker; stop the other one, give this one a \
             data directory of its own, or use PostgreSQL for several",
            path.display()
        ))),
        Err(TryLockError::Error(error)) => Err(unusable(path, &error)),
    }
}

#[async_trait]
impl Engine for SqliteEngine {
    fn system(&self) -> &'static str {
        "sqlite"
    }

    fn is_shared(&self) -> bool {
        false
    }

    fn lanes(&self, _connections: usize) -> Vec<LaneRole> {
        vec![LaneRole::Write, LaneRole::Read, LaneRole::Read]
    }

    fn migrations(&self) -> &'static [Migration] {
        &link::MIGRATIONS
    }

    async fn connect(&self, role: LaneRole) -> Result<Box<dyn Session>, EngineError> {
        let connected = self.shared.connect.connect().await;
        let mut connection = connected.map_err(|error| classify(&error, Step::Connect))?;
        link::prepare(&mut connection, &self.shared.comments, &Caller::broker("connect"), role).await?;
        Ok(Box::new(SqliteSession::new(connection, Arc::clone(&self.shared), role)))
    }

    async fn listen(&self, _replica: ReplicaId) -> Result<Option<Box<dyn Listener>>, EngineError> {
        Ok(None) // there is no other replica
    }
}
