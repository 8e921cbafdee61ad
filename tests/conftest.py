"""What wire tests and fault tests share: databases and brokers, made for each test and gone after it."""

import os
import shutil
import tempfile
import uuid
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

from harness import mariadb as mariadb_harness
from harness import statements
from harness.broker import Broker
from harness.cluster import Cluster


def needed(name):
    """An environment variable that `./test` sets."""
    value = os.environ.get(name)
    if not value:
        pytest.exit(f"{name} is not set: run these tests by ./test wire or ./test faults", returncode=2)
    return value


@pytest.fixture(scope="session")
def program():
    """The broker under test."""
    return needed("LEASEHOLD_TEST_BROKER")


@pytest.fixture(scope="session")
def server():
    """The PostgreSQL that `./test` started, as (URL, path of its log)."""
    return needed("LEASEHOLD_TEST_POSTGRES_URL"), Path(needed("LEASEHOLD_TEST_POSTGRES_LOG"))


class Database:
    """A fresh database of the server."""

    def __init__(self, url, log):
        self.url, self.log = url, log
        self.begin = log.stat().st_size
        self.name = url.rsplit("/", 1)[1]

    def connect(self, **options):
        """A session of the test's own."""
        return psycopg.connect(self.url, **{"autocommit": True, "application_name": "test", **options})

    def one(self, statement, *values):
        """First column of the first row."""
        with self.connect() as session:
            row = session.execute(statement, values).fetchone()
            return row[0] if row else None

    def all(self, statement, *values):
        """All rows."""
        with self.connect() as session:
            return session.execute(statement, values).fetchall()

    def statements(self):
        """What brokers sent to it, from the server's log."""
        return statements.of_brokers(self.log, self.name, self.begin)

    def log_entries(self):
        """All that the server logged about it."""
        return statements.entries(self.log, self.name, self.begin)

    def sessions(self, application="%"):
        """(pid, state, query, seconds in its transaction) of the others' sessions."""
        return self.all("""select pid, state, query, extract(epoch from clock_timestamp() - xact_start)::float
                           from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
                           and application_name like %s and application_name <> 'test'""", application)


@contextmanager
def fresh_database(server):
    """A database that is dropped afterwards."""
    url, log = server
    name = f"t_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(url, autocommit=True) as session:
        session.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
    yield Database(url.rsplit("/", 1)[0] + f"/{name}", log)
    with psycopg.connect(url, autocommit=True) as session:
        session.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))


class MariaDatabase:
    """A fresh database on the MariaDB server."""

    def __init__(self, url, log, name):
        self.url, self.log, self.name = f"{url}{name}", log, name
        self.begin = log.stat().st_size
        self.port = urlsplit(url).port

    def connect(self, **options):
        """A session of the test's own, at READ COMMITTED."""
        return mariadb_harness.connect(self.port, self.name, **options)

    def one(self, statement, *values):
        """First column of the first row."""
        with self.connect() as session, session.cursor() as cursor:
            cursor.execute(statement, values)
            row = cursor.fetchone()
            return row[0] if row else None

    def statements(self):
        """What brokers sent to it, from the server's log: (thread, command, text)."""
        return mariadb_harness.statements(self.log, self.name, self.begin)


@contextmanager
def fresh_mariadb():
    """A MariaDB database that is dropped afterwards."""
    url, name = needed("LEASEHOLD_TEST_MARIADB_URL"), f"t_{uuid.uuid4().hex[:12]}"
    database = MariaDatabase(url, Path(needed("LEASEHOLD_TEST_MARIADB_LOG")), name)
    with mariadb_harness.connect(database.port) as session, session.cursor() as cursor:
        cursor.execute(f"create database {name}")
    yield database
    with mariadb_harness.connect(database.port) as session, session.cursor() as cursor:
        cursor.execute(f"drop database {name}")


@pytest.fixture
def mariadb():
    """A fresh database on the MariaDB server."""
    with fresh_mariadb() as database:
        yield database


@contextmanager
def open_directory():
    """A directory that others may enter (the database's user too), gone afterwards."""
    path = Path(tempfile.mkdtemp(prefix="leasehold-work."))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@contextmanager
def broker_maker(program, work):
    """Makes brokers; ends them afterwards, and fails where one printed what it must not."""
    made = []

    def make(url=None, name=None, wait=True, migrate=True, **settings):
        settings = {f"LEASEHOLD_{key.upper()}": str(value) for key, value in settings.items()}
        broker = Broker(program, work, url, name or f"broker-{len(made)}", settings, migrate)
        made.append(broker)
        return broker.start(wait)

    yield make
    for broker in made:
        broker.end()
    for broker in made:
        assert not broker.faults_in_output(), "the log holds what it must not"


@pytest.fixture
def postgres(server):
    """A fresh database on the server."""
    with fresh_database(server) as database:
        yield database


@pytest.fixture
def work():
    """A directory of the test's own."""
    with open_directory() as path:
        yield path


@pytest.fixture
def brokers(program, work):
    """Makes brokers of the test's own."""
    with broker_maker(program, work) as make:
        yield make


@pytest.fixture(scope="session")
def shared_brokers(program, server):
    """By engine, a broker with default settings that the tests share; each test has queues of its own."""
    with open_directory() as path, fresh_database(server) as database, fresh_mariadb() as mariadb, \
            broker_maker(program, path) as make:
        running, urls = {}, {"postgres": database.url, "mariadb": mariadb.url}

        def get(engine):
            if engine not in running:
                running[engine] = make(urls.get(engine), name=f"shared-{engine}")
                running[engine].engine = engine
                running[engine].database = database if engine == "postgres" else None
            return running[engine]

        yield get


@pytest.fixture(params=["sqlite", "postgres", "mariadb"])
def broker(request):
    """A broker on each engine in turn: the shared one, or one of the test's own where it is marked `own_broker` or, for
    settings, `settings`."""
    mark, own = request.node.get_closest_marker("settings"), request.node.get_closest_marker("own_broker")
    if not mark and not own:
        yield request.getfixturevalue("shared_brokers")(request.param)
        return
    make = request.getfixturevalue("brokers")
    database = None if request.param == "sqlite" else request.getfixturevalue(request.param)
    made = make(database.url if database else None, **(mark.kwargs if mark else {}))
    made.engine, made.database = request.param, database if request.param == "postgres" else None
    yield made


@pytest.fixture
def stub(broker):
    """The service of that broker, on a connection of the test's own."""
    yield broker.stub()
    broker.hang_up()


@pytest.fixture
def admin(broker):
    """The operators' service of that broker, on a connection of the test's own."""
    yield broker.admin()
    broker.hang_up()


@pytest.fixture
def stock(broker):
    """The service of stock of that broker, on a connection of the test's own."""
    yield broker.reservations()
    broker.hang_up()


@pytest.fixture
def cluster(work):
    """A PostgreSQL of the test's own, to be killed and paused."""
    made = Cluster(needed("LEASEHOLD_TEST_POSTGRES_BIN"), work / "cluster").create().start()
    yield made
    made.resume()
    made.stop("immediate")
