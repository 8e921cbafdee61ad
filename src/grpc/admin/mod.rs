//! `QueueAdminService`: what operators see and steer.

mod broker;
mod consumers;
mod dead;
mod deletion;
mod jobs;
mod purge;
mod queues;

use std::{pin::Pin, sync::Arc};

use futures_util::Stream;
use tonic::{Request, Response, Status};

use self::broker::Facts;
use super::{ApiOptions, unary::Unary};
use crate::{dispatch::Dispatch, store::Store, v1};

/// Frames of an answer that takes several steps.
type Frames<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// The service.
#[derive(Clone)]
pub(super) struct AdminApi {
    store: Store,
    dispatch: Dispatch,
    facts: Arc<Facts>,
}

impl AdminApi {
    pub(super) fn new(store: Store, dispatch: Dispatch, options: &ApiOptions) -> Self {
        Self { store, dispatch, facts: Arc::new(Facts::of(options)) }
    }
}

#[tonic::async_trait]
impl v1::queue_admin_service_server::QueueAdminService for AdminApi {
    type PurgeQueueStream = Frames<v1::PurgeQueueResponse>;
    type DeleteQueueStream = Frames<v1::DeleteQueueResponse>;
    type RedriveDeadJobsStream = Frames<v1::RedriveDeadJobsResponse>;

    async fn get_broker_info(
        &self,
        request: Request<v1::GetBrokerInfoRequest>,
    ) -> Result<Response<v1::GetBrokerInfoResponse>, Status> {
        let (unary, call) = Unary::of(&request);
        unary.answer(self.do_get_broker_info(&call, request.get_ref()).await)
    }

    async fn list_queues(
        &self,
        request: Request<v1::ListQueuesRequest>,
    ) -> Result<Response<v1::ListQueuesResponse>, Status> {
        let (unary, call) = Unary::of(&request);
        unary.answer(self.do_list_queues(&call, request.get_ref()).await)
    }

    async fn get_queue(&self, request: Request<v1::GetQueueRequest>) -> Result<Response<v1::GetQueueResponse>, Status> {
        let (unary, call) = Unary::of(&request);
        unary.answer(self.do_get_queue(&call, request.get_ref()).await)
    }

    async fn update_queue(
        &self,
        request: Request<v1::UpdateQueueRequest>,
    ) -> Result<Response<v1::UpdateQueueResponse>, Status> {
        let (unary, call) = Unary::of(&request);
        unary.answer(self.do_update_queue(&call, &request).await)
    }

    async fn purge_queue(
        &self,
        request: Request<v1::PurgeQueueRequest>,
    ) -> Result<Response<Self::PurgeQueueStream>, Status> {
        let (unary, call) = Unary::of(&request);
        unary.answer(self.do_purge_queue(&call, &request).await)
    }

    async fn delete_queue(
        &self,
        request: Request<v1::DeleteQueueRequest>,
    ) -> Result<Response<Self::DeleteQueueStream>, Status> {
        let (unary, call) = Unary::of(&request);
        unary.answer(self.do_delete_queue(&call, &request).await)
    }

    async fn get_job(&self, request: Request<v1::GetJobRequest>) -> Result<Response<v1::GetJobResponse>, Status> {
        let (unary, call) = Unary::of(&request);
        unary.answer(self.do_get_job(&call, request.get_ref()).await)
    }

    async fn list_jobs(&self, request: Request<v1::ListJobsRequest>) -> Result<Response<v1::ListJobsResponse>, Status> {
        let (unary, call) = Unary::of(&request);
        unary.answer(self.do_list_jobs(&call, request.get_ref()).await)
    }

    async fn explain_job(
        &self,
        request: Request<v1::ExplainJobRequest>,
    ) -> Result<Response<v1::ExplainJobResponse>, Status> {
        let (unary, call) = Unary::of(&request);
        unary.answer(self.do_explain_job(&call, request.get_ref()).await)
    }

    async fn cancel_job(
        &self,
        request: Request<v1::CancelJobRequest>,
    ) -> Result<Response<v1::CancelJobResponse>, Status> {
        let (unary, call) = Unary::of(&request);
        unary.answer(self.do_cancel_job(&call, &request).await)
    }

    async fn run_job_now(
        &self,
        request: Request<v1::RunJobNowRequest>,
    ) -> Result<Response<v1::RunJobNowResponse>, Status> {
        let (unary, call) = Unary::of(&request);
        unary.answer(self.do_run_job_now(&call, &request).await)
    }

    async fn list_dead_jobs(
        &self,
        request: Request<v1::ListDeadJobsRequest>,
    ) -> Result<Response<v1::ListDeadJobsResponse>, Status> {
        let (unary, call) = Unary::of(&request);
        unary.answer(self.do_list_dead_jobs(&call, request.get_ref()).await)
    }

    async fn redrive_dead_jobs(
        &self,
        request: Request<v1::RedriveDeadJobsRequest>,
    ) -> Result<Response<Self::RedriveDeadJobsStream>, Status> {
        let (unary, call) = Unary::of(&request);
        unary.answer(self.do_redrive_dead_jobs(&call, &request).await)
    }

    async fn list_consumers(
        &self,
        request: Request<v1::ListConsumersRequest>,
    ) -> Result<Response<v1::ListConsumersResponse>, Status> {
        let (unary, call) = Unary::of(&request);
        unary.answer(self.do_list_consumers(&call, request.get_ref()).await)
    }
}
