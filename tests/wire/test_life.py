"""The life of a job, over the wire."""

import pytest

from harness.calls import CALLER, Stream, ack, enqueue, extend, job, nack, seconds, status_name
from harness.stubs import pb


def test_a_job_is_enqueued_leased_extended_and_acked_once(stub):
    payload = bytes(range(256))
    headers = {"k": "v", "Content-Type": "é🦀", "empty": ""}
    [job_id] = enqueue(stub, job("life", payload, content_type="text/plain", headers=headers, priority=7, max_attempts=3,
                                 idempotency_key="key 1", ordering_key="order 1"))
    stream = Stream(stub, "life", lease=5)
    leased = stream.jobs(1)[0]
    assert (leased.job_id, leased.queue, leased.payload, leased.content_type) == (job_id, "life", payload, "text/plain")
    assert dict(leased.headers) == headers
    assert (leased.priority, leased.attempt, leased.max_attempts, leased.lease_number) == (7, 1, 3, 1)
    assert (leased.idempotency_key, leased.ordering_key, leased.last_error) == ("key 1", "order 1", "")
    assert len(leased.lease_token) <= 64
    assert leased.enqueued_at.ToNanoseconds() >= leased.available_at.ToNanoseconds() - 10**9
    assert 4 < leased.lease_remaining.ToMicroseconds() / 1e6 <= 5
    extended = extend(stub, leased.lease_token, duration=60)[0]
    assert status_name(extended.status) == "OK"
    assert extended.lease_expires_at.ToNanoseconds() > leased.lease_expires_at.ToNanoseconds()
    shorter = extend(stub, leased.lease_token, duration=1)[0]
    assert shorter.lease_expires_at == extended.lease_expires_at, "an Extend must not shorten a lease"
    assert ack(stub, leased.lease_token) == ["OK"]
    assert ack(stub, leased.lease_token) == ["GONE"]
    assert status_name(nack(stub, leased.lease_token)[0].status) == "GONE"
    assert status_name(extend(stub, leased.lease_token)[0].status) == "GONE"
    stream.quiet(1)


def test_a_retry_comes_back_with_its_error_and_a_new_lease(stub):
    enqueue(stub, job("retry"))
    stream = Stream(stub, "retry")
    first = stream.jobs(1)[0]
    [result] = nack(stub, first.lease_token, delay=0, error="broken \0 pipe")
    assert (status_name(result.status), result.dead) == ("OK", False)
    assert result.available_at.seconds > 0
    second = stream.jobs(1)[0]
    assert second.job_id == first.job_id
    assert (second.attempt, second.lease_number, second.last_error) == (2, 2, "broken \ufffd pipe")
    assert second.lease_token != first.lease_token
    for refused in (ack(stub, first.lease_token), [status_name(nack(stub, first.lease_token)[0].status)],
                    [status_name(extend(stub, first.lease_token)[0].status)]):
        assert refused == ["LEASE_LOST"]
    assert ack(stub, second.lease_token) == ["OK"]
    assert ack(stub, first.lease_token) == ["GONE"]


def test_a_release_costs_no_attempt_and_a_reject_ends_a_job(stub):
    enqueue(stub, job("release", max_attempts=1))
    stream = Stream(stub, "release")
    first = stream.jobs(1)[0]
    assert not nack(stub, first.lease_token, action="RELEASE")[0].dead
    second = stream.jobs(1)[0]
    assert (second.attempt, second.lease_number) == (1, 2)
    [result] = nack(stub, second.lease_token, action="REJECT", error="never")
    assert (status_name(result.status), result.dead, result.HasField("available_at")) == ("OK", True, False)
    stream.quiet(0.5)
    assert ack(stub, second.lease_token) == ["LEASE_LOST"]


def test_the_last_attempt_makes_a_job_dead(stub):
    enqueue(stub, job("dead", max_attempts=2))
    stream = Stream(stub, "dead")
    assert not nack(stub, stream.jobs(1)[0].lease_token, delay=0)[0].dead
    assert nack(stub, stream.jobs(1)[0].lease_token, delay=0)[0].dead
    stream.quiet(0.5)


def test_a_lease_that_ran_out_counts_as_an_attempt_and_fences_its_holder(stub):
    enqueue(stub, job("silent", max_attempts=2))
    stream = Stream(stub, "silent", lease=1)
    first = stream.jobs(1)[0]
    second = stream.jobs(1, within=5)[0]
    assert (second.attempt, second.lease_number) == (2, 2)
    assert second.lease_expires_at.ToNanoseconds() - 10**9 >= first.lease_expires_at.ToNanoseconds()
    assert ack(stub, first.lease_token) == ["LEASE_LOST"]
    revoked = set()
    while second.lease_token not in revoked:
        revoked |= {lease.lease_token for lease in stream.expect("revoked", 5).leases if not lease.cancel_requested}
    assert ack(stub, second.lease_token) == ["LEASE_LOST"], "the last attempt ran out: the job is dead"


@pytest.mark.settings(upkeep_reaper_interval="1m")
def test_an_expired_lease_that_nobody_took_is_still_acked(stub):
    enqueue(stub, job("late"))
    stream = Stream(stub, "late", lease=1)
    leased = stream.jobs(1)[0]
    stream.quiet(1.3)
    assert ack(stub, leased.lease_token) == ["OK"]


def test_a_delayed_job_is_due_at_its_time(stub):
    enqueue(stub, job("later", b"1", delay=1.0), job("later", b"2"))
    stream = Stream(stub, "later")
    now, later = stream.jobs(2)
    assert (now.payload, later.payload) == (b"2", b"1")
    granted = later.lease_expires_at.ToMicroseconds() - 30_000_000
    assert 0 <= granted - later.available_at.ToMicroseconds() < 1_300_000
    assert later.available_at.ToMicroseconds() - later.enqueued_at.ToMicroseconds() == pytest.approx(1_000_000, abs=50_000)


def test_urgent_jobs_come_first_and_equal_ones_in_the_order_of_their_enqueue(stub):
    levels = [0, 9, 4, 9, 4, 0, 5]
    enqueue(stub, *[job("urgent", bytes([at]), priority=level) for at, level in enumerate(levels)])
    leased = Stream(stub, "urgent", in_flight=10).jobs(len(levels))
    expected = sorted(range(len(levels)), key=lambda at: (-levels[at], at))
    assert [one.payload[0] for one in leased] == expected


def test_an_enqueue_is_all_or_nothing(stub):
    enqueue(stub, job("whole", b"old", idempotency_key="k"))
    request = pb.EnqueueRequest(jobs=[job("whole", b"new"), job("whole", b"other", idempotency_key="k")])
    try:
        stub.Enqueue(request, timeout=10, metadata=CALLER)
        raise AssertionError("other content under a known key was stored")
    except AssertionError:
        raise
    except Exception:  # noqa: BLE001 - which error is another test's matter
        pass
    leased = Stream(stub, "whole").jobs(1)
    assert leased[0].payload == b"old"


def test_trace_context_of_the_job_goes_before_that_of_the_call_and_malformed_is_dropped(stub):
    good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    other = "00-11111111111111111111111111111111-2222222222222222-00"
    enqueue(stub, job("traced", b"call"), metadata=(*CALLER, ("traceparent", good), ("tracestate", "a=1,b=2")))
    enqueue(stub, job("traced", b"job", headers={"traceparent": other}), metadata=(*CALLER, ("traceparent", good)))
    enqueue(stub, job("traced", b"bad"), metadata=(*CALLER, ("traceparent", "00-zz-zz-01")))
    enqueue(stub, job("traced", b"none"))
    got = {one.payload: (one.traceparent, one.tracestate) for one in Stream(stub, "traced").jobs(4)}
    assert got == {b"call": (good, "a=1,b=2"), b"job": (other, ""), b"bad": ("", ""), b"none": ("", "")}


def test_names_and_keys_that_differ_in_a_byte_are_different(stub):
    ids = enqueue(stub, *[job("case", key.encode(), idempotency_key=key) for key in ("key", "Key", "key ", "KEY")])
    assert len(set(ids)) == 4
    enqueue(stub, job("case-a", b"a"), job("case_a", b"b"), job("case.a", b"c"))
    assert Stream(stub, "case_a").jobs(1)[0].payload == b"b"


def test_a_job_of_the_largest_size_comes_back_whole(stub):
    payload = bytes(range(256)) * 4096
    for _ in range(3):
        enqueue(stub, *[job("largest", payload) for _ in range(3)])
    stream = Stream(stub, "largest", in_flight=9)
    got = []
    while len(got) < 9:
        frame = stream.expect("jobs")
        assert frame.ByteSize() <= (1 << 20) + 4096 or len(frame.jobs) == 1
        got += frame.jobs
    assert all(one.payload == payload for one in got)


def test_a_lease_lasts_as_long_as_its_stream_asks(stub):
    enqueue(stub, job("long"))
    leased = Stream(stub, "long", lease=43_200).jobs(1)[0]
    assert leased.lease_remaining.ToMicroseconds() == pytest.approx(43_200e6, rel=0.001)
    again = extend(stub, leased.lease_token)[0]
    assert again.lease_remaining.ToMicroseconds() == pytest.approx(seconds(43_200).ToMicroseconds(), rel=0.001)
