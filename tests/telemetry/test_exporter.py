"""A collector that is away, hangs or comes late costs its own data and nothing else."""

import os
import re
import socket
import subprocess
import time

import h2.config
import h2.connection
import h2.events
import pytest

from harness.calls import CALLER, Stream, ack, enqueue, eventually, job
from harness.cluster import free_port
from harness.otlp import Collector

QUEUE = 64


def lost(broker):
    """What was lost so far, by signal and reason."""
    found = re.findall(r'leasehold_telemetry_lost_total\{error_type="(\w+)",signal="(\w+)"\} (\d+)', broker.get("/metrics")[1])
    return {(signal, reason): int(count) for reason, signal, count in found}


@pytest.fixture(params=["refuses", "hangs", "says nothing"])
def useless(request):
    """The port of a collector that takes nothing: nobody listens; connections are never accepted; or accepted and left alone."""
    if request.param == "refuses":
        yield free_port()
        return
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0 if request.param == "hangs" else 64)
        full = []
        if request.param == "hangs":
            for _ in range(4):  # the kernel takes a few by itself
                filler = socket.socket()
                filler.setblocking(False)
                filler.connect_ex(listener.getsockname())
                full.append(filler)
        yield listener.getsockname()[1]
        for filler in full:
            filler.close()


def test_a_useless_collector_costs_nothing_but_its_data(useless, brokers):
    broker = brokers(telemetry_otlp_endpoint=f"http://127.0.0.1:{useless}", telemetry_sample="1", telemetry_queue=str(QUEUE),
                     telemetry_batch="16", telemetry_export_interval="100ms", telemetry_export_timeout="1s",
                     telemetry_flush_timeout="1s", telemetry_metrics_interval="1s", lanes_count="3")
    os.sched_setaffinity(broker.process.pid, {min(os.sched_getaffinity(0))})
    stub = broker.stub()
    before = broker.memory()
    stream, took = Stream(stub, "orders", in_flight=50), []
    for _ in range(300):
        started = time.monotonic()
        enqueue(stub, job("orders"), timeout=5)
        took.append(time.monotonic() - started)
        ack(stub, *(got.lease_token for got in stream.jobs(1)), timeout=5)
    assert sorted(took)[len(took) // 2] < 0.25, "calls wait for nobody"
    assert broker.memory() - before < 64 << 20
    counts = eventually(lambda: lost(broker) if lost(broker).get(("metrics", "failed")) else None, 20, "lost metrics")
    assert counts[("traces", "queue_full")] + counts[("traces", "failed")] > QUEUE
    stream.cancel()
    broker.hang_up()
    started = time.monotonic()
    broker.terminate()
    assert broker.process.wait(20) == 0
    assert time.monotonic() - started < 5, "the last telemetry has its bound"
    assert "the collector did not take the last telemetry in time" in broker.output()


def test_what_waits_is_sent_before_the_end(traced, collector):
    broker = traced(telemetry_export_interval="60s", telemetry_metrics_interval="600s", telemetry_batch="4096")
    enqueue(broker.stub(), job("last"), metadata=(*CALLER, ("traceparent", f"00-{7:032x}-b7ad6b7169203331-01")))
    assert collector.spans() == [], "nothing was due yet"
    broker.terminate()
    assert broker.process.wait(20) == 0
    assert {"enqueue", "leasehold.v1.QueueService/Enqueue"} <= {span.name for span in collector.spans() if span.trace == f"{7:032x}"}
    assert "drained" in [record["body"]["stringValue"] for record in collector.logs()]
    assert collector.metrics()["leasehold.jobs.enqueued"][1]["sum"]["dataPoints"][0]["asInt"] == "1"


def test_a_collector_that_comes_late_gets_what_comes_then(brokers, work):
    late = Collector(os.environ["LEASEHOLD_TEST_COLLECTOR"], work / "collector")
    late.end()
    broker = brokers(telemetry_otlp_endpoint=late.endpoint(), telemetry_sample="1", telemetry_export_interval="100ms")
    stub = broker.stub()
    enqueue(stub, job("orders"))
    eventually(lambda: lost(broker).get(("traces", "failed")), 20, "lost spans")
    late = late.again()
    try:
        def arrived():
            enqueue(stub, job("orders"))
            return any(span.name == "enqueue" for span in late.spans())
        eventually(arrived, 20, "a span")
    finally:
        late.end()


def test_without_a_collector_nothing_is_sent_and_no_trace_begins(brokers):
    broker = brokers()
    enqueue(broker.stub(), job("orders"), metadata=(*CALLER, ("traceparent", f"00-{7:032x}-b7ad6b7169203331-01")))
    text = broker.get("/metrics")[1]
    assert "leasehold_telemetry" not in text and "leasehold_jobs_enqueued_total 1" in text


def test_headers_reach_the_collector_and_no_output_shows_them(brokers):
    secret = "collector-key-Xw93"
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(1)
        port = listener.getsockname()[1]
        broker = brokers(telemetry_otlp_endpoint=f"http://127.0.0.1:{port}", telemetry_sample="1",
                         telemetry_otlp_headers=f"x-api-key={secret}", telemetry_export_interval="100ms",
                         telemetry_flush_timeout="100ms", log_level="trace", telemetry_metrics="false", telemetry_logs="false")
        enqueue(broker.stub(), job("orders"))
        listener.settimeout(20)
        connection, _ = listener.accept()
        connection.settimeout(20)
        assert headers_of_first_request(connection)["x-api-key"] == secret
    broker.terminate()
    broker.process.wait(20)
    assert secret not in broker.output()


def headers_of_first_request(connection):
    """Answers as an HTTP/2 server until the first request's headers are there."""
    server = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
    server.initiate_connection()
    connection.sendall(server.data_to_send())
    while True:
        data = connection.recv(65_536)
        assert data, "the broker hung up"
        for event in server.receive_data(data):
            if isinstance(event, h2.events.RequestReceived):
                return dict(event.headers)
        connection.sendall(server.data_to_send())


def authority(work, name):
    """The certificate of a new authority, and one that it signed for this machine with its key."""
    work.mkdir(parents=True, exist_ok=True)
    root, root_key, leaf, key, request, names = (work / f"{name}-{part}" for part in (
        "root.pem", "root.key", "leaf.pem", "leaf.key", "leaf.csr", "names"))
    names.write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n")

    def openssl(*arguments):
        subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)
    new = ("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    openssl(*new, "-x509", "-days", 2, "-subj", f"/CN={name}", "-keyout", root_key, "-out", root)
    openssl(*new, "-subj", "/CN=collector", "-keyout", key, "-out", request)
    openssl("x509", "-req", "-days", 2, "-in", request, "-CA", root, "-CAkey", root_key, "-CAcreateserial", "-extfile", names,
            "-out", leaf)
    return root, (leaf, key)


@pytest.fixture
def secure_collector(collector_program, work):
    """A collector that speaks TLS alone, and the authority that its certificate is of."""
    root, tls = authority(work / "authorities", "trusted")
    made = Collector(collector_program, work / "secure", tls=tls)
    yield made, root
    made.end()


def sends_to(brokers, collector, **settings):
    """A broker that sends everything there soon."""
    return brokers(telemetry_otlp_endpoint=collector.endpoint(), telemetry_sample="1", telemetry_export_interval="100ms",
                   telemetry_metrics_interval="1s", **settings)


def test_a_collector_is_spoken_to_by_tls_where_its_authority_is_trusted(secure_collector, brokers):
    collector, root = secure_collector
    broker = sends_to(brokers, collector, telemetry_otlp_ca_file=str(root))
    enqueue(broker.stub(), job("orders"))
    eventually(lambda: any("Enqueue" in span.name for span in collector.spans()), within=60)


def test_a_collector_of_another_authority_or_of_none_that_the_system_knows_gets_nothing(secure_collector, brokers, work):
    collector, _ = secure_collector
    other, _ = authority(work / "authorities", "other")
    for settings in ({"telemetry_otlp_ca_file": str(other)}, {}):
        broker = sends_to(brokers, collector, **settings)
        enqueue(broker.stub(), job("orders"))
        eventually(lambda: any(signal == "traces" for signal, _ in lost(broker)), within=60)
    assert not collector.spans()
