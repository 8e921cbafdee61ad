//! Bare SQL on MariaDB.

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use measure::{Handled, How, Outcome, Peer};
use sqlx::{
    AssertSqlSafe, Connection as _, Executor, MySql, MySqlConnection, MySqlPool,
    mysql::{MySqlConnectOptions, MySqlPoolOptions},
    pool::PoolConnection,
};

use crate::Size;

const CLAIM: &str = "select id, payload from job where status = 0 and ready_at <= ? order by ready_at, id limit ?
    for update skip locked";
const LEASE: Duration = Duration::from_secs(30);

#[derive(Clone)]
pub struct Bare {
    pool: MySqlPool,
    claimers: u32,
    batch: i64,
}

impl Bare {
    pub async fn connect(url: &str, act: &str, size: Size) -> Outcome<Self> {
        let (all, claimers) = match act {
            "enqueue-one" => (64, 0),
            "life" => (size.connections, size.connections.div_ceil(2)),
            _ => (size.connections, size.connections),
        };
        let options: MySqlConnectOptions = url.parse()?;
        let pool = MySqlPoolOptions::new().test_before_acquire(false).max_connections(all);
        let pool = pool.after_connect(|session, _| {
            Box::pin(async move {
                session.execute("set session transaction isolation level read committed").await?;
                Ok(())
            })
        });
        Ok(Self { pool: pool.connect_with(options).await?, claimers, batch: size.batch })
    }

    pub async fn setup(&self) -> Outcome<()> {
        sqlx::raw_sql(include_str!("../schema/mysql.sql")).execute(&self.pool).await?;
        Ok(())
    }
}

impl Peer for Bare {
    fn batch(&self) -> usize {
        usize::try_from(self.batch).unwrap_or(1)
    }

    async fn one(&self, job: Vec<u8>) -> Outcome<()> {
        self.many(vec![job]).await
    }

    async fn many(&self, jobs: Vec<Vec<u8>>) -> Outcome<()> {
        let values = vec!["(?, ?)"; jobs.len()].join(", ");
        let text = format!("insert into job (ready_at, payload) values {values}");
        let (at, mut insert) = (now()?, sqlx::query(AssertSqlSafe(text)));
        for job in jobs {
            insert = insert.bind(at).bind(job);
        }
        insert.execute(&self.pool).await?;
        Ok(())
    }

    async fn work(&self, how: How, handled: Arc<Handled>) -> Outcome<()> {
        let batch = if how == How::Tuned { self.batch } else { 1 };
        let mut running = tokio::task::JoinSet::new();
        for _ in 0..self.claimers {
            let (connection, handled) = (self.pool.acquire().await?, Arc::clone(&handled));
            running.spawn(async move { claim_and_delete(connection, batch, &handled).await });
        }
        while let Some(ended) = running.join_next().await {
            ended??;
        }
        Ok(())
    }
}

async fn claim_and_delete(mut connection: PoolConnection<MySql>, batch: i64, handled: &Handled) -> Outcome<()> {
    while !handled.is_done() {
        let token: [u8; 16] = rand::random();
        let jobs = loop {
            match claim(&mut connection, batch, token).await {
                Err(error) if is_deadlock(&*error) => {}
                ended => break ended?,
            }
        };
        if !jobs.is_empty() {
            while let Err(error) = delete(&mut connection, &jobs, token).await {
                if !is_deadlock(&*error) {
                    return Err(error);
                }
            }
            handled.handle(jobs.iter().map(|(_, payload)| payload.as_slice()));
        }
    }
    Ok(())
}

async fn claim(connection: &mut MySqlConnection, batch: i64, token: [u8; 16]) -> Outcome<Vec<(i64, Vec<u8>)>> {
    let at = now()?;
    let mut transaction = connection.begin().await?;
    let jobs: Vec<(i64, Vec<u8>)> = sqlx::query_as(CLAIM).bind(at).bind(batch).fetch_all(&mut *transaction).await?;
    if !jobs.is_empty() {
        let text = format!(
            "update job set status = 1, token = ?, lease_until = ?, attempt = attempt + 1 where id in ({})",
            places(jobs.len())
        );
        let until = at + i64::try_from(LEASE.as_micros())?;
        let mut update = sqlx::query(AssertSqlSafe(text)).bind(token.to_vec()).bind(until);
        for (id, _) in &jobs {
            update = update.bind(*id);
        }
        update.execute(&mut *transaction).await?;
    }
    transaction.commit().await?;
    Ok(jobs)
}

async fn delete(connection: &mut MySqlConnection, jobs: &[(i64, Vec<u8>)], token: [u8; 16]) -> Outcome<()> {
    let text = format!("delete from job where id in ({}) and token = ?", places(jobs.len()));
    let mut delete = sqlx::query(AssertSqlSafe(text));
    for (id, _) in jobs {
        delete = delete.bind(*id);
    }
    delete.bind(token.to_vec()).execute(connection).await?;
    Ok(())
}

/// Whether the server ended the transaction because others waited for it as it for them. A table with an index on its status meets
/// that now and then; whoever works on one tries again.
fn is_deadlock(error: &(dyn std::error::Error + Send + Sync + 'static)) -> bool {
    let database = error.downcast_ref::<sqlx::Error>().and_then(sqlx::Error::as_database_error);
    database.is_some_and(|error| error.code().as_deref() == Some("40001"))
}

fn places(count: usize) -> String {
    vec!["?"; count].join(", ")
}

fn now() -> Outcome<i64> {
    Ok(i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_micros())?)
}
