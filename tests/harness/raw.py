"""A plain HTTP/2 client, for what a gRPC library hides or refuses to send."""

import socket
import struct
import time
from dataclasses import dataclass, field

import h2.config
import h2.connection
import h2.events
import h2.exceptions

SERVICE = "/leasehold.v1.QueueService"


def framed(message, compressed=0):
    """A gRPC message: flag, length, bytes."""
    return struct.pack("!BI", compressed, len(message)) + message


@dataclass
class Answer:
    """What came on one stream."""

    headers: dict = field(default_factory=dict)
    trailers: dict = field(default_factory=dict)
    data: bytes = b""
    reset: int | None = None
    ended: bool = False

    def get(self, name):
        """A trailer, or the header of an answer that has headers alone."""
        return self.trailers.get(name, self.headers.get(name))


class Raw:
    """One connection."""

    def __init__(self, port, validate=False):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self.authority = f"127.0.0.1:{port}"
        config = h2.config.H2Configuration(header_encoding="utf-8", validate_outbound_headers=validate,
                                           normalize_outbound_headers=validate)
        self.h2 = h2.connection.H2Connection(config)
        self.answers, self.closed, self.goaway = {}, False, None
        self.h2.initiate_connection()
        self.flush()

    def flush(self):
        """Sends what h2 wants sent."""
        data = self.h2.data_to_send()
        if data:
            self.socket.sendall(data)

    def open(self, path, headers=(), data=None, end=True, content_type="application/grpc", method="POST"):
        """Begins a call; the stream's number."""
        stream = self.h2.get_next_available_stream_id()
        fields = [(":method", method), (":scheme", "http"), (":path", path), (":authority", self.authority)]
        if content_type:
            fields.append(("content-type", content_type))
        fields += [("te", "trailers"), *headers]
        self.answers[stream] = Answer()
        self.h2.send_headers(stream, fields, end_stream=data is None and end)
        if data is not None:
            self.send(stream, data, end)
        self.flush()
        return stream

    def send(self, stream, data, end):
        """Sends data as the window allows, reading meanwhile."""
        while data and self.answers[stream].reset is None and not self.answers[stream].ended:
            room = min(self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size)
            if room <= 0:
                self.flush()
                if not self.read(5):
                    return
                continue
            self.h2.send_data(stream, data[:room])
            data = data[room:]
            self.flush()
            self.read(0)
        if end and self.answers[stream].reset is None and not self.answers[stream].ended:
            try:
                self.h2.end_stream(stream)
                self.flush()
            except h2.exceptions.ProtocolError:
                return

    def read(self, within):
        """Reads what is there within so long; whether anything came."""
        self.socket.settimeout(max(within, 0.001))
        try:
            data = self.socket.recv(1 << 16)
        except (TimeoutError, BlockingIOError):
            return False
        except OSError:
            data = b""
        if not data:
            self.closed = True
            return False
        for event in self.h2.receive_data(data):
            self._take(event)
        self.flush()
        return True

    def _take(self, event):
        answer = self.answers.get(getattr(event, "stream_id", None))
        if isinstance(event, h2.events.ResponseReceived):
            answer.headers.update(event.headers)
        elif isinstance(event, h2.events.TrailersReceived):
            answer.trailers.update(event.headers)
        elif isinstance(event, h2.events.DataReceived):
            answer.data += event.data
            self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.StreamEnded):
            answer.ended = True
        elif isinstance(event, h2.events.StreamReset):
            answer.reset = event.error_code
        elif isinstance(event, h2.events.ConnectionTerminated):
            self.goaway = event.error_code

    def wait(self, stream, within=10):
        """The whole answer of a call."""
        deadline = time.monotonic() + within
        answer = self.answers[stream]
        while not answer.ended and answer.reset is None and not self.closed:
            left = deadline - time.monotonic()
            assert left > 0, f"no answer within {within} s: {answer}"
            self.read(min(left, 1))
        return answer

    def call(self, method, message=b"", headers=(), within=10, **options):
        """A unary call."""
        stream = self.open(f"{SERVICE}/{method}", headers, options.pop("data", framed(message)), **options)
        return self.wait(stream, within)

    def close(self, reset=False):
        """Ends the connection."""
        if reset:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()
