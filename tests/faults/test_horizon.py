"""Who holds back vacuum: a session, a prepared transaction, slots, a standby, on a cluster of the test's own."""

import json
import os
import shutil
import subprocess
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.broker import PAYLOAD_MARK
from harness.calls import Stream, ack, enqueue, eventually, job
from harness.cluster import PASSWORD, ROLE, Cluster, as_server, free_port
from harness.sessions import Watcher, kind

SETTINGS = {"max_prepared_transactions": "5", "wal_level": "logical", "log_statement": "none", "autovacuum": "off",
            "wal_receiver_status_interval": "1s", "shared_buffers": "32MB"}
KIND = {1: "session", 2: "prepared", 3: "slot", 4: "standby"}


@pytest.fixture(scope="module")
def primary():
    """A cluster that keeps prepared transactions and slots."""
    root = Path(tempfile.mkdtemp(prefix="leasehold-horizon."))
    root.chmod(0o755)
    cluster = Cluster(os.environ["LEASEHOLD_TEST_POSTGRES_BIN"], root / "primary", SETTINGS).create().start()
    yield cluster
    cluster.stop("immediate")
    shutil.rmtree(root, ignore_errors=True)


@pytest.fixture
def watched(primary, brokers):
    """A broker that warns early, its watcher, and the cluster."""
    broker = brokers(primary.url(), sampler_horizon_interval="1s", sampler_horizon_age="1s",
                     sampler_horizon_transactions="1000")
    return broker, Watcher(broker), primary


def warnings(broker):
    """Log lines that name a holder."""
    lines = [json.loads(line) for line in broker.output().splitlines() if line.startswith("{")]
    return [line for line in lines if "dead rows cannot be removed" in line.get("message", "")]


def metric(broker, name):
    """A series' value; None where it is not there."""
    found = [line.rsplit(" ", 1)[1] for line in broker.get("/metrics")[1].splitlines() if line.startswith(name + " ")]
    return float(found[0]) if found else None


def test_a_session_that_holds_the_horizon_is_named_and_warned_of_once(watched):
    broker, watcher, primary = watched
    stub = broker.stub()
    application = "night\nbatch \x1b[31m"
    with primary.connect(application_name="batch", autocommit=False) as session:
        session.execute("select set_config('application_name', %s, false)", [application])
        session.commit()
        session.execute("set transaction isolation level repeatable read")
        session.execute(f"select '{PAYLOAD_MARK}' /* conn_tag:nightly_export */")
        mine = str(session.info.backend_pid)
        stream = Stream(stub, "horizon", in_flight=40)
        for _ in range(5):
            enqueue(stub, *[job("horizon", b"%d" % n) for n in range(40)])
            ack(stub, *[one.lease_token for one in stream.jobs(40)])
        first = eventually(lambda: next((one for one in watcher.horizon().holders if one.transactions >= 5), None),
                           what="a holder")
        assert (first.kind, first.name, first.caller) == (1, mine, "nightly_export")
        assert first.application_name.startswith("night")
        assert "pg_terminate_backend(" + mine in first.advice and not first.catalogs_only
        # An idle backend of the server hands in what it counted after ten seconds.
        assert eventually(lambda: next((one for one in watcher.horizon().tables
                                        if one.table == "job" and one.dead_rows >= 200), None), within=25, what="dead rows")
        [warned] = eventually(lambda: warnings(broker), what="a warning")
        assert (warned["name"], warned["caller"], warned["holder"]) == (f'"{mine}"', "nightly_export", "session")
        assert warned["level"] == "WARN" and "\x1b" not in warned["application"]
        eventually(lambda: metric(broker, "leasehold_database_horizon_past_limit") == 1, what="the metric")
        assert metric(broker, 'leasehold_database_horizon_age_seconds{kind="session"}') >= 1
        assert metric(broker, 'leasehold_database_horizon_transactions{kind="session"}') >= 5
        assert metric(broker, 'leasehold_database_table_dead_rows{table="job"}') >= 200
        eventually(lambda: metric(broker, 'leasehold_database_horizon_age_seconds{kind="session"}') >= 4,
                   what="three more looks")
        assert len(warnings(broker)) == 1, "said once"
        session.rollback()
    eventually(lambda: metric(broker, "leasehold_database_horizon_past_limit") == 0, what="the end of it")
    assert "dead rows can be removed again" in broker.output()


def test_prepared_transactions_and_slots_hold_the_horizon_too(watched):
    broker, watcher, primary = watched
    with primary.connect() as admin:
        admin.execute("create table mine(i int)")
        admin.execute("select pg_create_logical_replication_slot('feed', 'test_decoding')")
        admin.execute("begin; insert into mine values (1); prepare transaction 'order-77'")
        for _ in range(3):
            admin.execute("select pg_current_xact_id()")
        horizon = watcher.horizon()
        prepared = next(one for one in horizon.holders if one.kind == 2)
        assert (prepared.name, prepared.caller) == ("order-77", "unattributed")
        assert prepared.transactions >= 3 and prepared.age.ToMicroseconds() > 0 and "ROLLBACK PREPARED" in prepared.advice
        last = horizon.holders[-1]
        assert (last.kind, last.name, last.catalogs_only) == (3, "feed", True) and "pg_drop_replication_slot" in last.advice
        with primary.connect(application_name="victim") as victim:
            waiting = threading.Thread(target=lambda: victim.execute("insert into mine values (2)"))
            admin.execute("commit prepared 'order-77'")
            admin.execute("begin; lock table mine; prepare transaction 'order-78'")
            waiting.start()
            look = watcher.until(lambda look: any(one.waiting_on_lock for one in look.sessions.values()))
            blocked = next(one for one in look.sessions.values() if one.waiting_on_lock)
            assert (blocked.caller, list(blocked.blocked_by)) == ("victim", [0]), "a prepared transaction has no session"
            admin.execute("rollback prepared 'order-78'")
            waiting.join(10)
        admin.execute("select pg_drop_replication_slot('feed')")
        eventually(lambda: not {KIND[one.kind] for one in watcher.horizon().holders} & {"prepared", "slot"}, what="their end")


@contextmanager
def standby_of(primary, slot):
    """A standby that tells its primary what its queries need, through a slot or without one."""
    root = primary.root.parent / f"standby-{slot}"
    standby = Cluster(primary.bin, root, SETTINGS)
    source = f"host=127.0.0.1 port={primary.port} user={ROLE} password={PASSWORD} application_name=reader"
    root.chmod(0o777)
    (root / "socket").mkdir()
    (root / "socket").chmod(0o777)
    standby.log.touch()
    standby.log.chmod(0o666)
    copy = [str(primary.bin / "pg_basebackup"), "-D", str(standby.data), "-d", source, "-R", "-c", "fast", "-X", "stream"]
    subprocess.run(as_server([*copy, *(["-C", "-S", slot] if slot else [])]), check=True, cwd="/", timeout=60,
                   capture_output=True)
    (root / "port").write_text(str(free_port()))
    lines = (f"port = {(root / 'port').read_text()}\nhot_standby_feedback = on\n"
             f"unix_socket_directories = '{root}/socket'\n")
    subprocess.run(as_server(["tee", "-a", str(standby.data / "postgresql.auto.conf")]), input=lines, text=True, check=True,
                   stdout=subprocess.DEVNULL)
    yield standby.start()
    standby.stop("immediate")


@pytest.mark.parametrize("slot", ["feed_me", None])
def test_a_standbys_query_holds_the_horizon_by_its_slot_or_by_itself(watched, slot):
    _, watcher, primary = watched
    wanted = ("slot", slot) if slot else ("standby", "reader")
    with standby_of(primary, slot) as standby, standby.connect(autocommit=False) as reader, primary.connect() as admin:
        reader.execute("set transaction isolation level repeatable read")
        reader.execute("select count(*) from leasehold.job")

        def held():
            admin.execute("select pg_current_xact_id()")
            holders = watcher.horizon().holders
            return next((one for one in holders if (KIND[one.kind], one.name) == wanted and one.transactions > 3), None)

        holder = eventually(held, within=20, what="the standby's feedback")
        assert not holder.catalogs_only and holder.application_name == "reader" == holder.caller
        look = watcher.until(lambda look: any(kind(one) == "REPLICATION" for one in look.sessions.values()))
        sender = next(one for one in look.sessions.values() if kind(one) == "REPLICATION")
        assert sender.application_name == "reader" and look.caller("reader") is None, "it takes no client's connection"
        reader.rollback()
    if slot:
        with primary.connect() as admin:
            eventually(lambda: not admin.execute("select active from pg_replication_slots").fetchone()[0], what="its end")
            admin.execute("select pg_drop_replication_slot(%s)", [slot])
