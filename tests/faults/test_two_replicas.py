"""The run that the README's promises stand on, in small or (`./test --long`) in full."""

import pytest

from faults.two_replicas import play, seeded_bugs_caught
from harness import LONG


@pytest.mark.timeout(3000 if LONG else 240)
@pytest.mark.parametrize("engine", ["postgres", "mariadb"])
def test_a_replica_killed_midway_loses_nothing_and_acks_nothing_twice(engine, request, brokers, work):
    database = request.getfixturevalue(engine)
    jobs, workers = (100_000, 20) if LONG else (6_000, 6)
    pair = brokers(database.url, name="replica-a"), brokers(database.url, name="replica-b")
    report, _ = play(database.url, pair, work / "history", jobs, workers)
    assert report.valid is True, report.table()
    counts = report.counts
    assert (counts["lost"], counts["acked-twice"]) == (0, 0)
    assert counts["redelivered"] == counts["by-expiry"] > 0, "a duplicate that no expiry explains, or none at all"


def test_the_checker_catches_the_three_bugs_that_matter_most():
    assert len(seeded_bugs_caught()) == 3
