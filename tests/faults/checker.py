"""Reads a history and says which promises it breaks.

The numbers I1 to I12 and I19 are the checker's list:
I1 nothing lost; I2 nothing invented or changed; I3 nothing of a failed enqueue; I4 one job per key; I5 tokens differ and
lease numbers rise; I6 no lease taken before its end; I7 one Ack that was OK; I8 no delivery after it; I9 a superseded
token decides nothing; I10 live or dead, never both or neither; I11 timely return; I12 batches whole; I19 every failure
says its outcome.

As a program: python -m faults.checker DIRECTORY
"""

import json
import sys
from bisect import bisect_left
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from faults.history import read

OK, GONE, LEASE_LOST = "OK", "GONE", "LEASE_LOST"
# Codes that a client library makes up by itself when it hears no answer.
SILENT = {"UNAVAILABLE", "CANCELLED", "DEADLINE_EXCEEDED"}


@dataclass
class Report:
    """Counts, what was broken (number of the invariant, sentence), and the verdict: True, False or "unknown"."""

    counts: Counter = field(default_factory=Counter)
    broken: list = field(default_factory=list)
    returns: dict = field(default_factory=dict)
    unknown_rate: dict = field(default_factory=dict)
    valid: object = "unknown"
    why: str = ""

    def breaks(self, invariant, count, sentence):
        """Notes a broken promise under the name of its count."""
        self.counts[count] += 1
        self.broken.append((invariant, sentence))

    def invariants(self):
        """Numbers of the broken invariants."""
        return sorted({invariant for invariant, _ in self.broken})

    def table(self):
        """For people."""
        rows = [f"{name:22} {self.counts.get(name, 0):>8}" for name in COUNTS]
        rows += [f"late-return {name:10} {value:>8.3f} s" for name, value in self.returns.items()]
        rows += [f"unknown-rate {rpc:9} {rate:>8.4f}" for rpc, rate in sorted(self.unknown_rate.items())]
        rows += [f"{invariant}: {sentence}" for invariant, sentence in self.broken[:20]]
        rows.append(f"valid: {self.valid}" + (f" ({self.why})" if self.why else ""))
        return "\n".join(rows)


COUNTS = ("attempted", "ok", "recovered", "failed", "grants", "acked", "redelivered", "by-expiry", "by-nack", "undone", "lost", "unexpected",
          "mutated", "acked-twice", "duplicate-grant", "stale-ack-accepted", "after-ack-grant", "early-reap", "late-return",
          "torn-batch", "doubled-key", "live-and-dead", "vanished", "untold-outcome")


@dataclass
class Operation:
    """An operation, its answer merged in; without one its outcome is unknown."""

    op: str
    rpc: str
    begin: int
    items: list
    end: float = float("inf")
    outcome: str = "info"
    code: str = ""
    told: bool = False
    why: str = ""
    results: list = field(default_factory=list)


def check(lines, reaper_interval=1.0, least=100, needs_fault=True, undone=False):
    """Checks a whole history. `least` enqueues must have been OK and, with `needs_fault`, a fault must have met an
    operation under way; else the verdict is "unknown": an empty test is not a pass. With `undone`, a crash of the database may
    undo a claim: the job may come again at once and under the same number, and nothing else is forgiven."""
    history = History(lines)
    history.undone = undone
    report = Report()
    history.count(report)
    for rule in (losses, inventions, keys, leases, settlements, polls, batches, outcomes):
        rule(history, report)
    returns(history, report, reaper_interval)
    if report.broken:
        report.valid = False
    elif report.counts["ok"] < least:
        report.why = f"only {report.counts['ok']} jobs were enqueued"
    elif needs_fault and not history.a_fault_met_an_operation():
        report.why = "no fault met an operation under way"
    elif history.final is None:
        report.why = "the final tables are missing"
    else:
        report.valid = True
    return report


class History:
    """The lines, put together."""

    def __init__(self, lines):
        self.operations, self.grants, self.faults, self.polls = {}, [], [], []
        self.final, self.clock = None, None
        self.invoked = [line for line in lines if line["kind"] == "invoke"]
        for line in lines:
            kind = line["kind"]
            if kind == "invoke":
                items = line["jobs"] if line["rpc"] == "enqueue" else line["tokens"]
                self.operations[line["op"]] = Operation(line["op"], line["rpc"], line["t"], items)
            elif kind == "grant":
                self.grants.append(line)
            elif kind == "nemesis":
                self.faults.append(line)
            elif kind == "poll":
                self.polls.append(line)
            elif kind == "final":
                self.final = line
            elif kind == "clock":
                self.clock = line
        for line in lines:
            if line["kind"] == "complete":
                operation = self.operations[line["op"]]
                operation.end, operation.outcome, operation.code = line["t"], line["outcome"], line["code"]
                operation.told, operation.results = line["told"], line["results"]
                operation.why = line.get("why", "")
        self.enqueues = [o for o in self.operations.values() if o.rpc == "enqueue"]
        self.by_job = defaultdict(list)
        for grant in self.grants:
            self.by_job[grant["job"]].append(grant)
        for grants in self.by_job.values():
            grants.sort(key=place)
        self.by_token = {grant["token"]: grant for grant in self.grants}
        # Every use of a token: (rpc, operation, result or None).
        self.uses = defaultdict(list)
        for operation in self.operations.values():
            if operation.rpc == "enqueue":
                continue
            for at, token in enumerate(operation.items):
                result = operation.results[at] if operation.outcome == "ok" else None
                self.uses[token].append((operation.rpc, operation, result))
        self.job_of_uid = {}
        for operation in self.enqueues:
            for at, item in enumerate(operation.items):
                if operation.outcome == "ok":
                    self.job_of_uid[item["uid"]] = operation.results[at]["job"]
        self.seen_uids = {grant["uid"] for grant in self.grants}
        if self.final:
            self.seen_uids |= {uid for _, uid in self.final["live"] + self.final["dead"]}

    def count(self, report):
        """What was tried and what came of it."""
        for operation in self.enqueues:
            size = len(operation.items)
            report.counts["attempted"] += size
            report.counts[{"ok": "ok", "fail": "failed", "info": "unknown"}[operation.outcome]] += size
            if operation.outcome == "info":
                report.counts["recovered"] += sum(item["uid"] in self.seen_uids for item in operation.items)
        report.counts["grants"] = len(self.grants)
        report.counts["redelivered"] = len(self.grants) - len(self.by_job)
        by_rpc = defaultdict(list)
        for operation in self.operations.values():
            by_rpc[operation.rpc].append(operation.outcome == "info")
        report.unknown_rate = {rpc: sum(infos) / len(infos) for rpc, infos in by_rpc.items()}

    def a_fault_met_an_operation(self):
        """Whether any fault overlapped any operation."""
        return any(o.begin <= fault["end"] and o.end >= fault["begin"]
                   for fault in self.faults for o in self.operations.values())

    def acked_ok(self, job):
        """(grant, operation) of each Ack of a lease of the job that was OK."""
        return [(grant, operation) for grant in self.by_job.get(job, ())
                for rpc, operation, result in self.uses[grant["token"]]
                if rpc == "ack" and result and result["status"] == OK]

    def perhaps_acked(self, job):
        """Whether an Ack of the job may have been applied unseen."""
        return any(rpc == "ack" and operation.outcome == "info" for grant in self.by_job.get(job, ())
                   for rpc, operation, _ in self.uses[grant["token"]])


def losses(history, report):
    """I1, with the final tables."""
    if history.final is None:
        return
    kept = {job for job, _ in history.final["live"] + history.final["dead"]}
    for job in {result["job"] for o in history.enqueues if o.outcome == "ok" for result in o.results}:
        if history.acked_ok(job):
            report.counts["acked"] += 1
        if not history.acked_ok(job) and not history.perhaps_acked(job) and job not in kept:
            report.breaks("I1", "lost", f"job {job} was enqueued and is neither acked nor kept")


def inventions(history, report):
    """I2 and I3. An enqueue that was repeated with its key is several operations with one uid."""
    enqueued = defaultdict(list)
    for operation in history.enqueues:
        for item in operation.items:
            enqueued[item["uid"]].append((operation, item))
    known = set(history.job_of_uid.values())
    for grant in history.grants:
        tries = enqueued.get(grant["uid"], [])
        expected = history.job_of_uid.get(grant["uid"])
        if not tries:
            count = "mutated" if grant["job"] in known else "unexpected"
            report.breaks("I2", count, f"job {grant['job']} was delivered as nobody enqueued it")
        elif all(operation.outcome == "fail" for operation, _ in tries):
            report.breaks("I3", "unexpected", f"job {grant['job']} of a failed enqueue was delivered")
        elif min(operation.begin for operation, _ in tries) > grant["t"]:
            report.breaks("I2", "unexpected", f"job {grant['job']} was delivered before it was enqueued")
        elif tries[0][1]["sha"] != grant["sha"] or expected not in (None, grant["job"]):
            report.breaks("I2", "mutated", f"job {grant['job']} was delivered changed")
    final = history.final or {"live": [], "dead": []}
    for job, uid in final["live"] + final["dead"]:
        if uid in enqueued and all(operation.outcome == "fail" for operation, _ in enqueued[uid]):
            report.breaks("I3", "unexpected", f"job {job} of a failed enqueue was stored")


def keys(history, report):
    """I4, all within one retention window."""
    jobs = defaultdict(set)
    for operation in history.enqueues:
        for at, item in enumerate(operation.items):
            if item.get("key") and operation.outcome == "ok":
                jobs[item["queue"], item["key"]].add(operation.results[at]["job"])
    queue_of = {item["uid"]: item["queue"] for o in history.enqueues for item in o.items}
    for grant in history.grants:
        if grant.get("key") and grant["uid"] in queue_of:
            jobs[queue_of[grant["uid"]], grant["key"]].add(grant["job"])
    for (queue, key), found in jobs.items():
        if len(found) > 1:
            report.breaks("I4", "doubled-key", f"key {key} of {queue} made jobs {sorted(found)}")


def place(grant):
    """Where a grant stands among those of its job. Numbers rise, but for claims that a crash undid."""
    return grant["number"], grant["granted"]


def leases(history, report):
    """I5 and I6."""
    tokens = Counter(grant["token"] for grant in history.grants)
    for token, times in tokens.items():
        if times > 1:
            job = history.by_token[token]["job"]
            report.breaks("I5", "duplicate-grant", f"one lease of job {job} was delivered {times} times")
    for job, grants in history.by_job.items():
        for earlier, later in zip(grants, grants[1:]):
            if earlier["token"] == later["token"]:
                continue
            if history.undone and later["number"] == earlier["number"]:
                report.counts["undone"] += 1
                continue
            if later["number"] <= earlier["number"] or later["granted"] < earlier["granted"]:
                report.breaks("I5", "duplicate-grant", f"lease numbers of job {job} do not rise: {later['number']}")
                continue
            nacked = any(rpc == "nack" and o.begin <= later["t"] for rpc, o, _ in history.uses[earlier["token"]])
            if nacked:
                report.counts["by-nack"] += 1
                continue
            end = max([earlier["expires"]] + [result["expires"] for rpc, o, result in history.uses[earlier["token"]]
                                              if rpc == "extend" and result and result["status"] == OK
                                              and result.get("expires")])
            if later["granted"] < end:
                early = (end - later["granted"]) / 1e6
                report.breaks("I6", "early-reap", f"job {job} was leased again {early:.3f} s before its lease ended")
            else:
                report.counts["by-expiry"] += 1


def settlements(history, report):
    """I7, I8 and I9."""
    for job, grants in history.by_job.items():
        acked = history.acked_ok(job)
        if len(acked) > 1:
            report.breaks("I7", "acked-twice", f"{len(acked)} Acks of job {job} were OK")
        for grant, operation in acked:
            for later in (g for g in grants if place(g) > place(grant) and g["t"] > operation.end):
                report.breaks("I8", "after-ack-grant", f"job {job} came back as lease {later['number']} after its Ack")
        for grant in grants:
            newer = [g["t"] for g in grants if place(g) > place(grant)]
            for rpc, operation, result in history.uses[grant["token"]]:
                if newer and result and result["status"] == OK and operation.begin > min(newer):
                    report.breaks("I9", "stale-ack-accepted", f"{rpc} of job {job} with a superseded lease was OK")


def polls(history, report):
    """I10. A job is due to be there once its enqueue was OK, until an Ack of it begins."""
    first_ack = {}
    for grant in history.grants:
        begins = [o.begin for rpc, o, _ in history.uses[grant["token"]] if rpc == "ack"]
        if begins:
            first_ack[grant["job"]] = min([first_ack.get(grant["job"], float("inf")), *begins])
    stored = {}
    for operation in history.enqueues:
        if operation.outcome == "ok":
            for result in operation.results:
                stored[result["job"]] = min(operation.end, stored.get(result["job"], float("inf")))
    final = [{**history.final, "begin": float("inf"), "end": float("inf"),
              "live": [j for j, _ in history.final["live"]],
              "dead": [j for j, _ in history.final["dead"]]}] if history.final else []
    for poll in history.polls + final:
        live, dead = set(poll["live"]), set(poll["dead"])
        for job in live & dead:
            report.breaks("I10", "live-and-dead", f"job {job} is both live and dead")
        if poll in final:
            continue  # what is missing there is I1's
        for job, since in stored.items():
            if since < poll["begin"] and first_ack.get(job, float("inf")) > poll["end"] and job not in live | dead:
                report.breaks("I10", "vanished", f"job {job} is neither live nor dead")


def batches(history, report):
    """I12, for enqueues whose outcome is unknown; the others are held by I1 and I3."""
    if history.final is None:
        return
    perhaps_seen = history.seen_uids
    for operation in history.enqueues:
        if operation.outcome == "info" and len(operation.items) > 1:
            seen = sum(item["uid"] in perhaps_seen for item in operation.items)
            if 0 < seen < len(operation.items):
                report.breaks("I12", "torn-batch", f"{seen} of {len(operation.items)} jobs of {operation.op} are there")


def outcomes(history, report):
    """I19: a failure that the broker itself answered carries its outcome."""
    for operation in history.operations.values():
        if operation.outcome != "ok" and operation.code and not operation.told and operation.code not in SILENT:
            report.breaks("I19", "untold-outcome", f"{operation.rpc} {operation.op} failed {operation.code}, outcome untold")


def returns(history, report, reaper_interval):
    """I11: how long after its lease's end a job came back, outside of faults. Ready again, it stands behind the jobs that
    were ready before it: while such are still being delivered, a wait says nothing about the reaper."""
    if history.clock is None:
        return
    offset = history.clock["t"] - history.clock["database"]
    fresh = sorted((grant["granted"], grant["due"]) for grant in history.grants if grant["number"] == 1)
    late = []
    for job, grants in history.by_job.items():
        for earlier, later in zip(grants, grants[1:]):
            settled = [o for rpc, o, _ in history.uses[earlier["token"]] if rpc in ("nack", "extend")]
            if settled or later["number"] != earlier["number"] + 1:
                continue
            begin, end = earlier["expires"] + offset, later["granted"] + offset
            if any(fault["begin"] - 2e6 <= end and fault["end"] + 5e6 >= begin for fault in history.faults):
                continue
            wait = (end - begin) / 1e6
            late.append(wait)
            deadline = earlier["expires"] + round((reaper_interval + 1.0) * 1e6)
            between = fresh[bisect_left(fresh, (deadline, 0)):bisect_left(fresh, (later["granted"], 0))]
            if later["granted"] > deadline and not any(due < deadline for _, due in between):
                report.breaks("I11", "late-return", f"job {job} came back {wait:.3f} s after its lease ended")
    late.sort()
    if late:
        report.returns = {"p50": late[len(late) // 2], "p99": late[int(len(late) * 0.99)], "max": late[-1]}


def main():
    """Checks the history in a directory."""
    report = check(read(sys.argv[1]))
    print(report.table())
    if "--json" in sys.argv:
        print(json.dumps(report.counts))
    return 0 if report.valid is True else 1


if __name__ == "__main__":
    sys.exit(main())
