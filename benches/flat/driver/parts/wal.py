"""What the log grows by for each job, beside the bare loop on a minimal table."""

import statistics

from .. import bare
from ..goals import Goal

PART = "log"
ROUND = 100_000


def measure(stand):
    """The whole life of jobs, in turns."""
    program, each = bare.install(stand.build), stand.jobs(ROUND)
    ours_url, bare_url = stand.database("wal_ours"), stand.postgres.database("wal_bare")
    bare.act(stand, program, "setup", bare_url, 0)
    values, ours, theirs = [], [], []
    with stand.serving(ours_url) as broker:
        # the first round of each extends files and finds all cold
        for number in range(stand.said.rounds + 1):
            report = stand.bench("all", on=ours_url, jobs=each, rounds=1, **broker.flags)
            before = written(stand)
            bare.act(stand, program, "life", bare_url, each)
            if number:
                ours.append(report["median"]["wal_bytes_per_job"])
                theirs.append((written(stand) - before) / each)
                values.append(ours[-1] / theirs[-1])
    return [Goal(PART, "WAL bytes of a job's whole life to those of bare SQL", at_most=1.5, values=values,
                 detail=f"{statistics.median(theirs):,.0f} → {statistics.median(ours):,.0f} bytes")]


def written(stand):
    """Bytes of log since some beginning."""
    return int(stand.postgres.sql("select (pg_current_wal_lsn() - '0/0')::bigint"))
