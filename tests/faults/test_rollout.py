"""A roll-out whose migration has not run, fails, or is ahead of some replicas: the old ones serve, the new ones wait.

What a chart does about it is checked with the chart; this is what it relies on. The next version is played by this one: its
last migration is taken out of the list of those applied, so that a broker that starts finds the schema behind, and applying
it anew fails, since what it makes is there.
"""

import os
import subprocess
from urllib.parse import quote, urlsplit, urlunsplit

import psycopg
import pytest
from faults.checker import History
from faults.history import read
from faults.run import Run
from psycopg import sql

from harness.calls import Stream, ack, enqueue, eventually, extend, job, nack, status_name
from harness.stubs import admin_pb

LAST = "select max(number) from leasehold.schema_migration"
pytestmark = pytest.mark.timeout(240)


def migrate(program, url, *command):
    """`leasehold migrate`; its exit code and what it printed."""
    environment = {"LEASEHOLD_DATABASE_URL": url, "PATH": os.environ["PATH"]}
    ran = subprocess.run([program, "migrate", *command], env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                         text=True, timeout=120)
    return ran.returncode, ran.stdout + ran.stderr


def test_while_a_migration_is_missing_or_fails_old_replicas_serve_and_new_ones_wait(program, postgres, brokers, work):
    old = [brokers(postgres.url, name=f"old-{number}") for number in range(2)]
    last = postgres.one(LAST)
    with Run(work / "history", postgres.url, [broker.port for broker in old], jobs=3_000, pause=0.01, nacked=0.0, held=0.0,
             lease=30.0) as run:
        run.after_grants(200)
        with run.fault("a migration fails"):
            name = postgres.one("delete from leasehold.schema_migration where number = %s returning name", last)
            new = brokers(postgres.url, name="new", wait=False, migrate=False)
            eventually(lambda: "the schema is 1 migrations behind" in new.output(), within=30, what="the reason")
            assert "leasehold migrate up" in new.output(), "nor what to do"
            assert migrate(program, postgres.url, "status")[0] == 1
            code, said = migrate(program, postgres.url, "up")
            assert code not in (0, 64) and "panicked" not in said, said
            assert postgres.one(LAST) == last - 1, "a migration that failed counts as applied"
            run.after_grants(run.grants() + 200)
            assert new.process.poll() is None and new.get("/readyz")[0] == 503, "it neither serves nor ends"
            assert new.get("/livez")[0] == 200
            assert all(broker.is_ready() for broker in old)
            with postgres.connect() as session:
                session.execute("insert into leasehold.schema_migration (number, name) values (%s, %s)", (last, name))
        eventually(new.is_ready, within=30, what="readiness by itself once the migration is there")
        report = run.verdict()
    assert report.valid is True, report.table()
    failed = [one for one in History(read(work / "history")).operations.values() if one.outcome != "ok"]
    assert not failed, f"{len(failed)} calls failed, such as {failed[0]}"
    assert report.counts["redelivered"] == 0, report.table()


def test_every_call_works_on_the_next_versions_schema(postgres, brokers):
    """Migrations only add. A running replica goes on, and one that is restarted meanwhile, or is rolled back, starts."""
    broker = brokers(postgres.url)
    stub = broker.stub()
    enqueue(stub, job("next"))
    with postgres.connect() as session:
        for table in session.execute("select tablename from pg_tables where schemaname = 'leasehold'").fetchall():
            session.execute(sql.SQL("alter table leasehold.{} add column next_version text default 'x'")
                            .format(sql.Identifier(table[0])))
        session.execute("create table leasehold.next_version (number int primary key)")
        session.execute("insert into leasehold.schema_migration (number, name) values (9999, 'next')")

    def everything(stub, admin):
        enqueue(stub, *[job("next", idempotency_key=f"{broker.process.pid}-{n}", ordering_key=f"{broker.process.pid}.{n}") for n in range(4)])
        stream = Stream(stub, "next", in_flight=4)
        tokens = [one.lease_token for one in stream.jobs(4)]
        assert all(status_name(one.status) == "OK" for one in extend(stub, *tokens))
        assert ack(stub, *tokens[:3]) == ["OK"] * 3
        assert nack(stub, tokens[3], action="REJECT")[0].dead
        stream.call.cancel()
        counts = admin.GetQueue(admin_pb.GetQueueRequest(queue="next"), timeout=5).queue.counts
        assert counts.dead.value >= 1
        admin.ListJobs(admin_pb.ListJobsRequest(queue="next"), timeout=5)
        admin.ListDeadJobs(admin_pb.ListDeadJobsRequest(queue="next"), timeout=5)
        admin.ListConsumers(admin_pb.ListConsumersRequest(), timeout=5)
        list(admin.RedriveDeadJobs(admin_pb.RedriveDeadJobsRequest(of_queue=admin_pb.DeadJobsOfQueue(queue="next")), timeout=10))
        list(admin.PurgeQueue(admin_pb.PurgeQueueRequest(queue="next", states=[1]), timeout=10))

    everything(stub, broker.admin())
    broker.hang_up()
    broker.terminate()
    assert broker.process.wait(30) == 0
    broker.migrate = False
    broker.start()
    everything(broker.stub(), broker.admin())


def test_any_character_of_a_password_works_in_the_url(program, postgres, brokers):
    password = "@:/?#%& p\u00e4ss 100%25"
    parts = urlsplit(postgres.url)
    role = f"role_{postgres.name}"
    with postgres.connect() as session:
        session.execute(sql.SQL("create role {} login password {}").format(sql.Identifier(role), sql.Literal(password)))
        session.execute(sql.SQL("grant all on database {} to {}").format(sql.Identifier(postgres.name), sql.Identifier(role)))
    try:
        url = urlunsplit(parts._replace(netloc=f"{role}:{quote(password, safe='')}@{parts.hostname}:{parts.port}"))
        code, said = migrate(program, url, "up")
        assert code == 0, said
        broker = brokers(url, migrate=False)
        assert len(enqueue(broker.stub(), job())) == 1
        assert password not in broker.output() and quote(password, safe="") not in broker.output()
        broker.end()
    finally:
        with psycopg.connect(postgres.url, autocommit=True) as session:
            session.execute(sql.SQL("drop owned by {} cascade").format(sql.Identifier(role)))
            session.execute(sql.SQL("drop role {}").format(sql.Identifier(role)))
