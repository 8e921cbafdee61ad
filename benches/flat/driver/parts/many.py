"""Many keys, callers and queues instead of one."""

import statistics

from ..goals import Goal

PART = "many"
ROUND = 100_000
# The first round of each bench finds its queues and plans cold.
INNER = 3
# As many of either kind of client as there are callers, or the others would have nobody to call for.
CLIENTS = {"producers": 64, "streams": 64}

COMPARED = (
    ("10,000 ordering keys to none", 0.6, {}, {"ordering_keys": 10_000}),
    ("64 callers to one", 0.8, CLIENTS, {**CLIENTS, "callers": 64}),
    ("1,000 queues to one", 0.8, CLIENTS, {**CLIENTS, "queues": 1_000}),
)


def measure(stand):
    """Each beside the one of it, in turns."""
    goals = [Goal(PART, f"rate with {what}", at_least=least) for what, least, _, _ in COMPARED]
    rates = [[] for _ in COMPARED]
    for number in range(stand.said.rounds):
        for goal, found, (what, _, one, many) in zip(goals, rates, COMPARED):
            pair = [rate(stand, flags) for flags in (one, many)]
            stand.note(f"  round {number + 1}: {what}: {pair[0]:,.0f} → {pair[1]:,.0f} jobs/s")
            goal.values.append(pair[1] / pair[0])
            found.append(pair)
    for goal, found in zip(goals, rates):
        one, many = (statistics.median(side) for side in zip(*found))
        goal.detail = f"{one:,.0f} → {many:,.0f} jobs/s, whole life"
    return goals


def rate(stand, flags):
    """Jobs a second of the rounds that find all warm."""
    report = stand.bench("all", on=stand.database("many"), jobs=stand.jobs(ROUND), rounds=INNER, timeout=stand.said.timeout * 2,
                         **flags)
    return statistics.mean(figures["jobs_per_second"] for figures in report["rounds"][1:])
