//! PostgreSQL 14 and later.
//!
//! Acts of one step are plain statements, acts of several are functions of the schema: either way one statement that commits
//! by itself, so that no transaction can be left open, whatever becomes of the future that waits for it.

mod attend;
mod budgets;
mod claim;
mod enqueue;
mod error;
mod examine;
mod inspect;
mod link;
mod listener;
mod maintain;
mod migration;
mod name;
pub mod notices;
mod observe;
mod pooler;
mod purge;
mod queues;
mod record;
mod reserve;
mod session;
mod settle;
mod steer;
mod stock;
mod value;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use secrecy::{ExposeSecret, SecretString};
use sqlx::{ConnectOptions, postgres::PgConnectOptions};

use self::{listener::Ear, migration::MIGRATIONS, name::SchemaName, session::PgSession};
use super::{
    comment::Comments,
    engine::{Engine, LaneRole, Listener, Migration, Session},
    error::EngineError,
};
use crate::model::{Caller, ReplicaId};

/// Prepared statements that a connection keeps: some fifteen acts of the dozen callers that are busy at once. Past that the
/// one used longest ago makes room, so that the server's memory for them is bounded too.
const STATEMENTS: usize = 200;

/// How to reach the database and what to ask of it.
#[derive(Debug, Clone)]
pub struct PostgresOptions {
    /// `postgres://…`
    pub url: SecretString,
    /// Schema of the tables and functions: an identifier that needs no quotes, 40 bytes at most.
    pub schema: String,
    /// As `pg_stat_activity` shows it.
    pub application_name: String,
    /// The server ends a statement that takes longer.
    pub statement_timeout: Duration,
    /// The server ends a wait for a lock that takes longer.
    pub lock_timeout: Duration,
    /// Use the database though its settings may lose what was committed.
    pub allow_lossy: bool,
    /// Claims commit without waiting for the disk: a crash of the server may undo them, and nothing that was settled.
    pub unflushed_claims: bool,
    /// Callers that have statement texts of their own at most.
    pub callers_with_text: usize,
    /// Callers that always have.
    pub configured_callers: Vec<Caller>,
}

impl PostgresOptions {
    /// The defaults for `url`.
    pub fn new(url: SecretString) -> Self {
        Self {
            url,
            schema: "leasehold".into(),
            application_name: "leasehold".into(),
            statement_timeout: Duration::from_secs(10),
            lock_timeout: Duration::from_secs(2),
            allow_lossy: false,
            unflushed_claims: false,
            callers_with_text: 64,
            configured_callers: Vec::new(),
        }
    }
}

/// A PostgreSQL database.
#[derive(Debug)]
pub struct PostgresEngine {
    options: PgConnectOptions,
    /// The same without what a session asks for at its start.
    bare: PgConnectOptions,
    schema: SchemaName,
    allow_lossy: bool,
    unflushed_claims: bool,
    comments: Arc<Comments>,
    /// The session opened last has a pooler in front that does not keep sessions.
    pooled: AtomicBool,
}

impl PostgresEngine {
    /// Reads the URL; connects to nothing.
    pub fn new(options: PostgresOptions) -> Result<Self, EngineError> {
        let connect: PgConnectOptions = options
            .url
            .expose_secret()
            .parse()
            .map_err(|_| EngineError::Unfit("the database URL is malformed".into()))?;
        let connect = connect
            .application_name(&options.application_name)
            .statement_cache_capacity(STATEMENTS)
            .disable_statement_logging();
        let bare = connect.clone();
        let connect = connect.options(settings(&options));
        let schema = SchemaName::new(options.schema);
        let comments = Comments::new(options.callers_with_text, options.configured_callers);
        let comments = comments.renaming(name::WRITTEN, schema.as_str());
        Ok(Self {
            options: connect,
            bare,
            schema,
            allow_lossy: options.allow_lossy,
            unflushed_claims: options.unflushed_claims,
            comments: Arc::new(comments),
            pooled: AtomicBool::new(false),
        })
    }
}

/// Every statement must go by its index whatever the statistics say, and find the same plan each time: generic plans, and
/// none of the joins that read whole tables. What a vanished broker holds must go by itself.
fn settings(options: &PostgresOptions) -> [(&'static str, String); 15] {
    let milliseconds = |duration: Duration| format!("{}ms", duration.as_millis());
    [
        ("plan_cache_mode", "force_generic_plan".to_owned()),
        ("enable_seqscan", "off".to_owned()),
        ("enable_hashjoin", "off".to_owned()),
        ("enable_mergejoin", "off".to_owned()),
        ("jit", "off".to_owned()),
        ("default_transaction_isolation", "read committed".to_owned()),
        ("statement_timeout", milliseconds(options.statement_timeout)),
        ("lock_timeout", milliseconds(options.lock_timeout)),
        ("idle_in_transaction_session_timeout", "15s".to_owned()),
        ("client_connection_check_interval", "5s".to_owned()),
        ("tcp_user_timeout", "10s".to_owned()),
        ("tcp_keepalives_idle", "10".to_owned()),
        ("TimeZone", "UTC".to_owned()),
        ("search_path", format!("pg_catalog, {}", options.schema)),
        // No server knows this one: a session without it has a pooler in front.
        ("leasehold_broker.session", "direct".to_owned()),
    ]
}

#[async_trait]
impl Engine for PostgresEngine {
    fn system(&self) -> &'static str {
        "postgresql"
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
        let session = PgSession::open(self).await?;
        Ok(Box::new(session))
    }

    async fn listen(&self, replica: ReplicaId) -> Result<Option<Box<dyn Listener>>, EngineError> {
        if self.pooled.load(Ordering::Relaxed) {
            tracing::info!(
                "a pooler in between keeps no sessions: nothing is listened for, polling finds what others do"
            );
            return Ok(None);
        }
        let ear = Ear::open(self, replica).await?;
        Ok(Some(Box::new(ear)))
    }
}
