//! The life of a job by bare SQL on `MariaDB`, as job tables there usually have it: a status, and an index on it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sqlx::{AssertSqlSafe, Executor, MySqlConnection, Row, mysql::MySqlDatabaseError};

use super::{Outcome, clients::PAYLOAD};

const TABLE: &str = "create table job (
    id bigint not null auto_increment primary key, status tinyint not null default 0, ready_at bigint not null,
    lease_until bigint, attempt smallint not null default 0, token binary(16), payload blob not null,
    key by_status (status, ready_at, id))";
const CLAIM: &str = "select id, payload from job where status = 0 and ready_at <= ? order by ready_at, id limit ?
    for update skip locked";

/// What a claim took.
pub(crate) struct Taken {
    ids: Vec<i64>,
    token: [u8; 16],
}

impl Taken {
    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }
}

/// A session of a producer or worker; it answers `None` where the server ended the transaction with a deadlock.
pub(crate) struct StatusTable(MySqlConnection);

impl StatusTable {
    /// Makes the table.
    pub(crate) async fn prepare(session: &mut MySqlConnection) -> Outcome<()> {
        session.execute(TABLE).await?;
        Ok(())
    }

    /// At this isolation level.
    pub(crate) async fn at(mut session: MySqlConnection, isolation: &str) -> Outcome<Self> {
        let level = format!("set session transaction isolation level {isolation}");
        session.execute(AssertSqlSafe(level)).await?;
        Ok(Self(session))
    }

    pub(crate) async fn insert(&mut self, batch: usize) -> Outcome<Option<u64>> {
        let values = vec!["(?, ?)"; batch].join(", ");
        let text = format!("insert into job (ready_at, payload) values {values}");
        let (at, mut insert) = (now()?, sqlx::query(AssertSqlSafe(text)));
        for _ in 0..batch {
            insert = insert.bind(at).bind(vec![b'x'; PAYLOAD]);
        }
        let done = self.0.execute(insert).await;
        unless_deadlock(done.map(|done| done.rows_affected()))
    }

    pub(crate) async fn claim(&mut self, batch: usize) -> Outcome<Option<Taken>> {
        let taken = self.take(batch).await;
        self.end(taken).await
    }

    pub(crate) async fn ack(&mut self, taken: &Taken) -> Outcome<Option<u64>> {
        let text = format!("delete from job where id in ({}) and token = ?", places(taken.ids.len()));
        let mut delete = sqlx::query(AssertSqlSafe(text));
        for id in &taken.ids {
            delete = delete.bind(*id);
        }
        let done = self.0.execute(delete.bind(taken.token.to_vec())).await;
        unless_deadlock(done.map(|done| done.rows_affected()))
    }

    async fn take(&mut self, batch: usize) -> sqlx::Result<Taken> {
        let at = now().map_err(|error| sqlx::Error::Protocol(error.to_string()))?;
        self.0.execute("begin").await?;
        let find = sqlx::query(CLAIM).bind(at).bind(i64::try_from(batch).unwrap_or(i64::MAX));
        let rows = self.0.fetch_all(find).await?;
        let ids = rows.iter().map(|row| row.try_get(0)).collect::<sqlx::Result<Vec<i64>>>()?;
        let token: [u8; 16] = rand::random();
        if !ids.is_empty() {
            let text = format!(
                "update job set status = 1, token = ?, lease_until = ?, attempt = attempt + 1 where id in ({})",
                places(ids.len())
            );
            let mut update = sqlx::query(AssertSqlSafe(text)).bind(token.to_vec()).bind(at + 30_000_000);
            for id in &ids {
                update = update.bind(*id);
            }
            self.0.execute(update).await?;
        }
        self.0.execute("commit").await?;
        Ok(Taken { ids, token })
    }

    async fn end<T>(&mut self, done: sqlx::Result<T>) -> Outcome<Option<T>> {
        if done.is_err() {
            self.0.execute("rollback").await?;
        }
        unless_deadlock(done)
    }
}

/// A deadlock, or a lock that was not had in time, is what is counted; all else ends the measurement.
fn unless_deadlock<T>(done: sqlx::Result<T>) -> Outcome<Option<T>> {
    match done {
        Ok(done) => Ok(Some(done)),
        Err(sqlx::Error::Database(error))
            if error
                .try_downcast_ref::<MySqlDatabaseError>()
                .is_some_and(|error| [1213, 1205].contains(&error.number())) =>
        {
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

fn places(count: usize) -> String {
    vec!["?"; count].join(", ")
}

fn now() -> Outcome<i64> {
    let since: Duration = SystemTime::now().duration_since(UNIX_EPOCH)?;
    Ok(i64::try_from(since.as_micros())?)
}
