"""Many keys, callers and queues instead of one."""

from ..goals import Goal
from ..lives import life, told

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
    found = [[] for _ in COMPARED]
    for number in range(stand.said.rounds):
        for goal, pairs, (what, _, one, many) in zip(goals, found, COMPARED):
            pairs.append([life(stand, "many", jobs=stand.jobs(ROUND), rounds=INNER, **flags) for flags in (one, many)])
            stand.note(f"  round {number + 1}: {what}: {told(pairs[-1:])}")
            goal.values.append(pairs[-1][1].rate / pairs[-1][0].rate)
    for goal, pairs in zip(goals, found):
        goal.detail = told(pairs)
    return goals
