//! The limit of any queue in SQL: the same inserts, claims and deletes, with no queue around them. See README.md.

use std::sync::Arc;

use measure::{Handled, How, Outcome, Peer, arguments, run};
use sqlx::{
    PgPool, Postgres,
    pool::PoolConnection,
    postgres::{PgConnectOptions, PgPoolOptions},
};
use uuid::Uuid;

const INSERT: &str = "insert into job (queue_id, priority, payload) select 1, 4, unnest($1::bytea[]) returning id";
/// `any(array(…))`, as a join of the two could be planned as a scan of the whole table.
const CLAIM: &str = "update job set lease_id = $2, lease_until = clock_timestamp() + interval '30 s', attempt = attempt + 1
    where ctid = any(array(
        select ctid from job where queue_id = 1 and priority = 4 and lease_id is null and ready_at <= now()
        order by ready_at, id limit $1 for update skip locked))
    returning id, payload, attempt";
const DELETE: &str = "delete from job where id = any($1) and lease_id = $2";

#[derive(Clone)]
struct Bare {
    pool: PgPool,
    /// Connections that claim.
    claimers: u32,
    /// Jobs of a statement, where a worker is tuned.
    batch: i64,
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

/// All over `CONNECTIONS` connections, of which half claim where the other half inserts; a tuned worker has `BATCH` jobs a
/// statement.
#[tokio::main]
async fn main() -> Outcome<()> {
    let (act, url, jobs) = arguments()?;
    let number = |name: &str, usual: u32| std::env::var(name).map_or(Ok(usual), |said| said.parse());
    let (connections, batch) = (number("CONNECTIONS", 8)?, number("BATCH", 100)?);
    // as the broker's connections plan
    let options: PgConnectOptions = url.parse()?;
    let options = options.options([("plan_cache_mode", "force_generic_plan"), ("enable_seqscan", "off")]);
    let (all, claimers) = match act.as_str() {
        "enqueue-one" => (64, 0),
        "life" => (connections, connections.div_ceil(2)),
        _ => (connections, connections),
    };
    let pool = PgPoolOptions::new().test_before_acquire(false).max_connections(all).connect_with(options).await?;
    if act == "setup" {
        sqlx::raw_sql(include_str!("../schema.sql")).execute(&pool).await?;
        return Ok(());
    }
    run(&Bare { pool, claimers, batch: i64::from(batch) }, &act, jobs).await
}
