"""Failures seen in systems of this kind, as tests of this one: those that no other file holds."""

import random
import threading
import time

import grpc
import pytest

from harness import LONG
from harness.calls import CALLER, Failed, Stream, ack, enqueue, eventually, extend, failure, job, nack, seconds, status_name
from harness.stubs import pb, rpc


def test_a_stale_holders_token_decides_nothing_against_the_next_holder(postgres, brokers):
    """Failure case 2, through a restart and a second replica."""
    first, second = brokers(postgres.url, name="same-name"), brokers(postgres.url, name="same-name-2")
    stub = first.stub()
    enqueue(stub, job("stale", max_attempts=9))

    def lease(at, duration):
        stream = Stream(at, "stale", in_flight=1, lease=duration, consumer="one-and-the-same")
        leased = stream.jobs(1, within=6)[0]
        stream.cancel()
        return leased

    one = lease(stub, 30)
    nack(stub, one.lease_token, delay=0)
    two = lease(stub, 1)
    three = lease(stub, 60)
    assert (one.lease_number, two.lease_number, three.lease_number) == (1, 2, 3)
    assert len({one.lease_token, two.lease_token, three.lease_token}) == 3
    row = "select lease_until, attempt, lease_number, lease_id from leasehold.job"
    before = postgres.all(row)

    def stale_calls(at):
        assert ack(at, one.lease_token, two.lease_token) == ["LEASE_LOST"] * 2
        assert status_name(extend(at, two.lease_token, duration=3600)[0].status) == "LEASE_LOST"
        for action in ("RETRY", "RELEASE", "REJECT"):
            assert status_name(nack(at, one.lease_token, action=action)[0].status) == "LEASE_LOST"

    stale_calls(stub)
    stale_calls(second.stub())
    first.hang_up()
    first.kill()
    first.start()
    stale_calls(first.stub())
    assert postgres.all(row) == before, "a superseded lease changed the row"
    assert ack(second.stub(), three.lease_token) == ["OK"]


def test_large_jobs_reach_a_client_with_the_usual_receive_limit(broker):
    """Failure case 16: 20 jobs of 0.9 MiB, batch 20, receive limit 4 MiB."""
    channel = grpc.insecure_channel(f"127.0.0.1:{broker.port}", options=[("grpc.use_local_subchannel_pool", 1)])
    stub = rpc.QueueServiceStub(channel)
    payload = b"x" * int(0.9 * (1 << 20))
    for _ in range(5):
        enqueue(stub, *[job("sized", payload) for _ in range(4)])
    stream = Stream(stub, "sized", in_flight=20)
    assert len({one.job_id for one in stream.jobs(20, within=20)}) == 20
    headers = {"k": "v" * 100_000}
    said = failure(stub.Enqueue, pb.EnqueueRequest(jobs=[job("sized", headers=headers)]), timeout=10)
    assert (said.code, said.fields) == ("INVALID_ARGUMENT", ["jobs[0].headers"])
    assert enqueue(stub, job("sized")), "the connection did not stay usable"
    channel.close()


@pytest.mark.timeout(180)
@pytest.mark.parametrize("broker", ["sqlite"], indirect=True)
@pytest.mark.own_broker
def test_the_embedded_database_is_never_busy_for_its_callers_and_its_log_stays_small(broker, work):
    """Failure case 26: 24 tasks with calls of every kind."""
    wrong, waits, done = [], [], threading.Event()
    files = list(work.glob("*-data/*-wal"))
    assert files, "no write-ahead log where one was looked for"

    def task(number):
        dice, mine = random.Random(number), broker.stub()
        stream = Stream(mine, "busy", in_flight=20, lease=30)
        while not done.is_set():
            begun = time.monotonic()
            try:
                enqueue(mine, *[job("busy", b"x" * dice.randrange(2000)) for _ in range(dice.randint(1, 30))])
                waits.append(time.monotonic() - begun)
                tokens = []
                while not stream.frames.empty():
                    tokens += [one.lease_token for one in stream.next().jobs.jobs]
                if tokens:
                    extend(mine, *tokens)
                    nack(mine, tokens[0], delay=0)
                    ack(mine, *tokens[1:] or tokens)
            except grpc.RpcError as error:
                wrong.append(Failed(error))
                return

    threads = [threading.Thread(target=task, args=(number,)) for number in range(24)]
    for thread in threads:
        thread.start()
    deadline, largest = time.monotonic() + (20 if LONG else 6), 0
    while time.monotonic() < deadline:
        largest = max(largest, *(file.stat().st_size for file in files))
        done.wait(0.1)
    done.set()
    for thread in threads:
        thread.join()
    assert not wrong, wrong[:3]
    assert len(waits) > 100
    waits.sort()
    assert waits[int(len(waits) * 0.99)] < 1.0, waits[-5:]
    assert largest <= 64 << 20, f"the write-ahead log grew to {largest} bytes"


def test_an_attempt_count_near_its_end_neither_overflows_nor_runs_early(broker, stub):
    """Failure case 36, by what the wire allows: a thousand attempts, delays at their ends."""
    if broker.database:
        enqueue(stub, job("backoff", b"many", max_attempts=1000))
        leased = Stream(stub, "backoff", in_flight=1).jobs(1)[0]
        with broker.database.connect() as session:
            session.execute("update leasehold.job set attempt = 999 where id = %s", [int(leased.job_id)])
        [result] = nack(stub, leased.lease_token)
        assert status_name(result.status) == "OK"
        assert 0 <= result.available_at.ToMicroseconds() / 1e6 - time.time() + 2 <= 605
    enqueue(stub, job("backoff-2"))
    leased = Stream(stub, "backoff-2", in_flight=1).jobs(1)[0]
    [result] = nack(stub, leased.lease_token, delay=365 * 24 * 3600)
    assert status_name(result.status) == "OK"
    assert result.available_at.ToMicroseconds() / 1e6 - time.time() == pytest.approx(365 * 24 * 3600, abs=60)


def test_retries_are_spread_between_nothing_and_the_ceiling(stub):
    enqueue(stub, *[job("jitter") for _ in range(60)])
    leased = Stream(stub, "jitter", in_flight=60).jobs(60)
    before = time.time()
    results = nack(stub, *[one.lease_token for one in leased])
    delays = [result.available_at.ToMicroseconds() / 1e6 - before for result in results]
    assert all(-0.5 <= delay <= 1.5 for delay in delays), delays
    assert max(delays) - min(delays) > 0.3, "no jitter"


def test_a_blocked_key_starves_nobody(stub):
    """Failure case 28: a thousand wait behind one key; the others are served at once."""
    enqueue(stub, *[job("starve", b"a", ordering_key="a") for _ in range(1000)])
    head = Stream(stub, "starve", in_flight=1, lease=60).jobs(1)[0]
    enqueue(stub, job("starve", b"b", ordering_key="b"), *[job("starve", b"free") for _ in range(100)])
    begun = time.monotonic()
    stream = Stream(stub, "starve", in_flight=101, lease=60)
    got = [one.payload for one in stream.jobs(101, within=5)]
    assert time.monotonic() - begun < 2
    assert b"a" not in got
    assert ack(stub, head.lease_token) == ["OK"]


def test_trace_context_never_passes_from_one_job_to_another(stub):
    traces = [f"00-{number:032x}-{number:016x}-01" for number in range(1, 51)]
    calls = [stub.Enqueue.future(pb.EnqueueRequest(jobs=[job("traces", trace.encode())]), timeout=10,
                                 metadata=(*CALLER, ("traceparent", trace))) for trace in traces]
    for call in calls:
        call.result()
    for one in Stream(stub, "traces", in_flight=50).jobs(50):
        assert one.traceparent == one.payload.decode()


@pytest.mark.settings(auto_create_queues="false")
def test_a_queue_that_must_not_come_into_being_is_not_found(stub):
    said = failure(stub.Enqueue, pb.EnqueueRequest(jobs=[job("unknown")]), timeout=10)
    assert (said.code, said.reason, said.outcome) == ("NOT_FOUND", "NOT_FOUND", "not-applied"), said


@pytest.mark.settings(queues_max_backlog_jobs=10)
def test_a_full_queue_refuses_and_takes_again_when_there_is_room(stub):
    enqueue(stub, *[job("full") for _ in range(10)])
    said = eventually(lambda: refused(stub), what="refusal")
    assert (said.code, said.reason, said.outcome) == ("RESOURCE_EXHAUSTED", "QUEUE_FULL", "not-applied"), said
    assert {"QuotaFailure", "RetryInfo"} <= set(said.details)
    ack(stub, *[one.lease_token for one in Stream(stub, "full", in_flight=10).jobs(10)])
    eventually(lambda: not refused(stub), what="room")


def refused(stub):
    """What a further job in the full queue is told, where it is refused."""
    try:
        enqueue(stub, job("full"))
    except grpc.RpcError as error:
        return Failed(error)
    return None


def test_a_lease_that_is_extended_outlives_its_first_end(stub):
    enqueue(stub, job("outlive"))
    stream = Stream(stub, "outlive", in_flight=1, lease=1)
    leased = stream.jobs(1)[0]
    request = pb.ExtendRequest(lease_tokens=[leased.lease_token], lease_duration=seconds(4))
    assert stub.Extend(request, timeout=5).results[0].status == pb.SETTLE_STATUS_OK
    stream.quiet(2.5)
    assert ack(stub, leased.lease_token) == ["OK"]
