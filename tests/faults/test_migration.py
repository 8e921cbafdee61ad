"""The newest migrations under load: from the last released schema on, while that version's replicas go on at 200 calls a second.

There is no binary of that version here, so its replicas are played: the statements that it sends, as they were (in released/), prepared,
with the time-out for locks that its sessions have. The migration and the replica that waits for it are real.
"""

import threading
import time
import uuid
from collections import Counter
from pathlib import Path

import psycopg
import pytest
from faults.test_rollout import migrate

from harness.calls import Stream, ack, enqueue, eventually, job

ROOT = Path(__file__).resolve().parents[2]
MIGRATIONS = ROOT / "migrations/postgres"
RELEASED = ["0001_schema", "0002_functions", "0003_sql_api"]
# In the order of src/store/postgres/migration.rs.
FUNCTIONS = ["keys", "enqueue", "settle", "upkeep"]
STATEMENTS = {path.stem: path.read_text() for path in (Path(__file__).parent / "released").glob("*.sql")}
CALLS_A_SECOND, SESSIONS, LOCK_TIMEOUT = 200, 4, 2.0
# What that version answers for a row that another session's statement has locked in passing, and for how long it asks again.
DONE, BUSY, BUSY_FOR = 1, 4, 1.0
pytestmark = pytest.mark.timeout(240)


def set_up(database, jobs):
    """The released schema, with so many jobs and as many dead ones, so that indexes take a while."""
    with database.connect(autocommit=False) as session:
        for number, name in enumerate(RELEASED, 1):
            path = MIGRATIONS / name
            files = [path / f"{part}.sql" for part in FUNCTIONS] if path.is_dir() else [path.with_suffix(".sql")]
            for file in files:
                session.execute(file.read_text())
            session.execute("insert into leasehold.schema_migration (number, name) values (%s, %s)", (number, name[5:]))
        session.execute("insert into leasehold.queue (name) values ('moving'), ('still')")
        session.execute("""insert into leasehold.job (queue_id, enqueued_at, available_at, ready_at, max_attempts, priority, payload)
                           select 2, now(), now(), now(), 20, 4, 'still' from generate_series(1, %s)""", (jobs,))


class Replica(threading.Thread):
    """One session of a replica of the released version: enqueue, claim, extend, ack, round and round, at its share of the pace."""

    def __init__(self, url, ended):
        super().__init__(daemon=True)
        self.url, self.ended = url, ended
        self.stored, self.acked, self.failed = [], [], []
        self.calls, self.longest = Counter(), 0.0

    def run(self):
        options = f"-c lock_timeout={int(LOCK_TIMEOUT * 1000)}ms"
        with psycopg.connect(self.url, autocommit=True, options=options, cursor_factory=psycopg.RawCursor) as session:
            due = time.monotonic()
            while not self.ended.is_set():
                for step in self.round(session):
                    due = max(due + SESSIONS / CALLS_A_SECOND, time.monotonic() - 1.0)
                    self.ended.wait(max(0.0, due - time.monotonic()))
                    try:
                        step()
                    except (psycopg.Error, AssertionError) as error:
                        self.failed.append(f"{type(error).__name__}: {error}")

    def round(self, session):
        """The calls of one job's life, one after the other; a claim may get another's job."""
        taken = []

        def call(name, *values):
            begun = time.monotonic()
            rows = session.execute(STATEMENTS[name], values, prepare=True).fetchall()
            self.calls[name] += 1
            self.longest = max(self.longest, time.monotonic() - begun)
            return rows

        def store():
            ((ids, _, _),) = call("enqueue", [1], [b"moving"], [""], [None], [4], [None], [None], [20], [None], [None])
            self.stored.extend(ids)

        def claim():
            rows = call("claim", 1, ["-infinity"] * 10, [str(uuid.uuid4())], [60_000_000], 1)
            taken.extend((row[0], str(row[1])) for row in rows)

        def until_done(name, *values):
            give_up = time.monotonic() + BUSY_FOR
            while True:
                (((outcome,), *_),) = call(name, *values)
                if outcome != BUSY or time.monotonic() > give_up:
                    assert outcome == DONE, f"a lease was lost: {name} said {outcome}"
                    return
                self.ended.wait(0.01)

        def extend():
            for id_, lease in taken:
                until_done("extend", [id_], [lease], [60_000_000])

        def settle():
            for id_, lease in taken:
                until_done("ack", [id_], [lease], False)
                self.acked.append(id_)

        return store, claim, extend, settle


def calls(replicas):
    """How many calls they made."""
    return sum(sum(one.calls.values()) for one in replicas)


def test_a_migration_under_200_calls_a_second_fails_none_and_loses_nothing(program, postgres, brokers):
    set_up(postgres, 50_000)
    ended = threading.Event()
    old = [Replica(postgres.url, ended) for _ in range(SESSIONS)]
    for one in old:
        one.start()

    def after(more):
        until = calls(old) + more
        eventually(lambda: calls(old) >= until or any(one.failed for one in old), within=60, what=f"{more} more calls")

    try:
        after(200)
        new = brokers(postgres.url, name="new", wait=False, migrate=False)
        eventually(lambda: "migrations behind" in new.output(), within=60, what="the new replica's reason to wait")
        # Somebody who has read the table, such as a backup, stands in the way: the migration gives up before those who wait behind it do.
        with postgres.connect(autocommit=False) as reader:
            reader.execute("select count(*) from leasehold.job where id = 0")
            code, said = migrate(program, postgres.url, "up")
            assert code == 1 and "nothing of it is applied; run it again" in " ".join(said.split()), said
            assert postgres.one("select max(number) from leasehold.schema_migration") == len(RELEASED), said
            reader.rollback()
        after(200)
        code, said = migrate(program, postgres.url, "up")
        assert code == 0 and "0004" in said, said
        eventually(new.is_ready, within=60, what="the new replica's readiness")
        after(400)
        enqueue(new.stub(), *[job("moving") for _ in range(20)])
        after(200)
    finally:
        ended.set()
        for one in old:
            one.join(60)
    assert not any(one.is_alive() for one in old)
    failed = [why for one in old for why in one.failed]
    assert not failed, f"{len(failed)} calls failed, such as {failed[0]}"
    print(f"{calls(old)} calls, the longest took {max(one.longest for one in old):.2f} s")

    stored, acked = [id_ for one in old for id_ in one.stored], [id_ for one in old for id_ in one.acked]
    assert len(acked) == len(set(acked)), "a job was done twice"
    left = postgres.one("select count(*) from leasehold.job where queue_id = 1")
    assert len(stored) + 20 == len(acked) + left, "a job was lost"
    if left:
        stream = Stream(new.stub(), "moving", in_flight=left)
        tokens = [one.lease_token for one in stream.jobs(left)]
        assert ack(new.stub(), *tokens) == ["OK"] * left, "what the old replicas left is the new one's"
        stream.call.cancel()
    assert postgres.one("select count(*) from leasehold.job") == 50_000
