//! Jobs as operators see and steer them.

use tonic::Request;

use super::AdminApi;
use crate::{
    grpc::{audit::Audit, convert},
    model::{Count, Failure, JobId, JobState, QueueName, Reason, StreamId, explain},
    store::{
        Call,
        engine::{Bounds, Cancelled, Circumstances, JobRecord, JobsWalk, QueueRow, RunNow},
    },
    v1,
};

/// Rows that one step of a list looks at.
pub(super) const WALK: usize = 10_000;
/// Payload, header and error bytes of a page: half of what clients take by default.
const PAGE_BYTES: u64 = 2 << 20;

/// How much a page may look at and hold.
pub(super) fn bounds(size: usize, payloads: bool) -> Bounds {
    Bounds { rows: WALK, found: size, bytes: PAGE_BYTES, payloads }
}

impl AdminApi {
    pub(super) async fn do_get_job(
        &self,
        call: &Call,
        request: &v1::GetJobRequest,
    ) -> Result<v1::GetJobResponse, Failure> {
        let job = convert::job_id(&request.job_id)?;
        let record = self.job(call, job, request.include_payload).await?;
        Ok(v1::GetJobResponse { job: Some(convert::job(record)) })
    }

    pub(super) async fn do_list_jobs(
        &self,
        call: &Call,
        request: &v1::ListJobsRequest,
    ) -> Result<v1::ListJobsResponse, Failure> {
        let asked = convert::jobs_page(request)?;
        let walk = JobsWalk {
            queue: self.existing_queue(&asked.queue).await?.id,
            states: asked.states,
            ordering_key: asked.ordering_key,
            caller: asked.caller,
            after: asked.after,
            bounds: bounds(asked.size, asked.payloads),
        };
        let page = self.store.list_jobs(call, walk).await?;
        Ok(v1::ListJobsResponse {
            jobs: page.rows.into_iter().map(convert::job).collect(),
            next_page_token: convert::next_jobs(request, page.next),
        })
    }

    pub(super) async fn do_explain_job(
        &self,
        call: &Call,
        request: &v1::ExplainJobRequest,
    ) -> Result<v1::ExplainJobResponse, Failure> {
        let job = convert::job_id(&request.job_id)?;
        self.dispatch.presence().refresh().await?;
        let circumstances = self.store.explain_job(call, job).await?.ok_or_else(|| no_job(job))?;
        let waits = explain::explain(&facts(&circumstances));
        Ok(v1::ExplainJobResponse {
            job: Some(convert::job(circumstances.job)),
            waits: waits.into_iter().map(convert::wait).collect(),
        })
    }

    pub(super) async fn do_cancel_job(
        &self,
        call: &Call,
        request: &Request<v1::CancelJobRequest>,
    ) -> Result<v1::CancelJobResponse, Failure> {
        let asked = request.get_ref();
        let audit =
            Audit::of("QueueAdminService/CancelJob", request).about(format!("jobs={}", asked.job_ids.join(",")));
        audit.end(self.cancel_jobs(call, &asked.job_ids).await, |response| {
            let of = |status| response.results.iter().filter(|result| result.status() == status).count();
            let (cancelled, requested) = (of(v1::CancelStatus::Cancelled), of(v1::CancelStatus::Requested));
            format!("cancelled={cancelled} requested={requested}")
        })
    }

    async fn cancel_jobs(&self, call: &Call, sent: &[String]) -> Result<v1::CancelJobResponse, Failure> {
        let jobs = convert::job_ids(sent)?;
        let cancelled = self.store.cancel_jobs(call, &jobs).await?;
        let told: Vec<(JobId, StreamId)> = jobs
            .iter()
            .zip(&cancelled.jobs)
            .filter_map(|(job, cancelled)| match cancelled {
                Cancelled::Requested(Some(stream)) => Some((*job, *stream)),
                _ => None,
            })
            .collect();
        self.dispatch.cancel_requested(&told);
        self.readied(cancelled.readied);
        Ok(convert::cancelled(&cancelled.jobs))
    }

    pub(super) async fn do_run_job_now(
        &self,
        call: &Call,
        request: &Request<v1::RunJobNowRequest>,
    ) -> Result<v1::RunJobNowResponse, Failure> {
        let asked = &request.get_ref().job_id;
        let audit = Audit::of("QueueAdminService/RunJobNow", request).about(format!("job={asked}"));
        audit.end(self.run_job_now(call, asked).await, |_| String::new())
    }

    async fn run_job_now(&self, call: &Call, sent: &str) -> Result<v1::RunJobNowResponse, Failure> {
        let job = convert::job_id(sent)?;
        let before = self.job(call, job, false).await?;
        match self.store.run_job_now(call, job).await? {
            RunNow::Readied(queue) => self.readied(vec![queue]),
            RunNow::Blocked | RunNow::Unchanged => {}
            RunNow::Gone => return Err(not_live(&self.job(call, job, false).await?)),
            RunNow::Busy => {
                let message = format!("somebody's open transaction holds job {job}; nothing changed, try again");
                return Err(Failure::not_applied(Reason::Conflict, message).about_job(job));
            }
        }
        // It may be leased and done by now, which is what was asked for.
        let after = self.store.find_jobs(call, vec![job], false).await?.pop().unwrap_or(before);
        Ok(v1::RunJobNowResponse { job: Some(convert::job(after)) })
    }

    /// One job; `NOT_FOUND` where there is none.
    pub(super) async fn job(&self, call: &Call, job: JobId, payload: bool) -> Result<JobRecord, Failure> {
        self.store.find_jobs(call, vec![job], payload).await?.pop().ok_or_else(|| no_job(job))
    }

    /// A queue; `NOT_FOUND` where there is none.
    pub(super) async fn existing_queue(&self, name: &QueueName) -> Result<QueueRow, Failure> {
        self.store.queue(name).await?.ok_or_else(|| {
            let message = format!("there is no queue '{name}'; ListQueues shows those that there are");
            Failure::not_applied(Reason::NotFound, message).about(name.as_str())
        })
    }

    /// Jobs became ready in these queues.
    pub(super) fn readied(&self, queues: Vec<crate::model::QueueId>) {
        if !queues.is_empty() {
            self.dispatch.ready(&queues.into_iter().map(|queue| (queue, None)).collect::<Vec<_>>());
        }
    }
}

fn no_job(job: JobId) -> Failure {
    let message =
        format!("there is no job {job}: it never was, or it is acked, cancelled, purged, or past its retention");
    Failure::not_applied(Reason::NotFound, message).about_job(job)
}

fn not_live(record: &JobRecord) -> Failure {
    let (job, state) = (record.job, record.state.as_str());
    let next = if record.state == JobState::Dead { "; redrive it instead" } else { "" };
    Failure::not_applied(Reason::WrongState, format!("job {job} is {state} and cannot run now{next}")).about_job(job)
}

fn facts(around: &Circumstances) -> explain::Facts {
    explain::Facts {
        state: around.job.state,
        now: around.now,
        available_at: around.job.available_at,
        ready_at: around.job.ready_at,
        held: around.held,
        head: around.head,
        ahead_in_key: Count::of(around.ahead_in_key),
        ahead: Count::of(around.ahead),
        paused: around.paused,
        streams: around.streams,
        free_credit: around.free_credit,
        lease_until: around.job.lease_until,
        consumer: around.holder.as_ref().map(|holder| holder.consumer.clone()),
        cancel_requested: around.job.cancel_requested,
        attempt: around.job.attempt,
        last_error: around.job.last_error.clone(),
    }
}
