//! Lease streams as operators see them.

use super::{
    faults::Faults,
    page::{self, page_size},
    time::{duration, timestamp},
};
use crate::{
    model::{Failure, QueueName, StreamId},
    store::engine::StreamRecord,
    v1,
};

/// What a `ListConsumers` asks for, checked.
#[derive(Debug)]
pub(in crate::grpc) struct ConsumersPage {
    /// Those of this queue.
    pub(in crate::grpc) queue: Option<QueueName>,
    /// Behind this one.
    pub(in crate::grpc) after: Option<StreamId>,
    /// Rows at most.
    pub(in crate::grpc) size: usize,
}

/// The request, checked.
pub(in crate::grpc) fn consumers_page(request: &v1::ListConsumersRequest) -> Result<ConsumersPage, Failure> {
    let mut faults = Faults::default();
    let queue = (!request.queue.is_empty()).then(|| QueueName::parse("queue", &request.queue)).transpose();
    let queue = faults.keep(queue).flatten();
    let size = faults.keep(page_size(request.page_size)).unwrap_or_default();
    let after = faults.keep(page::place(&consumers_list(request), &request.page_token)).flatten();
    let after = after.and_then(|place| place.parse().ok()).map(StreamId::from_bits);
    faults.or(ConsumersPage { queue, after, size })
}

/// The token of the page behind a stream.
pub(in crate::grpc) fn next_consumers(request: &v1::ListConsumersRequest, after: Option<StreamId>) -> String {
    let place = after.map(|stream| stream.to_bits().to_string());
    place.map(|place| page::page_token(&consumers_list(request), &place)).unwrap_or_default()
}

fn consumers_list(request: &v1::ListConsumersRequest) -> String {
    format!("consumers {}", request.queue)
}

/// As the wire has it.
pub(in crate::grpc) fn consumer(record: StreamRecord) -> v1::Consumer {
    v1::Consumer {
        stream_id: record.stream.to_string(),
        replica: record.replica,
        consumer: record.consumer,
        peer: record.peer,
        caller: record.caller,
        queues: record.queues.iter().map(|queue| queue.as_str().to_owned()).collect(),
        max_in_flight: record.max_in_flight,
        in_flight: record.in_flight,
        oldest_lease_age: record.oldest_lease.map(duration),
        opened_at: Some(timestamp(record.opened_at)),
        seen_at: Some(timestamp(record.seen_at)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ReplicaId, StreamNumber};

    #[test]
    fn a_token_of_streams_leads_back_to_its_place_and_to_no_other_question() {
        let mut request = v1::ListConsumersRequest::default();
        let stream = StreamId { replica: ReplicaId(0xf000_0000), number: StreamNumber(3) };
        request.page_token = next_consumers(&request, Some(stream));
        assert_eq!(consumers_page(&request).expect("valid").after, Some(stream));
        request.queue = "orders".into();
        let refused = consumers_page(&request).expect_err("another question");
        assert_eq!(refused.invalid[0].field, "page_token");
        request.queue = "Orders".into();
        assert_eq!(consumers_page(&request).expect_err("no name").invalid[0].field, "queue");
    }
}
