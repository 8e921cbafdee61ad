//! The broker's limits, for clients.

use std::time::Duration;

use super::time::duration;
use crate::{model::Limits, v1};

/// As the wire has them.
pub(in crate::grpc) fn broker_limits(limits: &Limits, request_bytes: usize, deadline: Duration) -> v1::BrokerLimits {
    let few = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    v1::BrokerLimits {
        payload_bytes: limits.payload_bytes as u64,
        headers: few(limits.header_entries),
        header_bytes: limits.header_bytes as u64,
        batch_jobs: few(limits.batch),
        request_bytes: request_bytes as u64,
        max_in_flight: limits.max_in_flight,
        queues_per_stream: few(limits.queues_per_stream),
        shortest_lease: Some(duration(limits.lease_min)),
        longest_lease: Some(duration(limits.lease_max)),
        longest_delay: Some(duration(limits.delay)),
        max_attempts: limits.max_attempts.into(),
        request_deadline: Some(duration(deadline)),
        stock: Some(v1::StockLimits {
            lines: few(limits.stock.lines),
            quantity: limits.stock.quantity,
            jobs: few(limits.stock.jobs),
            adjustments: few(limits.stock.adjustments),
            usual_time_to_live: Some(duration(limits.stock.usual_time_to_live)),
            shortest_time_to_live: Some(duration(limits.stock.shortest_time_to_live)),
            longest_time_to_live: Some(duration(limits.stock.longest_time_to_live)),
        }),
    }
}
