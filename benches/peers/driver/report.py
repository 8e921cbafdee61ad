"""docs/benchmarks.md."""

import os
import platform
import statistics
import time
from pathlib import Path

from .servers import POSTGRES

HEAD = """# Benchmarks

Written by one command, on the day below; a figure where another queue is faster stays in the table. What a figure is worth
elsewhere is its ratio to the others of the same run: the machine is small, and clients, workers, broker and database share it.

```
{command}
```

{date}; {machine}; PostgreSQL {postgres}; medians of {rounds} rounds. One server for all who live in PostgreSQL, with
{settings}, and for each of them a database of its own, made anew in each round. Jobs have a payload of about 100 bytes, and handlers do nothing.

## Jobs a second

"""

COLUMNS = (
    ("enqueue-one", "enqueue, one a call"),
    ("drain-one", "drain, one by one"),
    ("enqueue-batch", "enqueue, batches of 100"),
    ("drain", "drain, tuned"),
    ("life", "whole life at once"),
)

NOTES = """
* *Enqueue, one a call*: 64 callers at once, each waiting for its answer. *Batches*: 8 callers, 100 jobs a call.
* *Drain, tuned*: what waits is worked off by one worker process, set up as its documentation recommends for speed. *One by one*: jobs
  are fetched and finished singly, 64 at once, where the library can do that; bare SQL and pgmq do it over 8 connections.
* *Whole life at once*: producers (8, batches of 100) and the tuned worker at the same time, from the first call until the last job is done.
* Bare SQL at 1,000 a statement enqueues as many in a batch. Bare SQL is no queue but the limit: insert, claim and delete as statements of their own, over {connections} connections, as many
  as the broker has lanes; in the whole life half of them insert. pgmq has no worker either: 8 connections send, 4 read and delete.
* A worker's time counts from the first job that it has to the last one, so that how long it takes to start is not measured. Of Leasehold
  it counts from before its streams are opened until the last ack is answered.
* Redis every second, and RabbitMQ, are here for orientation: the one may lose a second of jobs, the other keeps none of them in a database.
* How each of them was set up, and why, is in `benches/peers/NAME/README.md`.

## Pick-up latency

50 jobs a second to an idle worker: milliseconds from before the call that enqueues a job until a worker has it; {latency} s a round.

"""


def write(path, rows, bench, rounds, command):
    """Writes the document of what came out so far."""
    text = HEAD.format(command=command, date=time.strftime("%-d %B %Y"), machine=machine(), postgres=bench.postgres.version,
                       rounds=rounds, settings=", ".join(f"`{name} = {value}`" for name, value in POSTGRES.items()))
    text += table(["", "version", *(title for _, title in COLUMNS)],
                  [[row.peer.title, row.version, *(rate(row, act) for act, _ in COLUMNS)] for row in rows])
    connections = next((row.peer.environment["CONNECTIONS"] for row in rows if row.peer.name == "bare"), "as many")
    text += NOTES.format(connections=connections, latency=bench.latency_seconds)
    text += table(["", "p50", "p99"], [[row.peer.title, *latency(row)] for row in rows if "latency" not in row.peer.leaves_out])
    text += ratios(rows) + costs(rows) + failures(rows) + kept(path)
    Path(path).write_text(text, encoding="utf-8")


BEGINS, ENDS = "<!-- flat: begin -->", "<!-- flat: end -->"


def kept(path):
    """The part of the document that another command writes, with its marks; nothing where there is none."""
    text = Path(path).read_text(encoding="utf-8") if Path(path).exists() else ""
    if BEGINS not in text or ENDS not in text:
        return ""
    return "\n" + text[text.index(BEGINS):text.index(ENDS) + len(ENDS)] + "\n"


def table(head, rows):
    """A table in Markdown."""
    lines = [head, ["---", *("--:" for _ in head[1:])], *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def middle(row, act, name):
    """The median of the rounds; nothing where there is none."""
    values = [result[name] for result in row.results.get(act, []) if result.get(name) is not None]
    return statistics.median(values) if values else None


def rate(row, act):
    """A cell."""
    if act in row.peer.leaves_out:
        return "–"
    found = middle(row, act, "rate")
    return "failed" if found is None else f"{found:,.0f}"


def latency(row):
    """Two cells."""
    found = [middle(row, "latency", name) for name in ("p50_ms", "p99_ms")]
    return ["failed" if value is None else f"{value:.1f}" for value in found]


ORIENTATION = ("bullmq", "rabbitmq")


def ratios(rows):
    """What is asked of us, as ratios of this run."""
    ours = {row.peer.name: row for row in rows}.get("leasehold")
    if ours is None:
        return ""
    libraries = [row for row in rows if row.peer.name not in ("leasehold", "pgmq", "bare", "bare:1000")
                 and row.peer.directory not in ORIENTATION]
    named = {row.peer.name: row for row in rows}
    lines = []

    def against(title, act, others):
        mine = middle(ours, act, "rate")
        theirs = [(middle(row, act, "rate"), row.peer.title) for row in others if row is not None]
        theirs = [pair for pair in theirs if pair[0]]
        if mine and theirs:
            best, name = max(theirs)
            lines.append([title, name, f"{mine / best:.2f}"])

    against("whole life, batches of 100, to bare SQL at 100 a statement", "life", [named.get("bare")])
    against("the same, to pgmq", "life", [named.get("pgmq")])
    against("the same, to the best library", "life", libraries)
    against("enqueue one a call, to 64 connections that insert single rows", "enqueue-one", [named.get("bare")])
    against("the same, to the best library", "enqueue-one", libraries)
    against("drain one by one, to bare SQL", "drain-one", [named.get("bare")])
    against("the same, to the best library", "drain-one", libraries)
    for act, title in COLUMNS:
        against(f"{title}, to BullMQ at equal durability", act, [named.get("bullmq:always")])
    for name, title in (("p50_ms", "p50"), ("p99_ms", "p99")):
        mine = middle(ours, "latency", name)
        theirs = [(middle(row, "latency", name), row.peer.title) for row in [*libraries, named.get("pgmq")] if row]
        theirs = [pair for pair in theirs if pair[0]]
        if mine and theirs:
            best, who = min(theirs)
            lines.append([f"pick-up {title}, to the best in a database (less is better)", who, f"{mine / best:.2f}"])
    if not lines:
        return ""
    return "\n## Leasehold to others\n\n" + table(["ratio of Leasehold", "to", ""], lines)


def costs(rows):
    """What a job costs with Leasehold."""
    ours = {row.peer.name: row for row in rows}.get("leasehold")
    lines = []
    for act, title in COLUMNS if ours else ():
        found = [middle(ours, act, name) for name in ("client", "broker", "database", "wal")]
        if any(value is not None for value in found):
            lines.append([title, *("–" if value is None else f"{value:,.1f}" for value in found)])
    if not lines:
        return ""
    head = ["", "clients µs", "broker µs", "database µs", "WAL bytes"]
    return "\n## What a job costs with Leasehold\n\nProcessor time of each process, and what the log grew by.\n\n" + table(head, lines)


def failures(rows):
    """What did not work."""
    lines = [f"* {row.peer.title}, {act}: {why}\n" for row in rows for act, why in row.failures.items()]
    return "\n## What failed\n\n" + "".join(lines) if lines else ""


def machine():
    """The machine, in one line."""
    cpu = next((line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
                if line.startswith("model name")), "unknown processor")
    memory = next(int(line.split()[1]) for line in Path("/proc/meminfo").read_text().splitlines()
                  if line.startswith("MemTotal"))
    return f"{os.cpu_count()} cores ({cpu}), {memory / 1e6:.0f} GB, Linux {platform.release()}"
