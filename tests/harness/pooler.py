"""PgBouncer in front of a server, in transaction mode.

As a program, for `./test`:
    python -m harness.pooler version PATH    prints its version as one number: 12401 for 1.24.1
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from harness.calls import eventually
from harness.cluster import free_port

# From this version on it keeps account of prepared statements.
KEEPS_STATEMENTS = 12100

# What a broker's sessions ask for at their start, and a pooler drops: set for the role instead, as docs/roles.sql says.
ROLE_SETTINGS = {"plan_cache_mode": "force_generic_plan", "enable_seqscan": "off", "enable_hashjoin": "off",
                 "enable_mergejoin": "off", "statement_timeout": "10s", "lock_timeout": "2s",
                 "idle_in_transaction_session_timeout": "15s"}


def version(program):
    """Its version as one number."""
    text = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    parts = re.search(r"PgBouncer (\d+)\.(\d+)\.(\d+)", text)
    return sum(int(part) * factor for part, factor in zip(parts.groups(), (10_000, 100, 1)))


class Pooler:
    """One PgBouncer before the server of `url`; `settings` are lines of its configuration."""

    def __init__(self, program, url, **settings):
        self.program, self.url, self.port = program, urlsplit(url), free_port()
        self.root = Path(tempfile.mkdtemp(prefix="leasehold-pooler."))
        server, users = f"host={self.url.hostname} port={self.url.port}", self.root / "users"
        users.write_text(f'"{self.url.username}" "{self.url.password}"\n')
        lines = {"listen_addr": "127.0.0.1", "listen_port": self.port, "unix_socket_dir": "", "auth_type": "plain",
                 "auth_file": users, "pool_mode": "transaction", "default_pool_size": 4, "max_client_conn": 200,
                 "logfile": self.root / "log", "ignore_startup_parameters": "extra_float_digits,options", **settings}
        text = "".join(f"{name} = {value}\n" for name, value in lines.items() if value is not None)
        config = self.root / "pgbouncer.ini"
        config.write_text(f"[databases]\n* = {server}\n[pgbouncer]\n{text}")
        self.root.chmod(0o777)
        command = [program, str(config)]
        if os.geteuid() == 0:
            # It refuses to run as root.
            command = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", "--", *command]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, cwd="/")
        eventually(self._answers, what="the pooler")

    def _answers(self):
        assert self.process.poll() is None, (self.root / "log").read_text()
        try:
            with psycopg.connect(self.through(self.url.path.lstrip("/"))):
                return True
        except psycopg.OperationalError:
            return False

    def through(self, database):
        """URL of a database through it."""
        return f"postgres://{self.url.username}:{self.url.password}@127.0.0.1:{self.port}/{database}"

    def end(self):
        """Ends it."""
        self.process.kill()
        self.process.wait(10)
        shutil.rmtree(self.root, ignore_errors=True)


if __name__ == "__main__":
    print(version(sys.argv[2]))
