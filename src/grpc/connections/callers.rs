//! Callers' lane time and budgets.

use super::{ConnectionsApi, Frames};
use crate::{
    model::{Failure, Reason},
    store::Call,
    v1,
};

impl ConnectionsApi {
    pub(super) async fn do_list_callers(
        &self,
        _call: &Call,
        _request: &v1::ListCallersRequest,
    ) -> Result<v1::ListCallersResponse, Failure> {
        Err(Failure::not_applied(Reason::Unimplemented, "not yet"))
    }

    pub(super) async fn do_watch_callers(
        &self,
        _call: &Call,
        _request: &v1::WatchCallersRequest,
    ) -> Result<Frames<v1::WatchCallersResponse>, Failure> {
        Err(Failure::not_applied(Reason::Unimplemented, "not yet"))
    }

    pub(super) async fn do_set_caller_budget(
        &self,
        _call: &Call,
        _request: &v1::SetCallerBudgetRequest,
    ) -> Result<v1::SetCallerBudgetResponse, Failure> {
        Err(Failure::not_applied(Reason::Unimplemented, "not yet"))
    }
}
