//! One connection: how it is opened, how statements are sent, and how transactions begin and end.

use std::{collections::HashSet, sync::Arc, time::Duration};

use futures_util::TryStreamExt as _;
use sqlx::{
    AssertSqlSafe, ConnectOptions as _, Either, Executor as _, MySql, MySqlConnection,
    mysql::{MySqlArguments, MySqlRow},
    query::Query,
};

use super::{
    STATEMENTS, Shared,
    error::{Step, classify},
    fitness::{self, Fitness, Found},
    observe::Seat,
    value::{column, moment},
};
use crate::{
    model::{Caller, Timestamp},
    store::{engine::LockWait, error::EngineError, socket::OwnSocket},
};

const NOW: &str = include_str!("sql/now.sql");

/// More texts than any one act sends.
const OF_ONE_ACT: usize = 64;

/// The shortest wait for a lock that all servers know.
const SHORT_WAIT: Duration = Duration::from_secs(1);

/// A session on a connection of its own.
pub(super) struct MysqlSession {
    connection: MySqlConnection,
    pub(super) shared: Arc<Shared>,
    pub(super) fitness: Fitness,
    /// Held for its options: keepalives, and no delay between packets.
    _socket: Option<OwnSocket>,
    _seat: Option<Seat>,
    /// Set before BEGIN is sent and cleared after COMMIT or ROLLBACK has answered.
    open: bool,
    /// Nothing where it is not known what the server took over.
    lock_wait: Option<LockWait>,
    /// Texts that this connection has prepared.
    prepared: HashSet<Arc<str>>,
}

/// What a statement answered.
pub(super) struct Answer {
    pub(super) rows: Vec<MySqlRow>,
    /// How many rows it found to change.
    pub(super) changed: u64,
}

/// A statement with its caller's comment, to which values are bound.
pub(super) type Statement = Query<'static, MySql, MySqlArguments>;

impl MysqlSession {
    /// Connects, makes the session what the statements need whatever the server's settings, and refuses a database that
    /// cannot carry the promises.
    pub(super) async fn open(shared: &Arc<Shared>) -> Result<Self, EngineError> {
        let (mut session, found) = Self::unchecked(shared).await?;
        session.fitness = found.check(shared.allow_lossy)?;
        Ok(session)
    }

    /// The same for a look at whatever answers.
    pub(super) async fn unchecked(shared: &Arc<Shared>) -> Result<(Self, Found), EngineError> {
        let caller = Caller::broker("lane");
        let connected = shared.connect.connect().await;
        let mut connection = connected.map_err(|error| classify(&error, Step::Connect))?;
        let found = fitness::establish(&mut connection, shared, &caller).await?;
        let (socket, seat) = fitness::own_end(&mut connection, shared, &caller).await?;
        let session = Self {
            connection,
            shared: Arc::clone(shared),
            fitness: Fitness::unknown(found.family()),
            _socket: socket,
            _seat: seat,
            open: false,
            lock_wait: Some(LockWait::Full),
            prepared: HashSet::new(),
        };
        Ok((session, found))
    }

    /// `sql` for `caller`, ready for values.
    pub(super) fn statement(&mut self, caller: &Caller, sql: &'static str) -> Statement {
        let text = self.shared.comments.text(caller, sql);
        if !self.prepared.contains(&text) {
            self.prepared.insert(Arc::clone(&text));
        }
        sqlx::query(AssertSqlSafe(text))
    }

    /// The answer to a statement of an open transaction.
    pub(super) async fn read(&mut self, statement: Statement) -> Result<Vec<MySqlRow>, EngineError> {
        statement.fetch_all(&mut self.connection).await.map_err(|error| classify(&error, Step::Statement))
    }

    /// How many rows a statement of an open transaction found to change.
    pub(super) async fn change(&mut self, statement: Statement) -> Result<u64, EngineError> {
        let done = statement.execute(&mut self.connection).await;
        done.map(|done| done.rows_affected()).map_err(|error| classify(&error, Step::Statement))
    }

    /// The same of one that is an act by itself.
    pub(super) async fn change_alone(&mut self, statement: Statement, caller: &Caller) -> Result<u64, EngineError> {
        self.make_room(caller).await?;
        let done = statement.execute(&mut self.connection).await;
        done.map(|done| done.rows_affected()).map_err(|error| classify(&error, Step::Commit))
    }

    /// Runs texts without values that change rows in an open transaction, one trip for all; how many rows all of them changed.
    pub(super) async fn change_all(&mut self, caller: &Caller, texts: &[&str]) -> Result<u64, EngineError> {
        let tagged: Vec<Arc<str>> = texts.iter().map(|text| self.shared.comments.once(caller, text)).collect();
        let done = self.connection.execute(sqlx::raw_sql(AssertSqlSafe(tagged.join("; ")))).await;
        done.map(|done| done.rows_affected()).map_err(|error| classify(&error, Step::Statement))
    }

    /// Runs texts without values in an open transaction, one trip for all; what each of them answered.
    pub(super) async fn answers<const N: usize>(
        &mut self,
        caller: &Caller,
        texts: [&str; N],
    ) -> Result<[Answer; N], EngineError> {
        let answers = self.send(caller, &texts).await.map_err(|error| classify(&error, Step::Statement))?;
        all_of(answers)
    }

    /// Runs texts without values, one trip for all; what each of them answered.
    async fn send(&mut self, caller: &Caller, texts: &[&str]) -> sqlx::Result<Vec<Answer>> {
        let tagged: Vec<Arc<str>> = texts.iter().map(|text| self.shared.comments.once(caller, text)).collect();
        let mut parts = self.connection.fetch_many(sqlx::raw_sql(AssertSqlSafe(tagged.join("; "))));
        let (mut answers, mut rows) = (Vec::with_capacity(texts.len()), Vec::new());
        while let Some(part) = parts.try_next().await? {
            match part {
                Either::Left(done) => {
                    answers.push(Answer { rows: std::mem::take(&mut rows), changed: done.rows_affected() });
                }
                Either::Right(row) => rows.push(row),
            }
        }
        Ok(answers)
    }

    /// Inserts rows of a table that numbers them; the number of the first.
    pub(super) async fn insert(&mut self, statement: Statement) -> Result<i64, EngineError> {
        let done = statement.execute(&mut self.connection).await;
        let done = done.map_err(|error| classify(&error, Step::Statement))?;
        i64::try_from(done.last_insert_id()).map_err(|_| EngineError::Bug("no more ids".into()))
    }

    /// Inserts a row of a table that numbers them, or changes the one that is there: how many rows that touched (one where
    /// it is new) and the number of a new one.
    pub(super) async fn upsert(&mut self, statement: Statement) -> Result<(u64, i64), EngineError> {
        let done = statement.execute(&mut self.connection).await;
        let done = done.map_err(|error| classify(&error, Step::Statement))?;
        let id = i64::try_from(done.last_insert_id()).map_err(|_| EngineError::Bug("no more ids".into()))?;
        Ok((done.rows_affected(), id))
    }

    /// The answer to a statement that reads and is an act by itself.
    pub(super) async fn read_alone(
        &mut self,
        statement: Statement,
        caller: &Caller,
    ) -> Result<Vec<MySqlRow>, EngineError> {
        self.make_room(caller).await?;
        statement.fetch_all(&mut self.connection).await.map_err(|error| classify(&error, Step::First))
    }

    /// The same of a text without values.
    pub(super) async fn run_alone(&mut self, caller: &Caller, text: &str) -> Result<Vec<MySqlRow>, EngineError> {
        self.make_room(caller).await?;
        self.run(caller, &[text], Step::First).await
    }

    /// What time it is.
    pub(super) async fn now(&mut self, caller: &Caller) -> Result<Timestamp, EngineError> {
        let rows = self.run(caller, &[NOW], Step::First).await?;
        moment(&only(rows)?, "now")
    }

    /// Runs texts without values, one trip for all; the rows of all of them.
    pub(super) async fn run(
        &mut self,
        caller: &Caller,
        texts: &[&str],
        step: Step,
    ) -> Result<Vec<MySqlRow>, EngineError> {
        let tagged: Vec<Arc<str>> = texts.iter().map(|text| self.shared.comments.once(caller, text)).collect();
        let text = tagged.join("; ");
        let rows = self.connection.fetch_all(sqlx::raw_sql(AssertSqlSafe(text))).await;
        rows.map_err(|error| classify(&error, step))
    }

    /// Begins a transaction and says what time it is.
    pub(super) async fn begin(&mut self, caller: &Caller) -> Result<Timestamp, EngineError> {
        self.begin_with(caller, LockWait::Full).await
    }

    /// The same, with statements that wait for locks as long as `wait` says.
    pub(super) async fn begin_with(&mut self, caller: &Caller, wait: LockWait) -> Result<Timestamp, EngineError> {
        self.begin_as(caller, wait, &[], &[]).await.map(|(now, _)| now)
    }

    /// The same with the transaction's first statements, texts without values, in the same trip; what each of them answered.
    pub(super) async fn begin_with_first<const N: usize>(
        &mut self,
        caller: &Caller,
        wait: LockWait,
        first: [&str; N],
    ) -> Result<(Timestamp, [Answer; N]), EngineError> {
        let (now, answers) = self.begin_as(caller, wait, &[], &first).await?;
        match all_of(answers) {
            Ok(answers) => Ok((now, answers)),
            Err(error) => Err(self.undo(caller, error).await),
        }
    }

    /// The same with plain reads that see what transactions have written which are still open.
    pub(super) async fn begin_dirty(&mut self, caller: &Caller) -> Result<Timestamp, EngineError> {
        let dirty = "set transaction isolation level read uncommitted";
        self.begin_as(caller, LockWait::Full, &[dirty], &[]).await.map(|(now, _)| now)
    }

    async fn begin_as(
        &mut self,
        caller: &Caller,
        wait: LockWait,
        before: &[&str],
        first: &[&str],
    ) -> Result<(Timestamp, Vec<Answer>), EngineError> {
        self.make_room(caller).await?;
        let seconds = match wait {
            LockWait::Short => SHORT_WAIT.min(self.shared.lock_timeout),
            LockWait::Full => self.shared.lock_timeout,
        };
        let set_wait = format!("set innodb_lock_wait_timeout = {}", whole_seconds(seconds));
        let mut texts = before.to_vec();
        if self.lock_wait != Some(wait) {
            texts.push(&set_wait);
            self.lock_wait = None;
        }
        texts.extend(["begin", NOW]);
        let time = texts.len() - 1;
        texts.extend(first);
        self.open = true;
        let mut answers = match self.send(caller, &texts).await {
            Ok(answers) => answers,
            Err(error) => return Err(self.undo(caller, classify(&error, Step::First)).await),
        };
        self.lock_wait = Some(wait);
        let first = answers.split_off(answers.len().min(time + 1));
        let rows = answers.pop().map(|answer| answer.rows).unwrap_or_default();
        Ok((moment(&only(rows)?, "now")?, first))
    }

    /// Ends the transaction as `result` asks: COMMIT or ROLLBACK. No session is left inside one.
    pub(super) async fn end<T>(&mut self, caller: &Caller, result: Result<T, EngineError>) -> Result<T, EngineError> {
        let answer = match result {
            Ok(answer) => answer,
            Err(error) => return Err(self.undo(caller, error).await),
        };
        match self.run(caller, &["commit"], Step::Commit).await {
            Ok(_) => {
                self.open = false;
                Ok(answer)
            }
            Err(error) => Err(self.undo(caller, error).await),
        }
    }

    /// Rolls back after `error` and returns it, or a graver one where the connection can no longer be trusted.
    async fn undo(&mut self, caller: &Caller, error: EngineError) -> EngineError {
        if error.poisons_connection() {
            return error; // the lane drops the connection, and the server its transaction with it
        }
        match self.roll_back(caller).await {
            Ok(()) => error,
            Err(_) => EngineError::Unavailable(format!("{error}; then the rollback failed")),
        }
    }

    /// Ends the transaction with nothing done.
    pub(super) async fn roll_back(&mut self, caller: &Caller) -> Result<(), EngineError> {
        self.run(caller, &["rollback"], Step::Statement).await?;
        self.open = false;
        Ok(())
    }

    /// Before an act: ends what a dropped future left open, and gives way to a new connection where this one may run out of
    /// room for prepared statements. To close one costs more than to begin anew, since the server answers nothing to that.
    async fn make_room(&mut self, caller: &Caller) -> Result<(), EngineError> {
        if self.open {
            self.roll_back(caller).await?;
        }
        if self.prepared.len() + OF_ONE_ACT > STATEMENTS {
            let shared = Arc::clone(&self.shared);
            let fresh = Self::open(&shared).await.map_err(|error| match error {
                EngineError::Unavailable(why) => EngineError::NotSent(why),
                other => other,
            })?;
            *self = fresh;
        }
        Ok(())
    }
}

/// The answers to `N` texts.
fn all_of<const N: usize>(answers: Vec<Answer>) -> Result<[Answer; N], EngineError> {
    <[Answer; N]>::try_from(answers)
        .map_err(|some| EngineError::Bug(format!("{} answers to {N} statements", some.len())))
}

/// Whole seconds, at least one: what the server understands.
pub(super) fn whole_seconds(duration: Duration) -> u64 {
    duration.as_millis().div_ceil(1_000).try_into().unwrap_or(u64::MAX).max(1)
}

/// The one row of an answer.
pub(super) fn only(rows: Vec<MySqlRow>) -> Result<MySqlRow, EngineError> {
    let rows: [MySqlRow; 1] = rows.try_into().map_err(|_| EngineError::Bug("not one row".into()))?;
    let [row] = rows;
    Ok(row)
}

/// Whether a column of the one row is 1.
pub(super) fn is_one(rows: Vec<MySqlRow>, name: &str) -> Result<bool, EngineError> {
    Ok(column::<Option<i64>>(&only(rows)?, name)? == Some(1))
}
