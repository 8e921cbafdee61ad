//! `ReservationService`: converts and calls. `StockAdminService` is in `stock_admin`.

mod stock_admin;

use std::{sync::Arc, time::SystemTime};

use tonic::{Request, Response, Status};

pub(super) use self::stock_admin::StockAdminApi;
use super::{
    convert::{self, Reserve},
    layers::call_trace,
    unary::Unary,
};
use crate::{
    dispatch::Dispatch,
    model::{Failure, JobId, Limits, StockKey},
    store::{Call, Reservation, Store, Stored},
    v1,
};

/// The service.
#[derive(Clone)]
pub(super) struct ReservationApi {
    store: Store,
    dispatch: Dispatch,
    limits: Arc<Limits>,
}

impl ReservationApi {
    pub(super) fn new(store: Store, dispatch: Dispatch, limits: Limits) -> Self {
        Self { store, dispatch, limits: Arc::new(limits) }
    }

    async fn change_stock(
        &self,
        call: &Call,
        request: &v1::AdjustStockRequest,
    ) -> Result<v1::AdjustStockResponse, Failure> {
        let new = convert::adjust_request(request, &self.limits.stock)?;
        let made = self.store.adjust_stock(call, new).await?;
        Ok(v1::AdjustStockResponse {
            stocks: made.stocks.iter().map(convert::stock_shown).collect(),
            duplicate: made.duplicate,
        })
    }

    async fn show_stock(&self, call: &Call, request: &v1::GetStockRequest) -> Result<v1::GetStockResponse, Failure> {
        let page = convert::stocks_page(request)?;
        let stocks = match page.location {
            Some(location) => {
                let key = StockKey { item: page.item, location };
                self.store.stock(call, key).await?.into_iter().collect()
            }
            None => self.store.stocks(call, &page.item, page.after, page.size).await?,
        };
        Ok(v1::GetStockResponse {
            next_page_token: convert::next_stocks(request, page.size, &stocks),
            stocks: stocks.iter().map(convert::stock_shown).collect(),
        })
    }

    async fn hold(&self, call: &Call, request: Request<v1::ReserveRequest>) -> Result<v1::ReserveResponse, Failure> {
        let trace = call_trace(request.metadata());
        let by = Reserve { limits: &self.limits, trace: trace.as_ref(), now: SystemTime::now() };
        let request = request.into_inner();
        let expected = convert::shadow_expected(request.shadow.as_ref());
        match convert::with_shadow(convert::reserve_request(request, &by), expected)? {
            (new, None) => Ok(self.held(&self.store.reserve(call, new).await?)),
            (new, Some(expected)) => {
                let mirrored = self.store.mirror(call, new, expected).await?;
                let held = mirrored.reservation.as_ref().map(|reserved| self.held(reserved)).unwrap_or_default();
                Ok(v1::ReserveResponse { shadow: Some(convert::shadow_shown(&mirrored)), ..held })
            }
        }
    }

    fn held(&self, reserved: &Reservation) -> v1::ReserveResponse {
        self.readied(&reserved.stored);
        v1::ReserveResponse {
            reservation: Some(convert::reservation_shown(&reserved.row)),
            duplicate: reserved.duplicate,
            job_ids: shown(&reserved.row.jobs),
            shadow: None,
        }
    }

    async fn commit(
        &self,
        call: &Call,
        request: Request<v1::CommitReservationRequest>,
    ) -> Result<v1::CommitReservationResponse, Failure> {
        let trace = call_trace(request.metadata());
        let by = Reserve { limits: &self.limits, trace: trace.as_ref(), now: SystemTime::now() };
        let commit = convert::commit_request(request.into_inner(), &by)?;
        let ended = self.store.commit_reservation(call, commit.reservation, commit.jobs).await?;
        self.readied(&ended.stored);
        Ok(v1::CommitReservationResponse {
            reservation: Some(convert::reservation_shown(&ended.row)),
            job_ids: shown(&ended.row.commit_jobs),
            duplicate: ended.duplicate,
        })
    }

    async fn release(
        &self,
        call: &Call,
        request: &v1::ReleaseReservationRequest,
    ) -> Result<v1::ReleaseReservationResponse, Failure> {
        let ended = self.store.release_reservation(call, convert::release_request(request)?).await?;
        Ok(v1::ReleaseReservationResponse { reservation: Some(convert::reservation_shown(&ended.row)) })
    }

    async fn extend(
        &self,
        call: &Call,
        request: &v1::ExtendReservationRequest,
    ) -> Result<v1::ExtendReservationResponse, Failure> {
        let (reservation, time_to_live) = convert::extend_request(request, &self.limits)?;
        let row = self.store.extend_reservation(call, reservation, time_to_live).await?;
        Ok(v1::ExtendReservationResponse { reservation: Some(convert::reservation_shown(&row)) })
    }

    async fn find(
        &self,
        call: &Call,
        request: &v1::GetReservationRequest,
    ) -> Result<v1::GetReservationResponse, Failure> {
        let row = self.store.reservation(call, convert::find_request(request)?).await?;
        Ok(v1::GetReservationResponse { reservation: Some(convert::reservation_shown(&row)) })
    }

    /// Jobs became ready, now or after a while; those without a time are duplicates or wait behind their key.
    fn readied(&self, stored: &[Stored]) {
        let ready = stored.iter().filter(|job| job.row.ready_in.is_some());
        let queues: Vec<_> = ready.map(|job| (job.queue, job.row.ready_in)).collect();
        if !queues.is_empty() {
            self.dispatch.ready(&queues);
        }
    }
}

fn shown(jobs: &[JobId]) -> Vec<String> {
    jobs.iter().map(ToString::to_string).collect()
}

#[tonic::async_trait]
impl v1::reservation_service_server::ReservationService for ReservationApi {
    async fn adjust_stock(
        &self,
        request: Request<v1::AdjustStockRequest>,
    ) -> Result<Response<v1::AdjustStockResponse>, Status> {
        let (unary, call) = Unary::of(&request);
        unary.answer(self.change_stock(&call, request.get_ref()).await)
    }

    async fn get_stock(&self, request: Request<v1::GetStockRequest>) -> Result<Response<v1::GetStockResponse>, Status> {
        let (unary, call) = Unary::of(&request);
        unary.answer(self.show_stock(&call, request.get_ref()).await)
    }

    async fn reserve(&self, request: Request<v1::ReserveRequest>) -> Result<Response<v1::ReserveResponse>, Status> {
        let (unary, call) = Unary::of(&request);
        unary.answer(self.hold(&call, request).await)
    }

    async fn commit_reservation(
        &self,
        request: Request<v1::CommitReservationRequest>,
    ) -> Result<Response<v1::CommitReservationResponse>, Status> {
        let (unary, call) = Unary::of(&request);
        unary.answer(self.commit(&call, request).await)
    }

    async fn release_reservation(
        &self,
        request: Request<v1::ReleaseReservationRequest>,
    ) -> Result<Response<v1::ReleaseReservationResponse>, Status> {
        let (unary, call) = Unary::of(&request);
        unary.answer(self.release(&call, request.get_ref()).await)
    }

    async fn extend_reservation(
        &self,
        request: Request<v1::ExtendReservationRequest>,
    ) -> Result<Response<v1::ExtendReservationResponse>, Status> {
        let (unary, call) = Unary::of(&request);
        unary.answer(self.extend(&call, request.get_ref()).await)
    }

    async fn get_reservation(
        &self,
        request: Request<v1::GetReservationRequest>,
    ) -> Result<Response<v1::GetReservationResponse>, Status> {
        let (unary, call) = Unary::of(&request);
        unary.answer(self.find(&call, request.get_ref()).await)
    }
}
