//! The broker as a client of its public API sees it: where it is, who calls, how long a call may take, how a call fails.

mod advice;
mod failed;
mod pauses;

use std::time::Duration;

use clap::Args;
use tonic::{
    Request,
    metadata::{Ascii, MetadataValue},
    transport::{Channel, Endpoint},
};

pub(super) use self::{
    failed::{Failed, outcome_is_unknown},
    pauses::Pauses,
};
use super::{Exit, flag};
use crate::{
    model::Caller,
    v1::{
        connection_service_client::ConnectionServiceClient, queue_admin_service_client::QueueAdminServiceClient,
        queue_service_client::QueueServiceClient, reservation_service_client::ReservationServiceClient,
        stock_admin_service_client::StockAdminServiceClient,
    },
};

/// Largest answer: a page of jobs with their payloads, or a frame with the largest job.
const MAX_ANSWER: usize = 16 << 20;

/// Which broker is meant, and who calls. The same for all commands that speak to one.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Broker")]
pub(super) struct Target {
    /// Where the broker serves gRPC
    #[arg(long, env = "LEASEHOLD_ADDRESS", hide_env_values = true, value_name = "URL", value_parser = flag::address)]
    #[arg(default_value = "http://127.0.0.1:7070")]
    pub(super) address: String,
    /// Business process on whose behalf it calls
    #[arg(long, env = "LEASEHOLD_CALLER", hide_env_values = true, value_name = "NAME", value_parser = flag::caller)]
    #[arg(default_value = "leasehold-cli")]
    pub(super) caller: Caller,
    /// Longest that one call may take
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = flag::timeout)]
    pub(super) timeout: Duration,
    /// Longest that connecting may take
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = flag::timeout)]
    pub(super) connect_timeout: Duration,
}

impl Target {
    /// Connects.
    pub(super) async fn connect(&self) -> Result<Broker, Failed> {
        let channel = self.endpoint()?.connect().await.map_err(|error| Failed::unreachable(&self.address, &error))?;
        self.broker(channel)
    }

    /// A broker that is connected to at the first call, and again whenever the connection was lost.
    pub(super) fn connect_lazily(&self) -> Result<Broker, Failed> {
        self.broker(self.endpoint()?.connect_lazy())
    }

    fn endpoint(&self) -> Result<Endpoint, Failed> {
        let endpoint = Endpoint::from_shared(self.address.clone())
            .map_err(|error| Failed::new(Exit::BadConfiguration, format!("--address: {error}")))?;
        let every = Duration::from_secs(20);
        Ok(endpoint.connect_timeout(self.connect_timeout).http2_keep_alive_interval(every).keep_alive_timeout(every))
    }

    fn broker(&self, channel: Channel) -> Result<Broker, Failed> {
        let caller = MetadataValue::try_from(self.caller.as_str())
            .map_err(|error| Failed::new(Exit::BadConfiguration, format!("--caller: {error}")))?;
        Ok(Broker { channel, caller, timeout: self.timeout })
    }
}

/// A connection to the broker.
#[derive(Debug, Clone)]
pub(super) struct Broker {
    channel: Channel,
    caller: MetadataValue<Ascii>,
    timeout: Duration,
}

impl Broker {
    /// Jobs in, jobs out.
    pub(super) fn queue(&self) -> QueueServiceClient<Channel> {
        QueueServiceClient::new(self.channel.clone()).max_decoding_message_size(MAX_ANSWER)
    }

    /// What operators see and steer.
    pub(super) fn admin(&self) -> QueueAdminServiceClient<Channel> {
        QueueAdminServiceClient::new(self.channel.clone()).max_decoding_message_size(MAX_ANSWER)
    }

    /// Who holds the database's connections.
    pub(super) fn connections(&self) -> ConnectionServiceClient<Channel> {
        ConnectionServiceClient::new(self.channel.clone()).max_decoding_message_size(MAX_ANSWER)
    }

    /// Stock and reservations.
    pub(super) fn stock(&self) -> ReservationServiceClient<Channel> {
        ReservationServiceClient::new(self.channel.clone()).max_decoding_message_size(MAX_ANSWER)
    }

    /// What operators of stock see and steer.
    pub(super) fn stock_admin(&self) -> StockAdminServiceClient<Channel> {
        StockAdminServiceClient::new(self.channel.clone()).max_decoding_message_size(MAX_ANSWER)
    }

    /// Longest that one call may take.
    pub(super) fn timeout(&self) -> Duration {
        self.timeout
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
