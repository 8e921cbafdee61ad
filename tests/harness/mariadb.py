"""A private MariaDB server, or one of MySQL: made, started, killed and thrown away.

The programs hand the server to another user where root starts them. The server listens on loopback and on a
socket in its own directory and writes every statement to its general log. Its durability settings are those that the
broker asks for; all others that a session inherits are as unfriendly as a server may have them: no result may depend on
them. Deadlocks are written to `error.log` in its directory, each with the tables it was about.

As a program, for `./test`:
    python -m harness.mariadb start --root DIR [--mysqld PROGRAM]    prints the URL of the server
    python -m harness.mariadb stop --root DIR
MySQL's program finds its messages under `share` beside the directory that it is in.
"""

import argparse
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pymysql

from harness.cluster import PASSWORD, ROLE, free_port

SETTINGS = {
    "innodb_flush_log_at_trx_commit": "1",
    "sync_binlog": "1",
    "innodb_buffer_pool_size": "128M",
    "loose_innodb_log_file_size": "256M",
    "innodb_print_all_deadlocks": "1",
    "max_connections": "300",
    "general_log": "1",
    "performance_schema": "0",
    "loose_mysqlx": "0",
    # The first servers of MySQL 8 speak no TLS that the broker's library knows; without it they take a password in the old way.
    "loose_ssl": "0",
    "loose_default_authentication_plugin": "mysql_native_password",
    # What a session must not depend on.
    "character_set_server": "latin1",
    "collation_server": "latin1_swedish_ci",
    "default_time_zone": "+05:30",
    "transaction_isolation": "REPEATABLE-READ",
    "sql_mode": "ANSI,NO_BACKSLASH_ESCAPES,PAD_CHAR_TO_FULL_LENGTH",
    "completion_type": "CHAIN",
    "autocommit": "0",
}


# The role of the tests' own sessions, so that the log tells them from a broker's.
OWN_ROLE = "watcher"


def program(name):
    """Where Debian puts the server's programs; `/usr/sbin` is not in everybody's path."""
    found = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/bin")
    if found is None:
        raise RuntimeError(f"{name} is not installed")
    return found


class MariaDB:
    """One server in `root`. Several may run side by side. `mysqld` is MySQL's program; without it the server is MariaDB."""

    def __init__(self, root, settings=None, mysqld=None):
        self.root = Path(root)
        self.mysqld = mysqld and Path(mysqld).resolve()
        self.data = self.root / "data"
        self.log = self.root / "general.log"
        self.socket = self.root / "run" / "socket"
        self.settings = {**SETTINGS, **(settings or {})}
        self.root.mkdir(parents=True, exist_ok=True)
        self.root.chmod(0o755)

    @property
    def port(self):
        """Where it listens."""
        return int((self.root / "port").read_text())

    def create(self):
        """Makes the data directory and picks the port."""
        (self.root / "port").write_text(str(free_port()))
        for directory in (self.data, self.socket.parent):
            directory.mkdir(mode=0o755, exist_ok=True)
            if os.geteuid() == 0:
                shutil.chown(directory, _account())
        self.log.touch()
        self.log.chmod(0o666)
        installed = [program("mariadb-install-db"), "--no-defaults", f"--datadir={self.data}", "--skip-test-db",
                     "--auth-root-authentication-method=normal", *self._user()]
        if self.mysqld:
            installed = [*self._server(), "--initialize-insecure", *self._user()]
        self._run(installed)
        return self

    def _server(self):
        """The program and where its files are."""
        if self.mysqld:
            home = self.mysqld.parent.parent
            share = next(path for path in (home / "share", home / "share" / "mysql") if (path / "english").exists())
            return [self.mysqld, "--no-defaults", f"--datadir={self.data}", f"--basedir={home}",
                    f"--lc-messages-dir={share}"]
        return [program("mariadbd"), "--no-defaults", f"--datadir={self.data}"]

    def start(self):
        """Starts the server and waits until it answers."""
        options = [f"--{name.replace('_', '-')}={value}" for name, value in self.settings.items()]
        with open(self.root / "error.log", "a", encoding="utf-8") as out:
            # A session of its own: a Ctrl-C at the tests must not take it before they have cleaned up.
            started = subprocess.Popen(
                [*self._server(), f"--port={self.port}", "--bind-address=127.0.0.1", f"--socket={self.socket}",
                 f"--pid-file={self.root}/run/pid", f"--general-log-file={self.log}", f"--tmpdir={self.root}/run", *options, *self._user()],
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd="/", start_new_session=True)
        (self.root / "server").write_text(str(started.pid))
        deadline = time.monotonic() + 60
        while not self._answers():
            if started.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("the server does not start:\n" + (self.root / "error.log").read_text()[-3000:])
            time.sleep(0.05)
        return self

    def _answers(self):
        try:
            with pymysql.connect(unix_socket=str(self.socket), user="root", autocommit=True) as session, \
                    session.cursor() as cursor:
                for role in (ROLE, OWN_ROLE):
                    cursor.execute(f"create user if not exists '{role}'@'localhost' identified by '{PASSWORD}'")
                    cursor.execute(f"grant all on *.* to '{role}'@'localhost' with grant option")
            return True
        except pymysql.err.OperationalError:
            return False

    def stop(self):
        """Stops the server where it runs."""
        self._end(signal.SIGTERM)

    def kill(self):
        """kill -9 of the server."""
        self._end(signal.SIGKILL)

    def pause(self):
        """Stops it where it is; sockets stay open."""
        os.kill(self.pid(), signal.SIGSTOP)

    def resume(self):
        """Lets a paused server go on."""
        pid = self.pid()
        if pid is not None:
            os.kill(pid, signal.SIGCONT)

    def pid(self):
        """Its process, where it runs."""
        try:
            pid = int((self.root / "server").read_text())
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
            cwd_is_ours = str(self.data) in Path(f"/proc/{pid}/cmdline").read_text()
        except (OSError, ValueError):
            return None
        return pid if state != "Z" and cwd_is_ours else None

    def _end(self, how):
        deadline = time.monotonic() + 60
        pid = self.pid()
        if pid is not None:
            os.kill(pid, how)
        while self.pid() is not None:
            assert time.monotonic() < deadline, "the server does not end"
            time.sleep(0.02)

    def url(self, database="", port=None):
        """How a broker reaches it; through a proxy where `port` is that of one."""
        return f"mariadb://{ROLE}:{PASSWORD}@127.0.0.1:{port or self.port}/{database}"

    def connect(self, database=None, **options):
        """A session of the test's own, autocommit unless told otherwise."""
        return connect(self.port, database, **options)

    def _user(self):
        return [f"--user={_account()}"] if os.geteuid() == 0 else []

    def _run(self, command):
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd="/", timeout=120)
        if done.returncode != 0:
            raise RuntimeError(f"{command[0]} failed:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")


def _account():
    """Who runs the server where root starts it: only the whole package makes an account for it."""
    return "mysql" if "mysql" in {entry.pw_name for entry in pwd.getpwall()} else "nobody"


def connect(port, database=None, **options):
    """A session of the test's own on a server, at READ COMMITTED as a service has to be."""
    session = pymysql.connect(host="127.0.0.1", port=port, user=OWN_ROLE, password=PASSWORD, database=database,
                              **{"autocommit": True, **options})
    with session.cursor() as cursor:
        cursor.execute("set session transaction isolation level read committed")
        cursor.execute("set completion_type = 0, sql_mode = 'STRICT_TRANS_TABLES'")
    return session


ENTRY = re.compile(rb"^(?:\d{6} [ \d:]+\t|\t\t)? *(\d+) (Connect|Query|Prepare|Execute|Close stmt|Quit|Init DB|Reset stmt)\t",
                   re.M)


def statements(log, database, begin=0):
    """What brokers sent to a database: (thread, command, text) for each statement in the general log from a place on."""
    text = Path(log).read_bytes()[begin:]
    marks = list(ENTRY.finditer(text))
    ours, found = set(), []
    for mark, after in zip(marks, [*marks[1:], None]):
        thread, command = int(mark[1]), mark[2].decode()
        body = text[mark.end():after.start() if after else len(text)].decode(errors="replace").rstrip("\n")
        if command == "Connect":
            ours.discard(thread)
            if body.startswith(f"{ROLE}@") and f" on {database} " in body:
                ours.add(thread)
        elif thread in ours and command in ("Query", "Prepare", "Execute"):
            found.append((thread, command, body))
    return found


def main():
    """The command line that `./test` uses."""
    parser = argparse.ArgumentParser()
    parser.add_argument("act", choices=["start", "stop"])
    parser.add_argument("--root", required=True, type=Path)
    parser.add_argument("--mysqld", type=Path)
    options = parser.parse_args()
    server = MariaDB(options.root, mysqld=options.mysqld)
    if options.act == "stop":
        server.kill()
        return 0
    server.create().start()
    print(server.url())
    return 0


if __name__ == "__main__":
    sys.exit(main())
