"""Traces, logs and metrics as a real collector gets them."""

import time

import pytest
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from harness.broker import PAYLOAD_MARK
from harness.calls import CALLER, Stream, ack, enqueue, eventually, job, nack
from harness.otlp import attributes
from harness.stubs import pb

SERVICE = "leasehold.v1.QueueService"
W3C = TraceContextTextMapPropagator()
PRODUCER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def sent():
    """Metadata with the current trace context."""
    carrier = {}
    W3C.inject(carrier)
    return (*CALLER, *carrier.items())


@pytest.fixture
def tracer(collector):
    """A foreign service's, whose spans go to the same collector."""
    provider = TracerProvider(resource=Resource.create({"service.name": "shop"}))
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(collector.endpoint(), insecure=True)))
    yield provider.get_tracer("shop")
    provider.shutdown()


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_a_job_from_producer_to_consumer_is_one_tree_and_the_claim_links_to_it(engine, traced, tracer, collector, request):
    database = request.getfixturevalue("postgres") if engine == "postgres" else None
    stub = traced(database and database.url).stub()
    with tracer.start_as_current_span("send orders", kind=trace.SpanKind.PRODUCER) as producing:
        [job_id] = enqueue(stub, job("orders", PAYLOAD_MARK.encode()), metadata=sent())
        root = producing.get_span_context()
    stream = Stream(stub, "orders")
    [got] = stream.jobs(1)
    creation = W3C.extract({"traceparent": got.traceparent, "tracestate": got.tracestate})
    link = trace.Link(trace.get_current_span(creation).get_span_context(), {"messaging.message.id": job_id})
    with tracer.start_as_current_span("process orders", creation, kind=trace.SpanKind.CONSUMER, links=[link]):
        assert ack(stub, got.lease_token, metadata=sent()) == ["OK"]

    trace_id = f"{root.trace_id:032x}"
    of_job = lambda spans: {span.name: span for span in spans if span.trace == trace_id}
    wanted = {"send orders", "process orders", f"{SERVICE}/Enqueue", f"{SERVICE}/Ack", "enqueue", "ack"}
    spans = collector.wait_for(lambda spans: wanted <= of_job(spans).keys() and any(span.name == "claim" for span in spans))
    tree = of_job(spans)
    parent = lambda name: next((span.name for span in tree.values() if span.id == tree[name].parent), None)
    assert {name: (tree[name].kind, parent(name)) for name in wanted} == {
        "send orders": ("PRODUCER", None),
        f"{SERVICE}/Enqueue": ("SERVER", "send orders"),
        "enqueue": ("CLIENT", f"{SERVICE}/Enqueue"),
        "process orders": ("CONSUMER", "send orders"),
        f"{SERVICE}/Ack": ("SERVER", "process orders"),
        "ack": ("CLIENT", f"{SERVICE}/Ack"),
    }
    ids = {span.id for span in spans if span.trace == trace_id}
    assert [span for span in spans if span.trace == trace_id and span.parent and span.parent not in ids] == [], "one tree"

    assert tree["enqueue"].attributes["conn_tag"] == dict(CALLER)["leasehold-caller"]
    assert tree["enqueue"].attributes["db.system.name"] == {"sqlite": "sqlite", "postgres": "postgresql"}[engine]
    assert tree["enqueue"].attributes["db.query.summary"] == "enqueue"
    assert tree[f"{SERVICE}/Enqueue"].attributes["rpc.response.status_code"] == "OK"
    [claim] = [span for span in spans if span.name == "claim" and span.links]
    assert claim.links == [(trace_id, f"{root.span_id:016x}", {"messaging.message.id": job_id})]
    assert claim.trace != trace_id and claim.kind == "CLIENT" and not claim.parent
    assert PAYLOAD_MARK not in collector.text()
    stream.cancel()


def test_the_span_of_a_stream_ends_while_the_stream_lives(traced, collector):
    stub = traced().stub()
    stream = Stream(stub, "quiet", metadata=(*CALLER, ("traceparent", PRODUCER)))
    stream.expect("opened")
    spans = collector.wait_for(lambda spans: any(span.name == f"{SERVICE}/Lease" for span in spans))
    [lease] = [span for span in spans if span.name == f"{SERVICE}/Lease"]
    assert stream.ended_at is None, "it is still open"
    assert (lease.trace, lease.parent, lease.failed) == (PRODUCER[3:35], PRODUCER[36:52], False)
    stream.cancel()


def test_logs_and_metrics_arrive_under_the_resource_and_a_slow_hold_leads_to_its_trace(traced, collector):
    stub = traced(telemetry_slow_hold="1ms", telemetry_resource="deployment.environment.name=test", name="here").stub()
    for _ in range(20):
        enqueue(stub, *(job("orders") for _ in range(1000)), metadata=(*CALLER, ("traceparent", PRODUCER)))
    about = lambda record: record.get("body", {}).get("stringValue")
    slow = eventually(lambda: [record for record in collector.logs() if about(record) == "a lane was held for long"
                               and attributes(record)["statement"] == "enqueue"], 20, "a slow hold's log record")[0]
    assert slow["traceId"] == attributes(slow)["trace_id"] == PRODUCER[3:35]
    collector.wait_for(lambda spans: any(span.id == slow["spanId"] and span.name == "enqueue" for span in spans))
    assert any(about(record) == "serving" for record in collector.logs())

    metrics = eventually(lambda: (metrics := collector.metrics()).get("leasehold.jobs.enqueued") and metrics, 20, "metrics")
    assert {"db.client.connection.use_time", "db.client.connection.wait_time", "db.client.operation.duration",
            "db.client.connection.count", "rpc.server.call.duration"} <= metrics.keys()
    resource = metrics["leasehold.jobs.enqueued"][0]
    assert {**resource, "service.version": None} == {"service.name": "leasehold", "service.instance.id": "here",
                                                     "deployment.environment.name": "test", "service.version": None}


@pytest.mark.parametrize("bad", ["00-zz-zz-01", "00-" + "0" * 32 + "-" + "0" * 16 + "-01", PRODUCER[:-2] + "-" + "a" * 10_240],
                         ids=["malformed", "all-zero", "10 KiB"])
def test_a_bad_context_is_dropped_and_its_call_begins_a_trace(bad, traced, collector):
    stub = traced().stub()
    enqueue(stub, job("orders", headers={"traceparent": bad}), job("orders"), metadata=(*CALLER, ("traceparent", bad)))
    stream = Stream(stub, "orders")
    assert [got.traceparent for got in stream.jobs(2)] == ["", ""]
    spans = collector.wait_for(lambda spans: any(span.name == f"{SERVICE}/Enqueue" for span in spans))
    [call] = [span for span in spans if span.name == f"{SERVICE}/Enqueue"]
    assert not call.parent and set(call.trace) != {"0"}
    stream.cancel()


def test_a_context_passes_through_retries_and_expiry_unchanged_and_to_no_other_job(traced):
    stub = traced(upkeep_reaper_interval="200ms").stub()
    other = PRODUCER.replace("b7ad", "c8be")
    enqueue(stub, job("orders", b"with", headers={"traceparent": PRODUCER, "tracestate": "a=1"}), job("orders", b"without"),
            job("orders", b"other", headers={"traceparent": other}))
    stream = Stream(stub, "orders", lease=1)
    expected = {b"with": (PRODUCER, "a=1"), b"without": ("", ""), b"other": (other, "")}
    for round_of in range(3):
        got = stream.jobs(3)
        assert {one.payload: (one.traceparent, one.tracestate) for one in got} == expected
        if round_of == 0:
            nack(stub, *(one.lease_token for one in got), delay=0)
        # the second time nobody says anything and the leases run out
    stream.cancel()


def test_a_merged_statement_links_to_the_calls_that_it_ran_for(traced, collector, postgres):
    broker = traced(postgres.url, lanes_count=3)
    stub = broker.stub()
    enqueue(stub, job("orders"))
    traces = [f"00-{n:032x}-b7ad6b7169203331-01" for n in range(1, 41)]
    with postgres.connect(autocommit=False) as session:
        session.execute("lock table leasehold.job in share mode")
        calls = [stub.Enqueue.future(pb.EnqueueRequest(jobs=[job("orders")]), timeout=20, metadata=(*CALLER, ("traceparent", trace)))
                 for trace in traces]
        # two lanes wait for the lock with one call each; what comes meanwhile gathers
        eventually(lambda: 'pending_requests{conn_tag' in broker.get("/metrics")[1], what="metrics")
        deadline = time.monotonic() + 1
        while time.monotonic() < deadline and not waiting(broker) >= 30:
            time.sleep(0.01)
        session.rollback()
    for call in calls:
        call.result()
    spans = collector.wait_for(lambda spans: sum(span.name == f"{SERVICE}/Enqueue" for span in spans) > 40)
    merged = [span for span in spans if span.name == "enqueue" and span.links]
    assert merged, "no statement ran for several calls"
    calls_of = {span.id: span for span in spans if span.name == f"{SERVICE}/Enqueue"}
    for statement in merged:
        assert calls_of[statement.parent].trace == statement.trace
        assert all(link_id in calls_of and calls_of[link_id].trace == link_trace for link_trace, link_id, _ in statement.links)


def waiting(broker):
    """Requests in front of the lanes."""
    lines = [line for line in broker.get("/metrics")[1].splitlines() if line.startswith("db_client_connection_pending_requests{")]
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines)
