"""docs/restore.md holds: a backup is restored, its statements are run from the page, and its table is looked at line by line."""

import os
import re
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

from conftest import fresh_database

from harness.calls import Stream, ack, enqueue, job
from harness.stock import adjust, adjustment, differences, hold, line, release, units

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "restore.md").read_text()
BLOCKS = {re.match(r"-- ([\w.]+)", text).group(1): text for text in re.findall(r"^```sql\n(.*?)^```$", PAGE, re.M | re.S)}


def lost_time(stub):
    """What happens after the backup: (tokens and jobs of the lost time, largest job id)."""
    stream = Stream(stub, "orders", in_flight=10, lease=600)
    leased = {leased.payload: leased for leased in stream.jobs(2)}
    new = enqueue(stub, job("orders", b"new", idempotency_key="k"))[0]
    leased |= {b"new": stream.jobs(1)[0]}
    stream.cancel()
    return leased, int(new)


def prepare(stub):
    """Two jobs of then, one of them leased."""
    enqueue(stub, job("orders", b"held"))
    stream = Stream(stub, "orders", in_flight=1, lease=600)
    held = stream.jobs(1)[0]
    stream.cancel()
    enqueue(stub, job("orders", b"one"), job("orders", b"two"))
    return held


def check(stub, held, leased, largest):
    """The page's table, on the restored database."""
    assert ack(stub, leased[b"one"].lease_token, leased[b"new"].lease_token) == ["LEASE_LOST", "GONE"]
    assert ack(stub, held.lease_token) == ["OK"], "a lease of then that was acked in the lost time holds again"
    again = enqueue(stub, job("orders", b"new", idempotency_key="k"))[0]
    assert int(again) > largest + 1_000_000, "the key is forgotten, and no id is given twice"
    stream = Stream(stub, "orders", in_flight=10)
    came = {job.payload: job for job in stream.jobs(3)}
    assert set(came) == {b"one", b"two", b"new"}
    for payload in (b"one", b"two"):
        assert came[payload].lease_number > 1_000_000 > leased[payload].lease_number
    assert ack(stub, *(job.lease_token for job in came.values())) == ["OK"] * 3


def test_a_restored_postgresql_hands_out_no_number_twice_and_honours_no_lost_lease(server, postgres, brokers):
    tools = Path(os.environ["LEASEHOLD_TEST_POSTGRES_BIN"])
    first = brokers(postgres.url, name="before")
    held = prepare(first.stub())
    backup = subprocess.run([tools / "pg_dump", postgres.url], capture_output=True, text=True, check=True).stdout
    leased, largest = lost_time(first.stub())
    assert ack(first.stub(), held.lease_token) == ["OK"]
    first.end()
    with fresh_database(server) as restored:
        for text in (backup, BLOCKS["after_restore.sql"]):
            command = [tools / "psql", "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", restored.url]
            done = subprocess.run(command, input=text, text=True, capture_output=True, check=False)
            assert done.returncode == 0, done.stderr
        second = brokers(restored.url, name="after", migrate=False)
        check(second.stub(), held, leased, largest)
        assert doctor(second, "--database-url", restored.url).returncode == 0
        second.end()


def test_stock_that_moved_to_a_server_that_counts_anew_is_counted_whole(server, cluster, brokers):
    """By pg_dump alone, without the page's statements: numbers of transactions begin anew there."""
    tools = Path(os.environ["LEASEHOLD_TEST_POSTGRES_BIN"])
    with fresh_database(server) as old, old.connect() as session:
        session.execute("do $$ begin for n in 1..20000 loop perform pg_current_xact_id(); commit; end loop; end $$")
        first = brokers(old.url, name="before")
        stock = first.reservations()
        adjust(stock, adjustment("cup", 30))
        hold(stock, line("cup", 5))
        adjust(stock, adjustment("cup", 10))  # whoever adjusts adds up what was left, and notes how far
        hold(stock, line("cup", 2))
        backup = subprocess.run([tools / "pg_dump", old.url], capture_output=True, text=True, check=True).stdout
        first.end()
    command = [tools / "psql", "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", cluster.url()]
    done = subprocess.run(command, input=backup, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    with cluster.connect() as session:
        ahead = "select min(delta_floor) > pg_snapshot_xmax(pg_current_snapshot())::text::bigint from leasehold.stock"
        assert session.execute(ahead).fetchone()[0], "the restored numbers lie ahead of this server's"
    second = brokers(cluster.url(), name="after", migrate=False)
    stock = second.reservations()
    assert units(stock, "cup") == (40, 7, 33)
    release(stock, hold(stock, line("cup", 4)))
    assert units(stock, "cup") == (40, 7, 33), "what comes back here is seen"
    assert differences(second.stock_admin()) == []
    hold(stock, line("cup", 33))
    assert units(stock, "cup") == (40, 40, 0)
    assert differences(second.stock_admin()) == []
    second.end()


def test_a_restored_embedded_database_does_the_same(brokers, work):
    first = brokers(None, name="first")
    held = prepare(first.stub())
    (work / "second-data").mkdir()
    copy = work / "second-data" / "leasehold.db"
    with closing(sqlite3.connect(work / "first-data" / "leasehold.db")) as live, closing(sqlite3.connect(copy)) as file:
        live.backup(file)
    leased, largest = lost_time(first.stub())
    assert ack(first.stub(), held.lease_token) == ["OK"]
    first.end()
    with closing(sqlite3.connect(copy, isolation_level=None)) as file:
        file.executescript(BLOCKS["after_restore_embedded.sql"])
    second = brokers(None, name="second")
    check(second.stub(), held, leased, largest)
    assert doctor(second, "--data-dir", work / "second-data").returncode == 0


def doctor(broker, *arguments):
    """Looks at the database beside the broker."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("LEASEHOLD_")}
    return subprocess.run([broker.program, "doctor", *arguments], env=environment, capture_output=True, check=False)


def test_the_page_has_the_statements_that_are_tried_here():
    assert set(BLOCKS) == {"after_restore.sql", "after_restore_embedded.sql"}
    assert "setval" in BLOCKS["after_restore.sql"]
