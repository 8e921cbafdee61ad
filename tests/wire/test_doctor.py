"""`leasehold doctor` on servers that are as they should be and on servers that are not, line by line."""

import json
import os
import re
import socket
import sqlite3
import struct
import subprocess
import threading
from contextlib import closing
from pathlib import Path

import pytest
from conftest import fresh_database, needed, open_directory

from harness.cluster import PASSWORD, Cluster

ROLES = (Path(__file__).resolve().parents[2] / "docs" / "roles.sql").read_text()


@pytest.fixture(scope="module")
def healthy():
    """A server as it should be, that allows what some tests need."""
    with server({"max_prepared_transactions": "4", "wal_level": "logical"}) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def careless():
    """A server that loses what it has said, forgets to clean up and has few connections."""
    with server({"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off", "autovacuum": "off",
                 "track_counts": "off", "max_connections": "12"}) as cluster:
        yield cluster


class server:
    """A cluster of the module's own."""

    def __init__(self, settings):
        self.settings, self.directory = settings, open_directory()

    def __enter__(self):
        work = self.directory.__enter__()
        self.cluster = Cluster(needed("LEASEHOLD_TEST_POSTGRES_BIN"), work / "cluster", self.settings).create().start()
        return self.cluster

    def __exit__(self, *how):
        self.cluster.stop("immediate")
        self.directory.__exit__(*how)


class Patient:
    """A migrated database, and the doctor for it."""

    def __init__(self, program, database, cluster):
        self.program, self.database, self.cluster = program, database, cluster

    def sql(self, *statements):
        with self.database.connect() as session:
            for statement in statements:
                session.execute(statement)

    def run(self, command, *arguments, url=None):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("LEASEHOLD_")}
        environment["LEASEHOLD_DATABASE_URL"] = url or self.database.url
        done = subprocess.run([self.program, *command.split(), *arguments], env=environment, capture_output=True,
                              text=True, timeout=60, check=False)
        assert PASSWORD not in done.stdout + done.stderr
        return done

    def troubles(self, *arguments, url=None):
        """Exit code, and level, check and text of each finding that is not ok."""
        done = self.run("doctor", "--json", *arguments, url=url)
        report = json.loads(done.stdout)
        found = [(f["level"], f["check"], f"{f['says']} -> {f['do']}") for f in report["findings"] if f["level"] != "ok"]
        return done.returncode, found

    def as_role(self, *granted, roles=ROLES):
        """The URL of a new role that docs/roles.sql's roles are granted to."""
        with self.cluster.connect(self.database.name) as session:
            session.execute(roles)
            name = f"login_{self.database.name}"
            session.execute(f"create role {name} login password '{PASSWORD}'")
            for role in granted:
                session.execute(f"grant {role} to {name}")
        return self.database.url.replace("//tester:", f"//{name}:")


@pytest.fixture
def patient(program, healthy):
    yield from patient_on(program, healthy)


@pytest.fixture
def neglected(program, careless):
    yield from patient_on(program, careless)


def patient_on(program, cluster):
    with fresh_database((cluster.url(), cluster.log)) as database:
        made = Patient(program, database, cluster)
        done = made.run("migrate up --allow-lossy")
        assert done.returncode == 0, done.stderr
        yield made


def one(found, check, *words):
    """The one finding of a check, which must say all words; its level."""
    of_it = [(level, text) for level, name, text in found if name == check]
    assert len(of_it) == 1, found
    for word in words:
        assert word in of_it[0][1], of_it
    return of_it[0][0]


def test_a_broker_of_least_privilege_on_a_healthy_server_has_nothing_to_complain_of(patient):
    url = patient.as_role("leasehold_broker")
    assert patient.troubles("--strict", url=url) == (0, [])


def test_every_statement_of_the_doctor_names_it(patient):
    patient.troubles()
    sent = [entry for entry in patient.database.statements() if entry.caller == "leasehold.doctor"]
    assert len(sent) >= 12
    by_it = {entry.pid for entry in sent}
    assert all(e.caller == "leasehold.doctor" for e in patient.database.statements() if e.pid in by_it)


def test_a_server_that_may_lose_what_it_has_said_fails_line_by_line(neglected):
    code, found = neglected.troubles("--replicas", "2")
    assert code == 1
    durability = sorted(text.split(" = ")[0] for level, check, text in found if (level, check) == ("fail", "durability"))
    assert durability == ["fsync", "full_page_writes", "synchronous_commit"]
    autovacuum = sorted(text.split(" = ")[0] for level, check, text in found if (level, check) == ("fail", "autovacuum"))
    assert autovacuum == ["autovacuum", "track_counts"]
    assert one(found, "connections", "2 replicas need 20", "max_connections 12", "lanes.count") == "fail"
    assert one(found, "privileges", "superuser", "docs/roles.sql") == "warn"
    allowed = neglected.troubles("--allow-lossy")[1]
    assert {level for level, check, _ in allowed if check == "durability"} == {"warn"}


def test_a_schema_of_another_name_is_as_good_with_the_roles_made_for_it(patient):
    option = ("--database-schema", "jobs_x")
    assert patient.troubles(*option)[0] == 1, "there is none yet"
    assert patient.run("migrate up", *option).returncode == 0
    patient.sql("drop schema leasehold cascade")
    url = patient.as_role("leasehold_broker", roles=re.sub(r"\bleasehold\b", "jobs_x", ROLES))
    assert patient.troubles("--strict", *option, url=url) == (0, [])
    patient.sql("drop index jobs_x.job_ready", "revoke select on jobs_x.job from leasehold_broker")
    _, found = patient.troubles(*option, url=url)
    assert one(found, "indexes", "create index concurrently job_ready on jobs_x.job (") == "fail"
    assert one(found, "privileges", "grant select on jobs_x.job to ") == "fail"


def test_warnings_fail_only_where_asked_to(patient):
    code, found = patient.troubles()
    assert (code, one(found, "privileges", "tester is superuser")) == (0, "warn")
    assert patient.troubles("--strict")[0] == 1


def test_an_owner_of_the_tables_may_more_than_serving_needs(patient):
    url = patient.as_role("leasehold_migrator", "leasehold_broker")
    _, found = patient.troubles(url=url)
    assert one(found, "privileges", "may change the shape of our tables", "leasehold migrate up") == "warn"
    assert patient.troubles("--migrate", url=url) == (0, [])


def test_rights_that_serving_lacks_are_given_as_grants(patient):
    url = patient.as_role("leasehold_broker")
    patient.sql("revoke insert, update on leasehold.job from leasehold_broker",
                "revoke execute on all functions in schema leasehold from leasehold_broker")
    code, found = patient.troubles(url=url)
    assert code == 1
    assert one(found, "privileges", "grant insert, update on leasehold.job to ",
               "grant execute on all functions in schema leasehold to ") == "fail"


def test_a_role_without_any_right_is_told_what_it_cannot_see(patient):
    code, found = patient.troubles(url=patient.as_role())
    assert code == 1
    assert one(found, "privileges", "grant usage on schema leasehold to ") == "fail"
    assert one(found, "schema", "cannot be seen") == "warn"


def test_limits_of_role_and_database_count(patient):
    url = patient.as_role("leasehold_broker")
    name = f"login_{patient.database.name}"
    patient.sql(f"alter role {name} connection limit 5", f"alter database {patient.database.name} connection limit 12")
    code, found = patient.troubles(url=url)
    levels = [(level, "role's own" in text, "database's own" in text) for level, check, text in found if check == "connections"]
    assert (code, levels) == (1, [("fail", True, False)])


def test_tables_that_nobody_vacuums_and_changed_settings_are_named(patient):
    patient.sql("alter table leasehold.job set (autovacuum_enabled = off)",
                "alter table leasehold.arrival reset (autovacuum_vacuum_cost_delay)")
    code, found = patient.troubles()
    assert code == 1
    levels = {level: text for level, check, text in found if check == "vacuum"}
    assert "alter table leasehold.job reset (autovacuum_enabled)" in levels["fail"]
    assert "alter table leasehold.arrival set (autovacuum_vacuum_cost_delay=0)" in levels["warn"]
    patient.sql(levels["fail"].split(" -> ")[1], levels["warn"].split(" -> ")[1])
    assert [check for _, check, _ in patient.troubles()[1]] == ["privileges"]


def test_who_holds_an_old_snapshot_is_named_with_how_to_end_it(patient):
    with patient.database.connect(autocommit=False, application_name="report") as holder:
        holder.execute("set transaction isolation level repeatable read")
        pid = holder.execute("select pg_backend_pid() from leasehold.queue right join (select 1) x on true").fetchone()[0]
        assert [check for _, check, _ in patient.troubles()[1]] == ["privileges"], "young ones are nobody's concern"
        _, found = patient.troubles("--old-snapshot", "0s")
        assert one(found, "snapshots", f"session {pid} (role tester, report, idle in transaction)",
                   f"pg_terminate_backend({pid})") == "warn"


def test_prepared_transactions_and_slots_that_hold_snapshots_are_named(patient):
    slot = f"slot_{patient.database.name}"
    with patient.database.connect(autocommit=False) as session:
        session.execute("insert into leasehold.queue (name) values ('x')")
        session.execute("prepare transaction 'forgotten'")
    patient.sql(f"select pg_create_physical_replication_slot('{slot}', true)")
    try:
        _, found = patient.troubles("--old-snapshot", "0s")
        assert one(found, "snapshots", "prepared transaction 'forgotten'", "rollback prepared") == "warn"
        # a slot without a standby that follows: a failover would lose what no commit waited for
        assert one(found, "failover", "synchronous_standby_names = ''", "docs/restore.md") == "warn"
    finally:
        patient.sql("rollback prepared 'forgotten'", f"select pg_drop_replication_slot('{slot}')")


def test_sessions_that_a_role_may_not_see_are_counted(patient):
    url = patient.as_role("leasehold_broker")
    with patient.database.connect():
        code, found = patient.troubles(url=url)
        assert (code, one(found, "snapshots", "1 sessions", "pg_read_all_stats")) == (0, "warn")
        patient.sql(f"grant pg_read_all_stats to login_{patient.database.name}")
        assert patient.troubles(url=url) == (0, [])


def test_a_dropped_an_invalid_and_a_foreign_index_are_told_apart(patient):
    patient.sql("drop index leasehold.job_ready",
                "update pg_index set indisvalid = false where indexrelid = 'leasehold.job_lease'::regclass",
                "create index team_report on leasehold.job (enqueued_at)")
    code, found = patient.troubles()
    assert code == 1
    texts = [(level, text.split(" -> ")) for level, check, text in found if check == "indexes"]
    assert [level for level, _ in texts] == ["fail", "fail", "warn"]
    remade = "create index concurrently job_ready on leasehold.job (queue_id, priority desc, ready_at, id)"
    assert remade in texts[0][1][1]
    assert "team_report on job" in texts[2][1][0]
    patient.sql(*(advice.split(": ", 1)[1] for _, (_, advice) in texts[:2]), "drop index leasehold.team_report")
    assert [check for _, check, _ in patient.troubles()[1]] == ["privileges"], "what it advises mends it"


def test_a_schema_that_is_behind_missing_or_not_ours_fails(patient):
    patient.sql("delete from leasehold.schema_migration where number > 1")
    code, found = patient.troubles()
    assert (code, one(found, "schema", "at migration 1", "behind", "leasehold migrate up")) == (1, "fail")
    assert "indexes" not in [check for _, check, _ in found], "what later migrations make is not foreign"
    patient.sql("update leasehold.schema_migration set name = 'theirs'")
    assert one(patient.troubles()[1], "schema", "'theirs' there and 'schema' here") == "fail"
    patient.sql("drop schema leasehold cascade")
    code, found = patient.troubles()
    assert (code, one(found, "schema", "no schema of ours")) == (1, "fail")
    assert patient.troubles("--migrate")[0] == 0, "a broker that migrates makes it"


def test_a_newer_schema_is_fine_during_an_upgrade(patient):
    patient.sql("insert into leasehold.schema_migration (number, name) values (9999, 'later')",
                "create index later on leasehold.job (enqueued_at)")
    assert [check for _, check, _ in patient.troubles()[1]] == ["privileges"]


def test_a_database_that_takes_no_writes_fails(patient):
    patient.sql(f"alter database {patient.database.name} set default_transaction_read_only = on")
    code, found = patient.troubles()
    assert (code, one(found, "writes", "takes no writes", "primary")) == (1, "fail")


class Pooler:
    """Stands before a server and, as poolers do, drops or refuses what a session asks for at its start."""

    def __init__(self, port, refuses):
        self.port, self.refuses, self.listener = port, refuses, socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        with client, socket.create_connection(("127.0.0.1", self.port)) as server:
            (size,) = struct.unpack("!i", client.recv(4, socket.MSG_WAITALL))
            body = client.recv(size - 4, socket.MSG_WAITALL)
            if body[:4] == struct.pack("!i", 80877103):
                client.sendall(b"N")  # no TLS
                (size,) = struct.unpack("!i", client.recv(4, socket.MSG_WAITALL))
                body = client.recv(size - 4, socket.MSG_WAITALL)
            words = body[4:].rstrip(b"\0").split(b"\0")
            asked = dict(zip(words[::2], words[1::2], strict=True))
            if asked.pop(b"options", None) and self.refuses:
                fields = b"SFATAL\0C08P01\0Munsupported startup parameter\0\0"
                client.sendall(b"E" + struct.pack("!i", len(fields) + 4) + fields)
                return
            body = body[:4] + b"".join(k + b"\0" + v + b"\0" for k, v in asked.items()) + b"\0"
            server.sendall(struct.pack("!i", len(body) + 4) + body)
            back = threading.Thread(target=self.relay, args=(server, client), daemon=True)
            back.start()
            self.relay(client, server)

    @staticmethod
    def relay(source, sink):
        try:
            while data := source.recv(1 << 16):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            return


@pytest.mark.parametrize(("refuses", "word"), [(False, "did not arrive"), (True, "refuses what sessions ask for")])
def test_a_pooler_that_changes_sessions_shows(patient, refuses, word):
    pooler = Pooler(patient.cluster.port, refuses)
    port = pooler.listener.getsockname()[1]
    code, found = patient.troubles(url=patient.database.url.replace(str(patient.cluster.port), str(port)))
    pooler.listener.close()
    assert (code, one(found, "pooler", word, "connect to the server itself")) == (1, "warn")
    assert one(found, "session", "plan_cache_mode = auto", "enable_seqscan = on", "docs/roles.sql") == "fail"


def test_what_cannot_be_reached_says_why_and_ends_with_69(patient):
    for url, word in [
        (patient.database.url.replace(PASSWORD, "wrong"), "password"),
        (patient.database.url.replace(patient.database.name, "nowhere"), "no such database"),
        (patient.database.url.replace(str(patient.cluster.port), "1"), "connection refused"),
    ]:
        code, found = patient.troubles(url=url)
        assert (code, one(found, "reach", word, "leasehold config print")) == (69, "fail")


def test_people_get_the_same_lines_as_programs(patient):
    done = patient.run("doctor")
    lines = json.loads(patient.run("doctor", "--json").stdout)["findings"]
    said = [line.split()[:2] for line in done.stdout.splitlines() if line.startswith(("ok ", "warn ", "fail "))]
    assert said == [[finding["level"], finding["check"]] for finding in lines]


def embedded(program, data, *arguments):
    """The doctor's look at an embedded database."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("LEASEHOLD_")}
    return subprocess.run([program, "doctor", "--data-dir", data, *arguments], env=environment, capture_output=True,
                          text=True, timeout=60, check=False)


def test_an_embedded_database_is_looked_at_beside_its_broker(program, brokers, work):
    broker = brokers(None)
    done = embedded(program, work / f"{broker.name}-data", "--strict")
    assert done.returncode == 0, done.stdout
    assert "SQLite answers at" in done.stdout and "at migration" in done.stdout and broker.is_ready()


def test_an_embedded_database_that_lost_an_index_and_whose_clock_went_back_says_so(program, brokers, work):
    broker = brokers(None)
    broker.end()
    data = work / f"{broker.name}-data"
    with closing(sqlite3.connect(data / "leasehold.db", isolation_level=None)) as file:
        file.execute("drop index job_ready")
        file.execute("update clock set last_at = last_at + 7200000000")
    done = embedded(program, data)
    assert done.returncode == 1
    assert "create index concurrently" not in done.stdout and "create index job_ready on job" in done.stdout
    assert "2 h ahead of this machine's" in done.stdout or "119 min ahead of this machine's" in done.stdout, done.stdout


def test_an_embedded_database_that_is_not_there_is_not_made(program, work):
    done = embedded(program, work / "none")
    assert done.returncode == 69 and "there is no database at" in done.stdout
    assert not (work / "none").exists()
