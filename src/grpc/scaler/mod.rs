//! `externalscaler.ExternalScaler`: KEDA's questions about queues, so that their workers scale with the jobs, from none on.
//!
//! Whoever asks, the database is asked as `leasehold.scaler`, one question after the other, and what was found is good for a
//! moment: many triggers, or a client that asks without pause, take a lane no more than once at a time.

mod activity;
mod gauge;
mod watch;

use std::{pin::Pin, sync::Arc};

use futures_util::{Stream, StreamExt as _, stream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::{Request, Response, Status};

use self::{gauge::Gauge, watch::Watch};
use super::{
    ApiOptions,
    connection::Connection,
    convert,
    unary::{Unary, scope},
};
use crate::{
    keda,
    model::{Failure, Reason},
    store::Store,
};

/// Frames of an answer that goes on.
type Frames<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// The service.
#[derive(Clone)]
pub(super) struct ScalerApi {
    gauge: Arc<Gauge>,
    watch: Arc<Watch>,
    /// Room for streams.
    streams: Arc<Semaphore>,
    /// This replica's name.
    replica: Arc<str>,
}

impl ScalerApi {
    pub(super) fn new(store: Store, options: &ApiOptions) -> Self {
        Self {
            gauge: Arc::new(Gauge::new(store.clone())),
            watch: Arc::new(Watch::new(store, options.scaler_interval)),
            streams: Arc::new(Semaphore::new(options.scaler_streams)),
            replica: options.replica.as_str().into(),
        }
    }

    fn admit(&self) -> Result<OwnedSemaphorePermit, Failure> {
        Arc::clone(&self.streams).try_acquire_owned().map_err(|_| {
            let message = "this replica serves as many of the scaler's streams as it may (scaler.streams)";
            Failure::not_applied(Reason::StreamLimit, message).about(format!("replica:{}", self.replica))
        })
    }

    async fn do_stream_is_active(
        &self,
        request: &Request<keda::ScaledObjectRef>,
    ) -> Result<Frames<keda::IsActiveResponse>, Failure> {
        let scaling = convert::scaling(request.get_ref())?;
        let room = self.admit()?;
        let scope = scope(request);
        // Subscribed before the first reading, so that what changes meanwhile is not missed.
        let seen = Watch::subscribe(&self.watch, &scaling.queue);
        let first = self.gauge.load(scope.deadline, &scaling.queue).await?;
        let states = activity::states(scaling, first, seen).map(move |result| {
            let _until_the_stream_is_dropped = &room;
            keda::IsActiveResponse { result }
        });
        Ok(until_the_end(request, states))
    }

    fn do_stream_metric_spec(
        &self,
        request: &Request<keda::ScaledObjectRef>,
    ) -> Result<Frames<keda::GetMetricSpecResponse>, Failure> {
        let specs = convert::metric_specs(&convert::scaling(request.get_ref())?);
        let room = self.admit()?;
        let specs = stream::once(async { specs }).chain(stream::pending()).map(move |specs| {
            let _until_the_stream_is_dropped = &room;
            specs
        });
        Ok(until_the_end(request, specs))
    }
}

/// `frames` until the client's own deadline, or until the connection takes no new calls.
fn until_the_end<T: Send + 'static>(
    request: &Request<keda::ScaledObjectRef>,
    frames: impl Stream<Item = T> + Send + 'static,
) -> Frames<T> {
    let connection = request.extensions().get::<Connection>().expect("every call comes over a connection");
    let (ending, deadline) = (connection.ending().clone(), scope(request).stream_deadline);
    let over = async move {
        match deadline {
            Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
            None => std::future::pending().await,
        }
    };
    let end = async move {
        tokio::select! { () = ending.cancelled_owned() => {} () = over => {} }
    };
    Box::pin(frames.map(Ok).take_until(Box::pin(end)))
}

#[tonic::async_trait]
impl keda::external_scaler_server::ExternalScaler for ScalerApi {
    type StreamIsActiveStream = Frames<keda::IsActiveResponse>;
    type StreamMetricSpecStream = Frames<keda::GetMetricSpecResponse>;

    async fn is_active(
        &self,
        request: Request<keda::ScaledObjectRef>,
    ) -> Result<Response<keda::IsActiveResponse>, Status> {
        let (unary, call) = Unary::of(&request);
        let answer = async {
            let scaling = convert::scaling(request.get_ref())?;
            let load = self.gauge.load(call.deadline, &scaling.queue).await?;
            Ok(keda::IsActiveResponse { result: scaling.is_active(&load) })
        };
        unary.answer(answer.await)
    }

    async fn stream_is_active(
        &self,
        request: Request<keda::ScaledObjectRef>,
    ) -> Result<Response<Self::StreamIsActiveStream>, Status> {
        let (unary, _) = Unary::of(&request);
        unary.answer(self.do_stream_is_active(&request).await)
    }

    async fn get_metric_spec(
        &self,
        request: Request<keda::ScaledObjectRef>,
    ) -> Result<Response<keda::GetMetricSpecResponse>, Status> {
        let (unary, _) = Unary::of(&request);
        unary.answer(convert::scaling(request.get_ref()).map(|scaling| convert::metric_specs(&scaling)))
    }

    async fn get_metrics(
        &self,
        request: Request<keda::GetMetricsRequest>,
    ) -> Result<Response<keda::GetMetricsResponse>, Status> {
        let (unary, call) = Unary::of(&request);
        let answer = async {
            let request = request.get_ref();
            let scaling = convert::scaling(convert::scaled_object(request)?)?;
            let values = convert::metric_values(&scaling, &request.metric_name)?;
            Ok(values(&self.gauge.load(call.deadline, &scaling.queue).await?))
        };
        unary.answer(answer.await)
    }

    async fn stream_metric_spec(
        &self,
        request: Request<keda::ScaledObjectRef>,
    ) -> Result<Response<Self::StreamMetricSpecStream>, Status> {
        let (unary, _) = Unary::of(&request);
        unary.answer(self.do_stream_metric_spec(&request))
    }
}
