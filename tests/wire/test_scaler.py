"""KEDA's scaler: workers from none on and back to none, by backlog and by age. The client's stubs are made from KEDA's own file
where `./test` could fetch it, and from ours otherwise."""

import os
import threading
import time

import grpc
import pytest
from google.protobuf import descriptor_pb2
from google.protobuf.field_mask_pb2 import FieldMask
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from harness.calls import Stream, ack, enqueue, eventually, failure, job
from harness.keda import OURS, descriptors, keda_pb, keda_rpc
from harness.stubs import admin_pb

READY, OLDEST = "leasehold-ready-jobs", "leasehold-oldest-ready-seconds"


def trigger(queue, **metadata):
    """What KEDA sends about a trigger: all its keys, KEDA's own among them."""
    metadata = {"scalerAddress": "leasehold:7070", "queue": queue, "targetReady": "5", **metadata}
    return keda_pb.ScaledObjectRef(name="workers", namespace="shop", scalerMetadata=metadata)


@pytest.fixture
def scaler(broker):
    """The scaler of that broker, on a connection of the test's own."""
    yield keda_rpc.ExternalScalerStub(broker.channel())
    broker.hang_up()


def is_active(scaler, ref):
    return scaler.IsActive(ref, timeout=5).result


def values(scaler, ref, name=""):
    answer = scaler.GetMetrics(keda_pb.GetMetricsRequest(scaledObjectRef=ref, metricName=name), timeout=5)
    return {one.metricName: one.metricValueFloat for one in answer.metricValues}


class Told:
    """A StreamIsActive, read by a thread of its own."""

    def __init__(self, scaler, ref):
        self.call, self.states, self.ended = scaler.StreamIsActive(ref), [], None
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        try:
            for frame in self.call:
                self.states.append(frame.result)
            self.ended = grpc.StatusCode.OK
        except grpc.RpcError as error:
            self.ended = error.code()

    def expect(self, *states, within=10):
        eventually(lambda: self.states == list(states), within=within, what=f"{states}, and not {self.states}")


def test_the_contract_is_kedas_own():
    theirs = os.environ.get("LEASEHOLD_TEST_KEDA_PROTO")
    if not theirs:
        assert os.environ.get("CI") != "true", "continuous integration has Go, and with it KEDA's file"
        pytest.skip("no Go here, with which KEDA's file is fetched")
    kept = [plain(descriptors(path)) for path in (OURS, theirs)]
    assert kept[0] == kept[1]


def plain(file):
    """All that decides about bytes and paths: names, numbers, types."""
    messages = {message.name: [(field.name, field.number, field.type, field.label, field.type_name)
                               for field in message.field]
                for outer in file.message_type for message in (outer, *outer.nested_type)}
    methods = {(service.name, method.name): (method.input_type, method.output_type, method.client_streaming,
                                             method.server_streaming)
               for service in file.service for method in service.method}
    return file.package, messages, methods


def test_reflection_shows_the_scaler(broker):
    stub = reflection_pb2_grpc.ServerReflectionStub(broker.channel())
    asked = reflection_pb2.ServerReflectionRequest(file_containing_symbol="externalscaler.ExternalScaler")
    [answer] = stub.ServerReflectionInfo(iter([asked]), timeout=5)
    names = [descriptor_pb2.FileDescriptorProto.FromString(file).package
             for file in answer.file_descriptor_response.file_descriptor_proto]
    assert "externalscaler" in names
    broker.hang_up()


def test_targets_are_those_of_the_metadata(scaler):
    both = trigger("q", targetReady="2.5", targetAgeSeconds="30")
    for answer in (scaler.GetMetricSpec(both, timeout=5), next(iter(scaler.StreamMetricSpec(both, timeout=5)))):
        assert [(one.metricName, one.targetSizeFloat, one.targetSize) for one in answer.metricSpecs] == [
            (READY, 2.5, 3), (OLDEST, 30.0, 30)]


@pytest.mark.parametrize("metadata, field", [
    ({"targetready": "5"}, "scalerMetadata.targetready"), ({"targetReady": "0"}, "scalerMetadata.targetReady"),
    ({"targetAgeSeconds": "soon"}, "scalerMetadata.targetAgeSeconds"), ({"queue": "Orders"}, "scalerMetadata.queue"),
    ({"activationReady": "1.5"}, "scalerMetadata.activationReady"),
])
def test_bad_metadata_is_refused_by_every_method_with_what_is_allowed(scaler, metadata, field):
    ref = trigger(**{"queue": "q", **metadata})
    told = [failure(scaler.IsActive, ref, timeout=5), failure(scaler.GetMetricSpec, ref, timeout=5),
            failure(scaler.GetMetrics, keda_pb.GetMetricsRequest(scaledObjectRef=ref), timeout=5),
            failure(lambda: list(scaler.StreamIsActive(ref, timeout=5))),
            failure(lambda: list(scaler.StreamMetricSpec(ref, timeout=5)))]
    for failed in told:
        assert (failed.code, failed.reason, failed.outcome, failed.fields) == (
            "INVALID_ARGUMENT", "INVALID_FIELD", "not-applied", [field])
        assert "must" in failed.message or "queue, targetReady, targetAgeSeconds and activationReady" in failed.message


def test_a_metric_that_nobody_asked_for_is_refused(scaler):
    asked = keda_pb.GetMetricsRequest(scaledObjectRef=trigger("q"), metricName=OLDEST)
    assert failure(scaler.GetMetrics, asked, timeout=5).fields == ["metricName"]
    assert failure(scaler.GetMetrics, keda_pb.GetMetricsRequest(), timeout=5).fields == ["scaledObjectRef"]


def test_a_queue_scales_from_nothing_by_its_jobs_and_back(scaler, stub):
    ref = trigger("scale", targetAgeSeconds="60")
    assert not is_active(scaler, ref), "a queue that does not exist yet"
    assert values(scaler, ref) == {READY: 0.0, OLDEST: 0.0}
    enqueue(stub, *[job("scale") for _ in range(12)], job("scale", delay=3600))
    eventually(lambda: is_active(scaler, ref), what="activity")
    assert values(scaler, ref, READY) == {READY: 12.0}
    eventually(lambda: values(scaler, ref, OLDEST)[OLDEST] > 0.5, what="age")
    stream = Stream(stub, "scale", in_flight=12)
    leased = stream.jobs(12)
    eventually(lambda: values(scaler, ref) == {READY: 0.0, OLDEST: 0.0}, what="an empty queue")
    assert is_active(scaler, ref), "workers that have jobs are not taken away"
    assert ack(stub, *[one.lease_token for one in leased]) == ["OK"] * 12
    eventually(lambda: not is_active(scaler, ref), what="the end of it")
    stream.call.cancel()


def test_few_ready_jobs_call_for_no_worker_where_that_is_wanted(scaler, stub):
    ref = trigger("few", activationReady="3")
    enqueue(stub, *[job("few") for _ in range(3)])
    eventually(lambda: values(scaler, ref) == {READY: 3.0}, what="three jobs")
    assert not is_active(scaler, ref)
    enqueue(stub, job("few"))
    eventually(lambda: is_active(scaler, ref), what="activity")


def test_a_paused_queue_calls_for_no_workers(scaler, stub, admin):
    ref = trigger("held-up")
    enqueue(stub, job("held-up"))
    eventually(lambda: is_active(scaler, ref), what="activity")
    told = Told(scaler, ref)
    told.expect(True)
    paused = admin_pb.QueueSettings(paused=True)
    admin.UpdateQueue(admin_pb.UpdateQueueRequest(queue="held-up", settings=paused, update_mask=FieldMask(paths=["paused"])),
                      timeout=5)
    eventually(lambda: not is_active(scaler, ref) and values(scaler, ref) == {READY: 0.0}, what="the pause")
    told.expect(True, False, within=20)
    told.call.cancel()


def test_the_stream_tells_of_each_change_within_a_second_or_so(scaler, stub):
    ref = trigger("told", activationReady="1")
    several = [Told(scaler, ref) for _ in range(3)]
    for told in several:
        told.expect(False)
    enqueue(stub, job("told"))
    enqueue(stub, job("told"))
    begun = time.monotonic()
    for told in several:
        told.expect(False, True)
    # A busy machine may take its time; a change that only another poll of KEDA's would find takes half a minute.
    assert time.monotonic() - begun < 8
    stream = Stream(stub, "told", in_flight=2)
    assert ack(stub, *[one.lease_token for one in stream.jobs(2)]) == ["OK"] * 2
    for told in several:
        told.expect(False, True, False)
        told.call.cancel()
    stream.call.cancel()


@pytest.mark.settings(scaler_streams=2)
def test_streams_are_bounded_and_their_places_come_back(broker, scaler):
    specs, told = scaler.StreamMetricSpec(trigger("bound")), Told(scaler, trigger("bound"))
    next(specs)
    told.expect(False)
    refused = failure(lambda: next(scaler.StreamIsActive(trigger("bound"), timeout=5)))
    assert (refused.code, refused.reason, refused.outcome) == ("RESOURCE_EXHAUSTED", "STREAM_LIMIT", "not-applied")
    assert not is_active(scaler, trigger("bound")), "calls still pass"
    specs.cancel()

    def opens():
        try:
            call = scaler.StreamIsActive(trigger("bound"), timeout=5)
            return next(call).result is False
        except grpc.RpcError:
            return False

    eventually(opens, what="the place of the stream that ended")
    told.call.cancel()


@pytest.mark.own_broker
def test_streams_end_well_when_the_replica_goes_away(broker, scaler):
    told = Told(scaler, trigger("drained"))
    specs = scaler.StreamMetricSpec(trigger("drained"))
    next(specs)
    told.expect(False)
    broker.terminate()
    assert list(specs) == []
    eventually(lambda: told.ended == grpc.StatusCode.OK, what="the stream's end")
    assert broker.process.wait(25) == 0


def test_many_questions_become_few_statements_of_the_scalers_own(postgres, brokers):
    broker = brokers(postgres.url)
    scaler = keda_rpc.ExternalScalerStub(broker.channel())
    enqueue(broker.stub(), job("asked"))
    before = len([one for one in postgres.statements() if "leasehold.scaler" in one.statement])
    asked = [scaler.IsActive.future(trigger("asked"), timeout=10) for _ in range(200)]
    assert all(one.result().result for one in asked)
    of_the_scaler = [one for one in postgres.statements() if "leasehold.scaler" in one.statement]
    assert 2 <= len(of_the_scaler) - before <= 20, "questions are answered together"


def test_waiting_for_many_queues_to_become_active_is_one_statement_a_round(postgres, brokers):
    broker = brokers(postgres.url, scaler_interval="200ms")
    scaler, stub = keda_rpc.ExternalScalerStub(broker.channel()), broker.stub()
    queues = [f"idle-{number}" for number in range(30)]
    for queue in queues:
        enqueue(stub, job(queue, delay=3600))
    several = [Told(scaler, trigger(queue)) for queue in queues]
    for told in several:
        told.expect(False)

    def sent(what=""):
        return [one for one in postgres.statements() if "leasehold.scaler" in one.statement and what in one.statement]

    # At first each queue is counted, ten at a time.
    eventually(lambda: len(sent("looked_at")) >= 8, within=30, what="the first rounds")
    before, looks = len(sent()), len(sent("looked_at"))
    eventually(lambda: len(sent("looked_at")) >= looks + 10, within=30, what="ten more rounds")
    rounds = len(sent("looked_at")) - looks
    assert len(sent()) - before <= rounds + 3, "rounds of idle queues count nothing"
    enqueue(stub, job("idle-17"))
    several[17].expect(False, True)
    assert all(told.states == [False] for told in several[:17] + several[18:])
