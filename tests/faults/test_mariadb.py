"""Failure cases 20, 23 and 39 on MariaDB: a fail-over, gap locks, and ids that are larger than 32 bits."""

import json
import os
import re
import subprocess
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import grpc
import pytest

from faults.proxy import Proxy
from harness import LONG
from harness.calls import Failed, Stream, ack, enqueue, eventually, extend, job, nack
from harness.cluster import PASSWORD
from harness.mariadb import OWN_ROLE, MariaDB
from harness.stubs import pb

pytestmark = pytest.mark.timeout(300)


# --- 20: fail-over -----------------------------------------------------------------------------------------------------


@contextmanager
def replicated(work):
    """Two servers, the second a copy of the first."""
    logged = {"log_bin": "binlog", "binlog_format": "ROW", "log_slave_updates": "1", "general_log": "0"}
    old = MariaDB(work / "old", {**logged, "server_id": "1"}).create().start()
    heir = MariaDB(work / "heir", {**logged, "server_id": "2"}).create().start()
    try:
        with heir.connect() as session, session.cursor() as cursor:
            cursor.execute(f"change master to master_host = '127.0.0.1', master_port = {old.port}, master_user = '{OWN_ROLE}',"
                           f" master_password = '{PASSWORD}', master_use_gtid = slave_pos")
            cursor.execute("start slave")
        yield old, heir
    finally:
        old.kill()
        heir.kill()


def ask(server, statement):
    """First column of the first row."""
    with server.connect() as session, session.cursor() as cursor:
        cursor.execute(statement)
        row = cursor.fetchone()
        return row and row[0]


def refusal(stub):
    """What an Enqueue is told, where it is refused."""
    try:
        enqueue(stub, job("failover", b"after"), timeout=5)
    except grpc.RpcError as error:
        return Failed(error)
    return None


def acked(stub, leased):
    """What became of the leases; None where a lane found out by this call that its server was demoted."""
    try:
        return ack(stub, *[one_.lease_token for one_ in leased])
    except grpc.RpcError as error:
        said = Failed(error)
        assert (said.code, said.outcome) == ("UNAVAILABLE", "not-applied"), said
        return None


def test_a_demoted_primary_is_left_for_the_new_one_and_no_lease_is_lost(work, brokers):
    with replicated(work) as (old, heir):
        with old.connect() as session, session.cursor() as cursor:
            cursor.execute("create database shop")
            # Without the right to write to a server that is read-only.
            cursor.execute(f"create user broker@localhost identified by '{PASSWORD}'")
            cursor.execute("grant all on shop.* to broker@localhost")
            cursor.execute("grant process, create routine on *.* to broker@localhost")
        proxy = Proxy(("127.0.0.1", old.port))
        broker = brokers(f"mariadb://broker:{PASSWORD}@127.0.0.1:{proxy.port}/shop")
        stub = broker.stub()
        enqueue(stub, *[job("failover", at.to_bytes(2, "big")) for at in range(20)])
        stream = Stream(stub, "failover", in_flight=10, lease=300)
        leased = stream.jobs(10)
        with old.connect() as session, session.cursor() as cursor:
            cursor.execute("set global read_only = 1")
        said = eventually(lambda: refusal(stub), what="refusal")
        assert (said.code, said.outcome) == ("UNAVAILABLE", "not-applied"), said
        eventually(lambda: not broker.is_ready(), within=15, what="unreadiness")
        written = ask(old, "select @@global.gtid_binlog_pos")
        assert ask(heir, f"select master_gtid_wait('{written}', 60)") == 0, "the copy is whole"
        with heir.connect() as session, session.cursor() as cursor:
            cursor.execute("stop slave")
        proxy.upstream = ("127.0.0.1", heir.port)
        eventually(lambda: refusal(stub) is None, within=30, what="service from the new primary")
        eventually(broker.is_ready, within=15, what="readiness")
        settled = eventually(lambda: acked(stub, leased), within=30, what="an answer to the ack")
        assert settled == ["OK"] * 10, "a lease was lost"
        assert len(stream.jobs(10, within=20)) == 10
        assert ask(heir, "select count(*) from shop.leasehold_job") >= 10
        broker.end()
        proxy.close()


# --- 23: gap locks -----------------------------------------------------------------------------------------------------


def counted(broker, name):
    """Sum over all series of a metric."""
    return sum(float(value) for value in
               re.findall(rf"^{name}(?:{{[^}}]*}})? ([0-9.e+]+)$", broker.get("/metrics")[1], re.M))


def test_many_producers_consumers_and_jobs_due_at_once_meet_no_deadlock(mariadb, brokers):
    replicas = [brokers(mariadb.url, name=f"replica-{n}") for n in range(3)]
    length, due_at_once = (60.0, 20_000) if LONG else (5.0, 2_000)
    stored, done, errors, times = set(), Counter(), [], []
    lock, over = threading.Lock(), threading.Event()
    until = time.monotonic() + length
    stubs = [broker.stub() for broker in replicas]
    for _ in range(due_at_once // 500):
        soon = enqueue(stubs[0], *[job("gaps", b"due", delay=length / 2) for _ in range(500)], timeout=60)
        stored.update(soon)

    def produce(number):
        stub = stubs[number % 3]
        while time.monotonic() < until:
            begun = time.monotonic()
            try:
                ids = enqueue(stub, *[job("gaps", b"now") for _ in range(50)], timeout=30)
            except grpc.RpcError as error:
                errors.append(Failed(error))
                continue
            with lock:
                stored.update(ids)
                times.append(time.monotonic() - begun)

    def consume(number):
        stub = stubs[number % 3]
        stream = Stream(stub, "gaps", in_flight=50)
        while not over.is_set():
            try:
                leased = stream.jobs(1, within=0.5)
            except AssertionError:
                assert stream.error is None, stream.error
                continue
            leased += stream.kept
            stream.kept = []
            try:
                statuses = ack(stub, *[one_.lease_token for one_ in leased], timeout=30)
            except grpc.RpcError as error:
                errors.append(Failed(error))
                continue
            with lock:
                done.update(one_.job_id for one_, status in zip(leased, statuses) if status == "OK")
        stream.cancel()

    with ThreadPoolExecutor(32) as threads:
        consumers = [threads.submit(consume, number) for number in range(16)]
        producers = [threads.submit(produce, number) for number in range(16)]
        levels = set()
        level = ("select group_concat(distinct trx_isolation_level) from information_schema.innodb_trx t"
                 " join information_schema.processlist p on p.id = t.trx_mysql_thread_id"
                 f" where p.db = database() and p.user <> '{OWN_ROLE}'")
        while time.monotonic() < until:
            levels.add(mariadb.one(level))
            time.sleep(0.15)
        for producer in producers:
            producer.result()
        eventually(lambda: len(done) >= len(stored) or errors, within=120, what="an end of all jobs")
        over.set()
        for consumer in consumers:
            consumer.result()
    assert not errors, (len(errors), errors[:3])
    assert set(done) == stored, "lost, or invented"
    assert set(done.values()) == {1}, "acked twice"
    assert levels - {None} == {"READ COMMITTED"}, levels
    conflicts = sum(counted(broker, "leasehold_db_statement_conflicts_total") for broker in replicas)
    acts = sum(counted(broker, "db_client_operation_duration_seconds_count") for broker in replicas)
    assert acts > 100, "the metric is there"
    assert conflicts < acts / 100, (conflicts, acts)
    times.sort()
    print(f"{len(stored)} jobs, {conflicts:.0f} conflicts in {acts:.0f} acts, Enqueue of 50: p50 {times[len(times) // 2]:.3f} s,"
          f" p99 {times[len(times) * 99 // 100]:.3f} s")


# --- 39: ids past 32 bits ----------------------------------------------------------------------------------------------

STARTS = (2**31 - 3, 2**53 + 1)


def leasehold(program, broker, *arguments):
    """The command line's answer as JSON."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("LEASEHOLD_")}
    done = subprocess.run([program, *arguments, "--json", "--address", f"127.0.0.1:{broker.port}"], env=environment,
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("start", STARTS)
def test_every_act_is_exact_with_large_ids(mariadb, brokers, program, start):
    broker = brokers(mariadb.url)
    stub = broker.stub()
    enqueue(stub, job("large"))
    warm = Stream(stub, "large")
    ack(stub, warm.jobs(1)[0].lease_token)
    warm.cancel()
    with mariadb.connect() as session, session.cursor() as cursor:
        cursor.execute("select table_name, column_name, data_type from information_schema.columns"
                       " where table_schema = database() and extra like '%auto_increment%'")
        counted_by_server = cursor.fetchall()
        # A queue's number is an integer of 32 bits, and a new one needs a new queue.
        wide = [table for table, column, kind in counted_by_server if kind == "bigint"]
        assert {table for table, _, kind in counted_by_server if kind != "bigint"} <= {"leasehold_queue"}
        assert "leasehold_job" in wide
        for table in wide:
            cursor.execute(f"alter table {table} auto_increment = {start}")
    ids = enqueue(stub, *[job("large", b"%d" % n, ordering_key="k" if n < 2 else "") for n in range(6)])
    assert [int(one_) >= start for one_ in ids] == [True] * 6
    stream = Stream(stub, "large", in_flight=6, lease=120)
    leased = {one_.payload: one_ for one_ in stream.jobs(5)}
    assert leased[b"0"].job_id == ids[0] and b"1" not in leased, "one of a key at a time"
    assert all(one_.job_id == ids[int(payload)] for payload, one_ in leased.items())
    assert extend(stub, leased[b"2"].lease_token, duration=200)[0].status == pb.SETTLE_STATUS_OK
    assert nack(stub, leased[b"2"].lease_token, action="RELEASE")[0].status == pb.SETTLE_STATUS_OK
    assert nack(stub, leased[b"3"].lease_token, action="REJECT", error="no")[0].status == pb.SETTLE_STATUS_OK
    assert ack(stub, leased[b"0"].lease_token, leased[b"4"].lease_token) == ["OK", "OK"]
    again = {one_.payload: one_ for one_ in stream.jobs(2)}
    assert {payload: one_.job_id for payload, one_ in again.items()} == {b"1": ids[1], b"2": ids[2]}
    assert ack(stub, *[one_.lease_token for one_ in again.values()]) == ["OK", "OK"]
    [dead] = leasehold(program, broker, "dead", "list", "large")
    assert ids[3] in json.dumps(dead) and f'"{ids[3]}"' in json.dumps(dead), "as text: JSON's numbers are doubles"
    leasehold(program, broker, "dead", "redrive", "large")
    back = stream.jobs(1)[0]
    assert (back.job_id, back.payload) == (ids[3], b"3")
    assert ack(stub, back.lease_token, leased[b"5"].lease_token) == ["OK", "OK"]
    assert mariadb.one("select count(*) from leasehold_job") == 0
    with mariadb.connect() as session, session.cursor() as cursor:
        cursor.execute("call leasehold_enqueue('large', 'by sql', json_object('ordering_key', 'k'), @job)")
        cursor.execute("select @job")
        number = cursor.fetchone()[0]
    arrived = stream.jobs(1)[0]
    assert arrived.job_id == str(number) and number > start
    with mariadb.connect() as session, session.cursor() as cursor:
        cursor.execute("call leasehold_ack(%s, @acked)", [arrived.lease_token])
        cursor.execute("select @acked")
        assert cursor.fetchone()[0] == 1


def test_naming_a_queue_again_and_again_uses_up_no_number(mariadb, brokers):
    broker = brokers(mariadb.url)
    stub, admin = broker.stub(), broker.admin()
    enqueue(stub, job("named"))
    next_number = ("select auto_increment from information_schema.tables where table_schema = database()"
                   " and table_name = 'leasehold_queue'")
    with mariadb.connect() as session, session.cursor() as cursor:
        cursor.execute("analyze table leasehold_queue")
    before = mariadb.one(next_number)
    for replica in range(3):
        # A replica that has just begun knows no queue.
        other = brokers(mariadb.url, name=f"other-{replica}")
        for _ in range(50):
            enqueue(other.stub(), job("named"))
        other.end()
    assert mariadb.one("select count(*) from leasehold_queue") == 1
    with mariadb.connect() as session, session.cursor() as cursor:
        cursor.execute("analyze table leasehold_queue")
    assert mariadb.one(next_number) <= before + 1
    assert admin is not None
