//! Dead jobs as operators see them and make them live again.

use std::time::{Duration, Instant};

use futures_util::stream;
use tonic::Request;

use super::{
    AdminApi, Frames,
    jobs::{WALK, bounds},
};
use crate::{
    dispatch::Dispatch,
    grpc::{
        audit::Audit,
        convert::{self, Redrive},
        steps::{self, Stepped, Steps},
    },
    model::{Count, Failure, JobId, JobState, QueueName, Reason, Timestamp},
    store::{
        Call, Store, Stride,
        engine::{DeadJobs, DeadPlace, DeadWalk, JobRecord, RedriveStep},
        pace,
    },
    v1,
};

/// Jobs of one step at most.
const STEP: usize = 1_000;

impl AdminApi {
    pub(super) async fn do_list_dead_jobs(
        &self,
        call: &Call,
        request: &v1::ListDeadJobsRequest,
    ) -> Result<v1::ListDeadJobsResponse, Failure> {
        let asked = convert::dead_page(request)?;
        let walk = DeadWalk {
            queue: self.existing_queue(&asked.queue).await?.id,
            filter: asked.filter,
            before: asked.before,
            bounds: bounds(asked.size, asked.payloads),
        };
        let page = self.store.list_dead(call, walk).await?;
        Ok(v1::ListDeadJobsResponse {
            jobs: page.rows.into_iter().map(convert::job).collect(),
            next_page_token: convert::next_dead(request, page.next),
        })
    }

    pub(super) async fn do_redrive_dead_jobs(
        &self,
        call: &Call,
        request: &Request<v1::RedriveDeadJobsRequest>,
    ) -> Result<Frames<v1::RedriveDeadJobsResponse>, Failure> {
        let asked = request.get_ref();
        if asked.dry_run {
            let frame = v1::RedriveDeadJobsResponse {
                redriven: 0,
                done: true,
                would_redrive: Some(convert::count(self.count_redriven(call, asked).await?)),
            };
            return Ok(Box::pin(stream::iter([Ok(frame)])));
        }
        let audit = Audit::of("QueueAdminService/RedriveDeadJobs", request).about(about(asked));
        match self.redrive(call, asked).await {
            Ok(redrive) => Ok(Box::pin(steps::run(redrive, request, Some(audit)))),
            Err(failure) => audit.end(Err(failure), |_: &Frames<_>| String::new()),
        }
    }

    async fn count_redriven(&self, call: &Call, asked: &v1::RedriveDeadJobsRequest) -> Result<Count, Failure> {
        let spec = convert::redrive_spec(asked)?;
        let count = match spec.which {
            Redrive::Job(job) => {
                dead(&self.job(call, job, false).await?)?;
                Count { value: 1, at_least: false }
            }
            Redrive::OfQueue(queue, filter) => {
                let queue = self.existing_queue(&queue).await?;
                self.store.count_dead(call, queue.id, &filter).await?
            }
        };
        Ok(limited(count, spec.limit))
    }

    async fn redrive(&self, call: &Call, asked: &v1::RedriveDeadJobsRequest) -> Result<RedriveSteps, Failure> {
        let spec = convert::redrive_spec(asked)?;
        let which = match spec.which {
            Redrive::Job(job) => {
                dead(&self.job(call, job, false).await?)?;
                DeadJobs::Ids(vec![job])
            }
            Redrive::OfQueue(queue, filter) => {
                let row = self.existing_queue(&queue).await?;
                if row.closing {
                    return Err(closing(&queue));
                }
                DeadJobs::OfQueue { queue: row.id, filter, after: None, until: None, rows: WALK }
            }
        };
        let (at_once, pause) = pace(spec.rate, STEP);
        Ok(RedriveSteps {
            store: self.store.clone(),
            dispatch: self.dispatch.clone(),
            which,
            at_once,
            pause,
            stride: self.store.stride(at_once),
            limit: spec.limit,
            redriven: 0,
        })
    }
}

/// What the limit leaves out is not redriven, so that a count down to it is exact.
fn limited(count: Count, limit: u64) -> Count {
    if limit <= count.value { Count { value: limit, at_least: false } } else { count }
}

/// What the audit log says of it: never more of a filter than what it filters by.
fn about(asked: &v1::RedriveDeadJobsRequest) -> String {
    use v1::redrive_dead_jobs_request::Which;
    let which = match &asked.which {
        Some(Which::JobId(job)) => format!("job={job}"),
        Some(Which::OfQueue(of)) => match &of.filter {
            Some(filter) => {
                format!("queue={} ordering_key={} caller={} filtered", of.queue, filter.ordering_key, filter.caller)
            }
            None => format!("queue={}", of.queue),
        },
        None => String::new(),
    };
    format!("{which} limit={} rate={}", asked.limit, asked.rate)
}

fn dead(record: &JobRecord) -> Result<(), Failure> {
    if record.state == JobState::Dead {
        return Ok(());
    }
    let message =
        format!("job {} is {} and not dead, so that there is nothing to redrive", record.job, record.state.as_str());
    Err(Failure::not_applied(Reason::WrongState, message).about_job(record.job))
}

fn closing(queue: &QueueName) -> Failure {
    let message = format!("queue '{queue}' is being deleted, and its dead jobs with it");
    Failure::not_applied(Reason::WrongState, message).about(queue.as_str())
}

/// A redrive in steps.
struct RedriveSteps {
    store: Store,
    dispatch: Dispatch,
    which: DeadJobs,
    /// Jobs of a step.
    at_once: usize,
    /// Between the end of one step and the next one.
    pause: Duration,
    /// What others leave it of the database.
    stride: Stride,
    /// Jobs at most.
    limit: u64,
    redriven: u64,
}

impl RedriveSteps {
    /// Goes on where the step ended; says whether there is more to do.
    fn go_on(&mut self, next: Option<DeadPlace>, ended: Timestamp) -> bool {
        let DeadJobs::OfQueue { after, until, .. } = &mut self.which else { return false };
        *after = next;
        *until = Some(ended);
        next.is_some() && self.redriven < self.limit
    }
}

impl RedriveSteps {
    /// What the rate asks for after a step of so many jobs.
    fn pause_for(&self, jobs: usize) -> Duration {
        let [jobs, at_once] = [jobs, self.at_once].map(|jobs| u32::try_from(jobs).unwrap_or(u32::MAX).max(1));
        self.pause * jobs / at_once
    }
}

impl Steps for RedriveSteps {
    type Frame = v1::RedriveDeadJobsResponse;

    async fn step(&mut self, call: &Call) -> Result<Stepped<Self::Frame>, Failure> {
        let left = usize::try_from(self.limit.saturating_sub(self.redriven)).unwrap_or(usize::MAX);
        let step = RedriveStep { which: self.which.clone(), limit: self.stride.rows().min(left) };
        let (began, limit) = (Instant::now(), step.limit);
        let done = self.store.redrive(call, step).await?;
        if done.jobs.is_empty()
            && let DeadJobs::Ids(jobs) = &self.which
        {
            return Err(passed_over(jobs));
        }
        self.redriven += done.jobs.len() as u64;
        if !done.readied.is_empty() {
            self.dispatch.ready(&done.readied.iter().map(|queue| (*queue, None)).collect::<Vec<_>>());
        }
        let more = self.go_on(done.next, done.until);
        let rest = self.stride.stepped(done.jobs.len(), began, Instant::now(), more);
        // A step that found nothing to its filter costs no job its place in the rate.
        let pause = if done.jobs.is_empty() { rest } else { rest.max(self.pause_for(limit)) };
        let frame = v1::RedriveDeadJobsResponse { redriven: self.redriven, done: !more, would_redrive: None };
        Ok(Stepped { frame, next: more.then_some(pause) })
    }

    fn done(&self) -> String {
        format!("redriven={}", self.redriven)
    }

    fn changed(&self) -> bool {
        self.redriven > 0
    }
}

fn passed_over(jobs: &[JobId]) -> Failure {
    let message = "the job is not dead any more, or its queue is gone or being deleted; GetJob says which";
    let failure = Failure::not_applied(Reason::WrongState, message);
    jobs.first().map_or(failure.clone(), |job| failure.about_job(*job))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_makes_an_open_count_exact_where_it_is_below_it() {
        let open = Count { value: 10_000, at_least: true };
        assert_eq!(limited(open, 50), Count { value: 50, at_least: false });
        assert_eq!(limited(open, 20_000), open);
        assert_eq!(limited(Count { value: 3, at_least: false }, u64::MAX), Count { value: 3, at_least: false });
    }
}
