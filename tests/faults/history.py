"""What happened, as the clients saw it: one file of JSON lines per process.

An operation is two lines: `invoke` is written before anything is sent, so that a client that dies leaves an operation of
unknown outcome; `complete` when its answer came. Grants are lines of their own. Instants `t` are this host's monotonic
clock in microseconds; `granted` and `expires` are the database's, in microseconds since 1970.

    {"kind": "invoke", "op": "p1-7", "rpc": "enqueue", "t": …, "jobs": [{"uid", "sha", "queue", "key"}]}
    {"kind": "invoke", "op": "w1-9", "rpc": "ack" | "nack" | "extend", "t": …, "tokens": […],
     "port": the broker's}
    {"kind": "complete", "op": "p1-7", "t": …, "outcome": "ok" | "fail" | "info", "code": "OK", "told": true, "results": […],
     "why": the client library's words}
        results: enqueue [{"job", "duplicate"}]; others [{"status", "dead", "expires"}] in the order of the tokens
    {"kind": "grant", "t": …, "job", "token", "number", "attempt", "granted", "expires", "due", "uid", "sha", "key", "port"}
    {"kind": "nemesis", "what": "kill broker 1", "begin": …, "end": …}
    {"kind": "poll", "begin": …, "end": …, "live": [job…], "dead": [job…]}
    {"kind": "final", "live": [[job, uid]…], "dead": [[job, uid]…]}
    {"kind": "clock", "t": …, "database": …}
"""

import hashlib
import json
import os
import time
from pathlib import Path


def now():
    """This host's monotonic clock, in microseconds."""
    return time.monotonic_ns() // 1000


def digest(payload):
    """What is kept of a payload."""
    return hashlib.sha256(payload).hexdigest()[:32]


class Recorder:
    """Writes one process's file. Each line goes out whole and at once, so that kill -9 costs none that was written."""

    def __init__(self, directory, process):
        self.process, self.count = process, 0
        self.file = os.open(Path(directory) / f"{process}.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def write(self, kind, **fields):
        """One line."""
        os.write(self.file, (json.dumps({"kind": kind, **fields}, separators=(",", ":")) + "\n").encode())

    def invoke(self, rpc, **fields):
        """Says what is about to be sent; the answer names it to `complete`."""
        self.count += 1
        op = f"{self.process}-{self.count}"
        self.write("invoke", op=op, rpc=rpc, t=now(), **fields)
        return op

    def complete(self, op, outcome, code="OK", told=True, results=(), why=""):
        """Says what came back."""
        self.write("complete", op=op, t=now(), outcome=outcome, code=code, told=told, results=list(results), why=why)


def read(directory):
    """All lines of all files. A last line that a killed process did not finish is left out."""
    lines = []
    for path in sorted(Path(directory).glob("*.jsonl")):
        for text in path.read_text().splitlines():
            try:
                lines.append(json.loads(text))
            except json.JSONDecodeError:
                continue
    return lines
