"""Two brokers on one PostgreSQL."""

import time

import pytest

from harness.calls import Stream, ack, enqueue, eventually, job, nack


@pytest.fixture
def pair(postgres, brokers):
    """Two ready brokers on a fresh database."""
    first = brokers(postgres.url, name="replica")
    second = brokers(postgres.url, name="replica-2")
    return first, second


def test_a_lease_of_one_replica_is_settled_through_the_other_and_its_credit_is_back_at_once(pair):
    first, second = (broker.stub() for broker in pair)
    enqueue(first, *[job("across", at.to_bytes(2, "big")) for at in range(21)])
    stream = Stream(first, "across", in_flight=1)
    leased = stream.jobs(1)[0]
    waits = []
    for at in range(20):
        begun = time.monotonic()
        if at % 2:
            assert ack(second, leased.lease_token) == ["OK"]
        else:
            nack(second, leased.lease_token, action="REJECT")
        leased = stream.jobs(1)[0]
        waits.append(time.monotonic() - begun)
    assert sorted(waits)[len(waits) // 2] < 0.1, waits
    assert max(waits) < 1.5, waits


def test_a_gone_lease_acked_at_the_other_replica_gives_its_credit_back(pair, postgres):
    """Who acked by SQL in a transaction of its own sends the Ack after it."""
    first, second = (broker.stub() for broker in pair)
    enqueue(first, *[job("by-sql", at.to_bytes(2, "big")) for at in range(11)])
    stream = Stream(first, "by-sql", in_flight=1)
    leased = stream.jobs(1)[0]
    waits = []
    for _ in range(10):
        assert postgres.one("select leasehold.ack(%s)", leased.lease_token) is True
        begun = time.monotonic()
        assert ack(second, leased.lease_token) == ["GONE"]
        leased = stream.jobs(1)[0]
        waits.append(time.monotonic() - begun)
    # Reading alone, once a second, would take half of one.
    assert sorted(waits)[len(waits) // 2] < 0.2, waits
    assert max(waits) < 1.5, waits


def test_credit_of_a_lease_acked_by_sql_alone_comes_back_by_reading(pair, postgres):
    first, _ = (broker.stub() for broker in pair)
    enqueue(first, job("read", b"1"), job("read", b"2"))
    stream = Stream(first, "read", in_flight=1)
    leased = stream.jobs(1)[0]
    assert postgres.one("select leasehold.ack(%s)", leased.lease_token) is True
    stream.jobs(1, within=5)


def test_a_job_enqueued_at_one_replica_reaches_a_stream_of_the_other(pair):
    first, second = (broker.stub() for broker in pair)
    stream = Stream(second, "wake", in_flight=10)
    stream.expect("opened")
    enqueue(first, job("wake"))
    ack(second, stream.jobs(1, within=3)[0].lease_token)
    waits = []
    for _ in range(20):
        time.sleep(0.05)
        begun = time.monotonic()
        enqueue(first, job("wake"))
        leased = stream.jobs(1)[0]
        waits.append(time.monotonic() - begun)
        ack(second, leased.lease_token)
    assert sorted(waits)[len(waits) // 2] < 0.1, waits


def test_a_job_enqueued_by_sql_is_picked_up_within_the_polling_interval(pair, postgres):
    stream = Stream(pair[0].stub(), "sql")
    stream.expect("opened")
    with postgres.connect(autocommit=False) as session:
        session.execute("select leasehold.enqueue('sql', %s)", [b"from sql"])
        stream.quiet(1.5)
    assert stream.jobs(1, within=2.5)[0].payload == b"from sql"


def test_order_within_a_key_holds_across_replicas(pair):
    """Failure case 30, in small."""
    stubs = [broker.stub() for broker in pair]
    for at in range(100):
        enqueue(stubs[at % 2], job("order", bytes([at]), ordering_key="k"))
    streams = [Stream(stubs[at % 2], "order", in_flight=3) for at in range(4)]
    done, nacked = [], set()
    deadline = time.monotonic() + 60
    while len(done) < 100:
        assert time.monotonic() < deadline, f"{len(done)} of 100"
        for at, stream in enumerate(streams):
            while not stream.frames.empty():
                for leased in stream.next().jobs.jobs:
                    number = leased.payload[0]
                    if number % 7 == 0 and number not in nacked:
                        nacked.add(number)
                        nack(stubs[at % 2], leased.lease_token, delay=0.05)
                    else:
                        assert ack(stubs[(at + 1) % 2], leased.lease_token) == ["OK"]
                        done.append(number)
    assert done == list(range(100))


def test_a_killed_replicas_leases_come_back_under_the_same_name(pair, postgres):
    """Failure case 8: recovery depends neither on the dead one nor on its name."""
    first, second = pair
    enqueue(first.stub(), *[job("killed", at.to_bytes(2, "big")) for at in range(50)])
    stream = Stream(first.stub(), "killed", in_flight=50, lease=2)
    stream.jobs(50)
    first.kill()
    killed = time.monotonic()
    first.start()
    other = Stream(second.stub(), "killed", in_flight=50, lease=30)
    again = other.jobs(50, within=8)
    assert time.monotonic() - killed < 2 + 1 + 1 + 2
    assert {one.attempt for one in again} == {2}
    assert len({one.payload for one in again}) == 50


def test_a_frozen_replica_that_wakes_takes_nothing_away(pair, postgres):
    first, second = pair
    enqueue(first.stub(), *[job("frozen", at.to_bytes(2, "big")) for at in range(20)])
    frozen = Stream(first.stub(), "frozen", in_flight=20, lease=1)
    old = frozen.jobs(20)
    first.pause()
    try:
        other = Stream(second.stub(), "frozen", in_flight=20, lease=30)
        new = other.jobs(20, within=8)
    finally:
        first.resume()
    assert set(ack(first.stub(), *[one.lease_token for one in old])) == {"LEASE_LOST"}
    eventually(lambda: first.is_ready(), what="readiness")
    assert ack(second.stub(), *[one.lease_token for one in new]) == ["OK"] * 20
