"""Jobs as operators see them and steer them."""

import pytest

from harness.calls import CALLER, Stream, ack, enqueue, eventually, extend, failure, job, nack
from harness.operators import audit, cancel, explain, job_of, jobs, pages, run_now, state, update
from harness.stubs import admin_pb as apb


def test_a_job_is_shown_with_everything_but_its_payload(stub, admin):
    [first] = enqueue(stub, job("shown", b"\x00secret", content_type="a/b", headers={"k": "v"}, priority=7,
                                ordering_key="o", idempotency_key="shown-1"))
    seen = job_of(admin, first)
    assert (seen.job_id, seen.queue, state(seen)) == (first, "shown", "READY")
    assert (seen.payload, seen.payload_bytes) == (b"", 7)
    assert (seen.content_type, dict(seen.headers), seen.priority) == ("a/b", {"k": "v"}, 7)
    assert (seen.ordering_key, seen.idempotency_key, seen.caller) == ("o", "shown-1", "wire_tests")
    assert (seen.attempt, seen.max_attempts, seen.lease_number) == (0, 20, 0)
    assert seen.HasField("ready_at") and seen.HasField("enqueued_at") and not seen.HasField("dead_at")
    assert job_of(admin, first, payload=True).payload == b"\x00secret"
    stream = Stream(stub, "shown", lease=60)
    leased = stream.jobs(1)[0]
    seen = job_of(admin, first)
    assert (state(seen), seen.attempt, seen.lease_number) == ("LEASED", 1, 1)
    assert seen.lease_expires_at.ToMicroseconds() == leased.lease_expires_at.ToMicroseconds()
    ack(stub, leased.lease_token)
    said = failure(job_of, admin, first)
    assert (said.code, said.reason, said.outcome) == ("NOT_FOUND", "NOT_FOUND", "not-applied")
    assert "ResourceInfo" in " ".join(said.details) and first in said.message


def test_an_acked_job_is_found_where_its_queue_keeps_it(stub, admin):
    update(admin, "keeps", create=True, acked_retention=60)
    [first] = enqueue(stub, job("keeps"))
    ack(stub, Stream(stub, "keeps").jobs(1)[0].lease_token)
    seen = job_of(admin, first)
    assert (state(seen), seen.caller) == ("ACKED", "wire_tests")
    assert seen.HasField("acked_at") and seen.HasField("expires_at")
    assert [one.job_id for one in jobs(admin, "keeps", "ACKED")] == [first]
    assert list(explain(admin, first)) == ["ACKED"]
    assert failure(run_now, admin, first).reason == "WRONG_STATE"


def test_lists_are_paged_by_state_key_and_caller(stub, admin):
    other = (("leasehold-caller", "somebody_else"),)
    many = enqueue(stub, *[job("listed", ordering_key="k" if at % 5 == 0 else "") for at in range(25)])
    theirs = enqueue(stub, job("listed"), metadata=other)
    later = enqueue(stub, job("listed", delay=3600))
    assert [one.job_id for one in jobs(admin, "listed", page_size=7)] == many + theirs + later
    assert [one.job_id for one in jobs(admin, "listed", "SCHEDULED")] == later
    assert [one.job_id for one in jobs(admin, "listed", "BLOCKED", page_size=2)] == many[5::5]
    assert [one.job_id for one in jobs(admin, "listed", ordering_key="k")] == many[::5]
    assert [one.job_id for one in jobs(admin, "listed", caller="somebody_else")] == theirs
    assert jobs(admin, "listed", caller="nobody") == []
    assert all(one.payload == b"" and one.payload_bytes == 1 for one in jobs(admin, "listed"))
    assert {one.payload for one in jobs(admin, "listed", include_payload=True)} == {b"x"}
    assert failure(jobs, admin, "no-such").reason == "NOT_FOUND"


def test_a_page_of_large_payloads_is_small_enough_for_every_client(stub, admin):
    size = 900_000
    stored = [enqueue(stub, job("large", bytes(size)))[0] for _ in range(6)]
    request, seen = apb.ListJobsRequest(queue="large", include_payload=True), []
    while True:
        page = admin.ListJobs(request, timeout=10, metadata=CALLER)
        assert page.ByteSize() < 4 << 20, "what gRPC takes by default"
        seen += [one.job_id for one in page.jobs]
        if not page.next_page_token:
            break
        request.page_token = page.next_page_token
    assert seen == stored


@pytest.mark.parametrize("fields, wrong", [
    ({"queue": "Bad"}, ["queue"]),
    ({"queue": "q", "states": [0]}, ["states[0]"]),
    ({"queue": "q", "states": [99, 1]}, ["states[0]"]),
    ({"queue": "q", "states": ["JOB_STATE_DEAD", "JOB_STATE_READY"]}, ["states"]),
    ({"queue": "q", "ordering_key": "é"}, ["ordering_key"]),
    ({"queue": "q", "caller": "*/"}, ["caller"]),
    ({"queue": "q", "page_size": 1001}, ["page_size"]),
    ({"queue": "q", "page_token": "AAAA"}, ["page_token"]),
])
def test_a_list_that_asks_for_nonsense_is_refused(admin, fields, wrong):
    said = failure(admin.ListJobs, apb.ListJobsRequest(**fields), timeout=10)
    assert (said.code, said.reason, said.fields) == ("INVALID_ARGUMENT", "INVALID_FIELD", wrong)


@pytest.mark.parametrize("bad", ["", "0", "-1", "abc", "01", "9223372036854775808"])
def test_what_is_no_job_id_is_refused_by_every_call(admin, bad):
    for method, request in [(admin.GetJob, apb.GetJobRequest(job_id=bad)),
                            (admin.ExplainJob, apb.ExplainJobRequest(job_id=bad)),
                            (admin.RunJobNow, apb.RunJobNowRequest(job_id=bad))]:
        said = failure(method, request, timeout=10)
        assert (said.code, said.fields) == ("INVALID_ARGUMENT", ["job_id"]), said
    said = failure(admin.CancelJob, apb.CancelJobRequest(job_ids=["1", bad]), timeout=10)
    assert said.fields == ["job_ids[1]"]


def test_a_cancel_names_one_to_a_thousand_jobs(admin):
    for count in (0, 1001):
        said = failure(admin.CancelJob, apb.CancelJobRequest(job_ids=["1"] * count), timeout=10)
        assert said.fields == ["job_ids"]


def test_waiting_jobs_are_cancelled_and_leased_ones_are_told(broker, stub, admin):
    stored = enqueue(stub, job("cancelled", b"1"), job("cancelled", b"2", delay=3600), job("cancelled", b"3"))
    assert cancel(admin, stored[1], "999999999", stored[1]) == ["CANCELLED", "GONE", "CANCELLED"]
    stream = Stream(stub, "cancelled", in_flight=10, lease=600)
    first, second = stream.jobs(2)
    assert cancel(admin, first.job_id) == ["REQUESTED"]
    revoked = stream.expect("revoked", within=5)
    assert [(one.lease_token, one.cancel_requested) for one in revoked.leases] == [(first.lease_token, True)]
    [extended] = extend(stub, first.lease_token)
    assert extended.cancel_requested and extended.lease_remaining.seconds > 500
    assert job_of(admin, first.job_id).cancel_requested
    assert explain(admin, first.job_id)["LEASED"].explanation.endswith("does not come back")
    nack(stub, first.lease_token)
    assert failure(job_of, admin, first.job_id).reason == "NOT_FOUND"
    assert cancel(admin, second.job_id) == ["REQUESTED"]
    assert ack(stub, second.lease_token) == ["OK"]
    stream.quiet(0.3)
    lines = eventually(lambda: len(found := audit(broker, f"jobs={first.job_id}")) == 1 and found, what="a line")
    assert (lines[0]["by"], lines[0]["done"]) == ("wire_tests", "cancelled=0 requested=1")


def test_a_lease_that_ends_by_itself_takes_a_cancelled_job_along(stub, admin):
    [stored] = enqueue(stub, job("lapses"))
    stream = Stream(stub, "lapses", lease=1)
    stream.jobs(1)
    assert cancel(admin, stored) == ["REQUESTED"]
    eventually(lambda: cancel(admin, stored) == ["GONE"], what="the end of the job")
    stream.quiet(0.5)
    assert jobs(admin, "lapses", "DEAD") == []


def test_a_key_goes_on_behind_a_cancelled_head(stub, admin):
    stored = enqueue(stub, *[job("headless", at, ordering_key="k", delay=3600 if at == b"1" else None)
                             for at in (b"1", b"2", b"3")])
    stream = Stream(stub, "headless")
    stream.quiet(0.3)
    assert cancel(admin, stored[0], stored[1]) == ["CANCELLED", "CANCELLED"]
    assert stream.jobs(1, within=3)[0].payload == b"3"


def test_a_scheduled_job_runs_now_and_what_cannot_is_said(stub, admin):
    [stored] = enqueue(stub, job("now", b"x", delay=3600))
    stream = Stream(stub, "now")
    stream.quiet(0.3)
    assert state(run_now(admin, stored)) in ("READY", "LEASED")
    leased = stream.jobs(1, within=3)[0]
    assert leased.job_id == stored
    assert state(run_now(admin, stored)) == "LEASED"
    nack(stub, leased.lease_token, delay=3600, error="later")
    assert state(job_of(admin, stored)) == "SCHEDULED"
    run_now(admin, stored)
    leased = stream.jobs(1, within=3)[0]
    assert leased.attempt == 2
    nack(stub, leased.lease_token, action="REJECT")
    said = failure(run_now, admin, stored)
    assert (said.code, said.reason, said.outcome) == ("FAILED_PRECONDITION", "WRONG_STATE", "not-applied")
    assert "redrive" in said.message
    assert failure(run_now, admin, "999999999").code == "NOT_FOUND"


def test_tokens_are_good_for_their_own_question_alone(stub, admin):
    enqueue(stub, *[job("tokens") for _ in range(3)])
    page = admin.ListJobs(apb.ListJobsRequest(queue="tokens", page_size=2), timeout=10)
    assert len(page.jobs) == 2 and page.next_page_token
    again = apb.ListJobsRequest(queue="tokens", page_size=1000, page_token=page.next_page_token, include_payload=True)
    assert len(pages(admin.ListJobs, again, "jobs")) == 1
    for fields in ({"queue": "other"}, {"queue": "tokens", "caller": "x"}, {"queue": "tokens", "ordering_key": "k"}):
        request = apb.ListJobsRequest(page_token=page.next_page_token, **fields)
        assert failure(admin.ListJobs, request, timeout=10).fields == ["page_token"]
