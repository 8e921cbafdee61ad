//! What the second port tells.

use leasehold::v1::{EnqueueRequest, LeaseRequest, NewJob, queue_service_client::QueueServiceClient};
use tonic::Request;

use super::broker::Broker;

#[tokio::test(flavor = "multi_thread")]
async fn metrics_count_calls_by_end_and_lane_time_by_caller() {
    let mut broker = Broker::start(&[]);
    broker.wait_for("\"ready:");
    let mut client = QueueServiceClient::new(broker.channel().await);
    let job = NewJob { queue: "orders".into(), ..NewJob::default() };
    let mut request = Request::new(EnqueueRequest { jobs: vec![job; 3] });
    request.metadata_mut().insert("leasehold-caller", "checkout_completion".parse().expect("ASCII"));
    client.enqueue(request).await.expect("three jobs");
    let bad = NewJob { queue: "Orders".into(), ..NewJob::default() };
    client.enqueue(EnqueueRequest { jobs: vec![bad] }).await.expect_err("no such name");
    let request = LeaseRequest { queues: vec!["empty".into()], stop_when_empty: true, ..LeaseRequest::default() };
    let mut frames = client.lease(request).await.expect("a stream").into_inner();
    while frames.message().await.expect("it ends OK").is_some() {}

    let (status, text) = broker.get("/metrics");
    assert!(status.contains("200"), "{status}");
    let calls = |method: &str, code: &str| {
        let labels = format!(
            "rpc_method=\"leasehold.v1.QueueService/{method}\",rpc_response_status_code=\"{code}\",rpc_system_name=\"grpc\""
        );
        format!("rpc_server_call_duration_seconds_count{{{labels}}} 1\n")
    };
    for part in [
        calls("Enqueue", "OK"),
        calls("Enqueue", "INVALID_ARGUMENT"),
        calls("Lease", "OK"),
        "leasehold_jobs_enqueued_total 3\n".to_owned(),
        "leasehold_db_connection_hold_time_seconds_total{conn_tag=\"checkout_completion\"".to_owned(),
    ] {
        assert!(text.contains(&part), "'{part}' is missing in {text}");
    }
}
