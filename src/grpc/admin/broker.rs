//! What a client needs to know of the broker.

use super::AdminApi;
use crate::{
    grpc::{ApiOptions, convert},
    model::{Failure, Limits},
    store::Call,
    v1,
};

/// What does not change while the broker runs.
pub(super) struct Facts {
    pub(super) limits: Limits,
    wire_limits: v1::BrokerLimits,
    started_at: prost_types::Timestamp,
}

impl Facts {
    pub(super) fn of(options: &ApiOptions) -> Self {
        Self {
            limits: options.limits.clone(),
            wire_limits: convert::broker_limits(&options.limits, options.request_bytes, options.request_deadline),
            started_at: std::time::SystemTime::now().into(),
        }
    }
}

impl AdminApi {
    pub(super) async fn do_get_broker_info(
        &self,
        call: &Call,
        _request: &v1::GetBrokerInfoRequest,
    ) -> Result<v1::GetBrokerInfoResponse, Failure> {
        // A broker without a database is who it is all the same, and nobody should have to wait to hear that.
        let reachable = *self.store.availability().borrow();
        let (engine_version, schema_version) =
            if reachable { self.store.database_version(call).await.unwrap_or_default() } else { Default::default() };
        Ok(v1::GetBrokerInfoResponse {
            broker: self.dispatch.broker().to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            engine: self.store.system().to_owned(),
            engine_version,
            schema_version,
            newest_schema_version: self.store.newest_schema(),
            limits: Some(self.facts.wire_limits),
            started_at: Some(self.facts.started_at),
        })
    }
}
