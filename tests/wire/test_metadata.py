"""Callers, deadlines, and requests that no library would send."""

import base64
import gzip
import struct
import time

import grpc
import pytest
from google.rpc import error_details_pb2, status_pb2

from harness.calls import Stream, enqueue, failure, job
from harness.raw import SERVICE, Raw, framed
from harness.stubs import pb

ONE = pb.EnqueueRequest(jobs=[pb.NewJob(queue="meta", payload=b"x")]).SerializeToString()


@pytest.fixture
def raw(broker):
    """A connection without a library."""
    made = Raw(broker.port)
    yield made
    made.close()


def said(answer):
    """(code, reason, outcome, fields) of a raw answer."""
    reason, fields = None, []
    details = answer.get("grpc-status-details-bin")
    if details:
        status = status_pb2.Status.FromString(base64.b64decode(details + "=" * (-len(details) % 4)))
        for detail in status.details:
            info, bad = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
            if detail.Unpack(info):
                reason = info.reason
            elif detail.Unpack(bad):
                fields = [violation.field for violation in bad.field_violations]
    return int(answer.get("grpc-status")), reason, answer.get("leasehold-outcome"), fields


INVALID = (3, "INVALID_FIELD", "not-applied")


@pytest.mark.parametrize("caller", ["a", "0", "checkout_completion", "a.b-c_d", "leasehold-shop", "x" * 64])
def test_a_well_made_caller_is_accepted(stub, caller):
    assert enqueue(stub, job("callers"), metadata=(("leasehold-caller", caller),))


@pytest.mark.parametrize("caller", ["", " ", "A", "-a", ".a", "_a", "a b", "*/", "/*", "*/; drop table job; /*", "!50000 x", "a\tb",
                                    "a;b", "a'b", "%2A%2F", "é", "x" * 65, "x" * 10_000, "leasehold.", "leasehold.reaper",
                                    "other", "unattributed"])
@pytest.mark.parametrize("method", ["Enqueue", "Ack", "Lease"])
def test_a_caller_that_breaks_the_grammar_is_refused_by_every_call(raw, caller, method):
    message = {"Enqueue": ONE, "Ack": pb.AckRequest(lease_tokens=["x"]).SerializeToString(),
               "Lease": pb.LeaseRequest(queues=["meta"]).SerializeToString()}[method]
    answer = raw.call(method, message, [("leasehold-caller", caller)])
    if answer.headers.get(":status") in ("400", "431"):
        return  # no header at all by HTTP's own rules
    code, reason, outcome, fields = said(answer)
    assert (code, reason, outcome) == INVALID, answer
    assert fields == ["leasehold-caller"]


def test_a_caller_given_twice_is_refused(raw):
    answer = raw.call("Enqueue", ONE, [("leasehold-caller", "a"), ("leasehold-caller", "a")])
    assert said(answer) == (*INVALID, ["leasehold-caller"])


@pytest.mark.parametrize("timeout", ["1", "S", "-1S", "1Q", "123456789S", "1.5S", "", " 1S", "1s", "0x1S", "１S"])
def test_a_malformed_timeout_is_refused(raw, timeout):
    answer = raw.call("Enqueue", ONE, [("grpc-timeout", timeout)])
    assert said(answer)[:3] == INVALID, answer
    assert said(answer)[3] == ["grpc-timeout"]


@pytest.mark.parametrize("timeout", ["1H", "99999999H", "10M", "5S", "5000m", "5000000u", "99999999n"])
def test_a_well_made_timeout_is_honoured(raw, timeout):
    answer = raw.call("Enqueue", ONE, [("grpc-timeout", timeout)])
    assert answer.get("grpc-status") == "0", answer


@pytest.mark.parametrize("timeout", ["0S", "0n", "1n"])
def test_a_deadline_that_has_passed_applies_nothing(raw, timeout, broker):
    queue = f"passed-{timeout.lower()}"
    answer = raw.call("Enqueue", pb.EnqueueRequest(jobs=[job(queue)]).SerializeToString(), [("grpc-timeout", timeout)])
    assert said(answer)[:3] == (4, "DEADLINE", "not-applied"), answer
    stream = Stream(broker.stub(), queue, stop_when_empty=True)
    assert stream.end() is None
    assert [frame.WhichOneof("frame") for _, frame in list(stream.frames.queue)[:-1]] == ["opened"]


def test_a_streams_end_by_its_deadline_says_so_and_its_leases_stand(broker, raw):
    stub = broker.stub()
    enqueue(stub, job("deadline"))
    request = pb.LeaseRequest(queues=["deadline"]).SerializeToString()
    begun = time.monotonic()
    stream = raw.open(f"{SERVICE}/Lease", [("grpc-timeout", "700m")], framed(request))
    answer = raw.wait(stream, 5)
    assert 0.6 < time.monotonic() - begun < 2
    assert said(answer)[:3] == (4, "DEADLINE", "not-applied")
    jobs = []
    data = answer.data
    while data:
        _, length = struct.unpack_from("!BI", data)
        jobs += pb.LeaseResponse.FromString(data[5:5 + length]).jobs.jobs
        data = data[5 + length:]
    assert len(jobs) == 1
    answered = stub.Ack(pb.AckRequest(lease_tokens=[jobs[0].lease_token]), timeout=5)
    assert answered.results[0].status == pb.SETTLE_STATUS_OK


UNDECODABLE = {
    "no bytes at all": b"",
    "half a prefix": b"\0\0\0",
    "a length past the end": struct.pack("!BI", 0, 100) + b"abc",
    "a field that ends early": framed(b"\x0a\xff"),
    "field number 0": framed(b"\x00\x01"),
    "wire type 7": framed(b"\x0f\x01"),
    "a varint of 11 bytes": framed(b"\x08" + b"\xff" * 11),
    "text that is no UTF-8": framed(b"\x0a\x04\x0a\x02\xff\xfe"),
    "a message where a number is": framed(b"\x0a\x04\x2a\x02ab"),
    "deep groups": framed(b"\x0b" * 10_000),
    "compressed without an encoding": framed(ONE, compressed=1),
    "flag 2": framed(ONE, compressed=2),
    "4 MiB and a byte, declared only": struct.pack("!BI", 0, (4 << 20) + 1),
    "4 GiB, declared only": struct.pack("!BI", 0, 0xFFFFFFFF),
}


@pytest.mark.parametrize("what", UNDECODABLE)
def test_what_cannot_be_decoded_is_an_invalid_argument(raw, what):
    answer = raw.call("Enqueue", data=UNDECODABLE[what])
    assert said(answer)[:3] == INVALID, answer
    assert raw.call("Enqueue", ONE).get("grpc-status") == "0", "the connection did not stay usable"


def test_two_messages_in_a_unary_call_are_not_both_applied(raw, broker):
    one = pb.EnqueueRequest(jobs=[job("twice")]).SerializeToString()
    raw.call("Enqueue", data=framed(one) + framed(one))
    stream = Stream(broker.stub(), "twice", in_flight=10, stop_when_empty=False)
    stream.expect("opened")
    got = []
    stream_end = time.monotonic() + 1.5
    while time.monotonic() < stream_end:
        while not stream.frames.empty():
            got += stream.next().jobs.jobs
        time.sleep(0.05)
    assert len(got) <= 1


@pytest.mark.parametrize("path", ["/leasehold.v1.QueueService/Nothing", "/leasehold.v1.Nobody/Enqueue", "/", "/x",
                                  "/leasehold.v1.QueueService/../QueueService/Enqueue"])
def test_an_unknown_method_is_unimplemented_with_its_outcome(raw, path):
    answer = raw.wait(raw.open(path, data=framed(ONE)))
    assert said(answer)[:3] == (12, "UNIMPLEMENTED", "not-applied"), answer


@pytest.mark.parametrize("encoding", ["gzip", "br", "zstd", "snappy"])
def test_an_encoding_that_is_not_spoken_is_unimplemented(raw, encoding):
    answer = raw.call("Enqueue", data=framed(gzip.compress(ONE), compressed=1), headers=[("grpc-encoding", encoding)])
    assert said(answer)[:3] == (12, "UNIMPLEMENTED", "not-applied"), answer


@pytest.mark.parametrize("content_type", ["application/json", "text/html", ""])
def test_what_is_no_grpc_has_no_effect(raw, content_type):
    answer = raw.wait(raw.open(f"{SERVICE}/Enqueue", data=framed(ONE), content_type=content_type))
    assert answer.headers.get(":status") != "200" or answer.get("grpc-status") not in (None, "0"), answer


def test_unknown_fields_and_repeated_scalars_are_accepted(raw):
    unknown = b"\xfa\x7f\x80\x80\x40" + b"x" * (1 << 20)
    assert raw.call("Enqueue", ONE + unknown).get("grpc-status") == "0"


def test_headers_over_their_size_end_the_stream_and_not_the_broker(raw, broker):
    stream = raw.open(f"{SERVICE}/Enqueue", [("x-large", "x" * 17_000)], framed(ONE))
    answer = raw.wait(stream)
    assert answer.get("grpc-status") != "0"
    assert enqueue(broker.stub(), job("meta"))


def test_a_request_that_never_ends_is_ended_at_its_deadline(raw):
    stream = raw.open(f"{SERVICE}/Enqueue", [("grpc-timeout", "500m")], framed(ONE)[:-1], end=False)
    answer = raw.wait(stream, 5)
    assert answer.reset is not None or said(answer)[:3] == (4, "DEADLINE", "not-applied"), answer


def test_a_failed_stream_carries_its_details_too(stub):
    said_ = Stream(stub, "Bad Name").end()
    assert (said_.code, said_.reason, said_.outcome, said_.fields) == (
        "INVALID_ARGUMENT", "INVALID_FIELD", "not-applied", ["queues[0]"])


def test_a_failure_names_at_most_a_little_of_what_was_sent(stub):
    said_ = failure(stub.Enqueue, pb.EnqueueRequest(jobs=[job("SECRET" * 20_000)]), timeout=10)
    assert said_.code == grpc.StatusCode.INVALID_ARGUMENT.name
    assert said_.message.count("SECRET") <= 11
