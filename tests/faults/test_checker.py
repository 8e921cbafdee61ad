"""The checker finds each seeded bug, and nothing where there is none."""

import pytest

from faults.checker import check
from faults.toy import BUGS, Toy

CAUGHT_AS = {
    "ack without token compare": "stale-ack-accepted",
    "claim sent before its commit": "duplicate-grant",
    "retry that drops a job": "lost",
    "reaper before the lease's end": "early-reap",
    "enqueue that answers before its commit": "lost",
    "payload of another job": "mutated",
    "key that makes two jobs": "doubled-key",
    "batch half stored": "torn-batch",
    "dead job kept alive": "live-and-dead",
    "lease number that starts again": "duplicate-grant",
    "ack answered but not applied": "after-ack-grant",
    "reaper that sleeps": "late-return",
    "failure without its outcome": "untold-outcome",
    "job of a failed enqueue stored": "unexpected",
}


@pytest.mark.parametrize("seed", range(10))
def test_a_broker_without_a_bug_is_valid(seed):
    report = check(Toy(seed).run(), reaper_interval=0.5)
    assert report.valid is True, report.table()
    assert report.counts["by-expiry"] > 5, "no lease ran out: the run proves little"


@pytest.mark.parametrize("bug", BUGS)
def test_a_seeded_bug_is_caught(bug):
    report = check(Toy(7, bug).run(), reaper_interval=0.5)
    assert report.valid is False, report.table()
    assert report.counts[CAUGHT_AS[bug]] > 0, report.table()


def test_an_empty_history_is_no_pass():
    report = check([{"kind": "final", "live": [], "dead": []}])
    assert report.valid == "unknown"
    assert report.why == "only 0 jobs were enqueued"


def test_a_run_without_a_fault_is_no_pass():
    lines = [line for line in Toy(1).run() if line["kind"] != "nemesis"]
    report = check(lines, reaper_interval=0.5)
    assert (report.valid, report.why) == ("unknown", "no fault met an operation under way")


def test_a_run_without_its_final_tables_is_no_pass():
    lines = [line for line in Toy(1).run() if line["kind"] != "final"]
    assert check(lines, reaper_interval=0.5).valid == "unknown"
