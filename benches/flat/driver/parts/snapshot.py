"""A session holds a snapshot while jobs go through: vacuum may remove nothing of what they leave."""

import subprocess
import time
from contextlib import contextmanager

from ..goals import Goal, ratio
from ..log import percentile, watched

PART = "held snapshot"
ROUND = 100_000
# Passes of the idle broker that are watched, and seconds for which they are waited for.
PASSES = 10
PATIENCE = 60


@contextmanager
def held(postgres, database):
    """Holds a snapshot once it is asked to, until the end of the block."""
    session = subprocess.Popen([str(postgres.programs / "psql"), postgres.url(database), "-qAt"], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True, cwd="/")

    def hold():
        session.stdin.write("begin isolation level repeatable read; select count(*) from pg_class;\n")
        session.stdin.flush()
        session.stdout.readline()

    try:
        yield hold
    finally:
        session.stdin.close()
        session.wait(30)
        session.stdout.close()


def is_held(postgres):
    """Whether somebody has an old snapshot."""
    return postgres.sql("select count(*) from pg_stat_activity where state = 'idle in transaction' "
                        "and backend_xmin is not null") == "1"


def measure(stand):
    """Rates, claims and the reaper before and after."""
    jobs, each, rounds = stand.jobs(stand.said.snapshot_jobs), stand.jobs(ROUND), stand.said.rounds
    # one more than counts, as the first one finds all cold
    before, under = rounds + 1, -(-jobs // each)
    marks = {}
    url = stand.database("snapshot")
    with stand.serving(url) as broker, held(stand.postgres, "snapshot") as hold, \
            watched(stand.postgres, stand.log) as log:
        def begun(number):
            marks[number] = log.here()
            if number == before + 1:
                hold()

        report = stand.bench("drain", on=url, jobs=each, rounds=before + under + rounds, begun=begun,
                             timeout=stand.said.timeout * 3, **broker.flags)
        passes = empty_passes(log)
        kept = is_held(stand.postgres)
    if not kept:
        raise AssertionError("the snapshot was lost on the way")
    if not passes:
        raise AssertionError("the reaper made no pass")
    rates = [figures["jobs_per_second"] for figures in report["rounds"]]
    early, late = rates[1:before], rates[-rounds:]
    claims = [[statement.millis for statement in log.between(*part) if statement.is_claim]
              for part in ((marks[2], marks[before + 1]), (marks[before + under + 1], marks[None]))]
    middles = [percentile(times, 0.5) for times in claims]
    return [
        Goal(PART, f"rate after {under * each:,} jobs to that before", at_least=0.9,
             values=[rate / (sum(early) / len(early)) for rate in late],
             detail=f"{sum(early) / len(early):,.0f} → {sum(late) / len(late):,.0f} jobs/s drained"),
        Goal(PART, "a claim's time (median) after to before", at_most=1.5, values=[ratio(claims[1], claims[0])],
             detail=f"{middles[0]:.2f} → {middles[1]:.2f} ms; p99 "
                    f"{percentile(claims[0], 0.99):.1f} → {percentile(claims[1], 0.99):.1f} ms"),
        Goal(PART, "an empty reaper pass under it, idle (slowest)", unit=" ms", at_most=5, values=[max(passes)],
             detail=f"{len(passes)} passes, median {percentile(passes, 0.5):.2f} ms"),
    ]


def empty_passes(log):
    """Milliseconds of passes while nothing is to be done."""
    begun, idle, passes = time.monotonic(), log.here(), []
    while len(passes) < PASSES and time.monotonic() - begun < PATIENCE:
        time.sleep(1)
        passes = [statement.millis for statement in log.between(idle) if statement.is_reaper_pass]
    return passes
