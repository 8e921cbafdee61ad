"""Dead jobs: listed, and made live again."""

import threading
import time

import grpc
import pytest

from harness.calls import CALLER, Stream, ack, enqueue, eventually, failure, job, nack
from harness.operators import audit, counts, dead, delete, explain, job_of, redrive, state
from harness.stubs import admin_pb as apb


def bury(stub, queue, count, error="broken", **fields):
    """So many jobs that are dead; their ids, in the order of their deaths."""
    stored = []
    for at in range(0, count, 1000):
        stored += enqueue(stub, *[job(queue, b"x", **fields) for _ in range(min(1000, count - at))], timeout=30)
    stream, left = Stream(stub, queue, in_flight=1000), count
    while left:
        taken = stream.jobs(1) + stream.kept
        stream.kept = []
        results = nack(stub, *[one.lease_token for one in taken], action="REJECT", error=error)
        assert all(result.dead for result in results)
        left -= len(taken)
    stream.cancel()
    return stored


def test_dead_jobs_are_listed_and_filtered(stub, admin):
    first = bury(stub, "filtered", 3, error="card declined: 100%")
    second = bury(stub, "filtered", 4, error="timed out", ordering_key="k")
    shown = dead(admin, "filtered", page_size=2)
    assert {one.job_id for one in shown} == {*first, *second}
    died = [one.dead_at.ToMicroseconds() for one in shown]
    assert died == sorted(died, reverse=True), "the ones that died last first"
    assert {one.last_error for one in shown} == {"card declined: 100%", "timed out"}
    assert all(state(one) == "DEAD" and one.payload == b"" and one.HasField("expires_at") for one in shown)
    assert {one.job_id for one in dead(admin, "filtered", error_contains="declined: 100%")} == set(first)
    assert {one.job_id for one in dead(admin, "filtered", ordering_key="k")} == set(second)
    assert dead(admin, "filtered", error_contains="Card") == []
    assert dead(admin, "filtered", caller="nobody") == []
    assert len(dead(admin, "filtered", caller="wire_tests")) == 7
    third = shown[2].dead_at
    assert len(dead(admin, "filtered", died_after=third)) + len(dead(admin, "filtered", died_before=third)) < 7
    [wait] = explain(admin, first[0]).values()
    assert "card declined" in wait.explanation and "redrive" in wait.explanation


@pytest.mark.parametrize("fields, wrong", [
    ({"error_contains": "x" * 201}, ["error_contains"]),
    ({"ordering_key": "\n"}, ["ordering_key"]),
    ({"caller": "A"}, ["caller"]),
])
def test_a_filter_of_nonsense_is_refused(admin, fields, wrong):
    said = failure(dead, admin, "any", **fields)
    assert said.fields == [f"filter.{name}" for name in wrong]
    said = failure(redrive, admin, "any", **fields)
    assert said.fields == [f"of_queue.filter.{name}" for name in wrong]


def test_a_redrive_of_nonsense_is_refused(stub, admin):
    for request, fields in [(apb.RedriveDeadJobsRequest(), ["job_id"]),
                            (apb.RedriveDeadJobsRequest(job_id="x"), ["job_id"]),
                            (apb.RedriveDeadJobsRequest(job_id="1", rate=100_001), ["rate"])]:
        said = failure(lambda request=request: list(admin.RedriveDeadJobs(request, timeout=10)))
        assert (said.code, said.fields) == ("INVALID_ARGUMENT", fields)
    assert failure(redrive, admin, "no-such").reason == "NOT_FOUND"
    assert failure(redrive, admin, job_id="999999999").reason == "NOT_FOUND"
    [live] = enqueue(stub, job("live"))
    said = failure(redrive, admin, job_id=live)
    assert (said.code, said.reason) == ("FAILED_PRECONDITION", "WRONG_STATE")


def test_one_dead_job_lives_again_with_its_lease_numbers(stub, admin):
    [stored] = enqueue(stub, job("revived", b"payload", headers={"a": "b"}, max_attempts=1))
    stream = Stream(stub, "revived")
    old = stream.jobs(1)[0]
    nack(stub, old.lease_token, error="why")
    [frame] = redrive(admin, job_id=stored, dry_run=True)
    assert (frame.would_redrive.value, frame.done, state(job_of(admin, stored))) == (1, True, "DEAD")
    [frame] = redrive(admin, job_id=stored)
    assert (frame.redriven, frame.done) == (1, True)
    new = stream.jobs(1, within=3)[0]
    assert (new.job_id, new.payload, dict(new.headers), new.attempt) == (stored, b"payload", {"a": "b"}, 1)
    assert new.lease_number == old.lease_number + 1
    assert ack(stub, old.lease_token) == ["LEASE_LOST"]
    assert ack(stub, new.lease_token) == ["OK"]


def test_a_redrive_keeps_to_its_filter_limit_and_key(broker, stub, admin):
    bury(stub, "picked", 5, error="transient")
    bury(stub, "picked", 3, error="permanent", ordering_key="k")
    waiting = enqueue(stub, job("picked", b"first", ordering_key="k", delay=1))
    [dry] = redrive(admin, "picked", dry_run=True, error_contains="transient")
    assert (dry.would_redrive.value, dry.would_redrive.at_least) == (5, False)
    [dry] = redrive(admin, "picked", dry_run=True, limit=2)
    assert dry.would_redrive.value == 2
    assert redrive(admin, "picked", limit=4, error_contains="transient", rate=1000)[-1].redriven == 4
    assert counts(admin, "picked") == {"ready": 4, "scheduled": 1, "blocked": 0, "leased": 0, "dead": 4}
    assert redrive(admin, "picked", ordering_key="k", rate=1000)[-1].redriven == 3
    assert counts(admin, "picked") == {"ready": 4, "scheduled": 1, "blocked": 3, "leased": 0, "dead": 1}
    stream = Stream(stub, "picked", in_flight=20)
    ack(stub, *[one.lease_token for one in stream.jobs(4)])
    leased = stream.jobs(1)[0]
    assert leased.job_id == waiting[0], "who was there comes first"
    ack(stub, leased.lease_token)
    for _ in range(3):
        ack(stub, stream.jobs(1)[0].lease_token)
    lines = eventually(lambda: len(found := audit(broker, "queue=picked")) == 2 and found, what="two lines")
    assert [line["done"] for line in lines] == ["redriven=4", "redriven=3"], "dry runs change nothing"


def test_a_redrive_goes_no_faster_than_asked(stub, admin):
    bury(stub, "paced", 60)
    stamps = []
    request = apb.RedriveDeadJobsRequest(of_queue=apb.DeadJobsOfQueue(queue="paced"), rate=40)
    for frame in admin.RedriveDeadJobs(request, timeout=30, metadata=CALLER):
        stamps.append((time.monotonic(), frame.redriven))
    assert stamps[-1][1] == 60
    for begun, before in stamps:
        within = max(done for at, done in stamps if at <= begun + 0.9)
        assert within - before <= 40, f"{within - before} jobs within a second"
    assert stamps[-1][0] - stamps[0][0] >= (60 - 4) / 40 * 0.95


def test_who_closes_the_stream_ends_the_redrive(broker, stub, admin):
    bury(stub, "stopped", 300)
    request = apb.RedriveDeadJobsRequest(of_queue=apb.DeadJobsOfQueue(queue="stopped"), rate=50)
    call = admin.RedriveDeadJobs(request, timeout=60, metadata=CALLER)
    for frame in call:
        if frame.redriven >= 20:
            call.cancel()
            break
    lines = eventually(lambda: audit(broker, "queue=stopped"), what="a line")
    done = int(lines[0]["done"].removeprefix("redriven="))
    assert 20 <= done <= 40 and lines[0]["result"] == "stopped"
    assert counts(admin, "stopped")["dead"] == 300 - done


def test_a_drain_ends_a_redrive_and_says_what_was_done(brokers, postgres):
    broker = brokers(postgres.url)
    stub, admin = broker.stub(), broker.admin()
    bury(stub, "drained", 300)
    said = []

    def run():
        request = apb.RedriveDeadJobsRequest(of_queue=apb.DeadJobsOfQueue(queue="drained"), rate=50)
        try:
            for frame in admin.RedriveDeadJobs(request, timeout=60, metadata=CALLER):
                said.append(frame.redriven)
        except grpc.RpcError as error:
            said.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    eventually(lambda: len(said) > 2, what="some progress")
    broker.terminate()
    thread.join(20)
    assert said[-1].code() == grpc.StatusCode.UNAVAILABLE and "redriven=" in said[-1].details()
    assert broker.process.wait(20) == 0
    left, live = postgres.one("select count(*) from leasehold.dead_job"), postgres.one("select count(*) from leasehold.job")
    assert left + live == 300 and live >= said[-2]


def test_a_thousand_dead_jobs_live_again_and_are_done(stub, admin):
    bury(stub, "thousand", 2500)
    [dry] = redrive(admin, "thousand", dry_run=True)
    assert dry.would_redrive.value == 2500
    frames = redrive(admin, "thousand", rate=100_000)
    assert [frame.done for frame in frames] == [False] * (len(frames) - 1) + [True]
    assert frames[-1].redriven == 2500
    assert counts(admin, "thousand") == {"ready": 2500, "scheduled": 0, "blocked": 0, "leased": 0, "dead": 0}
    assert redrive(admin, "thousand")[-1].redriven == 0, "there are none left"


def test_a_queue_that_is_gone_takes_its_dead_along(stub, admin):
    [stored] = bury(stub, "gone", 1)
    delete(admin, "gone", purge=True)
    assert failure(redrive, admin, "gone").reason == "NOT_FOUND"
    assert failure(redrive, admin, job_id=stored).reason == "NOT_FOUND"
