//! What a Lease stream asks for.

use std::{collections::HashSet, time::Instant};

use tokio_util::sync::CancellationToken;

use super::{faults::Faults, is_printable, time::lease_duration};
use crate::{
    dispatch::StreamSpec,
    model::{Caller, Failure, Invalid, Limits, QueueName},
    v1,
};

const CONSUMER_BYTES: usize = 200;

/// What the call itself says about a stream.
pub(in crate::grpc) struct Origin {
    /// For whom it runs.
    pub(in crate::grpc) caller: Caller,
    /// When the client stops waiting, where it said so.
    pub(in crate::grpc) deadline: Option<Instant>,
    /// Cancelled when its connection has reached its age.
    pub(in crate::grpc) closing: CancellationToken,
    /// Who is at the other end.
    pub(in crate::grpc) peer: String,
}

/// The request, checked.
pub(in crate::grpc) fn stream_spec(
    request: v1::LeaseRequest,
    limits: &Limits,
    origin: Origin,
) -> Result<StreamSpec, Failure> {
    let mut faults = Faults::default();
    let queues = queues(&request.queues, limits, &mut faults);
    if !is_printable(&request.consumer, CONSUMER_BYTES) {
        faults.note(Invalid::new(
            "consumer",
            format!("must be at most {CONSUMER_BYTES} bytes of printable ASCII characters"),
        ));
    }
    if request.max_in_flight > limits.max_in_flight {
        faults.note(Invalid::new("max_in_flight", format!("must be at most {}", limits.max_in_flight)));
    }
    let lease_duration = match &request.lease_duration {
        Some(sent) => faults.keep(lease_duration("lease_duration", sent, limits)),
        None => None,
    };
    faults.or(StreamSpec {
        queues,
        consumer: request.consumer,
        caller: origin.caller,
        max_in_flight: request.max_in_flight.max(1),
        max_in_flight_bytes: request.max_in_flight_bytes,
        lease_duration,
        stop_when_empty: request.stop_when_empty,
        deadline: origin.deadline,
        connection_closing: origin.closing,
        peer: origin.peer,
    })
}

fn queues(sent: &[String], limits: &Limits, faults: &mut Faults) -> Vec<QueueName> {
    if !(1..=limits.queues_per_stream).contains(&sent.len()) {
        faults.note(Invalid::new("queues", format!("must name 1 to {} queues", limits.queues_per_stream)));
        return Vec::new();
    }
    let mut seen = HashSet::new();
    let mut queues = Vec::with_capacity(sent.len());
    for (index, name) in sent.iter().enumerate() {
        let field = format!("queues[{index}]");
        if let Some(queue) = faults.keep(QueueName::parse(&field, name)) {
            if seen.insert(name) {
                queues.push(queue);
            } else {
                faults.note(Invalid::new(field, "must not be named twice"));
            }
        }
    }
    queues
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn request() -> v1::LeaseRequest {
        v1::LeaseRequest { queues: vec!["orders".into()], ..v1::LeaseRequest::default() }
    }

    fn read(request: v1::LeaseRequest) -> Result<StreamSpec, Failure> {
        let origin = Origin {
            caller: Caller::unattributed(),
            deadline: None,
            closing: CancellationToken::new(),
            peer: "127.0.0.1:1".into(),
        };
        stream_spec(request, &Limits::default(), origin)
    }

    fn fields(refused: Result<StreamSpec, Failure>) -> Vec<String> {
        match refused {
            Ok(_) => Vec::new(),
            Err(failure) => failure.invalid.into_iter().map(|fault| fault.field).collect(),
        }
    }

    #[test]
    fn an_unset_credit_is_one_job_and_an_unset_duration_the_queues() {
        let spec = read(request()).expect("valid");
        assert_eq!((spec.max_in_flight, spec.max_in_flight_bytes, spec.lease_duration), (1, 0, None));
    }

    #[test]
    fn the_bounds_themselves_are_fine() {
        let spec = read(v1::LeaseRequest {
            queues: (0..32).map(|n| format!("q{n}")).collect(),
            consumer: "c".repeat(200),
            max_in_flight: 10_000,
            max_in_flight_bytes: u64::MAX,
            lease_duration: Some(prost_types::Duration { seconds: 43_200, nanos: 0 }),
            stop_when_empty: true,
        })
        .expect("valid");
        assert_eq!((spec.queues.len(), spec.lease_duration), (32, Some(Duration::from_hours(12))));
        assert!(spec.stop_when_empty);
    }

    #[test]
    fn everything_wrong_with_a_stream_is_said_at_once() {
        let refused = read(v1::LeaseRequest {
            queues: ["a", "B", "a", ""].map(String::from).to_vec(),
            consumer: "pod\n1".into(),
            max_in_flight: 10_001,
            lease_duration: Some(prost_types::Duration { seconds: 0, nanos: 1 }),
            ..v1::LeaseRequest::default()
        });
        assert_eq!(
            fields(refused),
            ["queues[1]", "queues[2]", "queues[3]", "consumer", "max_in_flight", "lease_duration"]
        );
    }

    #[test]
    fn a_stream_serves_one_to_thirty_two_queues() {
        for count in [0, 33] {
            let queues = (0..count).map(|n| format!("q{n}")).collect();
            assert_eq!(fields(read(v1::LeaseRequest { queues, ..request() })), ["queues"], "{count}");
        }
    }

    #[test]
    fn a_consumer_is_printable_ascii_of_bounded_length() {
        for consumer in ["é", "a\0", "a\tb", &"c".repeat(201)] {
            let refused = read(v1::LeaseRequest { consumer: consumer.to_owned(), ..request() });
            assert_eq!(fields(refused), ["consumer"], "{consumer:?}");
        }
    }
}
