"""Lease streams: frames, credit, turns, ends."""

import threading
import time

import pytest

from harness.calls import CALLER, Stream, ack, enqueue, eventually, extend, failure, job, nack
from harness.raw import SERVICE, Raw, framed
from harness.stubs import pb, rpc


def test_the_first_frame_says_who_serves(stub):
    stream = Stream(stub, "nothing-yet")
    opened = stream.next(2).opened
    assert opened.broker and opened.version and opened.stream_id
    assert opened.heartbeat_interval.seconds == 15
    assert 240 <= opened.max_age.seconds <= 360
    stream.cancel()


def test_credit_is_never_exceeded_and_comes_back_with_every_settlement(stub):
    enqueue(stub, *[job("credit", bytes([at])) for at in range(30)])
    stream = Stream(stub, "credit", in_flight=3)
    held, seen = [], 0
    while seen < 30:
        held += stream.jobs(1)
        seen += 1
        while not stream.frames.empty() or stream.kept:
            held += stream.jobs(1)
            seen += 1
        assert len(held) <= 3
        one = held.pop(0)
        (nack(stub, one.lease_token, action="REJECT") if seen % 2 else ack(stub, one.lease_token))


def test_credit_in_bytes_bounds_what_is_out_and_a_larger_job_comes_alone(stub):
    enqueue(stub, *[job("bytes", b"x" * 400) for _ in range(5)], job("bytes", b"y" * 5000))
    stream = Stream(stub, "bytes", in_flight=100, max_in_flight_bytes=1000)
    held, seen = [], 0
    while seen < 6:
        held += stream.jobs(1)
        seen += 1
        while not stream.frames.empty() or stream.kept:
            held += stream.jobs(1)
            seen += 1
        assert sum(len(one.payload) for one in held) <= 1000 or len(held) == 1
        # All of them: behind a small one that is still out the large one would wait, as it should.
        ack(stub, *[held.pop().lease_token for _ in range(len(held))])


def test_an_answer_of_gone_gives_credit_back_too(stub, broker):
    enqueue(stub, job("gone", b"1"), job("gone", b"2"))
    stream = Stream(stub, "gone", in_flight=1)
    first = stream.jobs(1)[0]
    assert ack(stub, first.lease_token) == ["OK"]
    second = stream.jobs(1)[0]
    assert ack(stub, first.lease_token) == ["GONE"]
    stream.quiet(0.5)
    assert ack(stub, second.lease_token) == ["OK"]


def test_several_queues_are_served_in_turn(stub):
    for name in ("turn-a", "turn-b", "turn-c"):
        enqueue(stub, *[job(name, name.encode()) for _ in range(100)])
    stream = Stream(stub, "turn-a", "turn-b", "turn-c", in_flight=6)
    seen = []
    while len(seen) < 60:
        taken = stream.jobs(1) + [one for _ in range(100) if not stream.frames.empty() or stream.kept for one in stream.jobs(1)]
        seen += [one.queue for one in taken]
        ack(stub, *[one.lease_token for one in taken])
    for name in ("turn-a", "turn-b", "turn-c"):
        assert seen[:60].count(name) >= 12, seen


def test_a_queue_that_does_not_exist_yet_is_waited_for(stub):
    stream = Stream(stub, "not-yet")
    stream.expect("opened")
    stream.quiet(0.3)
    enqueue(stub, job("not-yet"))
    stream.jobs(1, within=2)


def test_a_job_of_this_replica_is_sent_at_once(stub):
    stream = Stream(stub, "at-once")
    stream.expect("opened")
    enqueue(stub, job("at-once"))
    ack(stub, stream.jobs(1)[0].lease_token)
    waits = []
    for _ in range(30):
        begun = time.monotonic()
        enqueue(stub, job("at-once"))
        leased = stream.jobs(1)[0]
        waits.append(time.monotonic() - begun)
        ack(stub, leased.lease_token)
    assert sorted(waits)[len(waits) // 2] < 0.1, waits


@pytest.mark.settings(streams_heartbeat="1s")
def test_a_quiet_stream_has_a_heartbeat_that_counts_what_is_out(stub):
    enqueue(stub, job("quiet", b"12345"))
    stream = Stream(stub, "quiet", in_flight=5)
    opened = stream.expect("opened")
    assert opened.heartbeat_interval.seconds == 1
    leased = stream.jobs(1)[0]
    beat = stream.expect("heartbeat", 3)
    assert (beat.in_flight, beat.in_flight_bytes, beat.claims_failing) == (1, 5, False)
    ack(stub, leased.lease_token)
    eventually(lambda: stream.expect("heartbeat", 3).in_flight == 0, what="an empty count")


def test_stop_when_empty_ends_after_the_last_job_is_settled(stub):
    enqueue(stub, *[job("script") for _ in range(25)], job("script", delay=60), job("script", b"1", ordering_key="k"),
            job("script", b"2", ordering_key="k"))
    stream = Stream(stub, "script", in_flight=4, stop_when_empty=True)
    settled = 0
    while (frame := stream.next()) is not None:
        for leased in frame.jobs.jobs:
            assert ack(stub, leased.lease_token) == ["OK"]
            settled += 1
    assert stream.error is None
    assert settled == 27


def test_stop_when_empty_on_empty_queues_ends_at_once(stub):
    stream = Stream(stub, "void", "void-2", stop_when_empty=True)
    assert stream.end(within=3) is None


@pytest.mark.settings(streams_max_age="2s")
def test_an_old_stream_gets_a_drain_frame_and_ends_ok_and_its_leases_stand(stub):
    enqueue(stub, job("aged"))
    stream = Stream(stub, "aged")
    leased = stream.jobs(1)[0]
    assert stream.expect("drain", 5).reason == pb.DRAIN_REASON_AGE
    assert stream.end(5) is None
    assert ack(stub, leased.lease_token) == ["OK"]


@pytest.mark.settings(server_connection_age="2s", server_connection_grace="5s")
def test_an_old_connection_drains_its_streams(stub):
    stream = Stream(stub, "aged-connection")
    assert stream.expect("drain", 6).reason == pb.DRAIN_REASON_AGE
    assert stream.end(5) is None


@pytest.mark.settings(streams_per_connection=3)
def test_streams_over_the_limit_are_refused_at_once_and_unary_calls_pass(broker, stub):
    streams = [Stream(stub, "limited") for _ in range(3)]
    for stream in streams:
        stream.expect("opened")
    refused = Stream(stub, "limited").end(2)
    assert (refused.code, refused.reason, refused.outcome) == ("RESOURCE_EXHAUSTED", "STREAM_LIMIT", "not-applied")
    assert {"QuotaFailure", "RetryInfo"} <= set(refused.details)
    assert enqueue(stub, job("other"))
    Stream(broker.stub(), "limited").expect("opened")
    streams[0].cancel()

    def opens():
        stream = Stream(stub, "limited")
        return stream.next(2) is not None

    eventually(opens, within=3, what="room after a stream's end")


@pytest.mark.settings(streams_per_replica=3)
def test_streams_over_the_replicas_limit_are_refused_at_once(broker):
    streams = [Stream(broker.stub(), "limited") for _ in range(3)]
    for stream in streams:
        stream.expect("opened")
    refused = Stream(broker.stub(), "limited").end(2)
    assert (refused.code, refused.reason) == ("RESOURCE_EXHAUSTED", "STREAM_LIMIT")


def test_extending_tells_the_stream_nothing_and_keeps_the_job(stub):
    enqueue(stub, job("extended"))
    stream = Stream(stub, "extended", lease=1)
    leased = stream.jobs(1)[0]
    for _ in range(4):
        extend(stub, leased.lease_token, duration=1.5)
        stream.quiet(0.5)
    assert ack(stub, leased.lease_token) == ["OK"]


@pytest.mark.own_broker
@pytest.mark.parametrize("broker", ["postgres"], indirect=True)
def test_a_reader_that_never_reads_holds_no_more_than_its_credit_and_gives_it_back(broker, stub):
    """Failure case 4: leases burn away in buffers in front of a slow reader. The rows are read from PostgreSQL."""
    database = broker.database
    payload = b"x" * 300_000
    for _ in range(20):
        enqueue(stub, *[job("slow", payload) for _ in range(10)])
    slow = Raw(broker.port)
    asked = pb.LeaseRequest(queues=["slow"], max_in_flight=10).SerializeToString()
    stream = slow.open(f"{SERVICE}/Lease", [("leasehold-caller", "slow_reader")], framed(asked))
    leased = "select count(*) from leasehold.job where lease_id is not null"
    eventually(lambda: database.one(leased) > 0, what="a lease")
    for _ in range(10):
        assert database.one(leased) <= 10
        time.sleep(0.05)
    slow.h2.reset_stream(stream)
    slow.flush()
    # What the HTTP/2 layer took is sent, and its lease runs: two frames of 1 MiB at most, though its window is 64 KiB.
    eventually(lambda: database.one(leased) <= 6, within=2, what="the return of what was not sent")
    healthy = Stream(stub, "slow", in_flight=50, lease=60)
    got = set()
    while len(got) < 194:
        for one in healthy.jobs(1):
            got.add(one.job_id)
            assert one.attempt == 1, "a job that never reached the wire was charged an attempt"
            ack(stub, one.lease_token)
    slow.close()


@pytest.mark.own_broker
def test_dropped_streams_leak_neither_jobs_nor_registrations(broker, stub):
    """Failure case 9: streams on an empty queue whose connections end by RST and by FIN."""
    for at in range(150):
        raw = Raw(broker.port)
        raw.open(f"{SERVICE}/Lease", data=framed(pb.LeaseRequest(queues=["dropped"]).SerializeToString()))
        raw.read(5)
        raw.close(reset=at % 2 == 0)
    live = Stream(stub, "dropped", in_flight=150)
    live.expect("opened")
    eventually(lambda: broker.connections() <= 2, within=5, what="the end of dropped connections")
    begun = time.monotonic()
    enqueue(stub, *[job("dropped") for _ in range(150)])
    got = live.jobs(150, within=10)
    assert time.monotonic() - begun < 5
    assert all(one.attempt == 1 for one in got)


def test_an_abrupt_end_of_the_client_ends_no_lease_and_costs_an_attempt(broker, stub):
    """Failure case 5, with a nack, a reset and a silence in turn: dead after exactly three."""
    enqueue(stub, job("poison", b"1", max_attempts=3, ordering_key="k"), job("poison", b"2", ordering_key="k"))
    attempts = []
    for how in ("reset", "silence", "nack"):
        connection = broker.channel()
        stream = Stream(rpc.QueueServiceStub(connection), "poison", lease=1)
        leased = stream.jobs(1, within=6)[0]
        assert leased.payload == b"1"
        attempts.append(leased.attempt)
        if how == "nack":
            assert nack(stub, leased.lease_token, delay=0, error="the third")[0].dead
        if how == "reset":
            connection.close()
        else:
            stream.cancel()
    assert attempts == [1, 2, 3]
    assert Stream(stub, "poison").jobs(1, within=4)[0].payload == b"2"


def test_many_streams_of_one_queue_share_its_jobs(stub):
    streams = [Stream(stub, "shared", in_flight=2) for _ in range(20)]
    for stream in streams:
        stream.expect("opened")
    enqueue(stub, *[job("shared", at.to_bytes(2, "big")) for at in range(40)])
    seen = []
    for stream in streams:
        seen += [one.payload for one in stream.jobs(2, within=5)]
    assert len(set(seen)) == 40


def test_a_cancelled_stream_gives_its_waiting_place_to_the_next(stub):
    first = Stream(stub, "place")
    first.expect("opened")
    first.cancel()
    second = Stream(stub, "place")
    second.expect("opened")
    enqueue(stub, job("place"))
    second.jobs(1, within=3)


def test_a_storm_of_opening_and_closing_leaves_every_job_deliverable(stub):
    enqueue(stub, *[job("churn", at.to_bytes(2, "big"), max_attempts=1000) for at in range(200)])
    done, lock = set(), threading.Lock()

    def churn():
        while len(done) < 200:
            stream = Stream(stub, "churn", in_flight=5, lease=1, metadata=CALLER)
            try:
                for one in stream.expect("jobs", 2).jobs:
                    if ack(stub, one.lease_token) == ["OK"]:
                        with lock:
                            done.add(one.payload)
            except AssertionError:
                pass  # nothing came: the others hold the rest
            stream.cancel()

    threads = [threading.Thread(target=churn, daemon=True) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(done) == 200


def test_failing_calls_leave_a_stream_alone(stub):
    stream = Stream(stub, "alone")
    stream.expect("opened")
    for _ in range(20):
        failure(stub.Enqueue, pb.EnqueueRequest(), timeout=5)
    enqueue(stub, job("alone"))
    stream.jobs(1, within=3)


def test_pings_of_clients_are_welcome(broker):
    raw = Raw(broker.port)
    raw.open(f"{SERVICE}/Lease", data=framed(pb.LeaseRequest(queues=["pinged"]).SerializeToString()))
    for at in range(100):
        raw.h2.ping(at.to_bytes(8, "big"))
        raw.flush()
        raw.read(0.01)
    assert raw.goaway is None and not raw.closed
    raw.close()
