//! Jobs as operators look at them and steer them.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use futures_util::future::BoxFuture;

use super::{
    Call, Store,
    engine::{Cancelled, CancelledJobs, Circumstances, JobRecord, JobsWalk, Page, RunNow, Session},
    error::EngineError,
    statement::Statement,
};
use crate::model::{Failure, JobId, Outcome, Reason};

/// Rows that one statement looks at.
pub(super) const WALK: usize = 10_000;
/// A page that is not full is gone on with for this long.
const PAGE_TIME: Duration = Duration::from_millis(500);
/// Tries of an act that meets a conflict.
const TRIES: u32 = 3;
/// Pauses between tries to reach jobs that somebody's open transaction holds; the last one repeats.
const BUSY_PAUSES: [Duration; 3] = [Duration::from_millis(10), Duration::from_millis(50), Duration::from_millis(200)];

impl Store {
    /// See [`super::engine::Inspecting::find_jobs`].
    pub async fn find_jobs(&self, call: &Call, jobs: Vec<JobId>, payloads: bool) -> Result<Vec<JobRecord>, Failure> {
        let caller = call.caller.clone();
        self.single(call, Statement::reading("find_jobs"), move |session| {
            Box::pin(async move { session.find_jobs(&caller, &jobs, payloads).await })
        })
        .await
    }

    /// A page of a queue's jobs: several walks where one finds too little, for half a second at most.
    pub async fn list_jobs(&self, call: &Call, walk: JobsWalk) -> Result<Page<JobRecord, JobId>, Failure> {
        let begin = walk.clone();
        let step = move |after: Option<JobId>, found: usize, bytes: u64| {
            let mut walk = begin.clone();
            walk.after = after.unwrap_or(walk.after);
            walk.bounds.found = found;
            walk.bounds.bytes = bytes;
            let caller = call.caller.clone();
            self.single(call, Statement::reading("list_jobs"), move |session| {
                Box::pin(async move { session.list_jobs(&caller, &walk).await })
            })
        };
        fill(walk.bounds.found, walk.bounds.bytes, step).await
    }

    /// See [`super::engine::Inspecting::explain_job`].
    pub async fn explain_job(&self, call: &Call, job: JobId) -> Result<Option<Circumstances>, Failure> {
        let (caller, absent) = (call.caller.clone(), self.inner.options.absent_after);
        self.single(call, Statement::reading("explain_job"), move |session| {
            Box::pin(async move { session.explain_job(&caller, job, absent).await })
        })
        .await
    }

    /// Cancels jobs; see [`super::engine::Steering::cancel`]. An id may come several times. Busy ones are tried again for a
    /// second, or until the deadline.
    pub async fn cancel_jobs(&self, call: &Call, jobs: &[JobId]) -> Result<CancelledJobs, Failure> {
        let mut distinct = jobs.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        let mut decided: HashMap<JobId, Cancelled> = HashMap::new();
        let mut readied = Vec::new();
        let mut left = distinct;
        let mut again = Again::new(call, self.inner.options.busy_for);
        loop {
            let (asked, caller) = (left.clone(), call.caller.clone());
            let answer = self
                .persistently(call, Statement::writing("cancel"), move |session| {
                    let (asked, caller) = (asked.clone(), caller.clone());
                    Box::pin(async move { session.cancel(&caller, &asked).await })
                })
                .await;
            match answer {
                Ok(answer) => {
                    readied.extend(answer.readied);
                    decided.extend(left.iter().copied().zip(answer.jobs));
                }
                // What was decided before stands, and the others are as they were.
                Err(failure) if failure.outcome == Outcome::NotApplied && !decided.is_empty() => break,
                Err(failure) => return Err(failure),
            }
            left.retain(|job| decided.get(job) == Some(&Cancelled::Busy));
            if left.is_empty() || !again.pause().await {
                break;
            }
        }
        let answers = jobs.iter().map(|job| decided.get(job).copied().unwrap_or(Cancelled::Busy)).collect();
        readied.sort_unstable();
        readied.dedup();
        Ok(CancelledJobs { jobs: answers, readied })
    }

    /// Makes a job ready; see [`super::engine::Steering::run_now`]. A busy one is tried again for a second.
    pub async fn run_job_now(&self, call: &Call, job: JobId) -> Result<RunNow, Failure> {
        let mut again = Again::new(call, self.inner.options.busy_for);
        loop {
            let caller = call.caller.clone();
            let run = self
                .single(call, Statement::writing("run_now"), move |session| {
                    Box::pin(async move { session.run_now(&caller, job).await })
                })
                .await?;
            if run != RunNow::Busy || !again.pause().await {
                return Ok(run);
            }
        }
    }

    /// Runs an act alone, again where it met a conflict.
    pub(super) async fn persistently<A, F>(&self, call: &Call, statement: Statement, act: F) -> Result<A, Failure>
    where
        A: Send + 'static,
        F: for<'a> Fn(&'a mut dyn Session) -> BoxFuture<'a, Result<A, EngineError>> + Clone + Send + 'static,
    {
        for _ in 1..TRIES {
            match self.single(call, statement, act.clone()).await {
                Err(failure) if failure.reason == Reason::Conflict => {
                    tokio::time::sleep(Duration::from_millis(5).mul_f64(rand::random())).await;
                }
                other => return other,
            }
        }
        self.single(call, statement, act).await
    }
}

/// Tries again after busy rows, for as long as it may.
pub(super) struct Again {
    give_up: Instant,
    tried: usize,
}

impl Again {
    pub(super) fn new(call: &Call, busy_for: Duration) -> Self {
        Self { give_up: call.deadline.min(Instant::now() + busy_for), tried: 0 }
    }

    /// Waits; false where it has waited enough.
    pub(super) async fn pause(&mut self) -> bool {
        let pause = BUSY_PAUSES[self.tried.min(BUSY_PAUSES.len() - 1)];
        self.tried += 1;
        if Instant::now() + pause >= self.give_up {
            return false;
        }
        tokio::time::sleep(pause).await;
        true
    }
}

/// Walks on until the page is full, the end is reached, or the time is over.
pub(super) async fn fill<P: Copy, F>(
    found: usize,
    bytes: u64,
    step: impl Fn(Option<P>, usize, u64) -> F,
) -> Result<Page<JobRecord, P>, Failure>
where
    F: Future<Output = Result<Page<JobRecord, P>, Failure>>,
{
    let until = Instant::now() + PAGE_TIME;
    let mut page = step(None, found, bytes).await?;
    loop {
        let taken: u64 = page.rows.iter().map(weight).sum();
        if page.next.is_none() || page.rows.len() >= found || taken >= bytes || Instant::now() >= until {
            return Ok(page);
        }
        let more = step(page.next, found - page.rows.len(), bytes - taken).await?;
        page.rows.extend(more.rows);
        page.next = more.next;
    }
}

fn weight(job: &JobRecord) -> u64 {
    let headers: usize = job.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
    let payload = job.payload.as_ref().map_or(0, bytes::Bytes::len);
    (payload + headers + job.last_error.as_ref().map_or(0, String::len)) as u64
}
