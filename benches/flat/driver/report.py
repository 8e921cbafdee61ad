"""A part of docs/benchmarks.md, and all that was measured as JSON."""

import json
import time
from pathlib import Path

from peers.driver.report import BEGINS, ENDS, machine, table
from peers.driver.servers import POSTGRES

HEAD = """## Flat where others fall

Written by one command, on the day below. Each figure is a ratio inside one run where it can be one: what a figure is worth
elsewhere is that.

```
{command}
```

{date}; {machine}; PostgreSQL {postgres}, with {settings}; Leasehold {version}; medians of {rounds} rounds. Jobs have a payload of
100 bytes, go in and out in batches of 100 where nothing else is said, and handlers do nothing.

"""

NOTES = """
* *Held snapshot*: a session holds one from the beginning of what "after" tells; jobs are enqueued and drained in rounds of one queue.
  Times of claims and of passes are those that the server's log has. Peers are measured once, with what `benches/peers` has of them.
* *Backlog*: claims are of the jobs in front, with so many ready ones in the same queue; the database was vacuumed and had its
  statistics before them. Scheduled and blocked jobs are in the same queue as those that go through.
* *Many*: keys of one queue; callers and queues over 64 producers and 64 streams, beside one over as many. Jobs go round the queues one by
  one, so that each batch of 100 is for 100 of 1,000, which is the worst that a producer can do to claims.
* *Log*: bare SQL is `benches/peers/bare` over 8 connections, 100 jobs a statement, on a table with two indexes.
* *MariaDB, SQLite*: bare SQL there is the same program, on MariaDB over 8 connections, on SQLite over the one that may write.
"""


def write(path, goals, failures, about):
    """Puts the table between its marks, or at the end of the document."""
    path = Path(path)
    text = path.read_text(encoding="utf-8") if path.exists() else "# Benchmarks\n"
    settings = ", ".join(f"`{name} = {value}`" for name, value in POSTGRES.items())
    part = f"{BEGINS}\n" + HEAD.format(date=time.strftime("%-d %B %Y"), machine=machine(), settings=settings, **about)
    part += table(["", "what", "goal", "measured", "met", "from"], [line(goal) for goal in goals]) + NOTES
    if failures:
        part += "\n" + "".join(f"* {name} was not measured: {why}\n" for name, why in failures.items())
    part += ENDS
    if BEGINS in text and ENDS in text:
        text = text[:text.index(BEGINS)] + part + text[text.index(ENDS) + len(ENDS):]
    else:
        text = text.rstrip("\n") + "\n\n" + part + "\n"
    path.write_text(text, encoding="utf-8")


def line(goal):
    """Its row."""
    return [goal.part, goal.what, goal.bound(), goal.told(), {True: "yes", False: "**no**", None: "–"}[goal.met], goal.detail]


def write_json(path, goals, failures, about):
    """All of it, each round's figures too."""
    said = {**about, "date": time.strftime("%Y-%m-%d"), "machine": machine(), "goals": [goal.as_json() for goal in goals],
            "failures": failures}
    Path(path).write_text(json.dumps(said, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
