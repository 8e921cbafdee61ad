//! A client of the broker that says for which process it calls.

use std::time::Duration;

use tonic::{
    Request,
    metadata::MetadataValue,
    transport::{Channel, Endpoint},
};

use super::process::Process;
use crate::v1::queue_service_client::QueueServiceClient;

/// Generated stubs.
pub(super) type Client = QueueServiceClient<Channel>;

/// Connects to the broker.
pub(super) async fn connect(address: std::net::SocketAddr) -> Result<Client, tonic::transport::Error> {
    let endpoint = Endpoint::from_shared(format!("http://{address}"))?.connect_timeout(Duration::from_secs(5));
    Ok(QueueServiceClient::new(endpoint.connect().await?).max_decoding_message_size(16 << 20))
}

/// A call of a process.
pub(super) fn call<T>(process: &Process, body: T) -> Request<T> {
    let mut request = Request::new(body);
    request.metadata_mut().insert("leasehold-caller", MetadataValue::from_static(process.caller));
    request
}

/// A unary call of a process, with a deadline.
pub(super) fn timed_call<T>(process: &Process, body: T) -> Request<T> {
    let mut request = call(process, body);
    request.set_timeout(Duration::from_secs(10));
    request
}
