"""Jobs that go in and out at once."""

import statistics
from dataclasses import dataclass


@dataclass(frozen=True)
class Life:
    """Means of the rounds that find all warm."""

    # jobs a second
    rate: float
    # microseconds of processor time that a job costs broker and database
    cost: float


def life(stand, database, **options):
    """A broker of its own on a new database."""
    report = stand.bench("all", on=stand.database(database), timeout=stand.said.timeout * 2, **options)
    rounds = report["rounds"][1:]
    costs = [figures[f"{who}_cpu_seconds_per_job"] for who in ("broker", "database") for figures in rounds]
    return Life(statistics.mean(figures["jobs_per_second"] for figures in rounds), sum(costs) / len(rounds) * 1e6)


def told(pairs):
    """Medians of either side, for people."""
    sides = list(zip(*pairs))
    rates = [statistics.median(found.rate for found in side) for side in sides]
    costs = [statistics.median(found.cost for found in side) for side in sides]
    return f"{rates[0]:,.0f} → {rates[1]:,.0f} jobs/s, whole life; {costs[0]:.1f} → {costs[1]:.1f} µs of processor time a job"
