//! MySQL 8.0.11 and later, MariaDB 10.6 and later.
//!
//! Acts are transactions of several statements at READ COMMITTED, which the session checks. A claim moves rows from `ready`
//! to `lease` and locks nothing else; everything else locks its jobs first, and passes over those that others hold. Rows
//! are found by lists in `json_table`, joined straight to a primary key, since any other form becomes a walk over the whole
//! table where that is small, with locks on all of it.
//!
//! There is no listener: replicas find each other's jobs by polling alone, within a second.

mod adjust;
mod adopt;
mod attend;
mod books;
mod budgets;
mod claim;
mod dead;
mod enqueue;
mod entry;
mod error;
mod examine;
mod expire;
mod fate;
mod fitness;
mod held;
mod inspect;
mod keys;
mod link;
mod literal;
mod look;
mod maintain;
mod migration;
mod observe;
mod overdue;
mod purge;
mod queues;
mod record;
mod repeated;
mod reservation;
mod reserve;
mod session;
mod settle;
mod steer;
mod stock;
mod supply;
mod units;
mod value;
mod waiting;
mod walk;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use async_trait::async_trait;
use secrecy::{ExposeSecret, SecretString};
use sqlx::{ConnectOptions as _, mysql::MySqlConnectOptions};

use self::{fitness::Family, migration::MIGRATIONS, observe::Connections, session::MysqlSession};
use super::{
    comment::Comments,
    engine::{Engine, LaneRole, Listener, Migration, Session},
    error::EngineError,
};
use crate::model::{Caller, ReplicaId};

/// Prepared statements of a connection: some thirty for each caller that is busy on it. The server's bound on those of all
/// its sessions together is 16,382 as a rule.
const STATEMENTS: usize = 512;

/// What the names of all tables and procedures in the statements begin with.
const PREFIX: &str = "leasehold_";

/// How to reach the database and what to ask of it.
#[derive(Debug, Clone)]
pub struct MysqlOptions {
    /// `mysql://…` or `mariadb://…`, with the name of a database.
    pub url: SecretString,
    /// What the names of tables and procedures begin with: lower-case letters, digits and underscores.
    pub table_prefix: String,
    /// The server ends a statement that takes longer; MySQL those that only read.
    pub statement_timeout: Duration,
    /// The server ends a wait for a lock that takes longer, in whole seconds.
    pub lock_timeout: Duration,
    /// Use the database though its settings may lose what was committed.
    pub allow_lossy: bool,
    /// Callers that have statement texts of their own at most.
    pub callers_with_text: usize,
    /// Callers that always have.
    pub configured_callers: Vec<Caller>,
}

impl MysqlOptions {
    /// The defaults for `url`.
    pub fn new(url: SecretString) -> Self {
        Self {
            url,
            table_prefix: PREFIX.into(),
            statement_timeout: Duration::from_secs(10),
            lock_timeout: Duration::from_secs(2),
            allow_lossy: false,
            callers_with_text: 64,
            configured_callers: Vec::new(),
        }
    }
}

/// A MySQL or MariaDB database.
pub struct MysqlEngine {
    shared: Arc<Shared>,
}

/// What all sessions of an engine share.
struct Shared {
    connect: MySqlConnectOptions,
    comments: Comments,
    statement_timeout: Duration,
    lock_timeout: Duration,
    allow_lossy: bool,
    /// Which family answered last; what the URL says until one did.
    is_mariadb: AtomicBool,
    connections: Arc<Connections>,
    prefix: String,
}

impl Shared {
    fn answered(&self, family: Family) {
        self.is_mariadb.store(family == Family::MariaDb, Relaxed);
    }
}

impl MysqlEngine {
    /// Reads the URL; connects to nothing.
    pub fn new(options: MysqlOptions) -> Result<Self, EngineError> {
        let url = options.url.expose_secret();
        let connect: MySqlConnectOptions =
            url.parse().map_err(|_| EngineError::Unfit("the database URL is malformed".into()))?;
        if connect.get_database().is_none_or(str::is_empty) {
            return Err(EngineError::Unfit("the database URL names no database".into()));
        }
        // What the driver would set at connect carries no caller. The session sets it itself.
        let connect = connect
            .pipes_as_concat(false)
            .no_engine_substitution(false)
            .timezone(None)
            .set_names(false)
            .statement_cache_capacity(STATEMENTS)
            .disable_statement_logging();
        let comments = Comments::new(options.callers_with_text, options.configured_callers);
        let comments = comments.renaming(PREFIX, &options.table_prefix);
        Ok(Self {
            shared: Arc::new(Shared {
                connect,
                comments,
                statement_timeout: options.statement_timeout,
                lock_timeout: options.lock_timeout,
                allow_lossy: options.allow_lossy,
                is_mariadb: AtomicBool::new(url.starts_with("mariadb:")),
                connections: Arc::default(),
                prefix: options.table_prefix,
            }),
        })
    }
}

#[async_trait]
impl Engine for MysqlEngine {
    fn system(&self) -> &'static str {
        if self.shared.is_mariadb.load(Relaxed) { "mariadb" } else { "mysql" }
    }

    /// Two take nothing but settling, where two are left for everything else.
    fn lanes(&self, connections: usize) -> Vec<LaneRole> {
        let settling = connections.saturating_sub(2).min(2);
        let any = std::iter::repeat_n(LaneRole::Any, connections.saturating_sub(settling));
        any.chain(std::iter::repeat_n(LaneRole::Settle, settling)).collect()
    }

    fn migrations(&self) -> &'static [Migration] {
        MIGRATIONS
    }

    async fn connect(&self, _role: LaneRole) -> Result<Box<dyn Session>, EngineError> {
        Ok(Box::new(MysqlSession::open(&self.shared).await?))
    }

    async fn listen(&self, _replica: ReplicaId) -> Result<Option<Box<dyn Listener>>, EngineError> {
        Ok(None) // the server has no such thing
    }
}
