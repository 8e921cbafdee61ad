//! Bare SQL on PostgreSQL.

use std::sync::Arc;

use measure::{Handled, How, Outcome, Peer};
use sqlx::{
    PgPool, Postgres,
    pool::PoolConnection,
    postgres::{PgConnectOptions, PgPoolOptions},
};
use uuid::Uuid;

use crate::Size;

const INSERT: &str = "insert into job (queue_id, priority, payload) select 1, 4, unnest($1::bytea[]) returning id";
/// `any(array(…))`, as a join of the two could be planned as a scan of the whole table.
const CLAIM: &str =
    "update job set lease_id = $2, lease_until = clock_timestamp() + interval '30 s', attempt = attempt + 1
    where ctid = any(array(
        select ctid from job where queue_id = 1 and priority = 4 and lease_id is null and ready_at <= now()
        order by ready_at, id limit $1 for update skip locked))
    returning id, payload, attempt";
const DELETE: &str = "delete from job where id = any($1) and lease_id = $2";

#[derive(Clone)]
pub struct Bare {
    pool: PgPool,
    /// Connections that claim.
    claimers: u32,
    /// Jobs of a statement, where a worker is tuned.
    batch: i64,
}

impl Bare {
    pub async fn connect(url: &str, act: &str, size: Size) -> Outcome<Self> {
        let (all, claimers) = match act {
            "enqueue-one" => (64, 0),
            "life" => (size.connections, size.connections.div_ceil(2)),
            _ => (size.connections, size.connections),
        };
        // as the broker's connections plan
        let options: PgConnectOptions = url.parse()?;
        let options = options.options([("plan_cache_mode", "force_generic_plan"), ("enable_seqscan", "off")]);
        let pool = PgPoolOptions::new().test_before_acquire(false).max_connections(all).connect_with(options).await?;
        Ok(Self { pool, claimers, batch: size.batch })
    }

    pub async fn setup(&self) -> Outcome<()> {
        sqlx::raw_sql(include_str!("../schema/postgres.sql")).execute(&self.pool).await?;
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
        let _: Vec<i64> = sqlx::query_scalar(INSERT).bind(jobs).fetch_all(&self.pool).await?;
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

async fn claim_and_delete(mut connection: PoolConnection<Postgres>, batch: i64, handled: &Handled) -> Outcome<()> {
    while !handled.is_done() {
        let lease = Uuid::from_u128(rand::random());
        let claim = sqlx::query_as::<_, (i64, Vec<u8>, i16)>(CLAIM).bind(batch).bind(lease);
        let jobs = claim.fetch_all(&mut *connection).await?;
        let ids: Vec<i64> = jobs.iter().map(|(id, ..)| *id).collect();
        if !ids.is_empty() {
            sqlx::query(DELETE).bind(ids).bind(lease).execute(&mut *connection).await?;
            handled.handle(jobs.iter().map(|(_, payload, _)| payload.as_slice()));
        }
    }
    Ok(())
}
