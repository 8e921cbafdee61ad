//! The same life of a job by bare SQL: no broker, no gRPC, no leases to look after. It is the limit of any queue in SQL.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use sqlx::{Executor, PgConnection};
use tokio::task::JoinSet;
use uuid::Uuid;

use super::{Outcome, clients::PAYLOAD};

const INSERT: &str = "insert into job (queue_id, priority, payload) select 1, 4, unnest($1::bytea[]) returning id";
/// `any(array(…))`, as a join of the two could be planned as a scan of the whole table.
const CLAIM: &str =
    "update job set lease_id = $2, lease_until = clock_timestamp() + interval '30 s', attempt = attempt + 1
    where ctid = any(array(
        select ctid from job where queue_id = 1 and priority = 4 and lease_id is null and ready_at <= now()
        order by ready_at, id limit $1 for update skip locked))
    returning id, payload, attempt";
const DELETE: &str = "delete from job where id = any($1) and lease_id = $2";

#[derive(Debug, Clone, Copy)]
pub(crate) enum Act {
    Insert,
    ClaimAndDelete,
}

/// Makes the table.
pub(crate) async fn prepare(connection: &mut PgConnection) -> Outcome<()> {
    connection.execute(include_str!("bare.sql")).await?;
    Ok(())
}

/// Lets a connection plan as the broker's do.
pub(crate) async fn connect(mut connection: PgConnection) -> Outcome<PgConnection> {
    connection.execute("set plan_cache_mode = force_generic_plan").await?;
    connection.execute("set enable_seqscan = off").await?;
    Ok(connection)
}

/// Runs an act on all connections at once until `jobs` jobs went through, `batch` a statement.
pub(crate) async fn run(connections: &mut Vec<PgConnection>, act: Act, jobs: u64, batch: u64) -> Outcome<Duration> {
    let (done, started, mut running) = (Arc::new(AtomicU64::new(0)), Instant::now(), JoinSet::new());
    for mut connection in connections.drain(..) {
        let done = Arc::clone(&done);
        running.spawn(async move {
            while done.load(Relaxed) < jobs {
                done.fetch_add(act.once(&mut connection, batch).await?, Relaxed);
            }
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>(connection)
        });
    }
    while let Some(ended) = running.join_next().await {
        connections.push(ended??);
    }
    Ok(started.elapsed())
}

impl Act {
    async fn once(self, connection: &mut PgConnection, batch: u64) -> Outcome<u64> {
        match self {
            Self::Insert => insert(connection, batch).await,
            Self::ClaimAndDelete => claim_and_delete(connection, batch).await,
        }
    }
}

async fn insert(connection: &mut PgConnection, batch: u64) -> Outcome<u64> {
    let payloads = vec![vec![b'x'; PAYLOAD]; usize::try_from(batch)?];
    let ids: Vec<i64> = sqlx::query_scalar(INSERT).bind(payloads).fetch_all(connection).await?;
    Ok(u64::try_from(ids.len())?)
}

async fn claim_and_delete(connection: &mut PgConnection, batch: u64) -> Outcome<u64> {
    let lease = Uuid::from_u128(rand::random());
    let claim = sqlx::query_as::<_, (i64, Vec<u8>, i16)>(CLAIM).bind(i64::try_from(batch)?).bind(lease);
    let ids: Vec<i64> = claim.fetch_all(&mut *connection).await?.into_iter().map(|(id, ..)| id).collect();
    Ok(sqlx::query(DELETE).bind(ids).bind(lease).execute(connection).await?.rows_affected())
}
