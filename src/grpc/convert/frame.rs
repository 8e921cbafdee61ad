//! What a Lease stream carries.

use super::time::{duration, timestamp};
use crate::{
    dispatch::{DrainReason, Frame, RevokedLease, SentJob},
    model::Key,
    v1::{self, lease_response},
};

/// A frame as the wire has it.
pub(in crate::grpc) fn frame(frame: Frame) -> v1::LeaseResponse {
    let frame = match frame {
        Frame::Opened { broker, version, stream_id, heartbeat_interval, max_age } => {
            lease_response::Frame::Opened(v1::Opened {
                broker,
                version,
                stream_id,
                heartbeat_interval: Some(duration(heartbeat_interval)),
                max_age: Some(duration(max_age)),
            })
        }
        Frame::Jobs(jobs) => {
            lease_response::Frame::Jobs(v1::LeasedJobs { jobs: jobs.into_iter().map(leased_job).collect() })
        }
        Frame::Heartbeat { in_flight, in_flight_bytes, claims_failing } => {
            lease_response::Frame::Heartbeat(v1::Heartbeat { in_flight, in_flight_bytes, claims_failing })
        }
        Frame::Drain(reason) => {
            let reason = match reason {
                DrainReason::Age => v1::DrainReason::Age,
                DrainReason::Shutdown => v1::DrainReason::Shutdown,
                DrainReason::Credentials => v1::DrainReason::Credentials,
            };
            lease_response::Frame::Drain(v1::Drain { reason: reason.into() })
        }
        Frame::Revoked(leases) => {
            let revoked = |lease: RevokedLease| v1::RevokedLease {
                lease_token: lease.token.encode(),
                cancel_requested: lease.cancel_requested,
            };
            lease_response::Frame::Revoked(v1::Revoked { leases: leases.into_iter().map(revoked).collect() })
        }
    };
    v1::LeaseResponse { frame: Some(frame) }
}

fn leased_job(sent: SentJob) -> v1::LeasedJob {
    let SentJob { token, queue, job, remaining } = sent;
    let key = |key: Option<Key>| key.map(|key| key.as_str().to_owned()).unwrap_or_default();
    let (traceparent, tracestate) = job.trace.map(|trace| (trace.traceparent, trace.tracestate)).unwrap_or_default();
    v1::LeasedJob {
        lease_token: token.encode(),
        job_id: job.job.to_string(),
        queue: queue.as_str().to_owned(),
        payload: job.payload,
        content_type: job.content_type,
        headers: job.headers.into_iter().collect(),
        priority: job.priority.level().into(),
        attempt: job.attempt,
        max_attempts: job.max_attempts,
        lease_number: job.lease_number,
        enqueued_at: Some(timestamp(job.enqueued_at)),
        lease_expires_at: Some(timestamp(job.lease_expires_at)),
        lease_remaining: Some(duration(remaining)),
        ordering_key: key(job.ordering_key),
        last_error: job.last_error.unwrap_or_default(),
        available_at: Some(timestamp(job.available_at)),
        idempotency_key: key(job.idempotency_key),
        traceparent,
        tracestate,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;

    use super::*;
    use crate::{
        model::{
            Headers, JobId, LeaseId, LeaseToken, Priority, QueueId, QueueName, ReplicaId, StreamNumber, Timestamp,
            TraceContext,
        },
        store::engine::ClaimedJob,
    };

    #[test]
    fn a_job_goes_out_as_it_came_in() {
        let token = LeaseToken { job: JobId(7), lease: LeaseId(1), replica: ReplicaId(2), stream: StreamNumber(3) };
        let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let job = ClaimedJob {
            job: JobId(7),
            queue: QueueId(1),
            lease: LeaseId(1),
            payload: Bytes::from_static(b"\0\xff"),
            content_type: "text/plain".into(),
            headers: Headers::from([("a".into(), "é".into())]),
            priority: Priority::DEFAULT,
            attempt: 2,
            max_attempts: 20,
            lease_number: 3,
            enqueued_at: Timestamp(1),
            lease_expires_at: Timestamp(2_000_000),
            available_at: Timestamp(3),
            ready_at: Timestamp(4),
            ordering_key: Some(Key::parse("k", "o").expect("a key")),
            idempotency_key: None,
            last_error: Some("why".into()),
            trace: TraceContext::parse(parent, "a=b"),
        };
        let queue = QueueName::parse("queue", "orders").expect("a name");
        let sent = SentJob { token, queue, job, remaining: Duration::from_millis(1_500) };
        let Some(lease_response::Frame::Jobs(jobs)) = frame(Frame::Jobs(vec![sent])).frame else {
            panic!("another frame");
        };
        let job = &jobs.jobs[0];
        assert_eq!(LeaseToken::parse(&job.lease_token), Some(token));
        assert_eq!((job.payload.as_ref(), job.queue.as_str(), job.job_id.as_str()), (&b"\0\xff"[..], "orders", "7"));
        assert_eq!((job.attempt, job.max_attempts, job.lease_number, job.priority), (2, 20, 3, 4));
        assert_eq!(job.headers.get("a").map(String::as_str), Some("é"));
        assert_eq!(job.lease_remaining, Some(prost_types::Duration { seconds: 1, nanos: 500_000_000 }));
        assert_eq!((job.ordering_key.as_str(), job.idempotency_key.as_str()), ("o", ""));
        assert_eq!(
            (job.traceparent.as_str(), job.tracestate.as_str(), job.last_error.as_str()),
            (parent, "a=b", "why")
        );
    }

    #[test]
    fn a_drain_says_why() {
        let Some(lease_response::Frame::Drain(drain)) = frame(Frame::Drain(DrainReason::Shutdown)).frame else {
            panic!("another frame");
        };
        assert_eq!(drain.reason(), v1::DrainReason::Shutdown);
    }
}
