//! `StockAdminService`: the books of stock, and the switches that stop reservations.

use std::{pin::Pin, time::Duration};

use futures_util::Stream;
use tonic::{Request, Response, Status};

use crate::{
    grpc::{
        audit::Audit,
        convert::{self, SwitchChange},
        steps::{self, Stepped, Steps},
        unary::Unary,
    },
    model::Failure,
    store::{Call, Store, engine::VerifyWalk},
    v1,
};

/// Keys that one statement compares: each may have millions of entries.
const KEYS: usize = 20;
/// Between two steps of a comparison.
const BETWEEN: Duration = Duration::from_millis(5);

/// Frames of an answer that takes several steps.
type Frames<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// The service.
#[derive(Clone)]
pub(in crate::grpc) struct StockAdminApi {
    store: Store,
}

impl StockAdminApi {
    pub(in crate::grpc) fn new(store: Store) -> Self {
        Self { store }
    }

    fn verify(&self, request: &Request<v1::VerifyStockRequest>) -> Result<Frames<v1::VerifyStockResponse>, Failure> {
        let walk = convert::verify_request(request.get_ref(), KEYS)?;
        let verify = Verify { store: self.store.clone(), walk, compared: 0 };
        Ok(Box::pin(steps::run(verify, request, None)))
    }

    async fn list(&self, call: &Call, request: &v1::ListLedgerRequest) -> Result<v1::ListLedgerResponse, Failure> {
        let page = convert::ledger_page(request)?;
        let rows = self.store.ledger(call, page.key, page.before, page.size).await?;
        Ok(v1::ListLedgerResponse {
            next_page_token: convert::next_entries(request, page.size, &rows),
            entries: rows.iter().map(convert::entry_shown).collect(),
        })
    }

    async fn set_switch(
        &self,
        call: &Call,
        audit: Audit,
        request: &v1::SetStockSwitchRequest,
    ) -> Result<v1::SetStockSwitchResponse, Failure> {
        let audit = audit.about(SwitchChange(request));
        let answer = async {
            let (prefix, reason) = convert::switch_request(request)?;
            let switch = self.store.set_stock_switch(call, prefix, reason).await?;
            Ok(v1::SetStockSwitchResponse { stock_switch: switch.as_ref().map(convert::switch_shown) })
        };
        audit.end(answer.await, |_| String::new())
    }

    async fn list_switches(&self, call: &Call) -> Result<v1::ListStockSwitchesResponse, Failure> {
        let switches = self.store.stock_switches(call).await?;
        Ok(v1::ListStockSwitchesResponse { switches: switches.iter().map(convert::switch_shown).collect() })
    }
}

/// A comparison in steps.
struct Verify {
    store: Store,
    walk: VerifyWalk,
    compared: u64,
}

impl Steps for Verify {
    type Frame = v1::VerifyStockResponse;

    async fn step(&mut self, call: &Call) -> Result<Stepped<Self::Frame>, Failure> {
        let step = self.store.verify_stock(call, self.walk.clone()).await?;
        self.compared += step.compared as u64;
        let frame = convert::verified_shown(self.compared, &step);
        let next = step.next.is_some().then_some(BETWEEN);
        self.walk.after = step.next;
        Ok(Stepped { frame, next })
    }

    fn done(&self) -> String {
        format!("compared={}", self.compared)
    }

    fn changed(&self) -> bool {
        false
    }
}

#[tonic::async_trait]
impl v1::stock_admin_service_server::StockAdminService for StockAdminApi {
    type VerifyStockStream = Frames<v1::VerifyStockResponse>;

    async fn verify_stock(
        &self,
        request: Request<v1::VerifyStockRequest>,
    ) -> Result<Response<Self::VerifyStockStream>, Status> {
        let (unary, _) = Unary::of(&request);
        unary.answer(self.verify(&request))
    }

    async fn list_ledger(
        &self,
        request: Request<v1::ListLedgerRequest>,
    ) -> Result<Response<v1::ListLedgerResponse>, Status> {
        let (unary, call) = Unary::of(&request);
        unary.answer(self.list(&call, request.get_ref()).await)
    }

    async fn set_stock_switch(
        &self,
        request: Request<v1::SetStockSwitchRequest>,
    ) -> Result<Response<v1::SetStockSwitchResponse>, Status> {
        let (unary, call) = Unary::of(&request);
        let audit = Audit::of("StockAdminService/SetStockSwitch", &request);
        unary.answer(self.set_switch(&call, audit, request.get_ref()).await)
    }

    async fn list_stock_switches(
        &self,
        request: Request<v1::ListStockSwitchesRequest>,
    ) -> Result<Response<v1::ListStockSwitchesResponse>, Status> {
        let (unary, call) = Unary::of(&request);
        unary.answer(self.list_switches(&call).await)
    }
}
