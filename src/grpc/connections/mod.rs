//! `ConnectionService`: who holds the database's connections.

mod callers;
mod sessions;

use std::{pin::Pin, sync::Arc};

use futures_util::Stream;
use tokio::sync::Semaphore;
use tonic::{Request, Response, Status};

use self::callers::Watch;
use super::{
    audit::Audit,
    connection::Connection,
    unary::{Unary, scope},
};
use crate::{connections::Observer, store::Store, v1};

/// Frames of an answer that goes on.
type Frames<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// The service.
#[derive(Clone)]
pub(super) struct ConnectionsApi {
    store: Store,
    observer: Observer,
    /// This replica's name.
    replica: Arc<str>,
    /// Room for streams of snapshots.
    watchers: Arc<Semaphore>,
}

impl ConnectionsApi {
    pub(super) fn new(store: Store, observer: Observer, replica: &str, watchers: usize) -> Self {
        Self { store, observer, replica: replica.into(), watchers: Arc::new(Semaphore::new(watchers)) }
    }
}

#[tonic::async_trait]
impl v1::connection_service_server::ConnectionService for ConnectionsApi {
    type WatchCallersStream = Frames<v1::WatchCallersResponse>;

    async fn list_callers(
        &self,
        request: Request<v1::ListCallersRequest>,
    ) -> Result<Response<v1::ListCallersResponse>, Status> {
        let (unary, _) = Unary::of(&request);
        unary.answer(self.do_list_callers(*request.get_ref()))
    }

    async fn watch_callers(
        &self,
        request: Request<v1::WatchCallersRequest>,
    ) -> Result<Response<Self::WatchCallersStream>, Status> {
        let (unary, _) = Unary::of(&request);
        let connection = request.extensions().get::<Connection>().expect("every call comes over a connection");
        let watch = Watch { deadline: scope(&request).stream_deadline, ending: connection.ending().clone() };
        unary.answer(self.do_watch_callers(watch, *request.get_ref()))
    }

    async fn list_database_sessions(
        &self,
        request: Request<v1::ListDatabaseSessionsRequest>,
    ) -> Result<Response<v1::ListDatabaseSessionsResponse>, Status> {
        let (unary, call) = Unary::of(&request);
        unary.answer(self.do_list_database_sessions(&call, request.get_ref()).await)
    }

    async fn get_vacuum_horizon(
        &self,
        request: Request<v1::GetVacuumHorizonRequest>,
    ) -> Result<Response<v1::GetVacuumHorizonResponse>, Status> {
        let (unary, call) = Unary::of(&request);
        unary.answer(self.do_get_vacuum_horizon(&call, request.get_ref()).await)
    }

    async fn set_caller_budget(
        &self,
        request: Request<v1::SetCallerBudgetRequest>,
    ) -> Result<Response<v1::SetCallerBudgetResponse>, Status> {
        let (unary, call) = Unary::of(&request);
        let audit = Audit::of("ConnectionService/SetCallerBudget", &request);
        unary.answer(self.do_set_caller_budget(&call, audit, request.get_ref()).await)
    }
}
