"""What SIGTERM does: promise P15."""

import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from harness.calls import CALLER, Failed, Stream, ack, enqueue, eventually, job
from harness.raw import SERVICE, Raw, framed
from harness.stubs import admin_pb, connection_pb, connection_rpc, pb

pytestmark = pytest.mark.own_broker


def test_sigterm_drains_streams_with_a_frame_and_ends_in_time(broker, stub):
    enqueue(stub, *[job("drain", at.to_bytes(2, "big")) for at in range(9)])
    streams = [Stream(stub, "drain", in_flight=2) for _ in range(4)]
    leased = [one for stream in streams for one in stream.jobs(2)]
    begun = time.monotonic()
    broker.terminate()
    for stream in streams:
        assert stream.expect("drain", 3).reason == pb.DRAIN_REASON_SHUTDOWN
        assert stream.end(5) is None
    assert broker.process.wait(25) == 0
    assert time.monotonic() - begun < 25
    broker.start()
    again = broker.stub()
    assert ack(again, *[one.lease_token for one in leased]) == ["OK"] * 8
    rest = Stream(again, "drain", in_flight=5)
    last = rest.jobs(1, within=5)[0]
    assert last.attempt == 1, "a job that was claimed and not sent lost an attempt by the drain"
    rest.quiet(0.5)


def test_readiness_fails_at_once_and_no_lease_is_granted_after_a_second(broker, stub):
    streams = [Stream(stub, "late", in_flight=100) for _ in range(3)]
    for stream in streams:
        stream.expect("opened")
    unready = threading.Event()

    def watch():
        while broker.get("/readyz")[0] == 200:
            pass
        unready.set()

    watcher = threading.Thread(target=watch, daemon=True)
    begun = time.monotonic()
    broker.terminate()
    watcher.start()
    assert unready.wait(1), "readiness did not fail"
    while time.monotonic() - begun < 5 and broker.process.poll() is None:
        try:
            stub.Enqueue(pb.EnqueueRequest(jobs=[job("late")]), timeout=1, metadata=CALLER)
        except grpc.RpcError:
            break
    assert broker.process.wait(25) == 0
    for stream in streams:
        stream.end(2)
        for when, frame in list(stream.frames.queue):
            if frame is not None and frame.WhichOneof("frame") == "jobs":
                assert when - begun < 1.3, "a lease after the drain began"


def test_calls_under_way_finish_and_later_ones_say_what_happened(broker, stub):
    answers, stop = [], threading.Event()

    def producer(number):
        mine = broker.stub()
        while not stop.is_set():
            try:
                mine.Enqueue(pb.EnqueueRequest(jobs=[job("under-way")]), timeout=5, metadata=CALLER)
                answers.append("ok")
            except grpc.RpcError as error:
                answers.append(Failed(error))
                return

    with ThreadPoolExecutor(8) as threads:
        for number in range(8):
            threads.submit(producer, number)
        eventually(lambda: len(answers) > 50, what="load")
        broker.terminate()
        code = broker.process.wait(25)
        stop.set()
    assert code == 0
    for answer in answers:
        if answer != "ok":
            assert answer.code == "UNAVAILABLE", answer
            assert answer.outcome in ("not-applied", None), answer


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_it_within_a_second(broker, second):
    # A client that stopped reading keeps the polite drain waiting.
    client = subprocess.Popen([sys.executable, "-c", f"""
import socket, time
s = socket.create_connection(("127.0.0.1", {broker.port}))
s.sendall(b"PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))
s.recv(9)
print("up", flush=True)
time.sleep(60)
"""], stdout=subprocess.PIPE)
    try:
        assert client.stdout.readline() == b"up\n"
        broker.terminate()
        eventually(lambda: broker.get("/readyz")[0] != 200, what="the drain")
        begun = time.monotonic()
        if broker.process.poll() is None:
            broker.process.send_signal(second)
        broker.process.wait(5)
        assert time.monotonic() - begun < 1.2
    finally:
        client.kill()
        client.wait()


@pytest.mark.settings(server_drain_timeout="3s")
def test_a_client_that_never_reads_does_not_hold_up_the_end(broker, stub):
    enqueue(stub, *[job("stuck", b"x" * 500_000) for _ in range(4)])
    raw = Raw(broker.port)
    request = pb.LeaseRequest(queues=["stuck"], max_in_flight=4).SerializeToString()
    raw.open(f"{SERVICE}/Lease", data=framed(request))
    raw.read(5)
    begun = time.monotonic()
    broker.terminate()
    assert broker.process.wait(10) == 0
    assert time.monotonic() - begun < 5
    raw.close()


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
NO_SETTINGS = bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])


@pytest.mark.parametrize("said", [b"", PREFACE[:10], PREFACE, PREFACE + NO_SETTINGS, b"GET / HTTP/1.1\r\n"],
                         ids=["nothing", "half a preface", "a preface", "settings", "another protocol"])
@pytest.mark.settings(server_drain_timeout="60s", server_keepalive_timeout="1s")
def test_clients_that_fall_silent_do_not_hold_up_the_end(broker, said):
    before = broker.connections()
    silent = [socket.create_connection(("127.0.0.1", broker.port)) for _ in range(5)]
    for one in silent:
        one.sendall(said)
    eventually(lambda: said.startswith(b"GET") or broker.connections() >= before + 5, what="the connections")
    begun = time.monotonic()
    broker.terminate()
    assert broker.process.wait(40) == 0
    assert time.monotonic() - begun < 30, "the drain waited for clients that had no call"
    for one in silent:
        one.close()


@pytest.mark.settings(server_drain_timeout="60s")
def test_streams_that_clients_would_hold_for_ever_end_with_the_drain(broker):
    for_ever, ends = threading.Event(), queue.Queue()

    def never_done():
        yield reflection_pb2.ServerReflectionRequest(list_services="")
        for_ever.wait(60)

    channel = broker.channel()
    held = {
        "health": health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest()),
        "callers": connection_rpc.ConnectionServiceStub(channel).WatchCallers(connection_pb.WatchCallersRequest()),
        "reflection": reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo(never_done()),
        "lease": broker.stub().Lease(pb.LeaseRequest(queues=["held"], max_in_flight=5), metadata=CALLER),
    }
    for call in held.values():
        next(call)

    def read(name, call):
        try:
            for _ in call:
                pass
            ends.put((name, "OK", None))
        except grpc.RpcError as error:
            ends.put((name, Failed(error).code, Failed(error).outcome))

    for name, call in held.items():
        threading.Thread(target=read, args=(name, call), daemon=True).start()
    broker.terminate()
    ended = {name: (code, outcome) for name, code, outcome in (ends.get(timeout=20) for _ in held)}
    assert broker.process.wait(30) == 0
    for_ever.set()
    assert ended["lease"] == ended["callers"] == ("OK", None)
    assert ended["health"] == ended["reflection"] == ("UNAVAILABLE", "not-applied"), "they say that the replica goes away"


@pytest.mark.settings(server_drain_timeout="3s")
def test_requests_that_never_become_whole_and_answers_that_nobody_reads_are_cut_in_time(broker, stub, admin):
    for _ in range(6):
        enqueue(stub, *[job("unread", b"x" * 500_000) for _ in range(4)])
    deaf = [Raw(broker.port) for _ in range(3)]
    for one in deaf:
        one.open(f"{SERVICE}/Lease", data=framed(pb.LeaseRequest(queues=["unread"], max_in_flight=8).SerializeToString()))
        one.open(f"{SERVICE}/Enqueue", data=framed(b"x" * 100)[:20], end=False)
    asked = admin_pb.GetQueueRequest(queue="unread")
    # A stream that is not read holds a few jobs, and no more are claimed for it.
    eventually(lambda: admin.GetQueue(asked, timeout=5).queue.counts.leased.value >= 15, what="the claims")
    begun = time.monotonic()
    broker.terminate()
    assert broker.process.wait(20) == 0
    assert time.monotonic() - begun < 12, "past the grace time"
    for one in deaf:
        one.close()
    # The HTTP/2 layer took a frame or two of each stream, which wait for their leases' end. The rest went back as it was.
    broker.start()
    back = Stream(broker.stub(), "unread", in_flight=24)
    seen = []
    while not any(one.lease_number > 1 for one in seen):
        seen += back.jobs(1, within=20)
    assert {one.attempt for one in seen} == {1}
