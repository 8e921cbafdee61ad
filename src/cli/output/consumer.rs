//! Lease streams as operators see them.

use serde::Serialize;

use super::{table::Table, time};
use crate::v1::Consumer;

#[derive(Serialize)]
struct ConsumerJson<'a> {
    stream_id: &'a str,
    replica: &'a str,
    consumer: &'a str,
    peer: &'a str,
    caller: &'a str,
    queues: &'a [String],
    max_in_flight: u32,
    in_flight: u32,
    oldest_lease_age_seconds: Option<f64>,
    opened_at: Option<String>,
    seen_at: Option<String>,
}

/// A stream for programs.
pub(in crate::cli) fn json(consumer: &Consumer) -> impl Serialize {
    ConsumerJson {
        stream_id: &consumer.stream_id,
        replica: &consumer.replica,
        consumer: &consumer.consumer,
        peer: &consumer.peer,
        caller: &consumer.caller,
        queues: &consumer.queues,
        max_in_flight: consumer.max_in_flight,
        in_flight: consumer.in_flight,
        oldest_lease_age_seconds: consumer.oldest_lease_age.map(time::seconds),
        opened_at: time::maybe(consumer.opened_at),
        seen_at: time::maybe(consumer.seen_at),
    }
}

/// Streams for people.
pub(in crate::cli) fn table(consumers: &[Consumer]) -> Table {
    let mut table = Table::new(&[
        "CONSUMER",
        "CALLER",
        "QUEUES",
        ">HOLDS",
        ">CREDIT",
        ">OLDEST LEASE",
        "OPENED",
        "PEER",
        "REPLICA",
        "STREAM",
    ]);
    for consumer in consumers {
        table.row([
            consumer.consumer.clone(),
            consumer.caller.clone(),
            consumer.queues.join(","),
            consumer.in_flight.to_string(),
            consumer.max_in_flight.to_string(),
            consumer.oldest_lease_age.map_or_else(|| "-".to_owned(), time::span),
            consumer.opened_at.map(time::from_now).unwrap_or_default(),
            consumer.peer.clone(),
            consumer.replica.clone(),
            consumer.stream_id.clone(),
        ]);
    }
    table
}
