"""Two brokers on one database server, twenty workers in Python, one broker killed with -9 midway: what became of every job.

As a program, with the variables that ./test sets:
    python -m faults.two_replicas [--engine mariadb] [--jobs 100000] [--workers 20]
It prints the checker's table for the run, and for three brokers with a seeded bug each, which it must catch.
"""

import argparse
import os
import sys
import time
from pathlib import Path

from conftest import broker_maker, fresh_database, fresh_mariadb, open_directory
from faults import checker
from faults.load import Processes
from faults.run import Run
from faults.toy import Toy

SEEDED = {
    "ack without token compare": "stale-ack-accepted",
    "claim sent before its commit": "duplicate-grant",
    "retry that drops a job": "lost",
}

ENGINES = {
    "postgres": lambda: fresh_database((os.environ["LEASEHOLD_TEST_POSTGRES_URL"],
                                        Path(os.environ["LEASEHOLD_TEST_POSTGRES_LOG"]))),
    "mariadb": fresh_mariadb,
}


def play(url, brokers, directory, jobs, workers):
    """The run. `brokers` are two that serve; the report, and the seconds it took."""
    begun = time.monotonic()
    first, second = brokers
    with Run(directory, url, [first.port, second.port], kind=Processes, jobs=jobs, workers=workers, batch=200,
             in_flight=100, lease=3.0, nacked=0.0, held=0.002) as run:
        try:
            run.after_grants(jobs // 2, within=300 + jobs / 200)
            with run.fault("kill -9 of one replica"):
                first.kill()
                run.after_grants(jobs // 2 + jobs // 10, within=60 + jobs / 200)
            report = run.verdict(within=120 + jobs / 100)
        finally:
            run.load.kill()
    return report, time.monotonic() - begun


def seeded_bugs_caught():
    """(bug, how it was caught, times) of each."""
    found = []
    for bug, count in SEEDED.items():
        report = checker.check(Toy(7, bug).run(), reaper_interval=0.5)
        assert report.valid is False and report.counts[count], report.table()
        found.append((bug, count, report.counts[count]))
    return found


def main():
    """Prints the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--engine", choices=["postgres", "mariadb"], default="postgres")
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--workers", type=int, default=20)
    options = parser.parse_args()
    with (ENGINES[options.engine]() as database, open_directory() as work,
          broker_maker(os.environ["LEASEHOLD_TEST_BROKER"], work) as make):
        pair = make(database.url, name="replica-a"), make(database.url, name="replica-b")
        report, took = play(database.url, pair, work / "history", options.jobs, options.workers)
    print(f"two replicas on {options.engine}, {options.workers} workers, {options.jobs} jobs, one replica killed with -9 midway: {took:.0f} s")
    for bug, count, times in seeded_bugs_caught():
        print(f"seeded bug, {bug}: caught {times} times as {count}")
    return 0 if report.valid is True else 1


if __name__ == "__main__":
    sys.exit(main())
