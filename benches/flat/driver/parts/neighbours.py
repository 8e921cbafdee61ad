"""Peers beside us under a held snapshot."""

import statistics

from peers.driver.__main__ import Bench
from peers.driver.peers import everyone
from peers.driver.places import Failed

from ..goals import Goal
from .snapshot import held

PART = "held snapshot, peers"
WHO = ("pgmq", "pgqueuer", "graphile-worker", "pg-boss")
ROUND = 20_000
JOBS = 200_000
# Rounds before, and at the end.
LOOKS = 3


def measure(stand):
    """The same for each of them, with fewer jobs."""
    return [goal for peer in everyone(None, 8) if peer.name in WHO for goal in neighbour(stand, peer)]


def neighbour(stand, peer):
    """One of them; nothing where it is not installed."""
    try:
        peer.install(stand.build)
    except (Failed, OSError, StopIteration, KeyError) as failed:
        stand.note(f"  {peer.name} is not installed: {failed}")
        return
    each, jobs = stand.jobs(ROUND), stand.jobs(JOBS)
    name = "beside_" + peer.name.replace("-", "_")
    url = stand.database(name)
    bench = Bench(stand.postgres, stand.root, stand.build, each / peer.jobs.batch, 1, stand.said.timeout)

    def drained():
        peer.measure(bench, "enqueue-batch", url)
        return peer.measure(bench, "drain", url)["rate"]

    try:
        peer.begin(bench, url)
        # the first one finds all cold
        drained()
        before, under = statistics.median(drained() for _ in range(LOOKS)), []
        with held(stand.postgres, name) as hold:
            hold()
            while each * len(under) < jobs:
                under.append(drained())
        through, after = each * len(under), statistics.median(under[-LOOKS:])
        stand.note(f"  {peer.name}: {before:,.0f} → " + ", ".join(f"{rate:,.0f}" for rate in under) + " jobs/s")
    except (Failed, ValueError, KeyError, IndexError) as failed:
        stand.note(f"  {peer.name}: {failed}")
        yield Goal(PART, f"{peer.name}: rate after {jobs:,} jobs to that before", detail=str(failed))
        return
    yield Goal(PART, f"{peer.name}: rate after {through:,} jobs to that before", values=[after / before],
               detail=f"{before:,.0f} → {after:,.0f} jobs/s drained")
