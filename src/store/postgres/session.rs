//! One connection: how it is opened and how a statement runs on it.

use std::sync::{Arc, atomic::Ordering};

use sqlx::{
    Arguments, AssertSqlSafe, ConnectOptions, Encode, Executor, PgConnection, Postgres, Type,
    postgres::{PgArguments, PgConnectOptions, PgRow},
};

use super::{
    PostgresEngine, error,
    name::SchemaName,
    notices::{casts_doubt, watched},
    pooler,
    value::get,
};
use crate::{
    model::Caller,
    store::{
        comment::Comments,
        error::EngineError,
        socket::{OwnSocket, Sign, watched_socket},
    },
};

const CHECK: &str = include_str!("sql/check.sql");
const PING: &str = include_str!("sql/ping.sql");

/// Oldest version whose planner and statistics functions the statements were tried on.
pub(super) const OLDEST_VERSION: i32 = 140_000;

/// A session on a connection of its own.
pub(super) struct PgSession {
    connection: PgConnection,
    pub(super) comments: Arc<Comments>,
    pub(super) schema: SchemaName,
    socket: Option<OwnSocket>,
    /// Claims commit without waiting for the disk.
    pub(super) unflushed_claims: bool,
    /// The server's messages are not in English.
    translated: bool,
}

impl PgSession {
    /// Connects, and refuses a database that cannot carry the promises.
    pub(super) async fn open(engine: &PostgresEngine) -> Result<Self, EngineError> {
        let mut session = Self::unchecked(engine, &engine.options).await?;
        session.check(engine).await.map_err(error::before_commit)?;
        Ok(session)
    }

    /// Connects as `options` say, whatever the database is like.
    pub(super) async fn unchecked(engine: &PostgresEngine, options: &PgConnectOptions) -> Result<Self, EngineError> {
        let connection = options.connect().await.map_err(|error| error::of_connect(&error))?;
        let (comments, schema) = (engine.comments.clone(), engine.schema.clone());
        Ok(Self {
            connection,
            comments,
            schema,
            socket: None,
            unflushed_claims: engine.unflushed_claims,
            translated: false,
        })
    }

    async fn check(&mut self, engine: &PostgresEngine) -> Result<(), EngineError> {
        let caller = Caller::broker("lane");
        let row = self.row(&caller, CHECK, Args::new()).await.map_err(pooler::first_statement)?;
        let is = |column: &str| get::<bool>(&row, "check", column);

        if get::<i32>(&row, "check", "version")? < OLDEST_VERSION {
            return Err(EngineError::Unfit("the server is older than PostgreSQL 14: upgrade it".into()));
        }
        if is("in_recovery")? || is("read_only")? {
            return Err(EngineError::Unavailable("the database is read-only".into()));
        }
        for setting in ["fsync", "full_page_writes", "synchronous_commit"] {
            if !is(setting)? && !engine.allow_lossy {
                return Err(EngineError::Unfit(format!(
                    "the server has {setting} off and may lose what it committed: switch it on, or allow lossy settings"
                )));
            }
        }
        engine.pooled.store(pooler::check(&row)?, Ordering::Relaxed);
        if !is("settings_taken")? {
            // Setting them here would change a pooled connection for everybody who gets it next.
            return Err(EngineError::Unfit(
                "the server did not take this session's planner settings: connect past the pooler that drops them, or \
                 set them for the role (docs/roles.sql has the statements)"
                    .into(),
            ));
        }

        let language: String = get(&row, "check", "lc_messages")?;
        self.translated =
            !(language.is_empty() || ["C", "POSIX", "en"].iter().any(|english| language.starts_with(english)));
        let host: Option<String> = get(&row, "check", "client_host")?;
        let port: Option<i32> = get(&row, "check", "client_port")?;
        self.socket = watched_socket(host, port, engine.options.get_port()).await;
        Ok(())
    }

    /// Runs an act's one statement to its end and answers with its rows.
    pub(super) async fn rows(
        &mut self,
        caller: &Caller,
        statement: &'static str,
        arguments: Args,
    ) -> Result<Vec<PgRow>, EngineError> {
        let arguments = arguments.0?;
        self.see_that_it_lives(caller).await?;
        let text = self.comments.text(caller, statement);
        // All rows, up to the server's last word: an answer that is left half read hides the error of its commit.
        let query = sqlx::query_with(AssertSqlSafe(text), arguments);
        let (answer, warnings) = watched(self.connection.fetch_all(query)).await;
        let rows = answer.map_err(|error| error::of_statement(&error))?;
        self.heed(&warnings)?;
        Ok(rows)
    }

    /// The same for a statement whose answer is one row.
    pub(super) async fn row(
        &mut self,
        caller: &Caller,
        statement: &'static str,
        arguments: Args,
    ) -> Result<PgRow, EngineError> {
        let mut rows = self.rows(caller, statement, arguments).await?;
        match (rows.pop(), rows.is_empty()) {
            (Some(row), true) => Ok(row),
            _ => Err(EngineError::Bug("not one row".into())),
        }
    }

    /// Runs a text without arguments, which may be several statements.
    pub(super) async fn run_text(&mut self, caller: &Caller, text: &str) -> Result<(), EngineError> {
        let text = self.comments.once(caller, text);
        let (answer, warnings) = watched(self.connection.execute(sqlx::raw_sql(AssertSqlSafe(text)))).await;
        answer.map_err(|error| error::of_statement(&error))?;
        self.heed(&warnings)
    }

    fn heed(&self, warnings: &[String]) -> Result<(), EngineError> {
        if warnings.iter().any(|warning| casts_doubt(warning, self.translated)) {
            return Err(EngineError::Unknown("the wait for a synchronous standby was cancelled".into()));
        }
        Ok(())
    }

    /// Tells a connection that the server has closed from one that breaks under the statement: after the first, nothing was
    /// sent.
    async fn see_that_it_lives(&mut self, caller: &Caller) -> Result<(), EngineError> {
        match self.socket.as_ref().map(OwnSocket::sign) {
            None | Some(Sign::Quiet) => Ok(()),
            Some(Sign::Closed) => Err(EngineError::NotSent("the server had closed the connection".into())),
            Some(Sign::Unasked) => {
                let text = self.comments.text(caller, PING);
                match self.connection.fetch_all(sqlx::query(AssertSqlSafe(text))).await {
                    Ok(_) => Ok(()),
                    Err(_) => Err(EngineError::NotSent("the server was closing the connection".into())),
                }
            }
        }
    }
}

impl std::fmt::Debug for PgSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PgSession").field("socket", &self.socket).finish_non_exhaustive()
    }
}

/// Arguments of a statement, in order.
pub(super) struct Args(Result<PgArguments, EngineError>);

impl Args {
    pub(super) fn new() -> Self {
        Self(Ok(PgArguments::default()))
    }

    pub(super) fn with<'q, T>(mut self, value: T) -> Self
    where
        T: Encode<'q, Postgres> + Type<Postgres>,
    {
        if let Ok(arguments) = &mut self.0
            && arguments.add(value).is_err()
        {
            self.0 = Err(EngineError::Bug("an argument cannot be encoded".into()));
        }
        self
    }
}
