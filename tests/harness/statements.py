"""Reads what the server logged: every statement of every session, with who sent it."""

import re
from dataclasses import dataclass

LINE = re.compile(r"^\S+ \S+ UTC \[(\d+)\] app=(.*?) db=(\S*) user=(\S*) ([A-Z]+\d?):  ?(.*)$")
STATEMENT = re.compile(r"^(?:statement|execute [^:]*): (.*)$", re.S)
TAGGED = re.compile(r"^/\* conn_tag:([a-z0-9][a-z0-9_.-]{0,63}) \*/ ")


@dataclass
class Entry:
    """One entry of the log."""

    pid: int
    application: str
    database: str
    level: str
    text: str

    @property
    def statement(self):
        """The statement's text, where this entry is one."""
        found = STATEMENT.match(self.text) if self.level == "LOG" else None
        return found.group(1) if found else None

    @property
    def caller(self):
        """Whom its comment names."""
        found = TAGGED.match(self.statement or "")
        return found.group(1) if found else None


def entries(log, database, offset=0):
    """Entries about a database, from a place in the file on."""
    found = []
    with open(log, encoding="utf-8", errors="replace") as file:
        file.seek(offset)
        for line in file:
            match = LINE.match(line.rstrip("\n"))
            if match:
                pid, application, name, _, level, text = match.groups()
                found.append(Entry(int(pid), application, name, level, text))
            elif found:
                found[-1].text += "\n" + line.rstrip("\n").removeprefix("\t")
    return [entry for entry in found if entry.database == database]


def of_brokers(log, database, offset=0):
    """Statements that brokers sent: those of all sessions but the tests' own, which call themselves `test`."""
    return [entry for entry in entries(log, database, offset) if entry.statement is not None and entry.application != "test"]
