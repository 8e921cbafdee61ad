"""Jobs that wait: ready ones in front, scheduled ones, and ones behind a key."""

import statistics
from contextlib import ExitStack

from ..goals import Goal
from ..lives import life, told
from ..log import percentile, watched

PART = "backlog"
FEW = 10_000
ROUND = 100_000
SCHEDULED = 1_000_000
BLOCKED = 100_000
# Rounds of one bench: filling takes longer than they do.
INNER = 4


def measure(stand):
    """Both."""
    return ready(stand) + waiting(stand)


def ready(stand):
    """Claims with few ready jobs and with many, and with few again: a machine changes meanwhile."""
    few, many = min(FEW, stand.said.backlog), stand.said.backlog
    parts = {}
    for name, backlog in (("few", few), ("many", many), ("again", few)):
        stand.note(f"  {backlog:,} ready jobs")
        rates, claims = drained(stand, backlog)
        parts.setdefault("many" if name == "many" else "few", []).append((claims, rates))
    ninety_ninth = {name: statistics.mean(percentile(claims, 0.99) for claims, _ in found) for name, found in parts.items()}
    middle = {name: statistics.mean(percentile(claims, 0.5) for claims, _ in found) for name, found in parts.items()}
    rate = {name: statistics.median(rate for _, rates in found for rate in rates) for name, found in parts.items()}
    return [
        Goal(PART, f"claim p99 at {many:,} ready jobs to that at {few:,}", at_most=1.5,
             values=[ninety_ninth["many"] / ninety_ninth["few"]],
             detail=f"p99 {ninety_ninth['few']:.1f} → {ninety_ninth['many']:.1f} ms; "
                    f"median {middle['few']:.2f} → {middle['many']:.2f} ms"),
        Goal(PART, "rate of draining there, one to the other", values=[rate["many"] / rate["few"]],
             detail=f"{rate['few']:,.0f} → {rate['many']:,.0f} jobs/s"),
    ]


def drained(stand, backlog):
    """Rates of rounds, and times of their claims; the first one finds all cold."""
    marks, each = {}, stand.jobs(ROUND)
    with ExitStack() as until_the_end:
        def begun(number):
            if number == 1:
                # not before: filling sends many statements
                marks["log"] = until_the_end.enter_context(watched(stand.postgres, stand.log))
            marks[number] = marks["log"].here()

        report = stand.bench("drain", on=stand.database("backlog"), jobs=each, rounds=stand.said.rounds + 1, backlog=backlog,
                             begun=begun, timeout=stand.said.timeout + backlog / 10_000)
        statements = marks["log"].between(marks[2], marks[None])
    return ([figures["jobs_per_second"] for figures in report["rounds"][1:]],
            [statement.millis for statement in statements if statement.is_claim])


def waiting(stand):
    """What is scheduled or blocked should cost nothing: with it and without it, in turns."""
    scheduled, blocked = stand.jobs(SCHEDULED), stand.jobs(BLOCKED)
    pairs = []
    for number in range(stand.said.rounds):
        pairs.append([life(stand, "waiting", jobs=stand.jobs(ROUND), rounds=INNER, **flags)
                      for flags in ({}, {"scheduled": scheduled, "blocked": blocked})])
        stand.note(f"  round {number + 1}: without, and with {scheduled:,} scheduled and {blocked:,} blocked jobs: {told(pairs[-1:])}")
    return [Goal(PART, f"rate with {scheduled:,} scheduled and {blocked:,} blocked jobs to that without", at_least=0.95,
                 values=[with_them.rate / without.rate for without, with_them in pairs], detail=told(pairs))]
