"""What a run asks the broker's tables, past the broker, on PostgreSQL and on MariaDB."""

from contextlib import contextmanager
from urllib.parse import urlsplit

import psycopg
import pymysql

from harness import mariadb


def of(url):
    """The tables in the database at `url`."""
    return Postgres(url) if url.startswith("postgres") else MariaDB(url)


class Postgres:
    """On PostgreSQL."""

    errors = psycopg.Error

    def __init__(self, url):
        self.url = url

    @contextmanager
    def session(self):
        """What the other methods need; it ends with the block."""
        with psycopg.connect(self.url, autocommit=True, application_name="test", connect_timeout=5) as session:
            yield session

    def now(self, session):
        """The database's clock, in microseconds."""
        [(seconds,)] = session.execute("select extract(epoch from clock_timestamp())").fetchall()
        return int(float(seconds) * 1e6)

    def count(self, session):
        """How many jobs are live."""
        return session.execute("select count(*) from leasehold.job").fetchone()[0]

    def ids(self, session):
        """(live, dead) at one instant."""
        return session.execute("select array(select id::text from leasehold.job),"
                               " array(select id::text from leasehold.dead_job)").fetchone()

    def labels(self, session):
        """(live, dead) as pairs of id and label."""
        jobs = ("(select coalesce(json_agg(json_build_array(id::text, split_part(convert_from(payload, 'UTF8'), '|', 1))), '[]')"
                " from leasehold.{})")
        return session.execute(f"select {jobs.format('job')}, {jobs.format('dead_job')}").fetchone()

    def idle_in_transaction(self, session):
        """Sessions of brokers that have been so for 2 s."""
        return session.execute("select pid, query from pg_stat_activity where datname = current_database()"
                               " and application_name <> 'test' and state like 'idle in transaction%'"
                               " and clock_timestamp() - state_change > interval '2 s'").fetchall()


class MariaDB:
    """On MariaDB and MySQL."""

    errors = pymysql.err.MySQLError

    def __init__(self, url):
        parts = urlsplit(url)
        self.port, self.database = parts.port, parts.path.strip("/")

    @contextmanager
    def session(self):
        """What the other methods need; it ends with the block."""
        with mariadb.connect(self.port, self.database, connect_timeout=5) as session:
            yield session

    def now(self, session):
        """The database's clock, in microseconds."""
        [(seconds,)] = _all(session, "select unix_timestamp(sysdate(6))")
        return int(seconds * 1_000_000)

    def count(self, session):
        """How many jobs are live."""
        return _all(session, "select count(*) from leasehold_job")[0][0]

    def ids(self, session):
        """(live, dead) at one instant: one statement reads from one snapshot."""
        rows = _all(session, "select 0, id from leasehold_job union all select 1, id from leasehold_dead_job")
        return [[str(id) for dead, id in rows if dead == wanted] for wanted in (0, 1)]

    def labels(self, session):
        """(live, dead) as pairs of id and label."""
        return [[[str(id), payload.decode().split("|", 1)[0]] for id, payload in
                 _all(session, f"select id, payload from leasehold_{table}")] for table in ("job", "dead_job")]

    def idle_in_transaction(self, session):
        """Sessions of brokers that have been so for 2 s."""
        return _all(session, "select p.id, t.trx_query from information_schema.innodb_trx t"
                             " join information_schema.processlist p on p.id = t.trx_mysql_thread_id"
                             f" where p.db = database() and p.user <> '{mariadb.OWN_ROLE}' and p.command = 'Sleep'"
                             " and p.time > 2")


def _all(session, statement):
    with session.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall()
