"""A private PostgreSQL cluster: made, started, killed and thrown away.

PostgreSQL refuses to run as root, so root hands the server to the user `postgres`. The cluster listens on loopback and on
a socket in its own directory, writes every statement to its log, and keeps its durability settings.

As a program, for `./test`:
    python -m harness.cluster start --bin DIR --root DIR    prints the URL of the cluster
    python -m harness.cluster stop --root DIR
"""

import argparse
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psycopg

ROLE = "tester"
# Odd on purpose: the tests look for it in everything that a broker prints.
PASSWORD = "dsn-marker-Zq81"

# The time zone is one with an odd offset and daylight saving: no result may depend on it.
SETTINGS = {
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "log_statement": "all",
    "log_parameter_max_length": "0",
    "log_parameter_max_length_on_error": "0",
    "log_line_prefix": "%m [%p] app=%a db=%d user=%u ",
    "log_timezone": "UTC",
    "lc_messages": "C",
    "timezone": "Pacific/Chatham",
    "max_connections": "200",
    "shared_buffers": "128MB",
    "max_wal_size": "2GB",
}


def as_server(command):
    """`command` under the user that may run a server."""
    if os.geteuid() == 0:
        return ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", "--", *command]
    return list(command)


def free_port():
    """A loopback port that nobody uses just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def usable_bin(bin_dir, spare):
    """`bin_dir`, or a copy under `spare` where the server's user may not read the original."""
    probe = subprocess.run(as_server([str(bin_dir / "postgres"), "--version"]), capture_output=True, cwd="/")
    if probe.returncode == 0:
        return bin_dir
    copy = spare / "install"
    if not copy.exists():
        shutil.copytree(bin_dir.parent, copy)
        subprocess.run(["chmod", "-R", "a+rX", str(copy)], check=True)
    return copy / "bin"


class Cluster:
    """One cluster in `root`. Several may run side by side."""

    def __init__(self, bin_dir, root, settings=None):
        self.root = Path(root)
        self.data = self.root / "data"
        self.log = self.root / "log"
        self.root.mkdir(parents=True, exist_ok=True)
        self.root.chmod(0o755)
        self.bin = usable_bin(Path(bin_dir), self.root)
        self.settings = {**SETTINGS, **(settings or {})}
        self.port = None

    def create(self):
        """Makes the data directory and picks the port."""
        self.port = free_port()
        sockets = self.root / "socket"
        for directory in (self.data, sockets):
            directory.mkdir(mode=0o700, exist_ok=True)
            if os.geteuid() == 0:
                shutil.chown(directory, "postgres", "postgres")
        self.log.touch()
        self.log.chmod(0o666)
        secret = self.root / "password"
        secret.write_text(PASSWORD)
        secret.chmod(0o644)
        self._run("initdb", "-D", str(self.data), "-U", ROLE, "-A", "scram-sha-256", f"--pwfile={secret}",
                  "-E", "UTF8", "--locale=C", "--no-instructions")
        lines = {**self.settings, "port": str(self.port), "listen_addresses": "127.0.0.1",
                 "unix_socket_directories": str(sockets)}
        text = "".join(f"{name} = '{value}'\n" for name, value in lines.items())
        append = as_server(["tee", "-a", str(self.data / "postgresql.conf")])
        subprocess.run(append, input=text, text=True, check=True, stdout=subprocess.DEVNULL)
        (self.root / "port").write_text(str(self.port))
        return self

    def start(self):
        """Starts the server and waits until it answers."""
        self.port = int((self.root / "port").read_text())
        self._run("pg_ctl", "-D", str(self.data), "-l", str(self.log), "-w", "-t", "60", "start")
        return self

    def stop(self, mode="fast"):
        """Stops the server where it runs."""
        if self.postmaster() is not None:
            self._run("pg_ctl", "-D", str(self.data), "-m", mode, "-w", "-t", "60", "stop")

    def kill(self):
        """kill -9 of every process of the server, the first one first."""
        deadline = time.monotonic() + 20
        while pids := self.pids():
            assert time.monotonic() < deadline, "the killed server does not go"
            for pid in sorted(pids, key=lambda pid: pid != self.postmaster()):
                _signal(pid, signal.SIGKILL)
            time.sleep(0.02)
        # Where nobody waited for the dead process, its number still looks taken to the next server.
        locks = [self.data / "postmaster.pid", self.root / "socket" / f".s.PGSQL.{self.port}.lock"]
        subprocess.run(as_server(["rm", "-f", *map(str, locks)]), check=True, cwd="/")

    def pause(self):
        """Stops all its processes where they are; sockets stay open."""
        for pid in self.pids():
            _signal(pid, signal.SIGSTOP)

    def resume(self):
        """Lets paused processes go on."""
        for pid in self.pids():
            _signal(pid, signal.SIGCONT)

    def postmaster(self):
        """Its first process, where it runs."""
        try:
            lines = subprocess.run(as_server(["cat", str(self.data / "postmaster.pid")]), capture_output=True, text=True,
                                   check=True, cwd="/").stdout
            pid = int(lines.splitlines()[0])
        except (subprocess.CalledProcessError, IndexError, ValueError):
            return None
        return pid if _alive(pid) else None

    def pids(self):
        """All its processes, found by their data directory, so that backends whose postmaster died count too."""
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                if os.readlink(entry / "cwd") == str(self.data.resolve()):
                    found.append(int(entry.name))
            except OSError:
                continue
        return sorted(found)

    def url(self, database="postgres", port=None):
        """How a broker reaches it; through a proxy where `port` is that of one."""
        return f"postgres://{ROLE}:{PASSWORD}@127.0.0.1:{port or self.port}/{database}"

    def connect(self, database="postgres", **options):
        """A session of the test's own, autocommit unless told otherwise."""
        options = {"autocommit": True, "application_name": "test", **options}
        return psycopg.connect(self.url(database), **options)

    def _run(self, program, *arguments):
        # pg_ctl's child keeps its output open, so a pipe here would wait for the server's end.
        with open(self.root / "commands.log", "a", encoding="utf-8") as out:
            done = subprocess.run(as_server([str(self.bin / program), *arguments]), stdin=subprocess.DEVNULL, stdout=out,
                                  stderr=out, cwd="/", timeout=120)
        if done.returncode != 0:
            raise RuntimeError(f"{program} failed:\n{(self.root / 'commands.log').read_text()}\n{self.log.read_text()[-2000:]}")


def _signal(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def _alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


def main():
    """The command line that `./test` uses."""
    parser = argparse.ArgumentParser()
    parser.add_argument("act", choices=["start", "stop"])
    parser.add_argument("--bin", required=True, type=Path)
    parser.add_argument("--root", required=True, type=Path)
    options = parser.parse_args()
    cluster = Cluster(options.bin, options.root)
    if options.act == "stop":
        cluster.stop("immediate")
        return 0
    cluster.create().start()
    print(cluster.url())
    return 0


if __name__ == "__main__":
    sys.exit(main())
