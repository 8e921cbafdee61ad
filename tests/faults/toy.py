"""A broker of a hundred lines in virtual time, with bugs that can be switched on, to check the checker.

It writes the history that clients of such a broker would write: producers, workers that now and then outlast their lease
or nack, a crash in the middle. Without a bug it keeps every promise that the checker knows.
"""

import random

from faults.history import digest

LEASE, REAPER = 2_000_000, 500_000
BUGS = (
    "ack without token compare",
    "claim sent before its commit",
    "retry that drops a job",
    "reaper before the lease's end",
    "enqueue that answers before its commit",
    "payload of another job",
    "key that makes two jobs",
    "batch half stored",
    "dead job kept alive",
    "lease number that starts again",
    "ack answered but not applied",
    "reaper that sleeps",
    "failure without its outcome",
    "job of a failed enqueue stored",
)


class Toy:
    """One run. `bug` is one of BUGS or None."""

    def __init__(self, seed, bug=None):
        self.random, self.bug = random.Random(seed), bug
        self.t, self.lines, self.ops = 0, [], 0
        self.jobs, self.dead, self.next_job = {}, {}, 1
        self.working = []  # (when, worker's token, job)

    def run(self, jobs=400):
        """The whole history."""
        self.lines.append({"kind": "clock", "t": 0, "database": 0})
        crash = self.random.randrange(1_000_000, 3_000_000)
        uid, crashed = 0, False
        while uid < jobs or self.working or self.leased():
            self.t += 10_000
            if uid < jobs and self.t % 30_000 == 0:
                uid += self.enqueue(uid)
            if not crashed and self.t > crash:
                crashed = True
                self.crash()
            self.reap()
            self.claim()
            self.work()
            if self.t % 200_000 == 0:
                self.poll()
        self.lines.append({"kind": "final", "live": [[j, row["uid"]] for j, row in self.jobs.items()],
                           "dead": [[j, uid] for j, uid in self.dead.items()]})
        return self.lines

    def leased(self):
        return any(row["token"] for row in self.jobs.values())

    def operation(self, rpc, items, outcome="ok", results=(), code="OK", told=True):
        self.ops += 1
        op, field = f"toy-{self.ops}", "jobs" if rpc == "enqueue" else "tokens"
        self.lines.append({"kind": "invoke", "op": op, "rpc": rpc, "t": self.t, field: items})
        self.lines.append({"kind": "complete", "op": op, "t": self.t + 500, "outcome": outcome, "code": code, "told": told,
                           "results": list(results)})

    def store(self, item):
        job, self.next_job = self.next_job, self.next_job + 1
        self.jobs[job] = {"uid": item["uid"], "sha": item["sha"], "key": item["key"], "ready": self.t, "token": None,
                          "number": 0, "attempt": 0, "expires": 0}
        return job

    def enqueue(self, uid):
        size = self.random.choice((1, 1, 5))
        items = [{"uid": f"u{n}", "sha": digest(b"%d" % n), "queue": "q", "key": f"k{n}"} for n in range(uid, uid + size)]
        fate = self.random.random()
        if fate < 0.05:
            untold = self.bug == "failure without its outcome"
            self.operation("enqueue", items, "fail", code="ABORTED", told=not untold)
            if self.bug == "job of a failed enqueue stored":
                self.store(items[0])
        elif fate < 0.10:
            self.operation("enqueue", items, "info", code="UNAVAILABLE", told=False)
            if self.random.random() < 0.5:
                kept = items[: size // 2 + 1] if self.bug == "batch half stored" else items
                for item in kept:
                    self.store(item)
        else:
            results = [{"job": self.store(item), "duplicate": False} for item in items]
            self.operation("enqueue", items, results=results)
            if self.bug == "enqueue that answers before its commit" and self.random.random() < 0.02:
                del self.jobs[results[0]["job"]]
            if self.random.random() < 0.1:
                again = results[0]["job"]
                if self.bug == "key that makes two jobs":
                    again = self.store(items[0])
                self.operation("enqueue", items[:1], results=[{"job": again, "duplicate": True}])
        return size

    def crash(self):
        self.lines.append({"kind": "nemesis", "what": "crash", "begin": self.t - 20_000, "end": self.t + 20_000})
        if self.bug == "claim sent before its commit":
            for row in self.jobs.values():
                if row["token"]:
                    row.update(token=None, number=row["number"] - 1, attempt=row["attempt"] - 1)

    def reap(self):
        if self.t % REAPER:
            return
        if self.bug == "reaper that sleeps" and self.t % (REAPER * 20):
            return
        early = 400_000 if self.bug == "reaper before the lease's end" else 0
        for row in self.jobs.values():
            if row["token"] and row["expires"] - early <= self.t:
                row.update(token=None, ready=self.t)

    def claim(self):
        for job, row in list(self.jobs.items()):
            if row["token"] or row["ready"] > self.t or len(self.working) >= 500:
                continue
            if self.bug == "lease number that starts again" and row["attempt"] == 2:
                row["number"] = 0
            row["number"] += 1
            row["attempt"] += 1
            row.update(token=f"t{self.random.getrandbits(64):x}", expires=self.t + LEASE)
            uid, sha = row["uid"], row["sha"]
            if self.bug == "payload of another job" and self.random.random() < 0.05:
                sha = digest(b"else")
            self.lines.append({"kind": "grant", "t": self.t + 300, "job": job, "token": row["token"],
                               "number": row["number"], "attempt": row["attempt"], "granted": self.t,
                               "expires": row["expires"], "due": row["ready"], "uid": uid, "sha": sha, "key": row["key"]})
            slow = self.random.random() < 0.1
            self.working.append((self.t + (LEASE + 1_500_000 if slow else 60_000), row["token"], job))

    def work(self):
        for entry in [w for w in self.working if w[0] <= self.t]:
            self.working.remove(entry)
            _, token, job = entry
            row = self.jobs.get(job)
            holds = row is not None and (row["token"] == token or self.bug == "ack without token compare")
            status = "OK" if holds else "LEASE_LOST" if row or job in self.dead else "GONE"
            if self.random.random() < 0.1:
                self.nack(token, job, row, status)
            elif self.random.random() < 0.03:
                if holds and self.random.random() < 0.5:
                    del self.jobs[job]
                self.operation("ack", [token], "info", code="UNAVAILABLE", told=False)
            else:
                if holds and not (self.bug == "ack answered but not applied" and self.random.random() < 0.1):
                    del self.jobs[job]
                self.operation("ack", [token], results=[{"status": status}])

    def nack(self, token, job, row, status):
        if status == "OK":
            if self.bug == "retry that drops a job" and self.random.random() < 0.2:
                del self.jobs[job]
            elif row["attempt"] >= 4 or self.random.random() < 0.2:
                self.dead[job] = row["uid"]
                if self.bug != "dead job kept alive":
                    del self.jobs[job]
                else:
                    row.update(token=None, ready=self.t + 10**12)
            else:
                row.update(token=None, ready=self.t + 100_000)
        self.operation("nack", [token], results=[{"status": status, "dead": job in self.dead}])

    def poll(self):
        self.lines.append({"kind": "poll", "begin": self.t, "end": self.t, "live": list(self.jobs), "dead": list(self.dead)})
