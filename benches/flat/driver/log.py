"""Statements as PostgreSQL's log tells them."""

import re
from contextlib import contextmanager
from dataclasses import dataclass

# A statement of the extended protocol has a line for each of parse, bind and execute, in this order; a simple one has one.
ENTRY = re.compile(r"^\S+ \S+ \S+ \[(\d+)\] \S+:  duration: ([0-9.]+) ms  (\w+)[^:]*: ?(.*)", re.DOTALL)
BEGINS = re.compile(r"^(?=\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)", re.MULTILINE)
CALLER = re.compile(r"/\* conn_tag:(\S+) \*/")


@dataclass(frozen=True)
class Statement:
    """A statement that ended."""

    # the business process in its comment; empty where it has none
    caller: str
    # time that parsing, binding and execution took
    millis: float
    text: str

    @property
    def is_claim(self):
        """Whether it leases jobs."""
        return not self.caller.startswith("leasehold.") and "set lease_id = (" in self.text and "skip locked" in self.text

    @property
    def is_reaper_pass(self):
        """Whether it looks for leases that have ended."""
        return self.caller == "leasehold.reaper"


class Log:
    """The log of a server, which writes into it each statement of one database."""

    def __init__(self, path):
        self.path = path

    def here(self):
        """Where it ends now."""
        return self.path.stat().st_size

    def between(self, begin, end=None):
        """The statements of a part of it."""
        with open(self.path, "rb") as file:
            file.seek(begin)
            text = file.read(*([] if end is None else [end - begin])).decode("utf-8", "replace")
        return list(_statements(text))


def _statements(text):
    preparing = {}
    for entry in BEGINS.split(text):
        found = ENTRY.match(entry)
        if not found:
            continue
        backend, millis, step, rest = found.group(1), float(found.group(2)), found.group(3), found.group(4)
        if step in ("parse", "bind"):
            preparing[backend] = preparing.get(backend, 0) + millis
        else:
            caller = CALLER.search(rest)
            yield Statement(caller.group(1) if caller else "", millis + preparing.pop(backend, 0), rest)


@contextmanager
def watched(postgres, path):
    """Has the server log each statement with its time."""
    def tell(value):
        postgres.sql(f"alter system set log_min_duration_statement = {value}")
        postgres.sql("select pg_reload_conf()")

    tell(0)
    try:
        yield Log(path)
    finally:
        tell(-1)


def percentile(values, part):
    """The value below which this part of them is."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))]
