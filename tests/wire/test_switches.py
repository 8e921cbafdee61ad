"""What a queue's settings do: pause and kill switch, over two replicas too, and the others one by one."""

import time

import grpc
import psycopg
import pytest

from harness.calls import Failed, Stream, ack, enqueue, eventually, failure, job, nack
from harness.operators import counts, get, update
from harness.stubs import pb


def refused(stub, queue):
    """What an Enqueue is told, where it is refused."""
    try:
        enqueue(stub, job(queue))
    except grpc.RpcError as error:
        return Failed(error)
    return None


@pytest.mark.settings(streams_heartbeat="1s")
def test_a_paused_queue_gives_no_job_while_its_streams_stay_open(stub, admin):
    stream, other = Stream(stub, "paused", in_flight=5), Stream(stub, "paused", "beside", in_flight=5)
    stream.expect("opened")
    other.expect("opened")
    update(admin, "paused", create=True, paused=True)
    enqueue(stub, *[job("paused") for _ in range(3)], job("beside", b"beside"))
    assert other.jobs(1)[0].payload == b"beside", "its other queue goes on"
    for _ in range(2):
        stream.expect("heartbeat")
    stream.quiet(1.0)
    assert counts(admin, "paused")["ready"] == 3, "it takes jobs"
    update(admin, "paused", paused=False)
    eventually(lambda: counts(admin, "paused")["leased"] == 3, what="leases")


def test_a_disabled_queue_refuses_jobs_and_gives_what_it_has(stub, admin):
    enqueue(stub, job("disabled", b"before", idempotency_key="i"))
    update(admin, "disabled", disabled_reason="stock is being counted")
    said = refused(stub, "disabled")
    assert (said.code, said.reason, said.outcome) == ("UNAVAILABLE", "DISABLED", "not-applied"), said
    assert "stock is being counted" in said.message and "disabled" in said.message
    said = failure(enqueue, stub, job("enabled"), job("disabled"))
    assert said.reason == "DISABLED", "all or nothing"
    stream = Stream(stub, "disabled", "enabled", in_flight=5)
    [leased] = stream.jobs(1)
    assert leased.payload == b"before"
    assert ack(stub, leased.lease_token) == ["OK"]
    update(admin, "disabled", disabled_reason="")
    assert refused(stub, "disabled") is None


@pytest.fixture
def pair(postgres, brokers):
    """Two replicas on one database."""
    return brokers(postgres.url, name="one"), brokers(postgres.url, name="two")


def test_the_kill_switch_holds_at_once_through_every_replica_and_by_sql(pair, postgres):
    first, second = pair
    stubs = first.stub(), second.stub()
    for stub in stubs:
        enqueue(stub, job("switch"), job("switch", ordering_key="k"))
    update(first.admin(), "switch", disabled_reason="not now")
    for stub in stubs:
        for fields in ({}, {"ordering_key": "k"}, {"idempotency_key": "i"}):
            said = failure(enqueue, stub, job("switch", **fields))
            assert (said.reason, said.outcome) == ("DISABLED", "not-applied") and "not now" in said.message, said
    with postgres.connect() as session, pytest.raises(psycopg.Error) as error:
        session.execute("select leasehold.enqueue('switch', 'x')")
    assert error.value.sqlstate == "LH003" and "not now" in str(error.value)
    assert postgres.one("select count(*) from leasehold.job") == 4
    update(second.admin(), "switch", disabled_reason="")
    assert refused(second.stub(), "switch") is None
    eventually(lambda: refused(first.stub(), "switch") is None, within=10, what="service through the other replica")
    postgres.one("select leasehold.enqueue('switch', 'x')")


def test_a_pause_holds_through_every_replica_within_the_refresh_interval(pair):
    first, second = pair
    streams = Stream(first.stub(), "paused", in_flight=50), Stream(second.stub(), "paused", in_flight=50)
    for stream in streams:
        stream.expect("opened")
    enqueue(first.stub(), *[job("paused") for _ in range(10)])
    update(second.admin(), "paused", paused=True)
    paused_at = time.monotonic()
    # Both replicas have read it by then; what is leased until then was leased before.
    while time.monotonic() - paused_at < 6.5:
        enqueue(first.stub(), job("paused"))
        time.sleep(0.25)
    for stream in streams:
        while not stream.frames.empty():
            stream.next()
    enqueue(second.stub(), *[job("paused") for _ in range(20)])
    for stream in streams:
        stream.quiet(2)
    update(first.admin(), "paused", paused=False)
    eventually(lambda: counts(first.admin(), "paused")["ready"] == 0, within=15, what="leases")


def test_lease_attempts_and_back_off_go_by_the_queue(stub, admin):
    update(admin, "terms", create=True, lease_duration=7, max_attempts=2, backoff_base=31_536_000,
           backoff_cap=31_536_000)
    enqueue(stub, job("terms"), job("terms", max_attempts=1))
    leased = Stream(stub, "terms", in_flight=2).jobs(2)
    assert {one.max_attempts for one in leased} == {1, 2}
    assert all(5 < one.lease_remaining.ToMicroseconds() / 1e6 <= 7 for one in leased)
    twice = next(one for one in leased if one.max_attempts == 2)
    before = time.time()
    [result] = nack(stub, twice.lease_token)
    assert result.available_at.ToMicroseconds() / 1e6 - before > 5, "with the usual back-off it is a second at most"
    update(admin, "terms", mask=["lease_duration"])
    assert get(admin, "terms").settings.lease_duration.seconds == 30


def test_a_bound_on_jobs_holds_from_its_change_on(stub, admin):
    enqueue(stub, *[job("bounded") for _ in range(3)])
    update(admin, "bounded", max_backlog_jobs=4)
    enqueue(stub, job("bounded"))
    said = refused(stub, "bounded")
    assert (said.code, said.reason) == ("RESOURCE_EXHAUSTED", "QUEUE_FULL"), said
    update(admin, "bounded", mask=["max_backlog_jobs"])
    assert refused(stub, "bounded") is None
    update(admin, "bounded", max_backlog_bytes=1)
    assert eventually(lambda: refused(stub, "bounded"), what="refusal").reason == "QUEUE_FULL"


def test_a_job_that_nobody_leases_in_time_dies(broker, stub, admin):
    update(admin, "short-lived", create=True, time_to_live=1, max_attempts=3)
    enqueue(stub, job("short-lived"), job("short-lived", delay=3600), job("short-lived", ordering_key="k"),
            job("short-lived", ordering_key="k"))
    eventually(lambda: counts(admin, "short-lived")["dead"] == 3, within=15, what="death")
    assert counts(admin, "short-lived") == {"ready": 0, "scheduled": 1, "blocked": 0, "leased": 0, "dead": 3}
    if broker.database:
        errors = broker.database.all("select distinct last_error from leasehold.dead_job d join leasehold.queue q"
                                     " on q.id = d.queue_id where q.name = 'short-lived'")
        assert errors == [("time to live is over",)]


def test_an_acked_job_is_kept_where_its_queue_keeps_them(pair, postgres):
    first, second = pair
    update(first.admin(), "kept", create=True, acked_retention=3600)
    stub = second.stub()
    ids = enqueue(stub, job("kept", b"by call"), job("kept", b"by sql"), job("lost", b"gone"))
    stream = Stream(stub, "kept", "lost", in_flight=3)
    leased = {one.payload: one for one in stream.jobs(3)}
    assert ack(stub, leased[b"by call"].lease_token, leased[b"gone"].lease_token) == ["OK", "OK"]
    assert postgres.one("select leasehold.ack(%s)", leased[b"by sql"].lease_token) is True
    kept = postgres.all("select id::text, convert_from(payload, 'UTF8'), attempt from leasehold.acked_job order by id")
    assert kept == [(ids[0], "by call", 1), (ids[1], "by sql", 1)]
    assert ack(stub, leased[b"by call"].lease_token, leased[b"by sql"].lease_token) == ["GONE", "GONE"]
    with postgres.connect(autocommit=False) as session:
        enqueue(stub, job("kept", b"rolled back"))
        [one] = stream.jobs(1)
        assert session.execute("select leasehold.ack(%s)", [one.lease_token]).fetchone()[0] is True
        session.rollback()
    assert postgres.one("select count(*) from leasehold.acked_job") == 2, "with its transaction it never was"
    assert ack(stub, one.lease_token) == ["OK"]


def test_a_setting_changed_while_a_key_is_remembered_holds_for_new_keys(stub, admin):
    update(admin, "keys", create=True, idempotency_retention=1)
    enqueue(stub, job("keys", b"a", idempotency_key="short"))
    update(admin, "keys", idempotency_retention=3600)
    enqueue(stub, job("keys", b"a", idempotency_key="long"))
    request = pb.EnqueueRequest(jobs=[job("keys", b"a", idempotency_key="long")])
    assert stub.Enqueue(request, timeout=5).jobs[0].duplicate
    request = pb.EnqueueRequest(jobs=[job("keys", b"a", idempotency_key="short")])
    eventually(lambda: not stub.Enqueue(request, timeout=5).jobs[0].duplicate, within=5, what="the short key's end")
