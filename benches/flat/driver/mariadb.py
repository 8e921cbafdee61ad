"""A private MariaDB server, gone at the end."""

import os
import pwd
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from peers.driver.places import Failed, end, free_port, program, run

# Durability is not touched; the rest is what a server of this size would have.
SETTINGS = {
    "innodb-flush-log-at-trx-commit": "1",
    "sync-binlog": "1",
    "innodb-buffer-pool-size": "512M",
    "innodb-log-file-size": "2G",
    "max-connections": "200",
    "bind-address": "127.0.0.1",
}
PASSWORD = "bench"
START = 60


@dataclass
class Server:
    """One server, and new databases for whoever asks."""

    port: int
    socket: Path

    def sql(self, text):
        """Runs a statement as root."""
        return run([program("mariadb"), "--no-defaults", f"--socket={self.socket}", "-uroot", "-Ne", text], 60)

    @contextmanager
    def databases(self):
        """URLs of two new databases."""
        names = ("ours", "bare")
        for name in names:
            self.sql(f"drop database if exists {name}; create database {name}")
        yield tuple(f"mariadb://bench:{PASSWORD}@127.0.0.1:{self.port}/{name}" for name in names)


@contextmanager
def mariadb(root):
    """A server that keeps what it committed."""
    home, port = root / "mariadb", free_port()
    data, socket = home / "data", home / "socket"
    data.mkdir(parents=True)
    account = []
    if os.geteuid() == 0:
        # only Debian's whole package makes an account for it
        names = {entry.pw_name: entry for entry in pwd.getpwall()}
        user = names.get("mysql") or names["nobody"]
        for path in (home, data):
            os.chown(path, user.pw_uid, user.pw_gid)
        account = [f"--user={user.pw_name}"]
    run([program("mariadb-install-db"), "--no-defaults", f"--datadir={data}", "--skip-test-db",
         "--auth-root-authentication-method=normal", *account], 120)
    with open(home / "log", "w", encoding="utf-8") as log:
        process = subprocess.Popen([program("mariadbd"), "--no-defaults", f"--datadir={data}", f"--port={port}",
                                    f"--socket={socket}", f"--pid-file={home / 'pid'}", *account,
                                    *(f"--{name}={value}" for name, value in SETTINGS.items())],
                                   stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/")
    try:
        server = Server(port, socket)
        _wait(server, process)
        server.sql(f"create user bench@'%' identified by '{PASSWORD}'; grant all on *.* to bench@'%'")
        yield server
    finally:
        process.terminate()
        end(process, 60)


def _wait(server, process):
    give_up = time.monotonic() + START
    while True:
        try:
            server.sql("select 1")
            return
        except Failed:
            if process.poll() is not None or time.monotonic() > give_up:
                raise
        time.sleep(0.1)
