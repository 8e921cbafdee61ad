"""The proxy makes the faults that it is asked for, and no others."""

import socket
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import psycopg
import pytest

from faults.proxy import Proxy


@pytest.fixture
def link(server):
    """A proxy in front of the database, and a way to connect through it."""
    url = urlsplit(server[0])
    proxy = Proxy((url.hostname, url.port), postgres=True)
    direct = psycopg.connect(server[0], autocommit=True)
    direct.execute("create table if not exists proxy_probe(n int)")
    direct.execute("truncate proxy_probe")

    def connect(**options):
        through = server[0].replace(f":{url.port}/", f":{proxy.port}/")
        return psycopg.connect(through, autocommit=True, **options)

    yield proxy, connect, direct
    proxy.close()
    direct.execute("drop table proxy_probe")
    direct.close()


def rows(direct):
    """Rows that were written through the proxy."""
    return direct.execute("select count(*) from proxy_probe").fetchone()[0]


@pytest.mark.parametrize(("at", "stored"), [("before", 0), ("after", 1), ("half", 1)])
@pytest.mark.parametrize("prepare", [False, True])
def test_a_statement_is_cut_before_it_leaves_or_after_it_was_done(link, at, stored, prepare):
    proxy, connect, direct = link
    session = connect()
    statement = "/* conn_tag:test */ insert into proxy_probe values (%s)"
    for value in range(3):
        session.execute(statement, [value], prepare=prepare)
    cut = proxy.cut("INSERT INTO proxy_probe", at)
    with pytest.raises(psycopg.OperationalError):
        session.execute(statement, [4], prepare=prepare)
    assert cut.hits == 1
    assert rows(direct) == 3 + stored


@pytest.mark.parametrize(("at", "stored"), [("before", 0), ("after", 1), ("half", 1)])
def test_a_commit_is_cut_before_it_leaves_or_after_it_was_done(link, at, stored):
    proxy, connect, direct = link
    session = connect()
    session.execute("begin")
    session.execute("insert into proxy_probe values (1)")
    cut = proxy.cut("commit", at)
    with pytest.raises(psycopg.OperationalError):
        session.execute("commit")
    assert cut.hits == 1
    assert rows(direct) == stored


def test_a_cut_hits_as_often_as_it_was_told(link):
    proxy, connect, direct = link
    cut = proxy.cut("insert into proxy_probe", "after", times=2)
    for _ in range(2):
        with pytest.raises(psycopg.OperationalError):
            connect().execute("insert into proxy_probe values (1)")
    connect().execute("insert into proxy_probe values (1)")
    assert (cut.hits, rows(direct)) == (2, 3)


def test_a_dropped_direction_is_silent_and_the_other_one_works(link):
    proxy, connect, direct = link
    session = connect()
    proxy.order(drop_down=True)
    session.pgconn.send_query(b"insert into proxy_probe values (1)")
    deadline = time.monotonic() + 5
    while rows(direct) == 0 and time.monotonic() < deadline:
        pass
    assert rows(direct) == 1
    with socket.fromfd(session.pgconn.socket, socket.AF_INET, socket.SOCK_STREAM) as raw:
        raw.settimeout(0.2)
        with pytest.raises(TimeoutError):
            raw.recv(1)


def test_delay_is_felt_and_goes_with_the_heal(link):
    proxy, connect, _ = link
    session = connect()
    proxy.order(delay=0.15)
    begun = time.monotonic()
    session.execute("select 1")
    assert time.monotonic() - begun >= 0.3
    proxy.heal()
    begun = time.monotonic()
    session.execute("select 1")
    assert time.monotonic() - begun < 0.15


def test_a_stalled_link_goes_on_where_it_stopped(link):
    proxy, connect, direct = link
    session = connect()
    proxy.order(stalled=True)
    with ThreadPoolExecutor() as threads:
        under_way = threads.submit(session.execute, "insert into proxy_probe values (1)")
        assert rows(direct) == 0
        proxy.heal()
        under_way.result(10)
    assert rows(direct) == 1


def test_resets_and_refusals_end_what_is_open(link):
    proxy, connect, _ = link
    session = connect()
    proxy.reset()
    with pytest.raises(psycopg.OperationalError):
        session.execute("select 1")
    proxy.refuse()
    with pytest.raises(psycopg.OperationalError, match="refused"):
        connect()
    proxy.heal()
    assert connect().execute("select 1").fetchone() == (1,)


def test_silence_accepts_and_says_nothing(link):
    proxy, _, _ = link
    proxy.order(silent=True)
    with socket.create_connection(("127.0.0.1", proxy.port)) as raw:
        raw.sendall(b"anything")
        raw.settimeout(0.2)
        with pytest.raises(TimeoutError):
            raw.recv(1)


def test_a_held_statement_waits_for_its_release(link):
    proxy, connect, direct = link
    session = connect()
    cut = proxy.cut("insert into proxy_probe", "hold")
    with ThreadPoolExecutor() as threads:
        under_way = threads.submit(session.execute, "insert into proxy_probe values (1)")
        assert cut.hit.wait(5)
        assert rows(direct) == 0
        cut.release()
        under_way.result(10)
    assert rows(direct) == 1
