"""Idempotency keys and ordering keys, over the wire."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.calls import CALLER, Stream, ack, enqueue, failure, job, nack
from harness.stubs import pb


def duplicates(stub, *jobs):
    """(id, duplicate) of each."""
    answer = stub.Enqueue(pb.EnqueueRequest(jobs=list(jobs)), timeout=10, metadata=CALLER)
    return [(stored.job_id, stored.duplicate) for stored in answer.jobs]


def test_a_known_key_is_the_same_job_whatever_became_of_it(stub):
    one = job("idem", b"x", idempotency_key="k", max_attempts=1)
    [(job_id, duplicate)] = duplicates(stub, one)
    assert not duplicate
    stream = Stream(stub, "idem")
    again = [(job_id, True)]
    assert duplicates(stub, one) == again
    leased = stream.jobs(1)[0]
    assert duplicates(stub, one) == again, "leased"
    assert ack(stub, leased.lease_token) == ["OK"]
    assert duplicates(stub, one) == again, "acked"
    stream.quiet(0.3)
    dying = job("idem", b"y", idempotency_key="d", max_attempts=1)
    [(dead_id, _)] = duplicates(stub, dying)
    assert nack(stub, stream.jobs(1)[0].lease_token)[0].dead
    assert duplicates(stub, dying) == [(dead_id, True)], "dead"
    stream.quiet(0.3)


def test_a_key_three_times_in_one_call_is_one_job(stub):
    one = job("idem3", b"x", idempotency_key="k")
    got = duplicates(stub, one, one, one)
    assert len({job_id for job_id, _ in got}) == 1
    assert [duplicate for _, duplicate in got] == [False, True, True]
    Stream(stub, "idem3", stop_when_empty=True).jobs(1)


def test_other_content_under_a_key_is_refused_and_the_start_and_trace_are_not_content(stub):
    enqueue(stub, job("reuse", b"x", idempotency_key="k", headers={"a": "b"}))
    same = [dict(delay=5), dict(headers={"a": "b", "traceparent": "x", "baggage": "y"})]
    for fields in same:
        [(_, duplicate)] = duplicates(stub, job("reuse", b"x", **{"idempotency_key": "k", "headers": {"a": "b"}, **fields}))
        assert duplicate, fields
    other = [dict(payload=b"y"), dict(priority=5), dict(max_attempts=3), dict(ordering_key="o"), dict(headers={"a": "c"}),
             dict(content_type="t")]
    for fields in other:
        changed = job("reuse", **{"payload": b"x", "idempotency_key": "k", "headers": {"a": "b"}, **fields})
        said = failure(stub.Enqueue, pb.EnqueueRequest(jobs=[changed]), timeout=10, metadata=CALLER)
        assert (said.code, said.reason, said.outcome) == ("ALREADY_EXISTS", "KEY_REUSED", "not-applied"), fields


def test_the_same_key_in_another_queue_is_another_job(stub):
    ids = enqueue(stub, job("queue-a", idempotency_key="k"), job("queue-b", idempotency_key="k"))
    assert ids[0] != ids[1]


def test_a_hundred_at_once_with_one_key_make_one_job(stub):
    request = pb.EnqueueRequest(jobs=[job("storm", b"x", idempotency_key="k")])
    with ThreadPoolExecutor(50) as threads:
        answers = list(threads.map(lambda _: stub.Enqueue(request, timeout=20, metadata=CALLER).jobs[0], range(100)))
    assert len({answer.job_id for answer in answers}) == 1
    assert sum(not answer.duplicate for answer in answers) == 1
    stream = Stream(stub, "storm", in_flight=10)
    stream.jobs(1)
    stream.quiet(0.3)


def test_one_job_of_a_key_at_a_time_in_order(stub):
    for at in range(5):
        enqueue(stub, job("ordered", bytes([at]), ordering_key="k", priority=9 - at))
    stream = Stream(stub, "ordered", in_flight=10)
    for at in range(5):
        leased = stream.jobs(1)[0]
        assert leased.payload == bytes([at])
        stream.quiet(0.1)
        assert ack(stub, leased.lease_token) == ["OK"]


def test_a_head_that_waits_for_its_retry_holds_its_key_and_nobody_elses(stub):
    enqueue(stub, *[job("held", b"a%d" % at, ordering_key="a") for at in range(200)], job("held", b"b", ordering_key="b"),
            *[job("held", b"free") for _ in range(20)])
    stream = Stream(stub, "held", in_flight=50)
    leased = {one.payload: one for one in stream.jobs(22)}
    assert set(leased) == {b"a0", b"b", b"free"}
    nack(stub, leased[b"a0"].lease_token, delay=1.5)
    ack(stub, leased[b"b"].lease_token)
    stream.quiet(1)
    assert stream.jobs(1)[0].payload == b"a0"


def test_a_dead_head_frees_its_key(stub):
    enqueue(stub, job("freed", b"1", ordering_key="k"), job("freed", b"2", ordering_key="k"))
    stream = Stream(stub, "freed")
    assert nack(stub, stream.jobs(1)[0].lease_token, action="REJECT")[0].dead
    assert stream.jobs(1, within=2)[0].payload == b"2"


def test_order_within_a_key_survives_retries_and_many_consumers(stub):
    for at in range(60):
        enqueue(stub, job("mixed", bytes([at]), ordering_key="k"))
    streams = [Stream(stub, "mixed", in_flight=5) for _ in range(4)]
    done, failed = [], set()
    while len(done) < 60:
        for stream in streams:
            while not stream.frames.empty():
                frame = stream.next()
                for leased in frame.jobs.jobs:
                    at = leased.payload[0]
                    if at % 7 == 0 and at not in failed:
                        failed.add(at)
                        nack(stub, leased.lease_token, delay=0)
                    else:
                        assert ack(stub, leased.lease_token) == ["OK"]
                        done.append(at)
    assert done == list(range(60))


@pytest.mark.parametrize("broker", ["postgres"], indirect=True)
def test_a_key_past_its_window_makes_a_new_job_also_before_it_was_pruned(broker, stub):
    """Failure case 27: the window counts from the first enqueue, whatever came between."""
    one = job("window", b"x", idempotency_key="k")
    [(first, _)] = duplicates(stub, one)
    assert duplicates(stub, one) == [(first, True)]
    with broker.database.connect() as session:
        session.execute("update leasehold.idempotency_key set expires_at = clock_timestamp() - interval '1 second'"
                        " where job_id = %s", [int(first)])
    [(second, duplicate)] = duplicates(stub, one)
    assert (second != first, duplicate) == (True, False)
    assert duplicates(stub, one) == [(second, True)]
