//! pgmq as its SQL functions alone. See README.md.

use std::{sync::Arc, time::Duration};

use measure::{Handled, How, Outcome, Peer, arguments, run};
use pgmq::PGMQueueExt;
use serde_json::{Value, json};
use sqlx::{PgPool, Row, postgres::PgPoolOptions};

const SEND: &str = "select pgmq.send('bench', $1::jsonb)";
const SEND_BATCH: &str = "select pgmq.send_batch('bench', $1::jsonb[])";
const READ: &str = "select msg_id, message from pgmq.read('bench', 30, $1)";
const READ_WITH_POLL: &str = "select msg_id, message from pgmq.read_with_poll('bench', 30, $1, 5, 100)";
const DELETE: &str = "select pgmq.delete('bench', $1::bigint[])";
/// Between two looks at an empty queue while all is at once.
const EMPTY: Duration = Duration::from_millis(1);

#[derive(Clone)]
struct Pgmq {
    pool: PgPool,
}

/// The measurement's payload as JSON of about as many bytes.
fn wrapped(job: &[u8]) -> Value {
    let sent = job.first_chunk::<8>().map_or(0, |sent| u64::from_be_bytes(*sent));
    json!({ "sent": sent, "pad": "x".repeat(64) })
}

fn unwrapped(message: &Value) -> [u8; 8] {
    message["sent"].as_u64().unwrap_or_default().to_be_bytes()
}

impl Peer for Pgmq {
    async fn one(&self, job: Vec<u8>) -> Outcome<()> {
        sqlx::query(SEND).bind(wrapped(&job)).execute(&self.pool).await?;
        Ok(())
    }

    async fn many(&self, jobs: Vec<Vec<u8>>) -> Outcome<()> {
        let jobs: Vec<Value> = jobs.iter().map(|job| wrapped(job)).collect();
        sqlx::query(SEND_BATCH).bind(jobs).execute(&self.pool).await?;
        Ok(())
    }

    async fn work(&self, how: How, handled: Arc<Handled>) -> Outcome<()> {
        let (readers, batch, text) = match how {
            How::Tuned => (4, 100, READ),
            How::One => (8, 1, READ),
            How::Latency => (1, 1, READ_WITH_POLL),
        };
        let mut running = tokio::task::JoinSet::new();
        for _ in 0..readers {
            let (mut connection, handled) = (self.pool.acquire().await?, Arc::clone(&handled));
            running.spawn(async move {
                while !handled.is_done() {
                    let rows = sqlx::query(text).bind(batch).fetch_all(&mut *connection).await?;
                    if rows.is_empty() {
                        tokio::time::sleep(EMPTY).await;
                        continue;
                    }
                    let sent: Vec<[u8; 8]> = rows.iter().map(|row| unwrapped(&row.get("message"))).collect();
                    let ids: Vec<i64> = rows.iter().map(|row| row.get("msg_id")).collect();
                    if how == How::Latency {
                        handled.handle(sent.iter().map(<[u8; 8]>::as_slice));
                        sqlx::query(DELETE).bind(ids).execute(&mut *connection).await?;
                    } else {
                        sqlx::query(DELETE).bind(ids).execute(&mut *connection).await?;
                        handled.handle(sent.iter().map(<[u8; 8]>::as_slice));
                    }
                }
                Outcome::Ok(())
            });
        }
        while let Some(ended) = running.join_next().await {
            ended??;
        }
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Outcome<()> {
    let (act, url, jobs) = arguments()?;
    if act == "setup" {
        let queue = PGMQueueExt::new(url, 2).await?;
        queue.install_sql_from_embedded().await?;
        queue.create("bench").await?;
        return Ok(());
    }
    let connections = if act == "enqueue-one" { 64 } else { 12 };
    let pool = PgPoolOptions::new().test_before_acquire(false).max_connections(connections).connect(&url).await?;
    run(&Pgmq { pool }, &act, jobs).await
}
