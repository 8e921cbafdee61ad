"""The broker's memory while it works as fast as it can."""

import statistics
import threading
import time

from ..goals import Goal

PART = "memory"
ROUND = 500_000
# Seconds between two looks.
LOOK = 1
MIB = 1 << 20


def measure(stand):
    """Looks at it for so many minutes."""
    url, samples, over = stand.database("memory"), [], threading.Event()
    rates = []
    with stand.serving(url) as broker:
        looking = threading.Thread(target=look, args=(broker, samples, over))
        looking.start()
        begun = time.monotonic()
        try:
            while time.monotonic() - begun < stand.said.minutes * 60:
                report = stand.bench("all", on=url, jobs=stand.jobs(ROUND), rounds=1, **broker.flags)
                rates.append(report["median"]["jobs_per_second"])
        finally:
            took = time.monotonic() - begun
            over.set()
            looking.join()
    quarter = max(1, len(samples) // 4)
    # caches and the allocator's arenas have filled in the first quarter
    early, late = (statistics.median(part) for part in (samples[quarter:2 * quarter] or samples, samples[-quarter:]))
    return [Goal(PART, f"resident memory in the last quarter of {took / 60:.1f} minutes to that in the second", at_most=1.1,
                 values=[late / early],
                 detail=f"{early / MIB:.0f} → {late / MIB:.0f} MiB, at most {max(samples) / MIB:.0f}, "
                        f"at {statistics.median(rates):,.0f} jobs/s, whole life")]


def look(broker, samples, over):
    """Notes its memory until it is over."""
    while not over.wait(LOOK):
        samples.append(broker.resident())
