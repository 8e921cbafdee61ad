"""A run under faults: load, faults, the wait for the drain, the final tables, the verdict."""

import threading
import time
from contextlib import contextmanager
from pathlib import Path

import psycopg

from faults import checker
from faults.history import Recorder, now, read
from faults.load import Load, Plan

FINAL = """select (select coalesce(json_agg(json_build_array(id::text, split_part(convert_from(payload, 'UTF8'), '|', 1))), '[]')
                   from leasehold.job),
                  (select coalesce(json_agg(json_build_array(id::text, split_part(convert_from(payload, 'UTF8'), '|', 1))), '[]')
                   from leasehold.dead_job)"""


class Run:
    """One run on a database that can be asked at `url`. `plan` holds what differs from the usual load; `kind` is Load for
    threads of this process, or Processes."""

    def __init__(self, directory, url, ports, kind=Load, **plan):
        self.directory = Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.url = url
        self.recorder = Recorder(self.directory, "nemesis")
        self.load = kind(Plan(history=str(self.directory), ports=list(ports), **plan))
        self.watching = threading.Event()
        self.watcher = threading.Thread(target=self._watch, daemon=True)
        self.idle_in_transaction = []

    def __enter__(self):
        with self._session() as session:
            [(seconds,)] = session.execute("select extract(epoch from clock_timestamp())").fetchall()
        self.recorder.write("clock", t=now(), database=int(float(seconds) * 1e6))
        self.load.start()
        self.watcher.start()
        return self

    def __exit__(self, *error):
        self.watching.set()
        self.load.stopped.touch()

    @contextmanager
    def fault(self, what):
        """Notes when a fault began and ended."""
        begin = now()
        yield
        self.recorder.write("nemesis", what=what, begin=begin, end=now())

    def after_grants(self, count, within=30):
        """Waits until the workers got so many jobs, so that a fault meets work."""
        deadline = time.monotonic() + within
        while self.grants() < count:
            assert time.monotonic() < deadline, f"{self.grants()} grants after {within} s"
            time.sleep(0.02)

    def grants(self):
        """Grants so far."""
        return sum(text.count('"kind":"grant"') for text in
                   (path.read_text() for path in self.directory.glob("*worker*.jsonl")))

    def verdict(self, within=90, reaper_interval=1.0, least=100):
        """Waits until all is produced and nothing is live, and checks the history."""
        self.load.produced(within)
        deadline = time.monotonic() + within
        while self._live():
            assert time.monotonic() < deadline, f"{self._live()} jobs are live after {within} s"
            time.sleep(0.1)
        self.load.stop()
        self.watching.set()
        self.watcher.join(10)
        with self._session() as session:
            live, dead = session.execute(FINAL).fetchone()
        self.recorder.write("final", live=live, dead=dead)
        report = checker.check(read(self.directory), reaper_interval=reaper_interval, least=least)
        print(report.table())
        assert not self.idle_in_transaction, "a session of a broker stayed idle in a transaction"
        return report

    def _session(self):
        return psycopg.connect(self.url, autocommit=True, application_name="test", connect_timeout=5)

    def _live(self):
        with self._session() as session:
            return session.execute("select count(*) from leasehold.job").fetchone()[0]

    def _watch(self):
        """Polls for I10 and for transactions left open; goes on through outages."""
        while not self.watching.wait(0.25):
            try:
                with self._session() as session:
                    while not self.watching.wait(0.25):
                        begin = now()
                        live, dead = session.execute("select array(select id::text from leasehold.job),"
                                                     " array(select id::text from leasehold.dead_job)").fetchone()
                        self.recorder.write("poll", begin=begin, end=now(), live=live, dead=dead)
                        self.idle_in_transaction += session.execute(
                            "select pid, query from pg_stat_activity where datname = current_database()"
                            " and application_name <> 'test' and state like 'idle in transaction%'"
                            " and clock_timestamp() - state_change > interval '2 s'").fetchall()
            except psycopg.Error:
                continue  # the database is away: that is the fault of the moment
