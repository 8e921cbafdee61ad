"""Callers' lane time and budgets over the wire: ListCallers, WatchCallers, SetCallerBudget, CALLER_BUDGET."""

import json
import os
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration

from harness.calls import Failed, Stream, ack, enqueue, eventually, failure, job
from harness.stubs import connection_pb as pb
from harness.stubs import connection_rpc

OPERATOR = (("leasehold-caller", "operator"),)


def caller(name):
    """Metadata of a caller."""
    return (("leasehold-caller", name),)


def seconds(duration):
    """As a number."""
    return duration.ToMicroseconds() / 1e6


def budget(max_lanes=0, max_wait=None, share=0.0):
    """A budget; `max_wait` in seconds."""
    wait = None
    if max_wait is not None:
        wait = Duration()
        wait.FromMicroseconds(round(max_wait * 1e6))
    return pb.CallerBudget(max_lanes=max_lanes, max_wait=wait, share=share)


@pytest.fixture
def connections(broker):
    """ConnectionService of that broker."""
    yield connection_rpc.ConnectionServiceStub(broker.channel())
    broker.hang_up()


def snapshot(connections, window="SINCE_START", statements=True):
    """Everybody's lane time."""
    window = pb.CallerWindow.Value(f"CALLER_WINDOW_{window}")
    request = pb.ListCallersRequest(window=window, include_statements=statements)
    return connections.ListCallers(request, timeout=10, metadata=OPERATOR).snapshot


def of(shown, name):
    """One caller of a snapshot."""
    return next((use for use in shown.callers if use.caller == name), None)


def set_budget(connections, name, new=None, timeout=10):
    """Sets or removes a budget; what holds now, or None."""
    request = pb.SetCallerBudgetRequest(caller=name, budget=new)
    answer = connections.SetCallerBudget(request, timeout=timeout, metadata=OPERATOR)
    return answer.budget if answer.HasField("budget") else None


def test_callers_and_their_statements_are_shown_and_add_up_with_idle_time(stub, connections):
    enqueue(stub, *[job("callers") for _ in range(30)], metadata=caller("bulk"))
    stream = Stream(stub, "callers", in_flight=30, metadata=caller("worker"))
    tokens = [lease.lease_token for lease in stream.jobs(30)]
    assert set(ack(stub, *tokens, metadata=caller("worker"))) == {"OK"}
    stream.cancel()
    shown = snapshot(connections)
    bulk, worker = of(shown, "bulk"), of(shown, "worker")
    assert bulk.use.rows >= 30 and bulk.use.holds >= 1 and seconds(bulk.use.held) > 0
    assert {"enqueue"} <= {use.statement for use in bulk.statements}
    assert {"claim", "ack"} <= {use.statement for use in worker.statements}
    assert bulk.use.waits >= 1 and seconds(bulk.use.wait_max) >= seconds(bulk.use.wait_p50)
    held = sum(seconds(use.use.held) for use in shown.callers)
    whole = seconds(shown.covered) * shown.lanes
    assert abs(held + seconds(shown.idle) - whole) < whole * 0.01, (held, shown.idle, whole)
    assert abs(sum(use.use.share for use in shown.callers) - held / whole) < 0.01
    order = [seconds(use.use.held) for use in shown.callers]
    assert order == sorted(order, reverse=True)
    assert not of(snapshot(connections, statements=False), "bulk").statements
    assert of(shown, "leasehold.lane"), "connecting is lane time as well"
    for window in ("UNSPECIFIED", "TEN_SECONDS", "ONE_MINUTE", "TEN_MINUTES", "ONE_HOUR"):
        shown = snapshot(connections, window)
        assert shown.window == (2 if window == "UNSPECIFIED" else pb.CallerWindow.Value(f"CALLER_WINDOW_{window}"))
        assert of(shown, "worker"), window


def test_an_unknown_window_is_refused(connections):
    failed = failure(connections.ListCallers, pb.ListCallersRequest(window=99), timeout=10)
    assert (failed.code, failed.reason, failed.fields) == ("INVALID_ARGUMENT", "INVALID_FIELD", ["window"])
    try:
        next(iter(connections.WatchCallers(pb.WatchCallersRequest(window=99), timeout=10)))
        raise AssertionError("it was let in")
    except grpc.RpcError as error:
        assert Failed(error).fields == ["window"]


@pytest.mark.settings(callers_watchers=2)
def test_a_watcher_gets_a_snapshot_at_once_and_then_each_second(connections):
    watching = connections.WatchCallers(pb.WatchCallersRequest(include_statements=True), metadata=OPERATOR, timeout=30)
    began, times = time.monotonic(), []
    for shown in watching:
        times.append(time.monotonic() - began)
        assert shown.snapshot.lanes > 0
        if len(times) == 4:
            break
    watching.cancel()
    assert times[0] < 0.7, times
    assert all(0.7 < b - a < 2 for a, b in zip(times, times[1:])), times

    def opened():
        stream = connections.WatchCallers(pb.WatchCallersRequest(), timeout=30)
        try:
            next(iter(stream))
        except grpc.RpcError as error:
            assert Failed(error).reason == "STREAM_LIMIT"  # the broker has not heard of the cancel yet
            return None
        return stream
    open_streams = [eventually(opened, what="there is room for two") for _ in range(2)]

    def third():
        try:
            next(iter(connections.WatchCallers(pb.WatchCallersRequest(), timeout=10)))
        except grpc.RpcError as error:
            return Failed(error)
    failed = eventually(third, what="a third watcher is refused")
    assert (failed.code, failed.reason, failed.outcome) == ("RESOURCE_EXHAUSTED", "STREAM_LIMIT", "not-applied")
    assert failed.retry
    open_streams[0].cancel()
    eventually(lambda: third() is None, what="there is room again")
    open_streams[1].cancel()


@pytest.mark.own_broker
def test_a_watchers_stream_ends_ok_when_the_broker_drains(broker, connections):
    ended = []

    def watch():
        try:
            for _ in connections.WatchCallers(pb.WatchCallersRequest(), metadata=OPERATOR):
                ended.append("snapshot")
            ended.append("OK")
        except grpc.RpcError as error:
            ended.append(error.code().name)
    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    eventually(lambda: ended, what="the first snapshot")
    broker.terminate()
    thread.join(10)
    assert ended[-1] == "OK", ended
    assert broker.process.wait(20) == 0


@pytest.mark.own_broker
def test_a_budget_is_set_shown_kept_and_taken_away(broker, connections, brokers):
    assert set_budget(connections, "never-seen") is None
    held = set_budget(connections, "checkout", budget(3, 0.25, 0.5))
    assert (held.max_lanes, seconds(held.max_wait), held.share) == (3, 0.25, 0.5)
    assert held.source == pb.BUDGET_SOURCE_DATABASE
    assert seconds(set_budget(connections, "unattributed", budget(1)).max_wait) == 1, "where none is said"
    shown = of(snapshot(connections), "checkout")
    assert shown.budget == held, "though it never held a lane"
    for line in ("ConnectionService/SetCallerBudget", "checkout", "operator"):
        assert line in broker.output(), f"{line} is not in the audit log"
    if broker.engine == "postgres":
        other = brokers(broker.database.url, name="other", callers_budget_refresh="100ms")
        second = connection_rpc.ConnectionServiceStub(other.channel())
        eventually(lambda: of(snapshot(second), "checkout"), what="the other replica knows")
        assert of(snapshot(second), "checkout").budget == held
        set_budget(connections, "checkout")
        eventually(lambda: of(snapshot(second), "checkout") is None, what="the other replica lets go of it")
    else:
        broker.terminate()
        broker.process.wait(20)
        broker.start()
        eventually(lambda: of(snapshot(connections), "checkout"), what="it outlives the broker")
        set_budget(connections, "checkout")
    assert of(snapshot(connections), "checkout") is None


@pytest.mark.parametrize("name,new,fields", [
    ("leasehold.reaper", budget(1), ["caller"]),
    ("leasehold.anything", None, ["caller"]),
    ("other", budget(1), ["caller"]),
    ("", budget(1), ["caller"]),
    ("*/ drop table job; /*", budget(1), ["caller"]),
    ("a", budget(10_001), ["budget.max_lanes"]),
    ("a", budget(1, 0.0001), ["budget.max_wait"]),
    ("a", budget(1, 61), ["budget.max_wait"]),
    ("a", budget(1, -1), ["budget.max_wait"]),
    ("a", budget(share=1.5), ["budget.share"]),
    ("a", budget(share=-0.5), ["budget.share"]),
    ("a", budget(share=float("nan")), ["budget.share"]),
    ("Ä", budget(20_000, 99, 7), ["caller", "budget.max_lanes", "budget.max_wait", "budget.share"]),
])
def test_a_budget_that_cannot_be_is_refused_with_all_its_faults(connections, name, new, fields):
    request = pb.SetCallerBudgetRequest(caller=name, budget=new)
    failed = failure(connections.SetCallerBudget, request, timeout=10, metadata=OPERATOR)
    assert (failed.code, failed.reason, failed.outcome) == ("INVALID_ARGUMENT", "INVALID_FIELD", "not-applied")
    assert failed.fields == fields


def test_a_caller_at_its_budget_is_refused_with_a_time_to_try_again(postgres, brokers):
    broker = brokers(postgres.url, callers_flood_max_lanes=1, callers_flood_max_wait="100ms")
    stub, connections = broker.stub(), connection_rpc.ConnectionServiceStub(broker.channel())
    enqueue(stub, job("budgeted"), metadata=caller("flood"))
    with postgres.connect(autocommit=False) as session:
        session.execute("lock table leasehold.job in share mode")  # no job is stored until this lets go
        with ThreadPoolExecutor(200) as pool:
            def call(n):
                try:
                    return enqueue(stub, job("budgeted"), timeout=20, metadata=caller("flood"))
                except grpc.RpcError as error:
                    return Failed(error)
            first = pool.submit(call, 0)
            eventually(lambda: of(snapshot(connections), "flood").lanes_held == 1, what="its lane is held")
            calls = [pool.submit(call, n) for n in range(199)]
            eventually(lambda: sum(c.done() for c in calls) >= 150, what="surplus calls are refused")
            free = pool.submit(enqueue, stub, job("budgeted"), timeout=20, metadata=caller("free"))
            held = of(snapshot(connections), "flood")
            assert held.lanes_held == 1 and held.refused >= 150 and held.budget.max_lanes == 1
            session.rollback()
            answers = [c.result() for c in (first, *calls)]
            assert free.result(), "whoever has no budget waits as ever"
    refused = [answer for answer in answers if isinstance(answer, Failed)]
    stored = len(answers) - len(refused)
    assert refused and stored, (len(refused), stored)
    for failed in refused:
        assert (failed.code, failed.reason, failed.outcome) == ("RESOURCE_EXHAUSTED", "CALLER_BUDGET", "not-applied")
        assert failed.retry and {"QuotaFailure", "RetryInfo", "ErrorInfo"} <= {d.rsplit(".", 1)[-1] for d in failed.details}
    assert postgres.one("select count(*) from leasehold.job") == 1 + stored + 1, "a refused job is not stored"


def test_streams_of_a_capped_caller_get_their_jobs_and_others_do_not_wait_for_them(postgres, brokers):
    broker = brokers(postgres.url, callers_capped_max_lanes=1)
    stub = broker.stub()
    names = [f"capped-{n}" for n in range(60)]
    enqueue(stub, *[job(name) for name in names for _ in range(5)], metadata=caller("producer"))
    enqueue(stub, *[job("free") for _ in range(50)], metadata=caller("producer"))
    capped = [Stream(stub, name, in_flight=10, metadata=caller("capped")) for name in names]
    began = time.monotonic()
    free = Stream(stub, "free", in_flight=50, metadata=caller("free"))
    assert len(free.jobs(50)) == 50
    assert time.monotonic() - began < 5
    for stream in capped:
        for lease in stream.jobs(5, within=30):
            assert ack(stub, lease.lease_token, metadata=caller("capped")) == ["OK"]
    for stream in (*capped, free):
        stream.cancel()


@pytest.mark.settings(callers_in_ledger=64, callers_names="checkout")
def test_invented_callers_leave_a_configured_one_its_figures(stub, connections):
    def one(n):
        enqueue(stub, job("invented"), timeout=20, metadata=caller(f"invented-{n}"))
    with ThreadPoolExecutor(20) as pool:
        list(pool.map(one, range(500)))
    enqueue(stub, job("invented"), metadata=caller("checkout"))
    shown = snapshot(connections)
    assert of(shown, "checkout").use.rows >= 1
    invented = [use for use in shown.callers if use.caller.startswith("invented-")]
    assert len(invented) <= 63 and of(shown, "other")
    stored = sum(part.use.rows for use in (*invented, of(shown, "other")) for part in use.statements
                 if part.statement.startswith("enqueue"))
    assert stored == 500, "the sum is exact"


def run(broker, *arguments):
    """The command line against a broker."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("LEASEHOLD_")}
    return subprocess.run([broker.program, *arguments, "--address", f"http://127.0.0.1:{broker.port}"], env=environment,
                          capture_output=True, text=True, timeout=30, check=False)


@pytest.mark.own_broker
def test_holds_and_budget_speak_from_a_shell(broker, stub):
    enqueue(stub, job("shell"), metadata=caller("checkout"))
    done = run(broker, "budget", "checkout", "--max-lanes", "2", "--max-wait", "300ms", "--share", "0.25")
    assert (done.returncode, done.stdout) == (0, "checkout: 2 lanes, 25.0% of lane time, waits 300ms\n"), done
    done = run(broker, "holds")
    assert done.returncode == 0, done
    line = next(line for line in done.stdout.splitlines() if line.startswith("checkout "))
    assert line.endswith("2 lanes, 25.0% of lane time, waits 300ms"), done.stdout
    assert "(idle)" in done.stdout and broker.name in done.stdout
    done = run(broker, "holds", "--by", "statement", "--window", "start")
    assert any(line.split()[:2] == ["checkout", "enqueue"] for line in done.stdout.splitlines()), done.stdout
    shown = json.loads(run(broker, "holds", "--json", "--window", "10s").stdout)
    assert shown["window"] == "10s" and any(use["caller"] == "checkout" for use in shown["callers"])
    done = run(broker, "budget", "checkout", "--remove")
    assert (done.returncode, done.stdout) == (0, "checkout: no budget\n"), done
    done = run(broker, "budget", "leasehold.reaper", "--max-lanes", "1")
    assert done.returncode != 0 and "have no budget" in done.stderr, done
    done = run(broker, "holds", "--window", "5s")
    assert done.returncode != 0, done
