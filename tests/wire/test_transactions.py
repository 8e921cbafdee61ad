"""docs/transactions.md holds: its snippets are run from the page itself, and its promises are tried."""

import os
import random
import re
import subprocess
import threading
import time
import types
import uuid
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from harness import stubs
from harness.calls import Stream, ack, enqueue, eventually, extend, job

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "transactions.md").read_text()
assert stubs.pb, "importing it makes leasehold.v1 importable, as the page's snippets need"


def blocks():
    """The page's fenced blocks by the name in their first line."""
    found = {}
    for text in re.findall(r"^```(?:sql|python)\n(.*?)^```$", PAGE, re.M | re.S):
        name = re.match(r"(?:--|#) ([\w.]+)", text).group(1)
        assert name not in found
        found[name] = text
    return found


BLOCKS = blocks()


def module(name):
    """A Python snippet, loaded."""
    loaded = types.ModuleType(name.removesuffix(".py"))
    exec(compile(BLOCKS[name], f"docs/transactions.md:{name}", "exec"), loaded.__dict__)
    return loaded


def psql(url, name, **variables):
    """Runs a psql snippet."""
    settings = [f"--set={key}={value}" for key, value in {"ON_ERROR_STOP": 1, **variables}.items()]
    command = [Path(os.environ["LEASEHOLD_TEST_POSTGRES_BIN"]) / "psql", "--no-psqlrc", "--quiet", *settings, url]
    return subprocess.run(command, input=BLOCKS[name], text=True, capture_output=True, timeout=30, check=False)


@pytest.fixture
def shop(postgres, brokers):
    """A broker on a database with the page's tables."""
    broker = brokers(postgres.url)
    with postgres.connect() as session:
        session.execute(BLOCKS["tables"])
    broker.database = postgres
    return broker


def test_every_snippet_of_the_page_is_run_by_a_test():
    own = Path(__file__).read_text()
    assert len(BLOCKS) == 6
    for name in BLOCKS:
        assert f'"{name}"' in own, name


def test_an_order_and_its_job_are_stored_together_and_delivered_in_order(shop):
    done = psql(shop.database.url, "place_order.sql", order=1, customer="ada")
    assert done.returncode == 0, done.stderr
    producer = module("producer.py")
    with shop.database.connect() as session:
        ids = [producer.place_order(session, order, "ada") for order in (2, 3)]
    committed = time.monotonic()
    stream = Stream(shop.stub(), "receipts")
    leased = []
    for _ in range(3):
        leased += stream.jobs(1)
        assert ack(shop.stub(), leased[-1].lease_token) == ["OK"]
    assert [one.payload for one in leased] == [b"1", b"2", b"3"]
    assert [int(one.job_id) for one in leased[1:]] == ids
    assert {one.ordering_key for one in leased} == {"ada"}
    assert time.monotonic() - committed < 4, "within the polling interval"


def test_an_order_that_is_rolled_back_leaves_no_job(shop):
    producer = module("producer.py")
    with shop.database.connect() as session:
        producer.place_order(session, 7, "ada")
        with pytest.raises(psycopg.errors.UniqueViolation):
            producer.place_order(session, 7, "ada")
        with pytest.raises(ZeroDivisionError), session.transaction():
            producer.place_order(session, 8, "ada")
            raise ZeroDivisionError
    stream = Stream(shop.stub(), "receipts")
    only = stream.jobs(1)[0]
    assert only.payload == b"7"
    assert ack(shop.stub(), only.lease_token) == ["OK"]
    stream.quiet(2.5)


def test_an_open_transaction_delays_nobody_and_its_job_comes_after_its_commit(shop):
    producer = module("producer.py")
    with shop.database.connect() as session, session.transaction():
        producer.place_order(session, 1, "ada")
        enqueue(shop.stub(), job("receipts", b"2", ordering_key="ada"), job("receipts", b"3", ordering_key="bob"))
        stream = Stream(shop.stub(), "receipts")
        others = stream.jobs(2, within=3)
        assert {one.payload for one in others} == {b"2", b"3"}
        assert ack(shop.stub(), *[one.lease_token for one in others]) == ["OK", "OK"]
        stream.quiet(1.5)
    assert stream.jobs(1, within=3)[0].payload == b"1"


def test_the_effect_and_the_end_of_its_job_are_stored_together(shop):
    worker, stub = module("worker.py"), shop.stub()
    enqueue(stub, *[job("receipts", str(order).encode()) for order in (1, 2, 3)])
    stream = Stream(stub, "receipts", in_flight=1)
    with shop.database.connect() as session:
        first = stream.jobs(1)[0]
        assert worker.send_receipt(session, stub, first)
        acked = time.monotonic()
        second = stream.jobs(1)[0]
        assert time.monotonic() - acked < 0.8, "the plain Ack gave the credit back at once"
    done = psql(shop.database.url, "send_receipt.sql", order=2, lease_token=second.lease_token)
    assert done.returncode == 0, done.stderr
    assert ack(stub, first.lease_token, second.lease_token) == ["GONE", "GONE"]
    again = psql(shop.database.url, "send_receipt.sql", order=99, lease_token=second.lease_token)
    assert again.returncode != 0 and "lease is lost" in again.stderr
    stream.jobs(1)
    assert shop.database.all("select order_id from receipts order by 1") == [(1,), (2,)]


def test_a_rolled_back_ack_leaves_the_job_leased(shop):
    stub = shop.stub()
    enqueue(stub, job("receipts", b"1"))
    leased = Stream(stub, "receipts").jobs(1)[0]
    with shop.database.connect() as session:
        with pytest.raises(ZeroDivisionError), session.transaction():
            session.execute("select leasehold.ack_or_fail(%s)", [leased.lease_token])
            raise ZeroDivisionError
    assert extend(stub, leased.lease_token)[0].status == stubs.pb.SETTLE_STATUS_OK
    assert ack(stub, leased.lease_token) == ["OK"]


def test_calls_about_a_job_in_an_open_transaction_are_busy_and_its_lease_may_pass(shop):
    stub = shop.stub()
    enqueue(stub, job("receipts", b"1"))
    stream = Stream(stub, "receipts", lease=1)
    leased = stream.jobs(1)[0]
    with shop.database.connect() as session, session.transaction():
        session.execute("select leasehold.ack_or_fail(%s)", [leased.lease_token])
        begun = time.monotonic()
        assert ack(stub, leased.lease_token) == ["BUSY"]
        assert time.monotonic() - begun < 2
        stream.quiet(2.5)  # the lease has long expired, and nobody else gets the job
    assert ack(stub, leased.lease_token) == ["GONE"]


def test_a_lost_lease_raises_and_writes_no_effect(shop):
    worker, stub = module("worker.py"), shop.stub()
    enqueue(stub, job("receipts", b"1"))
    stream = Stream(stub, "receipts", lease=1)
    late = stream.jobs(1)[0]
    current = stream.jobs(1, within=10)[0]
    assert current.job_id == late.job_id and current.lease_number > late.lease_number
    with shop.database.connect() as session:
        assert worker.send_receipt(session, stub, late) is False
        assert session.execute("select leasehold.ack(%s)", [late.lease_token]).fetchone() == (False,)
        with pytest.raises(psycopg.errors.InvalidParameterValue):
            session.execute("select leasehold.ack(%s)", [late.lease_token[:-1] + "!"])
    assert shop.database.one("select count(*) from receipts") == 0


def test_effects_happen_exactly_once_whatever_workers_do(shop):
    """I13: one effect per acked job and none for others, with workers that roll back, dawdle, vanish and repeat."""
    seed = int(os.environ.get("LEASEHOLD_TEST_SEED") or random.randrange(1 << 32))
    print(f"LEASEHOLD_TEST_SEED={seed}")
    worker, jobs = module("worker.py"), 1_000 if os.environ.get("LEASEHOLD_TEST_LONG") else 150
    with shop.database.connect() as session:
        # No primary key: a second effect would be seen.
        session.execute("alter table receipts drop constraint receipts_pkey")
        for order in range(jobs):
            session.execute("select leasehold.enqueue('receipts', %s, max_attempts => 1000)", [str(order).encode()])
    faults, wild, over = [], threading.Event(), threading.Event()

    def work(number):
        dice, stub = random.Random(seed + number), shop.stub()
        session = shop.database.connect()
        stream = Stream(stub, "receipts", in_flight=4, lease=1)
        while not over.is_set():
            try:
                leased = stream.jobs(1, within=0.2)[0]
            except AssertionError:
                continue
            throw = 0.9 if wild.is_set() else dice.random()
            try:
                if throw < 0.15:  # the effect, then a change of mind
                    with session.transaction():
                        worker.send_receipt(session, types.SimpleNamespace(Ack=lambda request: None), leased)
                        raise ZeroDivisionError
                elif throw < 0.3:  # vanishes in the middle
                    session.execute("begin")
                    session.execute("select leasehold.ack_or_fail(%s)", [leased.lease_token])
                    session.execute("insert into receipts (order_id) values (%s)", [int(leased.payload)])
                    session.close()
                    session = shop.database.connect()
                elif throw < 0.4:  # too late
                    time.sleep(dice.uniform(0.8, 1.6))
                    worker.send_receipt(session, stub, leased)
                else:
                    worker.send_receipt(session, stub, leased)
                    assert worker.send_receipt(session, stub, leased) is False, "repeated"
            except ZeroDivisionError:
                pass
            except psycopg.Error as error:
                if error.sqlstate != "LH002":
                    faults.append(error)
                    return
                session.execute("rollback")
            except AssertionError as error:
                faults.append(error)
                return
        session.close()

    workers = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in workers:
        thread.start()
    try:
        calm_at = time.monotonic() + 8
        eventually(lambda: time.monotonic() > calm_at or faults, within=30)
        wild.set()
        eventually(lambda: faults or shop.database.one("select count(*) from leasehold.job") == 0, within=90,
                   what="no job left")
    finally:
        over.set()
        for thread in workers:
            thread.join(20)
    assert not faults
    effects = [order for (order,) in shop.database.all("select order_id from receipts order by 1")]
    assert effects == list(range(jobs))
    assert shop.database.one("select count(*) from leasehold.dead_job") == 0


@pytest.fixture
def logins(server):
    """Login roles of this test; they are the whole server's, so their names are too."""
    url, made = server[0], []
    with psycopg.connect(url, autocommit=True) as admin:

        def make(*granted):
            name = f"login_{uuid.uuid4().hex[:12]}"
            admin.execute(sql.SQL("create role {} login password 'x'").format(sql.Identifier(name)))
            made.append(name)
            for role in granted:
                admin.execute(sql.SQL("grant {} to {}").format(sql.Identifier(role), sql.Identifier(name)))
            return name

        yield make
        for name in made:
            admin.execute(sql.SQL("drop role {}").format(sql.Identifier(name)))


def as_role(url, role):
    """The URL with another role in it."""
    return re.sub(r"//[^@]*@", f"//{role}:x@", url)


def refused(session, statement, *values):
    """Whether the database refuses the statement for want of a right."""
    try:
        session.execute(statement, values)
    except psycopg.errors.InsufficientPrivilege:
        return True
    return False


def test_roles_may_do_their_part_and_nothing_else(postgres, brokers, logins):
    brokers(postgres.url).end()  # its migrations are run
    with postgres.connect() as session:
        session.execute(BLOCKS["tables"])
        session.execute((ROOT / "docs" / "roles.sql").read_text())
        session.execute((ROOT / "docs" / "roles.sql").read_text())  # again changes nothing
        session.execute("grant insert, select on receipts to public")
    stub = brokers(as_role(postgres.url, logins("leasehold_broker")), migrate=False).stub()
    producer, worker, nobody = logins("leasehold_producer"), logins("leasehold_worker"), logins()

    enqueue_sql = "select leasehold.enqueue('receipts', '1', ordering_key => 'ada')"
    with psycopg.connect(as_role(postgres.url, producer), autocommit=True) as session:
        session.execute(enqueue_sql)
        assert refused(session, "select leasehold.ack('x')")
        assert refused(session, "select leasehold.ack_or_fail('x')")
    leased = Stream(stub, "receipts").jobs(1)[0]
    with psycopg.connect(as_role(postgres.url, worker), autocommit=True) as session:
        assert module("worker.py").send_receipt(session, stub, leased)
        assert refused(session, enqueue_sql)
    assert ack(stub, leased.lease_token) == ["GONE"]

    for role in (producer, worker, nobody):
        with psycopg.connect(as_role(postgres.url, role), autocommit=True) as session:
            for table in ("job", "dead_job", "arrival", "queue", "ordering_key", "idempotency_key", "schema_migration"):
                assert refused(session, f"select 1 from leasehold.{table}"), (role, table)
                assert refused(session, f"delete from leasehold.{table}"), (role, table)
            assert refused(session, "select leasehold.adopt_arrivals(0, 1)")
            assert refused(session, "create table leasehold.own ()")
    with psycopg.connect(as_role(postgres.url, nobody), autocommit=True) as session:
        assert refused(session, enqueue_sql)
    eventually(lambda: postgres.one("select count(*) from leasehold.arrival") == 0)
    assert postgres.one("select count(*) from leasehold.ordering_key") == 0, "the key went with its job"


def test_the_pages_own_role_gets_what_the_page_says(postgres, brokers, logins):
    brokers(postgres.url).end()
    with postgres.connect() as session:
        session.execute((ROOT / "docs" / "roles.sql").read_text())
        name = f"shop_{uuid.uuid4().hex[:8]}"
        session.execute(re.sub(r"\bshop\b", name, BLOCKS["roles"]))
        try:
            session.execute(f"set role {name}")
            session.execute("select leasehold.enqueue('receipts', '1')")
            assert refused(session, "select 1 from leasehold.job")
        finally:
            session.execute("reset role")
            session.execute(f"drop role {name}")
