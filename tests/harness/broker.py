"""A broker process: started on free ports, watched, ended, and its output searched for what must never be there."""

import json
import os
import re
import signal
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import grpc

from harness.cluster import PASSWORD, free_port
from harness.stubs import admin_rpc, rpc, stock_admin_rpc, stock_rpc

# Put into payloads by the tests that use it: no log line may hold it.
PAYLOAD_MARK = "payload-marker-Kf27"
SQL_TEXT = re.compile(r"\b(select\s.+\sfrom|insert\s+into|update\s+\S+\s+set|delete\s+from|for\s+update)\b", re.I)

# Shorter than the defaults where a test would wait for them.
SETTINGS = {
    "LEASEHOLD_LOG_FORMAT": "json",
    "LEASEHOLD_LOG_LEVEL": "info",
}


class Broker:
    """One `leasehold serve`. `url` is that of its database; without one it runs on the embedded database in `data_dir`."""

    def __init__(self, program, work, url=None, name="broker", settings=None, migrate=True):
        self.program, self.url, self.name = program, url, name
        self.work = Path(work)
        self.work.mkdir(parents=True, exist_ok=True)
        self.log = self.work / f"{name}.log"
        self.settings, self.migrate = {**SETTINGS, **(settings or {})}, migrate
        self.process, self.port, self.http_port = None, None, None
        self.engine, self.database = None, None
        self.channels = []

    def start(self, wait=True):
        """Starts it, again on the ports that it had; waits until it is ready unless told otherwise."""
        self.port, self.http_port = self.port or free_port(), self.http_port or free_port()
        command = [self.program, "serve", "--listen", f"127.0.0.1:{self.port}",
                   "--http-listen", f"127.0.0.1:{self.http_port}", "--data-dir", str(self.work / f"{self.name}-data")]
        if self.migrate and self.url:
            command.append("--migrate")
        environment = {k: v for k, v in os.environ.items() if not k.startswith("LEASEHOLD_")}
        environment |= {"LEASEHOLD_REPLICA_NAME": self.name, "RUST_BACKTRACE": "1", **self.settings}
        if self.url:
            environment["LEASEHOLD_DATABASE_URL"] = self.url
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment,
                                            start_new_session=True)
        if wait:
            self.wait_ready()
        return self

    def wait_ready(self, within=30):
        """Polls readiness."""
        deadline = time.monotonic() + within
        while not self.is_ready():
            assert self.process.poll() is None, f"{self.name} ended with {self.process.returncode}:\n{self.tail()}"
            assert time.monotonic() < deadline, f"{self.name} is not ready after {within} s:\n{self.tail()}"
            time.sleep(0.02)

    def get(self, path):
        """Status and text of a page of the second port; (None, "") where nobody answers."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.http_port}{path}", timeout=2) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return None, ""

    def is_ready(self):
        """What readiness says just now."""
        return self.get("/readyz")[0] == 200

    def channel(self, port=None, options=()):
        """A channel of its own connection."""
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", 16 << 20),
                   ("grpc.max_send_message_length", 16 << 20), ("grpc.enable_retries", 0), *options]
        channel = grpc.insecure_channel(f"127.0.0.1:{port or self.port}", options=options)
        self.channels.append(channel)
        return channel

    def stub(self, **options):
        """The service on a channel of its own."""
        return rpc.QueueServiceStub(self.channel(**options))

    def admin(self, **options):
        """The operators' service on a channel of its own."""
        return admin_rpc.QueueAdminServiceStub(self.channel(**options))

    def reservations(self, **options):
        """The service of stock on a channel of its own."""
        return stock_rpc.ReservationServiceStub(self.channel(**options))

    def stock_admin(self, **options):
        """The operators' service of stock on a channel of its own."""
        return stock_admin_rpc.StockAdminServiceStub(self.channel(**options))

    def terminate(self):
        """SIGTERM."""
        self.process.send_signal(signal.SIGTERM)

    def kill(self):
        """kill -9, and waits until it is gone."""
        self.process.kill()
        self.process.wait(20)

    def pause(self):
        """SIGSTOP."""
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        """SIGCONT."""
        self.process.send_signal(signal.SIGCONT)

    def hang_up(self):
        """Closes the test's channels, and with them their streams."""
        for channel in self.channels:
            channel.close()
        self.channels.clear()

    def end(self):
        """Ends it in whatever state it is."""
        self.hang_up()
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.kill()

    def output(self):
        """All that it printed, over all its starts."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def tail(self):
        """The end of it, for failed assertions."""
        return self.output()[-3000:]

    def faults_in_output(self, secrets=()):
        """Lines that must not be there: panics, secrets, payloads, SQL, lines that are no JSON."""
        found = []
        for line in self.output().splitlines():
            if "panicked" in line or any(s in line for s in (PASSWORD, PAYLOAD_MARK, *secrets)) or SQL_TEXT.search(line):
                found.append(line)
            elif self.settings["LEASEHOLD_LOG_FORMAT"] == "json":
                try:
                    json.loads(line)
                except ValueError:
                    found.append(line)
        return found

    def memory(self):
        """Resident bytes."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) * 1024
        return 0

    def connections(self):
        """Clients' connections that it holds open, those that the client closed already included."""
        held = 0
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
            _, local, _, state = line.split()[:4]
            held += int(local.split(":")[1], 16) == self.port and state in ("01", "08")
        return held

    def descriptors(self):
        """Open file descriptors."""
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))
