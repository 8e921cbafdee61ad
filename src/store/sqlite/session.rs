//! One connection: how statements are sent and transactions begin and end.

use std::{
    fs,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use serde::Serialize;
use sqlx::{
    AssertSqlSafe, Executor as _, Row as _, Sqlite, SqliteConnection,
    query::Query,
    sqlite::{SqliteArguments, SqliteRow},
};

use super::{
    Shared,
    error::{Step, classify},
    observe::Seat,
};
use crate::{
    model::{Caller, LeaseId, Timestamp},
    store::{engine::LaneRole, error::EngineError},
};

/// A commit that leaves the write-ahead log longer than this makes the next one start it anew.
const LOG_BOUND: u64 = 32 << 20;
/// Where somebody reads for so long that it cannot, it is tried again after this.
const LOG_PAUSE: Duration = Duration::from_secs(1);

/// After so long without a commit the log's space is given back.
const QUIET: Duration = Duration::from_secs(5);

/// A session on one SQLite connection.
pub(super) struct SqliteSession {
    connection: SqliteConnection,
    pub(super) shared: Arc<Shared>,
    pub(super) seat: Seat,
    /// Set before BEGIN is sent and cleared after COMMIT or ROLLBACK has answered.
    open: bool,
    /// Whether the open transaction has changed a row.
    changed: bool,
    /// Whether anything was written since the log was last emptied.
    log_in_use: bool,
    written_at: Instant,
    /// The log cannot be started anew before this.
    log_held_until: Instant,
    log_path: PathBuf,
}

/// A statement with its caller's comment, to which values are bound.
pub(super) type Statement = Query<'static, Sqlite, SqliteArguments>;

impl SqliteSession {
    pub(super) fn new(connection: SqliteConnection, shared: Arc<Shared>, role: LaneRole) -> Self {
        let mut log_path = shared.path.clone().into_os_string();
        log_path.push("-wal");
        Self {
            connection,
            seat: shared.connections.seat(role),
            shared,
            open: false,
            changed: false,
            // What an earlier process left in the log counts as well. Emptying it is the writer's affair.
            log_in_use: role != LaneRole::Read,
            written_at: Instant::now(),
            log_held_until: Instant::now(),
            log_path: log_path.into(),
        }
    }

    /// `sql` for `caller`, ready for values.
    pub(super) fn statement(&self, caller: &Caller, sql: &'static str) -> Statement {
        sqlx::query(AssertSqlSafe(self.shared.comments.text(caller, sql)))
    }

    /// The answer to a statement that changes nothing.
    pub(super) async fn read(&mut self, statement: Statement) -> Result<Vec<SqliteRow>, EngineError> {
        statement.fetch_all(&mut self.connection).await.map_err(|error| classify(&error, Step::Statement))
    }

    /// How many rows a writing statement changed.
    pub(super) async fn change(&mut self, statement: Statement) -> Result<u64, EngineError> {
        let done = statement.execute(&mut self.connection).await.map_err(|error| classify(&error, Step::Statement))?;
        self.changed |= done.rows_affected() > 0;
        Ok(done.rows_affected())
    }

    /// The rows that a writing statement returns, one for each that it changed.
    pub(super) async fn change_returning(&mut self, statement: Statement) -> Result<Vec<SqliteRow>, EngineError> {
        let rows = self.read(statement).await?;
        self.changed |= !rows.is_empty();
        Ok(rows)
    }

    /// Runs a text without values, of one statement or several.
    pub(super) async fn run(&mut self, caller: &Caller, sql: &'static str, step: Step) -> Result<(), EngineError> {
        let text = self.shared.comments.text(caller, sql);
        match self.connection.execute(sqlx::raw_sql(AssertSqlSafe(text))).await {
            Ok(_) => Ok(()),
            Err(error) => Err(classify(&error, step)),
        }
    }

    /// Marks the open transaction as one that must be committed, where the driver cannot tell (a change of the schema).
    pub(super) fn has_changed(&mut self) {
        self.changed = true;
    }

    /// Begins a transaction that may write, waiting for the one writer, and says what time it is within it. The clock is
    /// read after the wait: what commits later never has the earlier time.
    pub(super) async fn begin(&mut self, caller: &Caller) -> Result<Timestamp, EngineError> {
        if self.open {
            // An act whose future was dropped half-way. Nothing of it may leak into this one.
            self.roll_back(caller).await?;
        }
        self.open = true;
        self.changed = false;
        match self.run(caller, "begin immediate", Step::Statement).await {
            Ok(()) => Ok(self.shared.clock.now()),
            Err(error) => Err(self.undo(caller, error).await),
        }
    }

    /// Ends the transaction as `result` asks: COMMIT with the clock's mark, or ROLLBACK. No session is left inside one.
    pub(super) async fn end<T>(
        &mut self,
        caller: &Caller,
        now: Timestamp,
        result: Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        let answer = match result {
            Ok(answer) => answer,
            Err(error) => return Err(self.undo(caller, error).await),
        };
        match self.commit(caller, now).await {
            Ok(()) => Ok(answer),
            Err(error) => Err(self.undo(caller, error).await),
        }
    }

    async fn commit(&mut self, caller: &Caller, now: Timestamp) -> Result<(), EngineError> {
        if !self.changed {
            // An empty pass must not cost a write to the disk every time.
            return self.roll_back(caller).await;
        }
        let mark = self.statement(caller, include_str!("sql/mark_clock.sql")).bind(now.0);
        self.change(mark).await?;
        self.run(caller, "commit", Step::Commit).await?;
        self.open = false;
        self.log_in_use = true;
        self.written_at = Instant::now();
        self.bound_log(caller).await;
        Ok(())
    }

    /// Rolls back after `error` and returns it, or a graver one where the connection can no longer be trusted.
    async fn undo(&mut self, caller: &Caller, error: EngineError) -> EngineError {
        if !self.open || matches!(error, EngineError::Unknown(_)) {
            return error; // after an unknown outcome the connection is dropped, and its transaction with it
        }
        match self.roll_back(caller).await {
            Ok(()) => error,
            // Not applied either way: the lane drops the connection, which ends the transaction.
            Err(_) => EngineError::Unavailable(format!("{error}; then the rollback failed")),
        }
    }

    /// Ends the transaction with nothing done.
    pub(super) async fn roll_back(&mut self, caller: &Caller) -> Result<(), EngineError> {
        let text = self.shared.comments.text(caller, "rollback");
        match self.connection.execute(sqlx::raw_sql(AssertSqlSafe(text))).await {
            Err(error) if !is_no_transaction(&error) => Err(classify(&error, Step::Statement)),
            _ => {
                self.open = false;
                Ok(())
            }
        }
    }

    /// Empties the write-ahead log once nothing was written for a while.
    pub(super) async fn empty_log_when_quiet(&mut self, caller: &Caller) -> Result<(), EngineError> {
        if self.written_at.elapsed() >= QUIET { self.empty_log(caller).await } else { Ok(()) }
    }

    /// Empties the write-ahead log where it was written to. Waits for nobody: a reader in it puts that off to the next time.
    pub(super) async fn empty_log(&mut self, caller: &Caller) -> Result<(), EngineError> {
        if self.log_in_use && !self.open {
            let done = self.checkpoint(caller, "pragma busy_timeout = 0", "pragma wal_checkpoint(truncate)").await?;
            self.log_in_use = !done;
        }
        Ok(())
    }

    /// Makes the next commit start the log anew where it has grown long. Under load there is always some reader, so that
    /// SQLite's own checkpoints, which wait for none, might never reach that point; ours waits as long as our readers take.
    async fn bound_log(&mut self, caller: &Caller) {
        if Instant::now() < self.log_held_until || fs::metadata(&self.log_path).is_ok_and(|log| log.len() <= LOG_BOUND)
        {
            return;
        }
        match self.checkpoint(caller, "pragma busy_timeout = 100", "pragma wal_checkpoint(restart)").await {
            Ok(true) => {}
            Ok(false) => self.log_held_until = Instant::now() + LOG_PAUSE,
            Err(error) => tracing::warn!(%error, "the write-ahead log is long and could not be started anew"),
        }
    }

    /// Copies the log into the database file with a patience of its own; says whether nobody was in the way.
    async fn checkpoint(
        &mut self,
        caller: &Caller,
        patience: &'static str,
        sql: &'static str,
    ) -> Result<bool, EngineError> {
        self.run(caller, patience, Step::Statement).await?;
        let copied = self.read(self.statement(caller, sql)).await;
        let text = self.shared.comments.once(caller, &self.shared.patience);
        let restored = self.connection.execute(sqlx::raw_sql(AssertSqlSafe(text))).await;
        restored.map_err(|error| classify(&error, Step::Statement))?;
        let copied = copied?;
        let row = copied.first().ok_or_else(|| EngineError::Bug("no answer to a checkpoint".to_owned()))?;
        Ok(column::<i64>(row, "busy")? == 0)
    }
}

/// SQLite ends some failed transactions by itself (disk full, I/O error); a rollback then finds none.
fn is_no_transaction(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(|error| error.message().starts_with("cannot rollback"))
}

/// The value of a column.
pub(super) fn column<'r, T>(row: &'r SqliteRow, name: &str) -> Result<T, EngineError>
where
    T: sqlx::Decode<'r, Sqlite> + sqlx::Type<Sqlite>,
{
    row.try_get(name).map_err(|error| classify(&error, Step::Statement))
}

/// The value of an integer column that holds a number of a narrower type.
pub(super) fn narrow<T: TryFrom<i64>>(row: &SqliteRow, name: &str) -> Result<T, EngineError> {
    T::try_from(column::<i64>(row, name)?).map_err(|_| EngineError::Bug(format!("column {name} is out of range")))
}

/// A list as one value, for `json_each`: one text of SQL and one trip, however long it is.
pub(super) fn list<T: Serialize + ?Sized>(items: &T) -> Result<String, EngineError> {
    serde_json::to_string(items).map_err(|_| EngineError::Bug("a list that is no JSON".to_owned()))
}

/// The place in a list of `length` items that a row answers, from its column `n`.
pub(super) fn place(row: &SqliteRow, length: usize) -> Result<usize, EngineError> {
    let place: usize = narrow(row, "n")?;
    if place < length { Ok(place) } else { Err(EngineError::Bug(format!("answer {place} to {length} questions"))) }
}

/// A lease's bits as they stand in a column.
pub(super) fn lease(row: &SqliteRow, name: &str) -> Result<LeaseId, EngineError> {
    let bytes: Vec<u8> = column(row, name)?;
    let bits = <[u8; 16]>::try_from(bytes).map_err(|_| EngineError::Bug(format!("column {name} is no lease")))?;
    Ok(LeaseId(u128::from_be_bytes(bits)))
}
