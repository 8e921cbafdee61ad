//! The database's own sessions, and who holds back its vacuum.

use super::ConnectionsApi;
use crate::{grpc::convert, model::Failure, store::Call, v1};

impl ConnectionsApi {
    pub(super) async fn do_list_database_sessions(
        &self,
        call: &Call,
        request: &v1::ListDatabaseSessionsRequest,
    ) -> Result<v1::ListDatabaseSessionsResponse, Failure> {
        let view = self.observer.sessions(call).await?;
        Ok(convert::database_sessions(&view, request.totals_only))
    }

    pub(super) async fn do_get_vacuum_horizon(
        &self,
        call: &Call,
        _request: &v1::GetVacuumHorizonRequest,
    ) -> Result<v1::GetVacuumHorizonResponse, Failure> {
        let horizon = self.observer.horizon(call).await?;
        Ok(convert::vacuum_horizon(&horizon))
    }
}
