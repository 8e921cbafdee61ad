//! Bare SQL on SQLite.

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use measure::{Handled, How, Outcome, Peer};
use sqlx::{
    AssertSqlSafe, SqlitePool,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};

use crate::Size;

const CLAIM: &str = "update job set lease_id = ?2, lease_until = ?3 + 30000000, attempt = attempt + 1
    where id in (
        select id from job where queue_id = 1 and priority = 4 and lease_id is null and ready_at <= ?3
        order by ready_at, id limit ?1)
    returning id, payload";
/// Between two looks at an empty table while all is at once: there is one connection, and who inserts needs it.
const EMPTY: Duration = Duration::from_millis(1);

/// A database of SQLite has one writer: so there is one connection, as the broker has one that writes.
#[derive(Clone)]
pub struct Bare {
    pool: SqlitePool,
    batch: i64,
}

impl Bare {
    pub async fn connect(url: &str, size: Size) -> Outcome<Self> {
        let options: SqliteConnectOptions = url.parse()?;
        // as the broker's connections are set
        let options = options
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .pragma("wal_autocheckpoint", "1000")
            .pragma("cache_size", "-16384")
            .pragma("temp_store", "memory");
        let pool = SqlitePoolOptions::new().test_before_acquire(false).max_connections(1).connect_with(options).await?;
        Ok(Self { pool, batch: size.batch })
    }

    pub async fn setup(&self) -> Outcome<()> {
        sqlx::raw_sql(include_str!("../schema/sqlite.sql")).execute(&self.pool).await?;
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
        let text = format!("insert into job (ready_at, payload) values {values} returning id");
        let (at, mut insert) = (now()?, sqlx::query(AssertSqlSafe(text)));
        for job in jobs {
            insert = insert.bind(at).bind(job);
        }
        insert.fetch_all(&self.pool).await?;
        Ok(())
    }

    async fn work(&self, how: How, handled: Arc<Handled>) -> Outcome<()> {
        let batch = if how == How::Tuned { self.batch } else { 1 };
        while !handled.is_done() {
            let lease: [u8; 16] = rand::random();
            let claim = sqlx::query_as::<_, (i64, Vec<u8>)>(CLAIM).bind(batch).bind(lease.to_vec()).bind(now()?);
            let jobs = claim.fetch_all(&self.pool).await?;
            if jobs.is_empty() {
                tokio::time::sleep(EMPTY).await;
                continue;
            }
            let places = vec!["?"; jobs.len()].join(", ");
            let text = format!("delete from job where id in ({places}) and lease_id = ?");
            let mut delete = sqlx::query(AssertSqlSafe(text));
            for (id, _) in &jobs {
                delete = delete.bind(*id);
            }
            delete.bind(lease.to_vec()).execute(&self.pool).await?;
            handled.handle(jobs.iter().map(|(_, payload)| payload.as_slice()));
        }
        Ok(())
    }
}

fn now() -> Outcome<i64> {
    Ok(i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_micros())?)
}
