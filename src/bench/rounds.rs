//! The rounds of a measurement.

use std::{
    ops::Range,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tonic::Code;

use super::{
    Act, BenchError, BenchOptions, Report, backdrop,
    clients::Clients,
    figures::Times,
    meter::Meter,
    pacer,
    producers::{self, Jobs},
    shape::index,
    tally::Tally,
    workers::{Timed, Workers},
};

/// Tries to delete a queue, and the pause between them: leases that a cut connection left have to end first.
const TRIES: u32 = 200;
const PAUSE: Duration = Duration::from_millis(500);
/// Deletions under way at once.
const DELETIONS: usize = 200;

/// A measurement under way.
pub(super) struct Run<'a> {
    options: &'a BenchOptions,
    clients: Clients,
    jobs: Arc<Jobs>,
    meter: Meter<'a>,
    /// Where the next round's numbers begin.
    next: u64,
}

impl<'a> Run<'a> {
    pub(super) fn new(options: &'a BenchOptions, clients: Clients, tally: Tally, meter: Meter<'a>) -> Self {
        let run = format!("bench.{:08x}", rand::random::<u32>());
        let queues = (0..options.shape.queues.max(1)).map(|n| format!("{run}.{n}")).collect();
        let jobs = Jobs { shape: options.shape.clone(), queues, began: Instant::now(), tally: Arc::new(tally) };
        Self { options, clients, jobs: Arc::new(jobs), meter, next: 0 }
    }

    /// Runs all rounds; each is in the report as soon as it is over. What the broker's database is, where that is one of the
    /// measurement's own, is in `schema`: it comes to rest before the first round.
    pub(super) async fn all_rounds(
        &mut self,
        report: &mut Report,
        schema: Option<&str>,
        note: &(impl Fn(&str) + Send + Sync),
    ) -> Result<(), BenchError> {
        let shape = &self.options.shape;
        if shape.backlog + shape.scheduled + shape.blocked > 0 {
            note("enqueueing the jobs that wait all the time");
            backdrop::fill(&self.clients, &self.jobs).await?;
            let numbers = self.numbers(shape.backlog);
            self.enqueue(numbers).await?;
            if let Some((schema, database)) = schema.zip(self.meter.database()) {
                note("having the database vacuum, analyze and write a checkpoint");
                database.settle(schema).await?;
            }
        }
        for round in 1..=self.options.rounds {
            note(&format!("round {round} of {}", self.options.rounds));
            self.round(report).await?;
        }
        Ok(())
    }

    async fn round(&mut self, report: &mut Report) -> Result<(), BenchError> {
        let jobs = self.options.act.jobs(&self.options.shape);
        let numbers = self.numbers(jobs);
        let (times, costs) = match self.options.act {
            Act::Enqueue => {
                self.meter.begin().await;
                let (times, end) = self.enqueue(numbers).await?;
                (times, self.meter.costs(end).await)
            }
            Act::Drain => {
                self.enqueue(numbers).await?;
                self.jobs.tally.aim(jobs);
                self.meter.begin().await;
                let over = CancellationToken::new();
                let mut workers = Workers::start(&self.clients, &self.jobs, Timed::Acks, &over);
                let end = until_over(&over, &mut workers).await?;
                let costs = self.meter.costs(end).await;
                (workers.end().await?, costs)
            }
            Act::All | Act::Latency { .. } => {
                self.jobs.tally.aim(jobs);
                let over = CancellationToken::new();
                let mut workers = Workers::start(&self.clients, &self.jobs, Timed::Jobs, &over);
                workers.wait_until_open().await?;
                self.meter.begin().await;
                let ((), end) = tokio::try_join!(self.send(numbers), until_over(&over, &mut workers))?;
                let costs = self.meter.costs(end).await;
                (workers.end().await?, costs)
            }
        };
        report.add(jobs, &costs, &times);
        Ok(())
    }

    async fn send(&self, numbers: Range<u64>) -> Result<(), BenchError> {
        match self.options.act {
            Act::Latency { rate, .. } => pacer::send_at(&self.clients, &self.jobs, numbers, rate).await.map(drop),
            _ => self.enqueue(numbers).await.map(drop),
        }
    }

    async fn enqueue(&self, numbers: Range<u64>) -> Result<(Times, Instant), BenchError> {
        producers::enqueue_all(&self.clients, &self.jobs, numbers).await
    }

    fn numbers(&mut self, count: u64) -> Range<u64> {
        let first = self.next;
        self.next += count;
        first..self.next
    }

    /// Counts what is left, and says what became of all jobs. In a `schema` of the measurement's own jobs are counted where they
    /// are, as all of it is dropped afterwards; else the queues are deleted. Of a measurement that was stopped in the middle
    /// nobody knows how many jobs there were.
    pub(super) async fn settle_accounts(
        mut self,
        report: &mut Report,
        schema: Option<&str>,
        stopped: bool,
    ) -> Result<(), BenchError> {
        if let Some((schema, database)) = schema.zip(self.meter.database())
            && let Some(left) = database.jobs_left(schema).await?
        {
            report.end(&self.jobs.tally, left, stopped);
            return Ok(());
        }
        let used = self.options.shape.queues.max(1).min(u32::try_from(self.next.max(1)).unwrap_or(u32::MAX));
        let queues = self.jobs.queues[..index(u64::from(used))].iter().zip(0..);
        // a broker waits in each deletion until all others know of it
        let deletions = queues.map(|(queue, n)| delete(&self.clients, n, queue, stopped));
        let removed: Vec<u64> = stream::iter(deletions).buffer_unordered(DELETIONS).try_collect().await?;
        report.end(&self.jobs.tally, removed.iter().sum(), stopped);
        Ok(())
    }
}

/// Deletes a queue; answers how many jobs were in it. A measurement that was stopped leaves leases; those are not waited for.
async fn delete(clients: &Clients, n: u32, queue: &str, stopped: bool) -> Result<u64, BenchError> {
    let (mut removed, mut tries) = (0, 1);
    while let Err(status) = clients.delete_queue(n, queue, &mut removed).await {
        if stopped || status.code() == Code::NotFound {
            break;
        }
        if tries == TRIES || status.code() != Code::FailedPrecondition {
            return Err(status.into());
        }
        tries += 1;
        sleep(PAUSE).await;
    }
    Ok(removed)
}

/// Waits for the last ack, or for a worker that fails.
async fn until_over(over: &CancellationToken, workers: &mut Workers) -> Result<Instant, BenchError> {
    tokio::select! {
        biased;
        () = over.cancelled() => Ok(Instant::now()),
        failed = workers.failure() => Err(failed),
    }
}
