"""What SIGTERM does: promise P15."""

import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

from harness.calls import CALLER, Failed, Stream, ack, enqueue, eventually, job
from harness.raw import SERVICE, Raw, framed
from harness.stubs import pb

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
