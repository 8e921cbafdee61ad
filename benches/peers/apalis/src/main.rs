//! apalis-postgres: see README.md.

use std::{sync::Arc, time::Duration};

use apalis::prelude::*;
use apalis_postgres::{Config, PgPool, PostgresStorage, queries::push_tasks};
use measure::{Handled, How, Outcome, Peer, arguments, run};

const QUEUE: &str = "bench";

#[derive(Clone)]
struct Apalis {
    pool: PgPool,
}

/// Arguments are JSON: the moment of sending, and about 80 bytes beside it.
type Job = (u64, String);

fn wrapped(job: &[u8]) -> Outcome<Vec<u8>> {
    let sent = job.first_chunk::<8>().map_or(0, |sent| u64::from_be_bytes(*sent));
    Ok(serde_json::to_vec(&(sent, "x".repeat(75)))?)
}

async fn handle((sent, _): Job, handled: Data<Arc<Handled>>) -> Result<(), BoxDynError> {
    handled.handle(std::iter::once(sent.to_be_bytes().as_slice()));
    Ok(())
}

impl Peer for Apalis {
    async fn one(&self, job: Vec<u8>) -> Outcome<()> {
        self.many(vec![job]).await
    }

    async fn many(&self, jobs: Vec<Vec<u8>>) -> Outcome<()> {
        let made = jobs.iter().map(|job| Ok(TaskBuilder::new(wrapped(job)?).build())).collect::<Outcome<Vec<_>>>()?;
        let mut connection = self.pool.acquire().await?;
        push_tasks(&mut *connection, QUEUE, made).await?;
        Ok(())
    }

    async fn work(&self, how: How, handled: Arc<Handled>) -> Outcome<()> {
        let (batch, concurrency) = if how == How::Tuned { (500, 500) } else { (10, 64) };
        let config = Config::default().queue(QUEUE).batch_size(batch);
        let done = Arc::clone(&handled);
        let stopped = async move {
            done.done().await;
            Ok::<(), WorkerError>(())
        };
        macro_rules! work {
            ($backend:expr) => {
                WorkerBuilder::new("bench")
                    .backend($backend)
                    .data(handled)
                    .concurrency(concurrency)
                    .build(handle)
                    .run_until(stopped)
                    .await
            };
        }
        let storage = PostgresStorage::<Job>::new(&self.pool).with_config(config);
        let ended = match how {
            How::Latency => work!(storage.with_pubsub().poll_with_interval(Duration::from_secs(1))),
            How::Tuned | How::One => work!(storage.poll_with_interval(Duration::from_millis(10))),
        };
        Ok(ended?)
    }
}

#[tokio::main]
async fn main() -> Outcome<()> {
    let (act, url, jobs) = arguments()?;
    let pool = PgPool::connect_with(url.parse()?).await?;
    if act == "setup" {
        PostgresStorage::setup(&pool).await?;
        return Ok(());
    }
    run(&Apalis { pool }, &act, jobs).await
}
