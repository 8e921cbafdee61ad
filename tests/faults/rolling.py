"""Three brokers on one PostgreSQL, twenty workers in Python, each broker ended by SIGTERM and started anew in turn under load.

As a program, with the variables that ./test sets:
    python -m faults.rolling [--jobs 60000] [--workers 20] [--rounds 2]
It prints what each restart was and what clients saw of all: how many tries failed and were made again, as the documents tell
clients to, and what was left of that.
"""

import argparse
import os
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from conftest import broker_maker, fresh_database, open_directory
from faults.checker import History
from faults.history import read
from faults.load import Processes
from faults.run import Run

LEASE = 20.0


@dataclass
class Outcome:
    """What a run came to."""

    report: object
    restarts: list = field(default_factory=list)  # (replica, its exit code, seconds to its end, seconds until ready again)
    retried: Counter = field(default_factory=Counter)  # tries that failed, by call, code and told outcome
    totals: dict = field(default_factory=dict)
    took: float = 0.0

    def table(self):
        """For people."""
        rows = ["| restart | replica | exit code | SIGTERM to end, s | start to ready, s |", "| --- | --- | --- | --- | --- |"]
        rows += [f"| {number} | {name} | {code} | {drained:.2f} | {ready:.2f} |"
                 for number, (name, code, drained, ready) in enumerate(self.restarts, 1)]
        rows += ["", "| what clients saw | |", "| --- | --- |"]
        rows += [f"| {name} | {value} |" for name, value in self.totals.items()]
        rows += ["", "| tries that failed and were made again | code | outcome | |", "| --- | --- | --- | --- |"]
        rows += [f"| {rpc} | {code} | {told} | {count} |" for (rpc, code, told), count in sorted(self.retried.items())]
        if not self.retried:
            rows.append("| none | | | 0 |")
        return "\n".join(rows)


def play(url, brokers, directory, jobs, workers, rounds):
    """The run: `rounds` times all of `brokers` in turn, while jobs are stored, leased, extended and acked."""
    begun, restarts = time.monotonic(), []
    steps = rounds * len(brokers) + 2
    with Run(directory, url, [broker.port for broker in brokers], kind=Processes, jobs=jobs, workers=workers, batch=50,
             in_flight=50, lease=LEASE, nacked=0.0, held=0.0, left_alone=0.0, pause=0.02, elsewhere=0.5) as run:
        try:
            for number in range(rounds * len(brokers)):
                run.after_grants((number + 1) * jobs // steps, within=120 + jobs / 100)
                broker = brokers[number % len(brokers)]
                with run.fault(f"SIGTERM of {broker.name}"):
                    restarts.append(restart(broker))
            report = run.verdict(within=120 + jobs / 100)
        finally:
            run.load.kill()
    history = History(read(directory))
    return Outcome(report, restarts, retried(history), totals(history, report), time.monotonic() - begun)


def restart(broker):
    """Ends it politely and starts it anew on the same ports."""
    begun = time.monotonic()
    broker.terminate()
    code = broker.process.wait(60)
    drained, begun = time.monotonic() - begun, time.monotonic()
    broker.start()
    return broker.name, code, drained, time.monotonic() - begun


def retried(history):
    """Tries of unary calls that failed."""
    failed = Counter()
    for operation in history.operations.values():
        if operation.outcome != "ok":
            silent = "not sent: could not connect" if "failed to connect" in operation.why else "no answer"
            told = {"fail": "not-applied", "info": "unknown"}[operation.outcome] if operation.told else silent
            failed[operation.rpc, operation.code or "no answer", told] += 1
    return failed


def totals(history, report):
    """What became of all jobs, leases and settlements."""
    counts = report.counts
    ends = Counter()  # of each token that was acked: its last answer
    for token in history.by_token:
        answers = [result["status"] for rpc, _, result in history.uses[token] if rpc == "ack" and result]
        if answers:
            ends[answers[-1] if "OK" not in answers else "OK"] += 1
        else:
            ends["none"] += 1
    ports = {line["op"]: line.get("port") for line in history.invoked}
    elsewhere = Counter()
    for token, grant in history.by_token.items():
        for rpc, operation, result in history.uses[token]:
            if result and result["status"] == "OK" and ports[operation.op] != grant["port"]:
                elsewhere[rpc] += 1
    instants = sorted(grant["t"] for grant in history.grants)
    gaps = [(later - earlier) / 1e6 for earlier, later in zip(instants, instants[1:])]
    return {
        "jobs enqueued": counts["ok"],
        "jobs lost": counts["lost"],
        "leases": counts["grants"],
        "redeliveries": counts["redelivered"],
        "leases with a second attempt": sum(grant["attempt"] > 1 for grant in history.grants),
        "acked OK": ends["OK"],
        "Acks that did not end OK": sum(ends.values()) - ends["OK"],
        "Extends OK through another replica than the lease's": elsewhere["extend"],
        "Acks OK through another replica than the lease's": elsewhere["ack"],
        "longest time without any delivery, s": f"{max(gaps, default=0.0):.2f}",
    }


def main():
    """Prints the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=60_000)
    parser.add_argument("--workers", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    server = os.environ["LEASEHOLD_TEST_POSTGRES_URL"], Path(os.environ["LEASEHOLD_TEST_POSTGRES_LOG"])
    with (fresh_database(server) as database, open_directory() as work,
          broker_maker(os.environ["LEASEHOLD_TEST_BROKER"], work) as make):
        three = [make(database.url, name=f"replica-{name}") for name in "abc"]
        outcome = play(database.url, three, work / "history", options.jobs, options.workers, options.rounds)
    print(f"three replicas, {options.workers} workers, {options.jobs} jobs, each replica restarted {options.rounds} times:"
          f" {outcome.took:.0f} s\n")
    print(outcome.table())
    return 0 if outcome.report.valid is True else 1


if __name__ == "__main__":
    sys.exit(main())
