"""What all parts stand on: a server, a broker, and `leasehold bench`."""

import json
import os
import re
import signal
import subprocess
import tempfile
import threading
import time
from collections import deque
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from peers.driver.places import Failed, end

ROUND = re.compile(r"round (\d+) of \d+")
REMOVING = "removing what is left"
# Seconds: a broker that is not ready by then will not be.
START = 60
# Lines of what bench says when it fails.
LAST = 4


def clean_environment():
    """The environment without what is set for the one who measures."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("LEASEHOLD_", "PG"))}


@dataclass
class Stand:
    """What all parts share."""

    postgres: object
    root: Path
    # the program `leasehold`
    program: Path
    # where peers are installed
    build: Path
    said: object
    note: object
    environment: dict = field(default_factory=clean_environment)

    @property
    def log(self):
        """The log of the PostgreSQL server."""
        return self.root / "postgres.log"

    def jobs(self, usual):
        """As many jobs as `--scale` makes of the usual ones, in whole thousands."""
        return max(1_000, int(usual * self.said.scale) // 1_000 * 1_000)

    def database(self, name):
        """The URL of a new database, when the server has written down what it had to."""
        url = self.postgres.database(name)
        self.postgres.settle()
        return url

    def bench(self, act, *, on=None, timeout=None, begun=lambda number: None, **options):
        """What `leasehold bench ACT` measured with these options as its flags, on this database, or the embedded one. `begun` is
        told the number of each round as it begins, and None when all are over."""
        command = [self.program, "bench", act, "--json"]
        for name, value in {**options, **({"database_url": on} if on else {})}.items():
            command += [f"--{name.replace('_', '-')}", value]
        with tempfile.TemporaryFile("w+") as out:
            process = subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=out,
                                       stderr=subprocess.PIPE, text=True, env=self.environment, cwd="/")
            late = threading.Timer(timeout or self.said.timeout, process.terminate)
            late.start()
            try:
                last = _follow(process.stderr, begun)
                process.wait()
                in_time = late.is_alive()
            finally:
                late.cancel()
                if process.poll() is None:
                    _end_with_broker(process)
            out.seek(0)
            said = out.read()
        if not in_time:
            raise Failed(f"bench {act} took longer than {timeout or self.said.timeout:.0f} s")
        if process.returncode != 0:
            raise Failed(f"bench {act}: {last}")
        return json.loads(said)

    @contextmanager
    def serving(self, url):
        """A broker on this database, until the end of the block."""
        directory = tempfile.mkdtemp(prefix="broker-", dir=self.root)
        log = Path(directory) / "log"
        environment = {**self.environment, "LEASEHOLD_LISTEN": "127.0.0.1:0", "LEASEHOLD_HTTP_LISTEN": "127.0.0.1:0",
                       "LEASEHOLD_DATA_DIR": directory, "LEASEHOLD_DATABASE_URL": url, "LEASEHOLD_LOG_FORMAT": "json"}
        with open(log, "w", encoding="utf-8") as out:
            process = subprocess.Popen([str(self.program), "serve", "--migrate"], stdin=subprocess.DEVNULL, stdout=out,
                                       stderr=out, env=environment, cwd="/")
        try:
            yield Broker(process, _address(process, log))
        finally:
            process.terminate()
            end(process, 60)


@dataclass(frozen=True)
class Broker:
    """A broker that serves."""

    process: subprocess.Popen
    address: str

    @property
    def flags(self):
        """What tells bench which it is."""
        return {"address": self.address, "broker_pid": self.process.pid}

    def resident(self):
        """Bytes of memory."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS:"))) * 1024


def _end_with_broker(bench):
    """Asks bench to end, which ends the broker that it has started; and sees to both where it does not."""
    children = Path(f"/proc/{bench.pid}/task").glob("*/children")
    brokers = [int(pid) for of_thread in children for pid in of_thread.read_text(encoding="ascii").split()]
    bench.terminate()
    try:
        bench.communicate(timeout=30)
    except subprocess.TimeoutExpired:
        bench.kill()
        bench.communicate()
        for broker in brokers:
            with suppress(ProcessLookupError):
                os.kill(broker, signal.SIGTERM)


def _follow(stderr, begun):
    """Reads what bench says of its steps to its end; answers what it said last."""
    said = deque(maxlen=LAST)
    for line in stderr:
        said.append(line.strip())
        found = ROUND.search(line)
        if found:
            begun(int(found.group(1)))
        elif REMOVING in line:
            begun(None)
    return " ".join(said)


def _address(process, log):
    """Where it serves, once it is ready."""
    give_up = time.monotonic() + START
    while time.monotonic() < give_up and process.poll() is None:
        said = log.read_text(encoding="utf-8")
        if '"ready: ' in said:
            for line in said.splitlines():
                try:
                    address = json.loads(line).get("grpc")
                except ValueError:
                    continue
                if address:
                    return f"http://{address}"
        time.sleep(0.05)
    raise Failed(f"the broker did not start: {log.read_text(encoding='utf-8')[-300:]}")
