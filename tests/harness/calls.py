"""Short forms of the calls that most tests make."""

import queue
import threading
import time
from urllib.parse import unquote

import grpc
from google.protobuf.duration_pb2 import Duration
from google.rpc import error_details_pb2, status_pb2

from harness.stubs import pb

CALLER = (("leasehold-caller", "wire_tests"),)


def seconds(value):
    """A proto Duration."""
    duration = Duration()
    duration.FromMicroseconds(round(value * 1e6))
    return duration


def job(queue_name="q", payload=b"x", **fields):
    """A job to be enqueued."""
    if isinstance(fields.get("delay"), (int, float)):
        fields["delay"] = seconds(fields["delay"])
    return pb.NewJob(queue=queue_name, payload=payload, **fields)


def enqueue(stub, *jobs, timeout=10, metadata=CALLER):
    """Enqueues; the jobs' ids."""
    answer = stub.Enqueue(pb.EnqueueRequest(jobs=list(jobs)), timeout=timeout, metadata=metadata)
    return [stored.job_id for stored in answer.jobs]


def ack(stub, *tokens, timeout=10, metadata=CALLER):
    """Acks; names of the statuses without their prefix."""
    answer = stub.Ack(pb.AckRequest(lease_tokens=list(tokens)), timeout=timeout, metadata=metadata)
    return [status_name(result.status) for result in answer.results]


def nack(stub, *tokens, action="RETRY", timeout=10, delay=None, error="", metadata=CALLER):
    """Nacks; the results."""
    items = [pb.NackItem(lease_token=token, action=pb.NackAction.Value(f"NACK_ACTION_{action}"), error=error,
                         delay=None if delay is None else seconds(delay)) for token in tokens]
    return list(stub.Nack(pb.NackRequest(items=items), timeout=timeout, metadata=metadata).results)


def extend(stub, *tokens, duration=None, timeout=10, metadata=CALLER):
    """Extends; the results."""
    request = pb.ExtendRequest(lease_tokens=list(tokens), lease_duration=None if duration is None else seconds(duration))
    return list(stub.Extend(request, timeout=timeout, metadata=metadata).results)


def status_name(number):
    """OK, GONE, LEASE_LOST, INVALID_TOKEN or BUSY."""
    return pb.SettleStatus.Name(number).removeprefix("SETTLE_STATUS_")


class Failed:
    """What a failed call said."""

    def __init__(self, error):
        self.code = error.code().name
        self.message = error.details() or ""
        trailers = {key: value for key, value in (error.trailing_metadata() or ())}
        self.outcome = trailers.get("leasehold-outcome")
        self.reason, self.domain, self.fields, self.rules, self.retry = None, None, [], [], None
        self.details = []
        # Read by hand: gRPC's own reader compares the message with the header's, which the client leaves undecoded where its
        # own deadline passed as the answer came.
        status = status_pb2.Status.FromString(trailers.get("grpc-status-details-bin", b""))
        assert status.message in ("", self.message, unquote(self.message)), (status.message, self.message)
        self.packed = list(status.details)
        for detail in self.packed:
            info, bad, retry = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest(), error_details_pb2.RetryInfo()
            self.details.append(detail.type_url.rsplit(".", 1)[1])
            if detail.Unpack(info):
                self.reason, self.domain = info.reason, info.domain
            elif detail.Unpack(bad):
                self.fields = [violation.field for violation in bad.field_violations]
                self.rules = [violation.description for violation in bad.field_violations]
            elif detail.Unpack(retry):
                self.retry = retry.retry_delay.ToMicroseconds() / 1e6

    def __repr__(self):
        return f"{self.code} {self.reason} {self.outcome} {self.fields} {self.message!r}"


def failure(call, *arguments, **options):
    """Makes a call that must fail; what it said."""
    try:
        answer = call(*arguments, **options)
    except grpc.RpcError as error:
        return Failed(error)
    raise AssertionError(f"the call did not fail: {answer}")


class Stream:
    """A Lease stream, read by a thread of its own. `expect` waits for the next frame of a kind, with a deadline."""

    def __init__(self, stub, *queues, in_flight=10, lease=None, metadata=CALLER, timeout=None, **fields):
        request = pb.LeaseRequest(queues=list(queues), max_in_flight=in_flight,
                                  lease_duration=None if lease is None else seconds(lease), **fields)
        self.call = stub.Lease(request, metadata=metadata, timeout=timeout)
        self.frames, self.kept = queue.Queue(), []
        self.error, self.ended_at = None, None
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        try:
            for frame in self.call:
                self.frames.put((time.monotonic(), frame))
        except grpc.RpcError as error:
            self.error = Failed(error)
        self.ended_at = time.monotonic()
        self.frames.put((self.ended_at, None))

    def next(self, within=10):
        """The next frame; None at the end."""
        try:
            return self.frames.get(timeout=within)[1]
        except queue.Empty:
            raise AssertionError(f"no frame within {within} s") from None

    def expect(self, kind, within=10):
        """The next frame of a kind (jobs, heartbeat, drain, opened, revoked), others passed over."""
        deadline = time.monotonic() + within
        while True:
            frame = self.next(max(0.001, deadline - time.monotonic()))
            assert frame is not None, f"the stream ended ({self.error}) before a {kind} frame"
            if frame.WhichOneof("frame") == kind:
                return getattr(frame, kind)

    def jobs(self, count, within=10):
        """The next `count` jobs; a frame that brings more keeps the rest for the next call."""
        deadline = time.monotonic() + within
        while len(self.kept) < count:
            left = deadline - time.monotonic()
            assert left > 0, f"{len(self.kept)} of {count} jobs within {within} s"
            self.kept += self.expect("jobs", left).jobs
        taken, self.kept = self.kept[:count], self.kept[count:]
        return taken

    def quiet(self, for_seconds):
        """Asserts that no job comes for so long."""
        deadline = time.monotonic() + for_seconds
        assert not self.kept
        while (left := deadline - time.monotonic()) > 0:
            try:
                frame = self.frames.get(timeout=left)[1]
            except queue.Empty:
                return
            assert frame is not None, f"the stream ended: {self.error}"
            assert frame.WhichOneof("frame") != "jobs", f"jobs came: {frame}"

    def end(self, within=10):
        """Waits for the server's end of the stream; the failure, or None where it ended OK."""
        self.thread.join(within)
        assert not self.thread.is_alive(), f"the stream did not end within {within} s"
        return self.error

    def cancel(self):
        """Ends it from this side."""
        self.call.cancel()
        self.thread.join(10)


def eventually(condition, within=10, what="the condition"):
    """Polls until `condition` gives something true; that."""
    deadline = time.monotonic() + within
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"{what} did not come true within {within} s"
        time.sleep(0.02)
