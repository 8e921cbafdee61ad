"""Health, reflection, the second port."""

import pytest
from google.protobuf import descriptor_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2

from harness.calls import eventually


@pytest.mark.parametrize("service", ["", "leasehold.v1.QueueService"])
def test_a_ready_broker_serves(broker, service):
    health = health_pb2_grpc.HealthStub(broker.channel())
    answer = health.Check(health_pb2.HealthCheckRequest(service=service), timeout=5)
    assert answer.status == health_pb2.HealthCheckResponse.SERVING


def test_health_and_readiness_follow_the_database(cluster, brokers):
    broker = brokers(cluster.url())
    health = health_pb2_grpc.HealthStub(broker.channel())

    def serving():
        return health.Check(health_pb2.HealthCheckRequest(), timeout=5).status == health_pb2.HealthCheckResponse.SERVING

    assert serving() and broker.is_ready()
    cluster.stop("immediate")
    eventually(lambda: not serving() and not broker.is_ready(), within=15, what="unreadiness")
    assert broker.get("/livez")[0] == 200
    cluster.start()
    eventually(lambda: serving() and broker.is_ready(), within=10, what="readiness after the outage")


def test_a_broker_starts_without_its_database_and_is_not_ready(cluster, brokers):
    cluster.stop()
    broker = brokers(cluster.url(), wait=False)
    eventually(lambda: broker.get("/livez")[0] == 200, what="life")
    assert broker.get("/readyz")[0] == 503
    cluster.start()
    eventually(broker.is_ready, within=10, what="readiness")


def test_an_unmigrated_database_is_not_served_and_the_log_says_what_to_do(postgres, brokers):
    broker = brokers(postgres.url, wait=False, migrate=False)
    eventually(lambda: "leasehold migrate up" in broker.output(), what="the hint")
    assert broker.get("/readyz")[0] == 503


@pytest.mark.parametrize("version", ["v1", "v1alpha"])
def test_reflection_names_what_is_served_and_its_files(broker, version):
    # The messages of v1 are those of v1alpha under another name.
    stub = broker.channel().stream_stream(
        f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
        request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
        response_deserializer=reflection_pb2.ServerReflectionResponse.FromString)
    asked = [reflection_pb2.ServerReflectionRequest(list_services=""),
             reflection_pb2.ServerReflectionRequest(file_containing_symbol="leasehold.v1.QueueService"),
             reflection_pb2.ServerReflectionRequest(file_by_filename="google/protobuf/duration.proto")]
    answers = list(stub(iter(asked), timeout=5))
    assert "leasehold.v1.QueueService" in {service.name for service in answers[0].list_services_response.service}
    files = [descriptor_pb2.FileDescriptorProto.FromString(one)
             for answer in answers[1:] for one in answer.file_descriptor_response.file_descriptor_proto]
    assert {"leasehold/v1/queue.proto", "google/protobuf/duration.proto"} <= {file.name for file in files}


def test_metrics_are_served_as_text(broker):
    status, text = broker.get("/metrics")
    assert status == 200
    assert "# TYPE" in text
