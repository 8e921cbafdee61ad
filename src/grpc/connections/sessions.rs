//! The database's own sessions, and who holds back its vacuum.

use super::ConnectionsApi;
use crate::{
    model::{Failure, Reason},
    store::Call,
    v1,
};

impl ConnectionsApi {
    pub(super) async fn do_list_database_sessions(
        &self,
        _call: &Call,
        _request: &v1::ListDatabaseSessionsRequest,
    ) -> Result<v1::ListDatabaseSessionsResponse, Failure> {
        Err(Failure::not_applied(Reason::Unimplemented, "not yet"))
    }

    pub(super) async fn do_get_vacuum_horizon(
        &self,
        _call: &Call,
        _request: &v1::GetVacuumHorizonRequest,
    ) -> Result<v1::GetVacuumHorizonResponse, Failure> {
        Err(Failure::not_applied(Reason::Unimplemented, "not yet"))
    }
}
