"""A database that refuses, waits, or promises less than it should: what callers are told."""

import time
from collections import Counter

import grpc
import pytest

from harness.calls import CALLER, Failed, Stream, ack, enqueue, eventually, failure, job
from harness.stubs import pb


def one(queue="db", **fields):
    """A request with one job."""
    return pb.EnqueueRequest(jobs=[job(queue, **fields)])


@pytest.fixture
def served(cluster, brokers):
    """A broker on a cluster of its own, a stub, and a session for the test."""
    broker = brokers(cluster.url())
    stub = broker.stub()
    enqueue(stub, job("db", b"warm"))
    with cluster.connect() as session:
        yield broker, stub, session


def test_a_commit_whose_standby_never_confirmed_is_unknown_and_so_is_its_repetition(served):
    """A cancelled wait for a synchronous standby looks like success to most clients of PostgreSQL."""
    _, stub, session = served

    def cancel_waits():
        return session.execute("select count(pg_cancel_backend(pid)) from pg_stat_activity"
                               " where wait_event = 'SyncRep'").fetchone()[0]

    # The tests' own session must not wait for the standby too.
    session.execute("set synchronous_commit = local")
    session.execute("alter system set synchronous_standby_names = 'nosuch'")
    session.execute("select pg_reload_conf()")

    def answered(request):
        call = stub.Enqueue.future(request, timeout=12, metadata=CALLER)
        waits = 0
        while not call.done():
            waits += cancel_waits()
            time.sleep(0.02)
        return call, waits

    # The server takes the setting over when its checkpointer has read it.
    eventually(lambda: answered(one(payload=b"early"))[1], what="a wait for the standby")
    for request in (one(payload=b"once"), one(payload=b"key", idempotency_key="k"), one(payload=b"key", idempotency_key="k")):
        call, waits = answered(request)
        assert waits and call.exception() is not None, "answered OK without the standby"
        said = Failed(call.exception())
        assert said.outcome == "unknown", said
    session.execute("alter system reset synchronous_standby_names")
    session.execute("select pg_reload_conf()")
    eventually(lambda: not cancel_waits(), what="the end of the waits")
    assert enqueue(stub, job("db", b"key", idempotency_key="k"))
    assert session.execute("select count(*) from leasehold.job where payload = 'key'").fetchone()[0] == 1


def test_a_read_only_database_applies_nothing_and_is_used_again_afterwards(served):
    broker, stub, session = served
    session.execute("alter system set default_transaction_read_only = on")
    session.execute("select pg_reload_conf()")

    def refused():
        try:
            stub.Enqueue(one(), timeout=5, metadata=CALLER)
        except grpc.RpcError as error:
            return Failed(error)
        return None

    said = eventually(refused, what="refusal")
    assert (said.code, said.outcome) == ("UNAVAILABLE", "not-applied"), said
    session.execute("set default_transaction_read_only = off")
    session.execute("alter system reset default_transaction_read_only")
    session.execute("select pg_reload_conf()")
    eventually(lambda: refused() is None, within=10, what="service after the heal")


def test_a_locked_table_is_told_in_time_and_streams_live_through_it(served):
    broker, stub, session = served
    stream = Stream(stub, "locked")
    stream.expect("opened")
    with session.transaction():
        session.execute("lock table leasehold.job in access exclusive mode")
        begun = time.monotonic()
        said = failure(stub.Enqueue, one("locked"), timeout=20, metadata=CALLER)
        assert time.monotonic() - begun < 15
        assert said.code in ("ABORTED", "UNAVAILABLE") and said.outcome == "not-applied", said
        assert said.retry is not None
        short = failure(stub.Enqueue, one("locked", payload=b"short"), timeout=0.5, metadata=CALLER)
        assert short.code == "DEADLINE_EXCEEDED", short
    enqueue(stub, job("locked", b"after"))
    payloads = set()
    while b"after" not in payloads:
        leased = stream.jobs(1)[0]
        payloads.add(leased.payload)
        ack(stub, leased.lease_token)
    assert payloads <= {b"after", b"short"}, "what was not applied is there"


@pytest.mark.parametrize("setting", ["synchronous_commit"])
def test_a_database_that_may_lose_commits_is_refused_unless_allowed(postgres, brokers, setting):
    postgres.one("select 1")
    with postgres.connect() as session:
        session.execute(f'alter database "{postgres.name}" set {setting} = off')
    refused = brokers(postgres.url, name="strict", wait=False)
    eventually(lambda: setting in refused.output(), within=15, what="the reason in the log")
    assert not refused.is_ready()
    allowed = brokers(postgres.url, name="lossy", allow_lossy="true")
    assert enqueue(allowed.stub(), job("lossy"))


def test_streams_stay_open_while_the_database_is_away_and_say_so(cluster, brokers):
    broker = brokers(cluster.url(), streams_heartbeat="1s")
    stub = broker.stub()
    enqueue(stub, job("away", b"before"))
    stream = Stream(stub, "away", in_flight=5)
    leased = stream.jobs(1)[0]
    cluster.stop("immediate")
    eventually(lambda: stream.expect("heartbeat").claims_failing, within=20, what="the word that claims fail")
    said = failure(stub.Enqueue, one("away"), timeout=10, metadata=CALLER)
    assert (said.code, said.reason, said.outcome) == ("UNAVAILABLE", "DATABASE_UNAVAILABLE", "not-applied"), said
    ended = Stream(stub, "away-script", stop_when_empty=True)
    ended.expect("opened")
    cluster.start()
    eventually(lambda: not stream.expect("heartbeat").claims_failing, within=20, what="the word that claims work")
    assert ended.end(10) is None
    eventually(broker.is_ready, what="readiness")
    assert ack(stub, leased.lease_token) == ["OK"]
    enqueue(stub, job("away", b"after"))
    assert stream.jobs(1)[0].payload == b"after"


def test_connections_stay_few_and_an_idle_broker_asks_little(postgres, brokers):
    broker = brokers(postgres.url, name="idle")
    stub = broker.stub()
    enqueue(stub, *[job(f"idle-{n}") for n in range(30)])
    streams = [Stream(stub, *[f"idle-{(n + k) % 30}" for k in range(5)], in_flight=100,
                      metadata=(("leasehold-caller", f"idle-{n % 10}"),)) for n in range(60)]
    taken = [one_ for stream in streams for _, frame in [stream.frames.get(timeout=5)] for one_ in frame.jobs.jobs]
    eventually(lambda: postgres.one("select count(*) from leasehold.job where lease_id is null") == 0, what="the leases")
    taken += [one_ for stream in streams for _ in range(stream.frames.qsize()) for one_ in stream.next().jobs.jobs]
    ack(stub, *[one_.lease_token for one_ in taken])
    streams[0].quiet(2)
    begun, before = time.monotonic(), len(postgres.statements())
    streams[0].quiet(6)
    asked = Counter((entry.caller, entry.statement.split("*/")[1][:60]) for entry in postgres.statements()[before:])
    rate = asked.total() / (time.monotonic() - begun)
    assert rate <= 5, f"{rate:.1f} statements a second while idle: {asked.most_common(8)}"
    assert len(postgres.sessions("leasehold%")) <= 10


def test_callers_without_end_keep_texts_and_memory_bounded(postgres, brokers):
    """Failure case 41: more callers than may have a text of their own; no statement names another's caller."""
    broker = brokers(postgres.url, name="texts", lanes_acquire_timeout="30s")
    stub = broker.stub()
    enqueue(stub, job("texts", b"warm"), metadata=(("leasehold-caller", "warm"),))
    with postgres.connect() as session:
        session.execute("""
            create table public.seen (statement text, payload bytea);
            create function public.see() returns trigger language plpgsql as $$ begin
                insert into public.seen values (current_query(), new.payload); return new; end $$;
            create trigger see before insert on leasehold.job for each row execute function public.see();""")
    calls = []
    for number in range(1500):
        caller = f"caller-{number % 300}"
        calls.append(stub.Enqueue.future(one("texts", payload=caller.encode()), timeout=30,
                                         metadata=(("leasehold-caller", caller),)))
        if len(calls) == 50:
            failed = [Failed(call.exception()) for call in calls if call.exception()]
            assert not failed, failed[:3]
            calls.clear()
    rows = postgres.all("select substring(statement from 'conn_tag:([a-z0-9_.-]+)'), convert_from(payload, 'UTF8'), count(*)"
                        " from public.seen group by 1, 2")
    assert sum(count for _, _, count in rows) == 1500
    wrong = [(named, true) for named, true, _ in rows if named not in (true, "other")]
    assert not wrong, wrong[:5]
    named = {caller for caller, _, _ in rows}
    assert "other" in named
    assert 32 <= len(named) <= 65, len(named)
    prepared = {}
    for entry in postgres.log_entries():
        if entry.text.startswith("execute sqlx_s_"):
            prepared.setdefault(entry.pid, set()).add(entry.text.split(":", 1)[0])
    assert max(len(names) for names in prepared.values()) <= 400
