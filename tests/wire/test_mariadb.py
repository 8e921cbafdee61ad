"""The broker on MariaDB: docs/transactions-mysql.md holds, every statement names its caller, and no setting of the server's
changes anything."""

import os
import re
import subprocess
import time
import types
import uuid
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pymysql
import pytest

from conftest import needed
from harness import stubs
from harness.calls import Stream, ack, enqueue, eventually, job
from harness.cluster import PASSWORD
from harness.mariadb import OWN_ROLE

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "transactions-mysql.md").read_text()
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
    exec(compile(BLOCKS[name], f"docs/transactions-mysql.md:{name}", "exec"), loaded.__dict__)
    return loaded


def script(session, name):
    """Runs a SQL snippet, statement by statement."""
    with session.cursor() as cursor:
        for statement in BLOCKS[name].split(";\n"):
            if statement.strip():
                cursor.execute(statement)


def client(database, name):
    """Runs a SQL snippet by the command line client."""
    port = urlsplit(needed("LEASEHOLD_TEST_MARIADB_URL")).port
    command = ["mariadb", "--no-defaults", "--host=127.0.0.1", f"--port={port}", f"--user={OWN_ROLE}", "--batch", database]
    return subprocess.run(command, input=BLOCKS[name], text=True, capture_output=True, timeout=30, check=False,
                          env={**os.environ, "MYSQL_PWD": PASSWORD})


@pytest.fixture
def shop(mariadb, brokers):
    """A broker on a database with the page's tables."""
    broker = brokers(mariadb.url)
    with mariadb.connect() as session:
        script(session, "tables")
    broker.database = mariadb
    return broker


def test_every_snippet_of_the_page_is_run_by_a_test():
    own = Path(__file__).read_text()
    assert len(BLOCKS) == 6
    for name in BLOCKS:
        assert f'"{name}"' in own, name


def test_an_order_and_its_job_are_stored_together_and_delivered_in_order(shop):
    done = client(shop.database.name, "place_order.sql")
    assert done.returncode == 0, done.stderr
    producer = module("producer.py")
    with shop.database.connect() as session:
        ids = [producer.place_order(session, order, "ada") for order in (2, 3)]
        with pytest.raises(pymysql.err.IntegrityError):
            producer.place_order(session, 3, "ada")
    committed = time.monotonic()
    stream = Stream(shop.stub(), "receipts")
    leased = []
    for _ in range(3):
        leased += stream.jobs(1)
        assert ack(shop.stub(), leased[-1].lease_token) == ["OK"]
    assert [one.payload for one in leased] == [b"1041", b"2", b"3"]
    assert [int(one.job_id) for one in leased[1:]] == ids
    assert {one.ordering_key for one in leased} == {"ada"}
    assert time.monotonic() - committed < 4, "within the polling interval"
    stream.quiet(1.5)


def test_an_open_transaction_delays_nobody_and_its_job_comes_after_its_commit(shop):
    with shop.database.connect() as session, session.cursor() as cursor:
        session.begin()
        cursor.execute("call leasehold_enqueue('receipts', '1', json_object('ordering_key', 'ada'), @job)")
        enqueue(shop.stub(), job("receipts", b"2", ordering_key="ada"), job("receipts", b"3", ordering_key="bob"))
        stream = Stream(shop.stub(), "receipts")
        others = stream.jobs(2, within=3)
        assert {one.payload for one in others} == {b"2", b"3"}
        assert ack(shop.stub(), *[one.lease_token for one in others]) == ["OK", "OK"]
        stream.quiet(1.5)
        session.commit()
    assert stream.jobs(1, within=3)[0].payload == b"1"


def test_the_effect_and_the_end_of_its_job_are_stored_together(shop):
    worker, stub = module("worker.py"), shop.stub()
    enqueue(stub, job("receipts", b"1"), job("receipts", b"2"))
    stream = Stream(stub, "receipts", in_flight=1)
    with shop.database.connect() as session:
        first = stream.jobs(1)[0]
        assert worker.send_receipt(session, stub, first)
        second = stream.jobs(1)[0]
        assert not worker.send_receipt(session, stub, first), "done already: the transaction cannot go on"
        assert shop.database.one("select count(*) from receipts") == 1
        with session.cursor() as cursor:
            cursor.execute("insert into receipts (order_id) values (2)")
        with pytest.raises(pymysql.err.IntegrityError):
            worker.send_receipt(session, stub, second)
    assert ack(stub, second.lease_token) == ["OK"], "the lease still stands: nothing was committed"


def test_a_lost_lease_locks_nothing_and_an_open_ack_keeps_nobody_waiting(shop):
    stub = shop.stub()
    enqueue(stub, *[job("receipts", b"%d" % n) for n in range(4)])
    stream = Stream(stub, "receipts", in_flight=4)
    leased = stream.jobs(4)
    assert ack(stub, leased[0].lease_token) == ["OK"]
    with shop.database.connect() as session, session.cursor() as cursor:
        session.begin()
        cursor.execute("call leasehold_ack(%s, @lost)", [leased[0].lease_token])
        cursor.execute("call leasehold_ack(%s, @acked)", [leased[1].lease_token])
        cursor.execute("select @lost, @acked")
        assert cursor.fetchone() == (0, 1)
        begun = time.monotonic()
        assert ack(stub, leased[2].lease_token) == ["OK"]
        assert time.monotonic() - begun < 0.9, "nothing waits for that transaction"
        assert ack(stub, leased[1].lease_token) == ["BUSY"]
        enqueue(stub, job("receipts", b"more"))
        assert stream.jobs(1)[0].payload == b"more", "claims go on"
        session.rollback()
    assert ack(stub, leased[1].lease_token) == ["OK"], "as if it had not been"


def test_the_procedures_refuse_another_isolation_level(shop):
    with shop.database.connect() as session, session.cursor() as cursor:
        for level in ("repeatable read", "serializable", "read uncommitted"):
            cursor.execute(f"set session transaction isolation level {level}")
            for call in ("leasehold_enqueue('q', 'x', null, @job)", "leasehold_ack('x', @acked)", "leasehold_ack_or_fail('x')"):
                with pytest.raises(pymysql.err.MySQLError) as refused:
                    cursor.execute(f"call {call}")
                assert refused.value.args[0] == 30001, (level, call)
        script(session, "session")
        cursor.execute("call leasehold_enqueue('q', 'x', null, @job)")


def test_a_service_needs_no_right_but_to_call(shop):
    with shop.database.connect() as session, session.cursor() as cursor:
        account = f"shop_{uuid.uuid4().hex[:8]}"
        for statement in BLOCKS["grants"].replace("shop@", f"{account}@").split(";\n"):
            if statement.strip():
                cursor.execute(statement)
        try:
            port = urlsplit(needed("LEASEHOLD_TEST_MARIADB_URL")).port
            with pymysql.connect(host="127.0.0.1", port=port, user=account, password="of your own",
                                 database=shop.database.name, autocommit=True) as service, service.cursor() as own:
                own.execute("set session transaction isolation level read committed")
                own.execute("call leasehold_enqueue('receipts', 'by a service', null, @job)")
                with pytest.raises(pymysql.err.MySQLError):
                    own.execute("select count(*) from leasehold_job")
        finally:
            cursor.execute(f"drop user {account}@'localhost'")
    assert Stream(shop.stub(), "receipts").jobs(1, within=5)[0].payload == b"by a service"


@pytest.mark.parametrize("options, field", [
    ("[]", "options"), ("{", "options"), ('{"nothing": 1}', "options"), ('{"priority": 10}', "priority"),
    ('{"priority": "4"}', "priority"), ('{"delay_seconds": -1}', "delay_seconds"),
    ('{"delay_seconds": 31536001}', "delay_seconds"), ('{"max_attempts": 0}', "max_attempts"),
    ('{"ordering_key": ""}', "ordering_key"), ('{"ordering_key": "a\\n"}', "ordering_key"),
    ('{"headers": {"a": 1}}', "headers"), ('{"headers": {"é": "x"}}', "headers"), ('{"headers": []}', "headers"),
])
def test_an_argument_that_breaks_a_rule_is_named(mariadb, brokers, options, field):
    brokers(mariadb.url)
    with mariadb.connect() as session, session.cursor() as cursor:
        with pytest.raises(pymysql.err.MySQLError) as refused:
            cursor.execute("call leasehold_enqueue('q', 'x', %s, @job)", [options])
    assert refused.value.args[0] == 30022
    assert refused.value.args[1].startswith(f"{field}: ")


def test_every_statement_names_its_caller(mariadb, brokers):
    broker = brokers(mariadb.url)
    stub = broker.stub()
    metadata = [("leasehold-caller", "checkout")]
    enqueue(stub, job("orders", b"1", ordering_key="k", idempotency_key="i"), job("orders", b"2"), metadata=metadata)
    stream = Stream(stub, "orders", metadata=metadata)
    leased = stream.jobs(2)
    assert ack(stub, *[one.lease_token for one in leased], metadata=metadata) == ["OK", "OK"]
    broker.terminate()
    seen = mariadb.statements()
    assert len(seen) > 40
    strangers = [text for _, _, text in seen if not text.startswith("/* conn_tag:")]
    assert not strangers, strangers[:5]
    # Several that need no answer in between go in one trip.
    of_checkout = [text for _, _, text in seen if text.startswith("/* conn_tag:checkout */ ")]
    statements = [statement for text in of_checkout for statement in re.split(r";\s+", text)]
    assert all(statement.startswith("/* conn_tag:checkout */ ") for statement in statements), statements
    for verb in ("begin", "commit", "insert into leasehold_job", "delete j"):
        assert any(statement.startswith(f"/* conn_tag:checkout */ {verb}") for statement in statements), verb
    assert not [text for _, _, text in seen if "set " in text.lower()[:4]], "the driver sends nothing of its own"


@contextmanager
def settings(session, **wanted):
    """Global settings of the server, put back afterwards."""
    with session.cursor() as cursor:
        before = {}
        for name, value in wanted.items():
            cursor.execute(f"select @@global.{name}")
            before[name] = cursor.fetchone()[0]
            cursor.execute(f"set global {name} = %s", [value])
        try:
            yield
        finally:
            for name, value in before.items():
                cursor.execute(f"set global {name} = %s", [value])


def test_a_server_that_may_lose_commits_is_refused_by_name(mariadb, brokers):
    with mariadb.connect() as session, settings(session, innodb_flush_log_at_trx_commit=2):
        broker = brokers(mariadb.url, wait=False)
        eventually(lambda: "innodb_flush_log_at_trx_commit = 2" in broker.log.read_text(), what="the refusal")
        assert not broker.is_ready()
    broker.wait_ready()


def test_unfriendly_settings_of_the_server_change_nothing(mariadb, brokers):
    with mariadb.connect() as session, session.cursor() as cursor:
        cursor.execute("select @@global.collation_server, @@global.time_zone, @@global.tx_isolation, @@global.autocommit,"
                       " @@global.completion_type")
        assert cursor.fetchone() == ("latin1_swedish_ci", "+05:30", "REPEATABLE-READ", 0, "CHAIN"), "the harness sees to it"
    broker = brokers(mariadb.url)
    stub = broker.stub()
    keys = ["k", "K", "k ", "é".encode().hex(), "k"]
    ids = enqueue(stub, *[job("q", key.encode(), idempotency_key=key) for key in keys])
    assert len(set(ids)) == 4 and ids[4] == ids[0], "keys are compared byte for byte"
    stream = Stream(stub, "q")
    leased = stream.jobs(4)
    now = time.time()
    for one in leased:
        assert abs(one.enqueued_at.ToNanoseconds() / 1e9 - now) < 60, "the time is UTC's"
    assert mariadb.one("select time_to_sec(timediff(max(enqueued_at_utc), utc_timestamp())) between -60 and 60"
                       " from leasehold_jobs") == 1, "as people see it too"


def test_unfriendly_settings_of_a_services_session_change_nothing(mariadb, brokers):
    stub = brokers(mariadb.url).stub()
    stream = Stream(stub, "q")
    stream.expect("opened")
    keys = ["k", "K", "k ", "k-", "K-"]
    with mariadb.connect() as session, session.cursor() as cursor:
        cursor.execute("set names utf8mb4 collate utf8mb4_general_ci")
        cursor.execute("set session time_zone = '-11:00', sql_mode = 'ANSI,PAD_CHAR_TO_FULL_LENGTH'")
        cursor.execute("select 'k' = 'K', now() < utc_timestamp() - interval 10 hour")
        assert cursor.fetchone() == (1, 1), "unfriendly they are"
        begun = time.time()
        for key in keys:
            options = f'{{"ordering_key": "{key}", "delay_seconds": 1.5}}'
            cursor.execute("call leasehold_enqueue('q', %s, %s, @job)", [key, options])
    leased = stream.jobs(len(keys))
    assert time.time() - begun >= 1.4, "not before its time"
    assert {one.payload.decode(): one.ordering_key for one in leased} == {key: key for key in keys}, "each a key of its own"
    for one in leased:
        assert abs(one.enqueued_at.ToNanoseconds() / 1e9 - begun) < 60
    with mariadb.connect() as session, session.cursor() as cursor:
        cursor.execute("set session time_zone = '+09:00'")
        for one in leased:
            cursor.execute("call leasehold_ack(%s, @acked)", [one.lease_token])
            cursor.execute("select @acked")
            assert cursor.fetchone()[0] == 1


def test_another_prefix_is_another_broker(mariadb, brokers):
    plain = brokers(mariadb.url)
    other = brokers(mariadb.url, database_table_prefix="jobs_")
    enqueue(plain.stub(), job("q", b"plain"))
    enqueue(other.stub(), job("q", b"other"))
    others = Stream(other.stub(), "q")
    assert others.jobs(1)[0].payload == b"other"
    assert Stream(plain.stub(), "q").jobs(1)[0].payload == b"plain"
    with mariadb.connect() as session, session.cursor() as cursor:
        cursor.execute("call jobs_enqueue('q', 'by a service', null, @job)")
    assert others.jobs(1, within=5)[0].payload == b"by a service"


def test_broken_connections_lose_no_job_and_leave_no_transaction(mariadb, brokers):
    broker = brokers(mariadb.url)
    stub = broker.stub()
    enqueue(stub, *[job("q", b"%d" % n) for n in range(50)])
    stream = Stream(stub, "q", in_flight=10)
    done = set()
    with mariadb.connect() as session, session.cursor() as cursor:
        for _ in range(5):
            for one in stream.jobs(5, within=20):
                if ack(stub, one.lease_token) in (["OK"], ["GONE"]):
                    done.add(one.payload)
            cursor.execute("select id from information_schema.processlist where db = database() and id <> connection_id()")
            for (number,) in cursor.fetchall():
                try:
                    cursor.execute(f"kill {number}")
                except pymysql.err.MySQLError as error:
                    assert error.args[0] == 1094, "gone by itself"
        eventually(broker.is_ready, within=20, what="lanes that connect again")
        eventually(lambda: mariadb.one(
            "select count(*) from information_schema.innodb_trx t join information_schema.processlist p"
            " on p.id = t.trx_mysql_thread_id where p.db = database() and p.command = 'Sleep' and p.time > 2") == 0,
            what="an end of all transactions")
    assert len(done) >= 20


def test_the_doctor_looks_at_mariadb(mariadb, brokers, program):
    brokers(mariadb.url)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("LEASEHOLD_")}
    done = subprocess.run([program, "doctor"], env={**environment, "LEASEHOLD_DATABASE_URL": mariadb.url},
                          capture_output=True, text=True, timeout=60, check=False)
    assert "MariaDB" in done.stdout, done.stdout + done.stderr
    assert PASSWORD not in done.stdout + done.stderr



def test_the_demo_runs_on_it_beside_others_tables(mariadb, brokers, program):
    enqueue(brokers(mariadb.url).stub(), job("orders", b"mine"))
    for _ in range(2):
        done = subprocess.run([program, "demo", "--seconds", "1", "--database-url", mariadb.url], capture_output=True, text=True,
                              timeout=90, check=False, env={"PATH": os.environ["PATH"]})
        assert done.returncode == 0, done.stdout + done.stderr
        assert re.search(r"^together +[1-9]", done.stdout, re.M), done.stdout
        assert PASSWORD not in done.stdout + done.stderr
    assert mariadb.one("select count(*) from leasehold_job") == 1
    assert mariadb.one("select count(*) from leasehold_demo_job") == 0
