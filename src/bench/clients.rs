//! Connections to the broker, and who calls over them.

use std::time::Duration;

use tokio_stream::StreamExt as _;
use tonic::{
    Request,
    metadata::{Ascii, MetadataValue},
    transport::{Channel, Endpoint},
};

use super::{
    BenchError,
    shape::{Shape, index},
};
use crate::v1::{
    DeleteQueueRequest, GetBrokerInfoRequest, GetBrokerInfoResponse,
    queue_admin_service_client::QueueAdminServiceClient, queue_service_client::QueueServiceClient,
};

/// Largest answer: a frame with the largest job.
const MAX_ANSWER: usize = 16 << 20;

/// All connections of a measurement.
#[derive(Debug, Clone)]
pub(super) struct Clients {
    channels: Vec<Channel>,
    callers: Vec<MetadataValue<Ascii>>,
    timeout: Duration,
}

/// One client: a share of a connection, and for whom it calls.
#[derive(Debug, Clone)]
pub(super) struct Client {
    channel: Channel,
    caller: MetadataValue<Ascii>,
    timeout: Duration,
}

impl Clients {
    pub(super) async fn connect(address: &str, shape: &Shape, timeout: Duration) -> Result<Self, BenchError> {
        let endpoint = Endpoint::from_shared(address.to_owned())
            .map_err(|error| BenchError::Wrong(format!("--address: {error}")))?
            .connect_timeout(timeout)
            .tcp_nodelay(true);
        let mut channels = Vec::new();
        for _ in 0..shape.connections.max(1) {
            let away = |_| BenchError::Unreachable(format!("cannot reach the broker at {address}"));
            channels.push(endpoint.connect().await.map_err(away)?);
        }
        let caller = |n: u32| {
            let name = if shape.callers <= 1 { "bench".to_owned() } else { format!("bench_{n}") };
            MetadataValue::try_from(name).map_err(|error| BenchError::Other(error.to_string()))
        };
        let callers = (0..shape.callers.max(1)).map(caller).collect::<Result<_, _>>()?;
        Ok(Self { channels, callers, timeout })
    }

    /// Client number `n`: connections and callers are shared out in turn.
    pub(super) fn client(&self, n: u32) -> Client {
        let n = index(u64::from(n));
        Client {
            channel: self.channels[n % self.channels.len()].clone(),
            caller: self.callers[n % self.callers.len()].clone(),
            timeout: self.timeout,
        }
    }

    pub(super) async fn broker_info(&self) -> Result<GetBrokerInfoResponse, BenchError> {
        let client = self.client(0);
        Ok(client.admin().get_broker_info(client.call(GetBrokerInfoRequest {})).await?.into_inner())
    }

    /// Client number `n` deletes a queue with all that is in it; adds to `removed` how many jobs that were, also where it fails in the middle.
    pub(super) async fn delete_queue(&self, n: u32, queue: &str, removed: &mut u64) -> Result<(), tonic::Status> {
        let client = self.client(n);
        let request = DeleteQueueRequest { queue: queue.to_owned(), purge: true };
        let mut frames = client.admin().delete_queue(client.stream(request)).await?.into_inner();
        let before = *removed;
        while let Some(frame) = frames.next().await {
            *removed = before + frame?.removed;
        }
        Ok(())
    }
}

impl Client {
    pub(super) fn queue(&self) -> QueueServiceClient<Channel> {
        QueueServiceClient::new(self.channel.clone()).max_decoding_message_size(MAX_ANSWER)
    }

    fn admin(&self) -> QueueAdminServiceClient<Channel> {
        QueueAdminServiceClient::new(self.channel.clone())
    }

    /// A call that has one answer, with its deadline.
    pub(super) fn call<T>(&self, body: T) -> Request<T> {
        let mut request = self.stream(body);
        request.set_timeout(self.timeout);
        request
    }

    /// A call whose answers come for as long as it takes.
    pub(super) fn stream<T>(&self, body: T) -> Request<T> {
        let mut request = Request::new(body);
        request.metadata_mut().insert("leasehold-caller", self.caller.clone());
        request
    }
}
