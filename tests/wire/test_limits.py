"""Every limit, from data: at the limit accepted, over it refused with the field named, and nothing stored or asked."""

import grpc
import pytest

from harness.calls import Stream, ack, enqueue, extend, failure, job, nack, status_name
from harness.stubs import pb
from wire import inputs

BAD = (("leasehold-caller", "bad_input"),)
GOOD = (("leasehold-caller", "good_input"),)


def send(stub, rpc, request, metadata):
    """Makes the call; a Lease stream is read up to its first frame and cancelled."""
    if rpc != "Lease":
        return getattr(stub, rpc)(request, timeout=10, metadata=metadata)
    call = stub.Lease(request, timeout=10, metadata=metadata)
    frame = next(call)
    call.cancel()
    return frame


@pytest.mark.parametrize("name", inputs.files())
def test_every_input_is_answered_as_its_line_says(broker, stub, name):
    wrong, stored = [], 0
    count = "select count(*) from leasehold.job"
    before = broker.database.one(count) if broker.database else 0
    for entry, message in inputs.entries(name):
        where = f"{entry['rpc']} {list(entry['set'])[-1]}: {entry['note']}"
        if "bad" in entry:
            try:
                send(stub, entry["rpc"], message, BAD)
                wrong.append(f"{where}: was accepted")
                continue
            except grpc.RpcError:
                said = failure(send, stub, entry["rpc"], message, BAD)
            expected = ("INVALID_ARGUMENT", "INVALID_FIELD", "leasehold", "not-applied")
            if (said.code, said.reason, said.domain, said.outcome) != expected:
                wrong.append(f"{where}: {said}")
            elif not any(field == entry["bad"] or field.startswith(entry["bad"] + "[") for field in said.fields):
                wrong.append(f"{where}: names {said.fields}")
            elif not all(said.rules) or len(said.message) > 4096:
                wrong.append(f"{where}: says no rule, or too much")
        else:
            try:
                send(stub, entry["rpc"], message, GOOD)
                stored += len(message.jobs) if entry["rpc"] == "Enqueue" else 0
            except grpc.RpcError as error:
                wrong.append(f"{where}: {error.code().name} {error.details()}")
    assert not wrong, "\n".join(wrong)
    if broker.database:
        assert broker.database.one(count) - before == stored
        assert not [entry for entry in broker.database.statements() if entry.caller == "bad_input"]


def test_a_request_over_its_size_is_refused_and_its_connection_stays(broker, stub):
    jobs = [pb.NewJob(queue="big", payload=b"x" * (1 << 20)) for _ in range(5)]
    said = failure(stub.Enqueue, pb.EnqueueRequest(jobs=jobs), timeout=10)
    assert (said.code, said.reason, said.outcome) == ("INVALID_ARGUMENT", "INVALID_FIELD", "not-applied")
    assert stub.Enqueue(pb.EnqueueRequest(jobs=jobs[:3]), timeout=10).jobs[0].job_id


def test_all_faults_of_a_request_are_named_together(stub):
    jobs = [pb.NewJob(queue="Bad", priority=10), pb.NewJob(queue="fine", ordering_key="\n")]
    said = failure(stub.Enqueue, pb.EnqueueRequest(jobs=jobs), timeout=10)
    assert set(said.fields) == {"jobs[0].queue", "jobs[0].priority", "jobs[1].ordering_key"}


MALFORMED = ["", "x", "A" * 48, "A" * 47, "A" * 49, inputs.TOKEN[:-1] + "6", inputs.TOKEN[:-1], inputs.TOKEN + "=", "é" * 24,
             "\0" * 48, "'; drop table job; --", "*/", " " + inputs.TOKEN, "+" * 48, "z" * 100_000]


def test_malformed_tokens_are_answered_one_by_one_and_fail_nobody(stub):
    tokens = [*MALFORMED, inputs.TOKEN]
    expected = ["INVALID_TOKEN"] * len(MALFORMED) + ["GONE"]
    assert ack(stub, *tokens) == expected
    assert [status_name(result.status) for result in nack(stub, *tokens)] == expected
    assert [status_name(result.status) for result in extend(stub, *tokens)] == expected


def test_an_errors_text_is_cut_on_a_character_and_never_fails_the_nack(stub):
    enqueue(stub, job("errors", max_attempts=2))
    stream = Stream(stub, "errors", lease=5)
    leased = stream.jobs(1)[0]
    text = "a\0b" + "🦀" * 700_000
    assert status_name(nack(stub, leased.lease_token, error=text, delay=0)[0].status) == "OK"
    again = stream.jobs(1)[0]
    assert again.last_error.startswith("a\ufffdb🦀")
    assert 4092 <= len(again.last_error.encode()) <= 4096
