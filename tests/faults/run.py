"""A run under faults: load, faults, the wait for the drain, the final tables, the verdict."""

import threading
import time
from contextlib import contextmanager
from pathlib import Path

from faults import checker, tables
from faults.history import Recorder, now, read
from faults.load import Load, Plan

class Run:
    """One run on a database that can be asked at `url`. `plan` holds what differs from the usual load; `kind` is Load for
    threads of this process, or Processes."""

    def __init__(self, directory, url, ports, kind=Load, **plan):
        self.directory = Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.tables = tables.of(url)
        self.recorder = Recorder(self.directory, "nemesis")
        self.load = kind(Plan(history=str(self.directory), ports=list(ports), **plan))
        self.watching = threading.Event()
        self.watcher = threading.Thread(target=self._watch, daemon=True)
        self.idle_in_transaction = []

    def __enter__(self):
        with self.tables.session() as session:
            database = self.tables.now(session)
        self.recorder.write("clock", t=now(), database=database)
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

    def verdict(self, within=90, reaper_interval=1.0, least=100, undone=False):
        """Waits until all is produced and nothing is live, and checks the history."""
        self.load.produced(within)
        deadline = time.monotonic() + within
        while self._live():
            assert time.monotonic() < deadline, f"{self._live()} jobs are live after {within} s"
            time.sleep(0.1)
        self.load.stop()
        self.watching.set()
        self.watcher.join(10)
        with self.tables.session() as session:
            live, dead = self.tables.labels(session)
        self.recorder.write("final", live=live, dead=dead)
        report = checker.check(read(self.directory), reaper_interval=reaper_interval, least=least,
                               undone=undone)
        print(report.table())
        assert not self.idle_in_transaction, "a session of a broker stayed idle in a transaction"
        return report

    def _live(self):
        with self.tables.session() as session:
            return self.tables.count(session)

    def _watch(self):
        """Polls for I10 and for transactions left open; goes on through outages."""
        while not self.watching.wait(0.25):
            try:
                with self.tables.session() as session:
                    while not self.watching.wait(0.25):
                        begin = now()
                        live, dead = self.tables.ids(session)
                        self.recorder.write("poll", begin=begin, end=now(), live=live, dead=dead)
                        self.idle_in_transaction += self.tables.idle_in_transaction(session)
            except self.tables.errors:
                continue  # the database is away: that is the fault of the moment
