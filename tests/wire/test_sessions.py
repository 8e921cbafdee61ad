"""Everybody's connections: what the broker says of sessions that are none of its own."""

import os
import subprocess
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from faults.proxy import Proxy
from harness.broker import SQL_TEXT
from harness.calls import Stream, ack, enqueue, eventually, job
from harness.sessions import Watcher, attribution, kind, state

SECRET = "literal-marker-Wx52"


@pytest.fixture
def watched(postgres, brokers):
    """A broker on a fresh database that looks often, its database, and a watcher."""
    broker = brokers(postgres.url, sampler_interval="200ms", sampler_quiet_interval="200ms", sampler_horizon_interval="1s")
    yield broker, postgres, Watcher(broker)
    assert SECRET not in broker.output(), "a statement of somebody else's is in the log"


@contextmanager
def psql(database, application, *commands):
    """psql itself, which runs the commands and then waits for its input."""
    program = Path(os.environ["LEASEHOLD_TEST_POSTGRES_BIN"]) / "psql"
    process = subprocess.Popen([program, "-X", "-q", database.url], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, env={**os.environ, "PGAPPNAME": application}, text=True)
    for command in commands:
        process.stdin.write(command + "\n")
    process.stdin.flush()
    try:
        yield process
    finally:
        process.stdin.close()
        assert process.wait(20) == 0, process.stderr.read()


def by_application(look, name):
    """The session of an application name."""
    return next((one for one in look.sessions.values() if one.application_name == name), None)


def test_foreign_sessions_appear_as_what_they_are(watched):
    _, database, watcher = watched
    with psql(database, "psql-a", f"begin; select '{SECRET}' /*action='show',application='Web%20Shop',controller='orders'*/;"), \
            psql(database, "psql-b", "/* conn_tag:nightly_report */ select pg_sleep(6);"), \
            psql(database, "psql-c", "begin; create table untagged(i int); insert into untagged values (1);"), \
            psql(database, "", "begin; select 1;"):
        look = watcher.until(lambda look: len([one for one in look.sessions.values()
                                               if not one.leasehold and state(one) != "IDLE"]) >= 4)
        shop, report, untagged = (by_application(look, f"psql-{name}") for name in "abc")
        assert (shop.caller, attribution(shop), state(shop)) == ("web_shop", "SQLCOMMENTER", "IDLE_IN_TRANSACTION")
        assert (report.caller, attribution(report), state(report)) == ("nightly_report", "CONN_TAG", "ACTIVE")
        assert (untagged.caller, attribution(untagged), state(untagged)) == (
            "psql-c", "APPLICATION_NAME", "IDLE_IN_TRANSACTION")
        assert untagged.role == "tester" and untagged.client_address == "127.0.0.1" and kind(untagged) == "CLIENT"
        assert untagged.transaction_age.ToMicroseconds() > 0 and not untagged.waiting_on_lock
        nameless = look.caller("psql") or look.caller("unattributed")
        assert nameless.sessions == 1 and nameless.idle_in_transaction == 1
        # Sessions of other roles are those of other tests, and go.
        watcher.until(lambda look: not look.answer.blind_spots)
        totals = watcher.look(totals_only=True)
        assert totals.caller("nightly_report").active == 1 and not totals.answer.sessions
        assert 5 <= totals.answer.connections <= totals.answer.max_connections == 200
        assert SECRET not in str(look.answer)


def test_hold_time_is_estimated_within_its_stated_error(watched):
    _, database, watcher = watched
    with database.connect(application_name="steady", autocommit=False) as steady, \
            database.connect(application_name="short") as short:
        begun = time.monotonic()
        steady.execute("select 1")
        watcher.until(lambda look: look.held("steady")[0] > 0)
        spent = 0.0
        while time.monotonic() - begun < 8:
            at = time.monotonic()
            short.execute("select pg_sleep(0.02)")
            spent += time.monotonic() - at
            time.sleep(0.03)
        look = watcher.look()
        held, error = look.held("steady")
        truth = time.monotonic() - begun
        assert abs(held - truth) < 0.5 + 3 * error, (held, error, truth)
        assert error < held / 4, "a hold that lasts is known well"
        held, error = look.held("short")
        assert abs(held - spent) < 0.2 + 4 * error, (held, error, spent)
        assert 0 < error < spent
        steady.rollback()
    metrics = watcher_metrics(watched[0])
    total = metrics['leasehold_database_hold_time_seconds_total{conn_tag="steady",origin="elsewhere"}']
    assert abs(total - truth) < 1.5, (total, truth)


def watcher_metrics(broker):
    """Series and their values."""
    lines = [line.rsplit(" ", 1) for line in broker.get("/metrics")[1].splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in lines}


def test_who_waits_for_a_lock_names_whom_it_waits_for(watched):
    _, database, watcher = watched
    with database.connect() as setup:
        setup.execute("create table t(i int primary key); insert into t values (1)")
    with database.connect(application_name="blocker", autocommit=False) as blocker, \
            database.connect(application_name="victim") as victim:
        blocker.execute("update t set i = 1 /* conn_tag:batch_import */")
        waiting = threading.Thread(target=lambda: victim.execute("update t set i = 1 /* conn_tag:checkout */"))
        waiting.start()
        look = watcher.until(lambda look: any(one.waiting_on_lock for one in look.sessions.values()))
        one = by_application(look, "victim")
        assert (one.caller, state(one), list(one.blocked_by)) == ("checkout", "ACTIVE", [blocker.info.backend_pid])
        assert look.caller("checkout").waiting_on_lock == 1
        assert not by_application(look, "blocker").waiting_on_lock
        assert not by_application(look, "blocker").blocked_by
        eventually(lambda: watcher_metrics(watched[0]).get(
            'leasehold_database_sessions_waiting{conn_tag="checkout",origin="elsewhere"}') == 1, what="the metric")
        blocker.rollback()
        waiting.join(10)


def test_a_parallel_query_is_one_connection_and_its_workers_go_by_its_caller(watched):
    _, database, watcher = watched
    with database.connect(application_name="reports") as session:
        session.execute("create table big as select g as i from generate_series(1, 200000) g")
        session.execute("analyze big")
        session.execute("set min_parallel_table_scan_size = 0; set parallel_setup_cost = 0; set parallel_tuple_cost = 0;"
                        " set max_parallel_workers_per_gather = 2")
        session.execute("create function nap() returns int language sql parallel safe as 'select 1 from pg_sleep(0.005)'")
        query = threading.Thread(target=lambda: session.execute(
            "select /* conn_tag:yearly_report */ sum(i) from big where i % 500 = 0 and nap() = 1"))
        query.start()
        look = watcher.until(lambda look: any(kind(one) == "PARALLEL_WORKER" for one in look.sessions.values()))
        leader = by_application(look, "reports")
        workers = [one for one in look.sessions.values() if kind(one) == "PARALLEL_WORKER"]
        assert {one.leader for one in workers} == {leader.session_id} == {session.info.backend_pid}
        assert {one.caller for one in workers} == {"yearly_report"} == {leader.caller}
        assert look.caller("yearly_report").sessions == 1, "workers are no connections"
        query.join(30)


@contextmanager
def role(database, *grants):
    """A login role with no more rights than the broker needs, and the URL for it."""
    name = f"low_{uuid.uuid4().hex[:8]}"
    with database.connect() as admin:
        admin.execute(f"create role {name} login password 'low-marker'")
        admin.execute(f"grant usage on schema leasehold to {name}")
        admin.execute(f"grant select, insert, update, delete on all tables in schema leasehold to {name}")
        admin.execute(f"grant usage on all sequences in schema leasehold to {name}")
        admin.execute(f"grant execute on all functions in schema leasehold to {name}")
        for grant in grants:
            admin.execute(f"grant {grant} to {name}")
    yield database.url.replace("tester:", f"{name}:").replace("dsn-marker-Zq81", "low-marker")
    with database.connect() as admin:
        eventually(lambda: admin.execute("select count(*) from pg_stat_activity where usename = %s", [name]).fetchone()[0] == 0,
                   what="the role's last session")
        admin.execute(f"drop owned by {name}")
        admin.execute(f"drop role {name}")


@pytest.mark.parametrize("grants, sees", [((), False), (("pg_read_all_stats",), True)])
def test_a_role_with_few_rights_says_what_it_cannot_see(postgres, brokers, grants, sees):
    first = brokers(postgres.url)
    first.terminate()
    assert first.process.wait(25) == 0
    with role(postgres, *grants) as url:
        broker = brokers(url, migrate=False)
        watcher = Watcher(broker)
        with postgres.connect(application_name="shop frontend", autocommit=False) as session:
            session.execute(f"select '{SECRET}' /* conn_tag:checkout */")
            look = watcher.look()
            one = by_application(look, "shop frontend")
            if sees:
                assert (one.caller, state(one)) == ("checkout", "IDLE_IN_TRANSACTION")
                assert not look.answer.blind_spots
            else:
                assert (one.caller, attribution(one), state(one)) == ("shop_frontend", "APPLICATION_NAME", "HIDDEN")
                assert look.caller("shop_frontend").hidden == 1
                assert look.held("shop_frontend") == (0, 0), "what is hidden is not made up"
                [spot] = look.answer.blind_spots
                assert "pg_read_all_stats" in spot
            own = [one for one in look.sessions.values() if one.leasehold]
            assert own and all(one.caller.startswith("leasehold.") for one in own)
            session.execute("create table held()")
            holder = watcher.horizon().holders[0]
            assert holder.name == str(session.info.backend_pid) and holder.transactions >= 0
            assert holder.HasField("age") == sees
            session.rollback()
        broker.terminate()
        assert broker.process.wait(25) == 0


def test_hostile_names_and_statements_are_shown_safely_and_charge_nobody_else(watched):
    broker, database, watcher = watched
    hostile = [
        ("one", "select '/* conn_tag:victim */'"),
        ("two", "select $$/* conn_tag:victim */$$"),
        ("three", "select 1 /* conn_tag:" + "x" * 10_240 + " */"),
        ("four", "select 1 -- conn_tag:\x01\x02\x1b[2Jboo"),
        ("five", "/* conn_tag:leasehold.reaper */ select 1"),
        ("six", "/*" + "application='a'," * 600 + "*/ select 1"),
        ("seven", "select 1 /* conn_tag:a';drop table t;-- */"),
        ("eight\x1b[31m\n*/ x", "select 1"),
        ("n" * 10_240, "select 1"),
    ]
    sessions = []
    for name, statement in hostile:
        session = database.connect(autocommit=False)
        session.execute("select set_config('application_name', %s, false)", [name])
        session.execute(statement)
        sessions.append((name, session))
    # All of them, as they are after their last statement.
    pids = [session.info.backend_pid for _, session in sessions]
    look = watcher.until(lambda look: all(pid in look.sessions for pid in pids) and look.sessions[pids[-1]].caller != "test")
    seen = {name: look.sessions[session.info.backend_pid] for name, session in sessions}
    assert look.caller("victim") is None, "text in a literal is data"
    assert seen["one"].caller == "one" and seen["two"].caller == "two"
    # The server shows 1,023 bytes: a tag that reaches the cut may be another's beginning.
    assert seen["three"].caller == "three"
    assert "track_activity_query_size" in " ".join(look.answer.blind_spots)
    assert seen["four"].caller == "four", "control characters end a tag"
    assert seen["five"].caller == "foreign.leasehold.reaper" and not seen["five"].leasehold
    assert seen["six"].caller == "a"
    assert seen["seven"].caller == "a"
    assert seen["eight\x1b[31m\n*/ x"].caller.startswith("eight")
    for one in look.answer.callers:
        assert len(one.caller) <= 64 and one.caller.isascii() and one.caller.isprintable(), one.caller
    page = broker.get("/metrics")[1]
    assert "\x1b" not in page and "victim" not in page
    for _, session in sessions:
        session.close()


def test_a_broker_is_told_apart_from_who_uses_its_name(watched):
    broker, database, watcher = watched
    stub = broker.stub()
    busy = [("leasehold-caller", "checkout")]
    enqueue(stub, *[job("own", b"%d" % n) for n in range(20)], metadata=busy)
    with database.connect(application_name="leasehold/forged", autocommit=False) as same_role:
        same_role.execute("select 1 /* conn_tag:checkout */")
        look = watcher.look()
        own = {one.application_name for one in look.sessions.values() if one.leasehold}
        assert f"leasehold/{broker.name}" in own
        assert any(one.leasehold and one.caller.startswith("leasehold.") for one in look.answer.callers)
        same_role.rollback()
    ack(stub, *[one.lease_token for one in Stream(stub, "own").jobs(5)])


def test_ten_thousand_names_cannot_displace_a_configured_one_and_sums_stay_whole(postgres, brokers):
    broker = brokers(postgres.url, sampler_interval="200ms", sampler_names=5, callers_names="checkout")
    watcher = Watcher(broker)
    with postgres.connect(application_name="inventor", autocommit=False) as session:
        for n in range(300):
            session.execute(f"select 1 /* conn_tag:invented-{n} */")
            if n % 10 == 0:
                watcher.look()
                time.sleep(0.01)
        session.execute("select 1 /* conn_tag:checkout */")
        look = watcher.until(lambda look: look.caller("checkout"))
        assert look.caller("checkout").sessions == 1
        names = {one.caller for one in look.answer.callers if not one.leasehold}
        assert len(names) <= 5 + 3, names
        session.rollback()
    series = {name for name in watcher_metrics(broker) if name.startswith("leasehold_database_hold_time")}
    assert len([name for name in series if "elsewhere" in name]) <= 5 + 3


def test_an_embedded_database_says_plainly_that_nobody_else_is_there(brokers):
    broker = brokers()
    watcher = Watcher(broker)
    look = watcher.look()
    assert look.answer.connections == len(look.sessions) >= 3
    assert all(one.leasehold for one in look.sessions.values())
    assert "no connections but this broker's" in look.answer.blind_spots[0]
    horizon = watcher.horizon()
    assert not horizon.holders and not horizon.tables and "removes rows at once" in horizon.blind_spots[0]


def test_switched_off_it_looks_when_asked(postgres, brokers):
    broker = brokers(postgres.url, sampler_enabled="false")
    watcher = Watcher(broker)
    sampled = [entry for entry in postgres.statements() if entry.caller == "leasehold.sampler"]
    assert not sampled
    with postgres.connect(application_name="shop", autocommit=False) as session:
        session.execute("select 1")
        look = watcher.look()
        assert look.caller("shop").idle_in_transaction == 1
        session.rollback()
    assert "leasehold_database_horizon" not in broker.get("/metrics")[1]
    assert not SQL_TEXT.search(broker.output())


def test_looks_never_pile_up_before_a_slow_database(postgres, brokers):
    """Failure case 19: more askers than lanes, and looks that take long."""
    url = urlsplit(postgres.url)
    proxy = Proxy((url.hostname, url.port), postgres=True)
    broker = brokers(postgres.url.replace(f":{url.port}/", f":{proxy.port}/"), sampler_interval="200ms",
                     sampler_quiet_interval="200ms", lanes_count=3)
    watcher = Watcher(broker)
    watcher.look()
    proxy.order(delay=0.3)
    before = len([entry for entry in postgres.statements() if "pg_stat_activity" in entry.statement])
    begun = time.monotonic()

    def ask(_):
        answers = 0
        while time.monotonic() - begun < 3:
            assert watcher.look().sessions
            answers += 1
        return answers

    with ThreadPoolExecutor(30) as askers:
        assert min(askers.map(ask, range(30))) >= 2
    took = time.monotonic() - begun
    sent = [entry for entry in postgres.statements() if "pg_stat_activity" in entry.statement][before:]
    assert {entry.caller for entry in sent} == {"leasehold.sampler"}
    # One at a time at the sessions and one at the horizon, 0.6 s each, whoever asks.
    assert len(sent) <= 2 * (took / 0.6 + 2), (len(sent), took)
    proxy.heal()
    proxy.close()
