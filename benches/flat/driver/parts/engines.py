"""MariaDB and SQLite beside bare SQL on the same engine."""

import statistics
import tempfile
from contextlib import contextmanager
from pathlib import Path

from .. import bare
from ..goals import Goal
from ..mariadb import mariadb

# What bench calls an act, and bare SQL.
ACTS = (("enqueue", "enqueue, batches of 100", "enqueue-batch"), ("drain", "drain, batches of 100", "drain"),
        ("all", "whole life at once", "life"))
LEAST = 0.5


def measure(stand):
    """Both of them."""
    program = bare.install(stand.build)
    with mariadb(stand.root) as server:
        goals = beside(stand, program, "MariaDB", 30_000, server.databases)
    return goals + beside(stand, program, "SQLite", 30_000, lambda: embedded(stand))


@contextmanager
def embedded(stand):
    """The broker's own database, and a file for bare SQL on the same disk."""
    with tempfile.TemporaryDirectory(dir=stand.root) as directory:
        yield None, f"sqlite:{Path(directory) / 'bare.db'}"


def beside(stand, program, engine, usual, databases):
    """Each act by the broker and by bare SQL, one after the other."""
    jobs, rounds = stand.jobs(usual), stand.said.rounds + 1
    found = {act: ([], []) for act, _, _ in ACTS}
    with databases() as (url, other):
        bare.act(stand, program, "setup", other, 0)
        for act, _, name in ACTS:
            report = stand.bench(act, on=url, jobs=jobs, rounds=rounds)
            # the first round finds all cold
            ours, theirs = found[act]
            ours += [figures["jobs_per_second"] for figures in report["rounds"][1:]]
            for number in range(rounds):
                if act == "drain":
                    bare.act(stand, program, "enqueue-batch", other, jobs)
                rate = bare.act(stand, program, name, other, jobs)
                if number:
                    theirs.append(rate)
            if act == "enqueue":
                # bench too leaves its jobs where they are until its end
                bare.act(stand, program, "drain", other, jobs * rounds)
            stand.note(f"  {engine}: {act}: {statistics.median(ours):,.0f} of {statistics.median(theirs):,.0f} jobs/s")
    goals = []
    for act, title, _ in ACTS:
        ours, theirs = found[act]
        limit = statistics.median(theirs)
        goals.append(Goal(engine, f"{title}, to bare SQL", at_least=LEAST, values=[rate / limit for rate in ours],
                          detail=f"{statistics.median(ours):,.0f} of {limit:,.0f} jobs/s"))
    return goals
