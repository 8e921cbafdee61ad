//! `QueueService`: converts and calls.

use std::{
    panic::AssertUnwindSafe,
    pin::Pin,
    sync::Arc,
    time::{Duration, SystemTime},
};

use futures_util::{Stream, StreamExt};
use tonic::{Request, Response, Status};

use super::{
    connection::Connection,
    convert::{self, Origin, Tokens},
    layers::{CallScope, PANICKED, call_trace},
    status,
    unary::{Unary, scope},
};
use crate::{
    dispatch::{Dispatch, Frame},
    model::{Failure, LeaseToken, Limits, QueueId},
    store::{
        Call, Store,
        engine::{ExtendRow, Held},
    },
    telemetry::Metrics,
    v1,
};

/// The service.
#[derive(Clone)]
pub(super) struct QueueApi {
    store: Store,
    dispatch: Dispatch,
    limits: Arc<Limits>,
    metrics: Option<Metrics>,
}

impl QueueApi {
    pub(super) fn new(store: Store, dispatch: Dispatch, limits: Limits, metrics: Option<Metrics>) -> Self {
        Self { store, dispatch, limits: Arc::new(limits), metrics }
    }

    async fn store_jobs(
        &self,
        call: &Call,
        request: Request<v1::EnqueueRequest>,
    ) -> Result<v1::EnqueueResponse, Failure> {
        let trace = call_trace(request.metadata());
        let jobs = convert::new_jobs(request.into_inner(), &self.limits, trace.as_ref(), SystemTime::now())?;
        let stored = self.store.enqueue(call, jobs).await?;
        // Those without a time are duplicates or wait behind their key: nothing became ready.
        self.readied(stored.iter().filter(|job| job.row.ready_in.is_some()).map(|job| (job.queue, job.row.ready_in)));
        Ok(convert::enqueued(&stored))
    }

    async fn end_leases(&self, call: &Call, request: &v1::AckRequest) -> Result<v1::AckResponse, Failure> {
        let tokens = lease_tokens(&request.lease_tokens, &self.limits)?;
        let leases = tokens.leases();
        if leases.is_empty() {
            return convert::acked(&tokens, &[]);
        }
        let rows = self.store.ack(call, leases).await?;
        self.settled(tokens.with(&rows).map(|(token, row)| (token, row.held)));
        self.readied(rows.iter().filter_map(|row| row.readied.map(|queue| (queue, None))));
        convert::acked(&tokens, &rows)
    }

    async fn give_jobs_back(&self, call: &Call, request: &v1::NackRequest) -> Result<v1::NackResponse, Failure> {
        let (tokens, items) = convert::nack_items(request, &self.limits, rand::random)?;
        if items.is_empty() {
            return convert::nacked(&tokens, &[]);
        }
        let rows = self.store.nack(call, items).await?;
        self.settled(tokens.with(&rows).map(|(token, row)| (token, row.held)));
        self.readied(rows.iter().filter_map(|row| row.readied.map(|queue| (queue, row.ready_in))));
        convert::nacked(&tokens, &rows)
    }

    async fn move_ends(&self, call: &Call, request: &v1::ExtendRequest) -> Result<v1::ExtendResponse, Failure> {
        let duration = convert::extend_duration(request.lease_duration.as_ref(), &self.limits);
        let tokens = lease_tokens(&request.lease_tokens, &self.limits);
        let (tokens, duration) = both(tokens, duration)?;
        let items: Vec<_> = tokens.leases().into_iter().map(|lease| ExtendRow { lease, duration }).collect();
        if items.is_empty() {
            return convert::extended(&tokens, &[]);
        }
        let rows = self.store.extend(call, items).await?;
        for (token, row) in tokens.with(&rows).filter(|(_, row)| row.held == Held::Ok) {
            self.dispatch.extended(&token, row.remaining);
        }
        let lost = |held| matches!(held, Held::Gone | Held::LeaseLost);
        self.settled(tokens.with(&rows).map(|(token, row)| (token, row.held)).filter(|&(_, held)| lost(held)));
        convert::extended(&tokens, &rows)
    }

    /// Jobs became ready in these queues, now or after a while.
    fn readied(&self, queues: impl Iterator<Item = (QueueId, Option<Duration>)>) {
        let queues: Vec<_> = queues.collect();
        if !queues.is_empty() {
            self.dispatch.ready(&queues);
        }
    }

    /// The credit of leases that decide nothing any more comes back. Busy ones are undecided and keep theirs.
    fn settled(&self, leases: impl Iterator<Item = (LeaseToken, Held)>) {
        let settled: Vec<_> = leases.filter(|&(_, held)| held != Held::Busy).map(|(token, _)| token).collect();
        if !settled.is_empty() {
            self.dispatch.settled(&settled);
        }
    }
}

fn lease_tokens(sent: &[String], limits: &Limits) -> Result<Tokens, Failure> {
    Tokens::parse("lease_tokens", sent.iter().map(String::as_str), limits)
}

/// Both values, or the faults of both.
fn both<A, B>(a: Result<A, Failure>, b: Result<B, Failure>) -> Result<(A, B), Failure> {
    match (a, b) {
        (Ok(a), Ok(b)) => Ok((a, b)),
        (Err(a), Err(b)) => Err(Failure::invalid(a.invalid.into_iter().chain(b.invalid).collect())),
        (Err(failure), _) | (_, Err(failure)) => Err(failure),
    }
}

#[tonic::async_trait]
impl v1::queue_service_server::QueueService for QueueApi {
    type LeaseStream = Pin<Box<dyn Stream<Item = Result<v1::LeaseResponse, Status>> + Send>>;

    async fn enqueue(&self, request: Request<v1::EnqueueRequest>) -> Result<Response<v1::EnqueueResponse>, Status> {
        let (unary, call) = Unary::of(&request);
        unary.answer(self.store_jobs(&call, request).await)
    }

    async fn lease(&self, request: Request<v1::LeaseRequest>) -> Result<Response<Self::LeaseStream>, Status> {
        let CallScope { id, caller, stream_deadline, .. } = scope(&request);
        let connection = request.extensions().get::<Connection>().expect("every call comes over a connection").clone();
        let failed = move |failure: Failure| status::of(&failure, id, stream_deadline);
        let origin = Origin {
            caller,
            deadline: stream_deadline,
            closing: connection.closing().clone(),
            peer: connection.peer().to_string(),
        };
        let spec = convert::stream_spec(request.into_inner(), &self.limits, origin).map_err(failed)?;
        let room = connection.admit_stream().map_err(failed)?;
        let frames = self.dispatch.open(spec).map_err(failed)?;
        let metrics = self.metrics.clone();
        let frames = AssertUnwindSafe(frames).catch_unwind().map(move |frame| {
            let _until_the_stream_is_dropped = &room;
            if let (Some(metrics), Ok(Ok(Frame::Jobs(jobs)))) = (&metrics, &frame) {
                metrics.delivered(jobs.len(), jobs.iter().filter(|sent| sent.job.lease_number > 1).count());
            }
            match frame {
                Ok(frame) => frame.map(convert::frame).map_err(failed),
                Err(_panic) => Err(failed(Failure::internal(PANICKED))),
            }
        });
        Ok(Response::new(Box::pin(frames)))
    }

    async fn ack(&self, request: Request<v1::AckRequest>) -> Result<Response<v1::AckResponse>, Status> {
        let (unary, call) = Unary::of(&request);
        unary.answer(self.end_leases(&call, request.get_ref()).await)
    }

    async fn nack(&self, request: Request<v1::NackRequest>) -> Result<Response<v1::NackResponse>, Status> {
        let (unary, call) = Unary::of(&request);
        unary.answer(self.give_jobs_back(&call, request.get_ref()).await)
    }

    async fn extend(&self, request: Request<v1::ExtendRequest>) -> Result<Response<v1::ExtendResponse>, Status> {
        let (unary, call) = Unary::of(&request);
        unary.answer(self.move_ends(&call, request.get_ref()).await)
    }
}
