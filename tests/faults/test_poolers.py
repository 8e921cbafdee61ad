"""Poolers between broker and database that give each transaction whatever server session is free."""

import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness import LONG
from harness.calls import Stream, ack, enqueue, eventually, job
from harness.pooler import KEEPS_STATEMENTS, ROLE_SETTINGS, Pooler, version
from harness.sessions import Watcher


def needed(name):
    """An environment variable that `./test` sets."""
    assert os.environ.get(name), f"{name} is not set: run these tests by ./test faults"
    return os.environ[name]


@pytest.fixture
def pooled(postgres):
    """Makes poolers before the database, whose role may have what sessions would ask for."""
    made, url = [], postgres.url

    def make(program, settings_of_role=True, **settings):
        with postgres.connect() as admin:
            for name, value in ROLE_SETTINGS.items():
                clause = f"set {name} = '{value}'" if settings_of_role else f"reset {name}"
                admin.execute(f"alter role {admin.info.user} in database {postgres.name} {clause}")
        made.append(Pooler(program, url, **settings))
        return made[-1].through(postgres.name)

    yield make
    for pooler in made:
        pooler.end()


def packaged():
    """The system's own PgBouncer, of any version."""
    return shutil.which("pgbouncer") or "/usr/sbin/pgbouncer"


def newest():
    """One that keeps account of prepared statements."""
    program = needed("LEASEHOLD_TEST_PGBOUNCER")
    assert version(program) >= KEEPS_STATEMENTS
    return program


def refused(brokers, url, words):
    """A broker that never becomes ready, and says why."""
    broker = brokers(url, wait=False)
    said = eventually(lambda: all(word in broker.output() for word in words) and broker.output(), within=20, what=f"{words}")
    until = time.monotonic() + 2
    while time.monotonic() < until:
        assert not broker.is_ready() and broker.process.poll() is None
        time.sleep(0.05)
    assert '"level":"ERROR"' in said
    return broker


@pytest.mark.parametrize("pooler", [packaged, newest])
def test_a_pooler_without_prepared_statements_is_refused_with_what_to_do(pooled, brokers, pooler):
    program = pooler()
    off = {"max_prepared_statements": 0} if version(program) >= KEEPS_STATEMENTS else {}
    url = pooled(program, default_pool_size=2, **off)
    refused(brokers, url, ["loses prepared statements", "connect past it", "PgBouncer 1.21", "max_prepared_statements"])


@pytest.mark.parametrize("pooler", [packaged, newest])
def test_a_pooler_that_drops_or_refuses_settings_is_refused_with_what_to_do(pooled, brokers, pooler):
    program = pooler()
    keeps = {"max_prepared_statements": 100} if version(program) >= KEEPS_STATEMENTS else {}
    refused(brokers, pooled(program, ignore_startup_parameters="extra_float_digits", **keeps),
            ["08P01", "refuses what sessions ask for", "roles.sql"])
    if keeps:
        refused(brokers, pooled(program, settings_of_role=False, **keeps), ["planner settings", "roles.sql"])


def test_one_in_session_mode_is_fine_where_the_role_says_so(pooled, brokers, postgres):
    url = pooled(packaged(), pool_mode="session", default_pool_size=30)
    refused(brokers, url, ["loses prepared statements", "leasehold_broker.session"])
    with postgres.connect() as admin:
        admin.execute(f"alter role {admin.info.user} in database {postgres.name} set leasehold_broker.session = 'direct'")
    url = pooled(packaged(), pool_mode="session", default_pool_size=30)
    broker = brokers(url)
    stub = broker.stub()
    enqueue(stub, *[job("sessions", b"%d" % n) for n in range(100)])
    assert len({one.job_id for one in Stream(stub, "sessions", in_flight=100).jobs(100)}) == 100


@pytest.mark.timeout(180)
def test_behind_a_pooler_with_prepared_statements_all_works(pooled, brokers, postgres):
    """Failure case 22: three replicas start together on an empty database; jobs go round; nothing is lost."""
    url = pooled(newest(), max_prepared_statements=500)
    begun = time.monotonic()
    replicas = [brokers(url, name=f"pooled-{n}", wait=False, sampler_interval="200ms") for n in range(3)]
    for broker in replicas:
        broker.wait_ready(60)
    assert time.monotonic() - begun < 60
    migrations = postgres.all("select number from leasehold.schema_migration")
    assert len(migrations) == len(set(migrations)) >= 3
    stubs = [broker.stub() for broker in replicas]
    count = 20_000 if LONG else 3_000
    batch = 100

    def put(at):
        return enqueue(stubs[at % 3], *[job("pooled", b"%d" % n, ordering_key=f"k{n % 50}" if n % 3 == 0 else "")
                                        for n in range(at * batch, (at + 1) * batch)])

    streams = [Stream(stub, "pooled", in_flight=200, lease=60) for stub in stubs]
    done = set()

    def work(at):
        while len(done) < count:
            try:
                leased = streams[at].jobs(1, within=2)
            except AssertionError:
                continue
            leased += streams[at].kept
            streams[at].kept = []
            # Settled through another replica than the one that leased them.
            assert set(ack(stubs[(at + 1) % 3], *[one.lease_token for one in leased], timeout=30)) == {"OK"}
            done.update(one.job_id for one in leased)
        return True

    with ThreadPoolExecutor(6) as threads:
        workers = [threads.submit(work, at) for at in range(3)]
        stored = [one for ids in threads.map(put, range(count // batch)) for one in ids]
        assert all(worker.result(120) for worker in workers)
    assert set(stored) == done and len(stored) == count
    assert postgres.one("select count(*) from leasehold.job") == 0
    for stream in streams:
        stream.cancel()

    # Nothing can be heard, so what another replica does is found by polling.
    enqueue(stubs[1], job("later", b"first"))
    stream = Stream(stubs[0], "later")
    stream.jobs(1)
    waits = []
    for n in range(5):
        at = time.monotonic()
        enqueue(stubs[1], job("later", b"%d" % n))
        stream.jobs(1)
        waits.append(time.monotonic() - at)
    assert max(waits) < 2, waits
    for broker in replicas:
        assert "polling finds what others do" in broker.output()
    look = Watcher(replicas[0]).look()
    assert {one.application_name for one in look.sessions.values() if one.leasehold} <= {f"leasehold/pooled-{n}" for n in range(3)}
    for broker in replicas:
        broker.terminate()
    assert [broker.process.wait(40) for broker in replicas] == [0, 0, 0]
    eventually(lambda: postgres.one("select count(*) from pg_locks where locktype = 'advisory'") == 0, within=5, what="no lock")
    codes = [entry.text for entry in postgres.log_entries() if entry.level == "ERROR"]
    assert not codes, codes[:5]
    # The pooler tells the server by itself whose session it lends.
    untagged = [entry.statement[:200] for entry in postgres.statements() if entry.caller is None
                and entry.application.startswith("leasehold") and not entry.statement.startswith("SET application_name=")]
    assert not untagged, untagged[:5]
