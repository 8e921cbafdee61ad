//! Jobs as operators see and steer them.

use super::{AdminApi, Frames};
use crate::{
    model::{Failure, Reason},
    store::Call,
    v1,
};

impl AdminApi {
    pub(super) async fn do_get_job(
        &self,
        _call: &Call,
        _request: &v1::GetJobRequest,
    ) -> Result<v1::GetJobResponse, Failure> {
        Err(Failure::not_applied(Reason::Unimplemented, "not yet"))
    }

    pub(super) async fn do_list_jobs(
        &self,
        _call: &Call,
        _request: &v1::ListJobsRequest,
    ) -> Result<v1::ListJobsResponse, Failure> {
        Err(Failure::not_applied(Reason::Unimplemented, "not yet"))
    }

    pub(super) async fn do_explain_job(
        &self,
        _call: &Call,
        _request: &v1::ExplainJobRequest,
    ) -> Result<v1::ExplainJobResponse, Failure> {
        Err(Failure::not_applied(Reason::Unimplemented, "not yet"))
    }

    pub(super) async fn do_cancel_job(
        &self,
        _call: &Call,
        _request: &v1::CancelJobRequest,
    ) -> Result<v1::CancelJobResponse, Failure> {
        Err(Failure::not_applied(Reason::Unimplemented, "not yet"))
    }

    pub(super) async fn do_run_job_now(
        &self,
        _call: &Call,
        _request: &v1::RunJobNowRequest,
    ) -> Result<v1::RunJobNowResponse, Failure> {
        Err(Failure::not_applied(Reason::Unimplemented, "not yet"))
    }

    pub(super) async fn do_list_dead_jobs(
        &self,
        _call: &Call,
        _request: &v1::ListDeadJobsRequest,
    ) -> Result<v1::ListDeadJobsResponse, Failure> {
        Err(Failure::not_applied(Reason::Unimplemented, "not yet"))
    }

    pub(super) async fn do_redrive_dead_jobs(
        &self,
        _call: &Call,
        _request: &v1::RedriveDeadJobsRequest,
    ) -> Result<Frames<v1::RedriveDeadJobsResponse>, Failure> {
        Err(Failure::not_applied(Reason::Unimplemented, "not yet"))
    }

    pub(super) async fn do_list_consumers(
        &self,
        _call: &Call,
        _request: &v1::ListConsumersRequest,
    ) -> Result<v1::ListConsumersResponse, Failure> {
        Err(Failure::not_applied(Reason::Unimplemented, "not yet"))
    }
}
