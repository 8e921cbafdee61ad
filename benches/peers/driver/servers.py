"""Private servers, in a temporary directory, gone at the end."""

import os
import signal
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

from .places import Failed, as_user, free_port, give, program, run, wait_for_port

# The same for all who are measured on it. Durability is not touched; the rest is what a server of this size would have.
POSTGRES = {
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "max_connections": "300",
    "shared_buffers": "1GB",
    "max_wal_size": "8GB",
    "checkpoint_timeout": "15min",
    "random_page_cost": "1.1",
}
PASSWORD = "bench"


def postgres_programs(given=None):
    """The directory of a PostgreSQL server's programs."""
    places = [Path(given)] if given else sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    for place in places:
        if (place / "initdb").is_file():
            return place
    raise Failed("no PostgreSQL server programs found: say where with --postgres DIR")


class Postgres:
    """One server, and a new database for whoever asks."""

    def __init__(self, programs, root):
        self.programs, self.root, self.port = programs, root, free_port()
        data = give_new(root / "postgres", "postgres")
        secret = root / "secret"
        secret.write_text(PASSWORD)
        secret.chmod(0o644)
        run(as_user("postgres", [programs / "initdb", "-D", data, "-U", "bench", "-A", "scram-sha-256", f"--pwfile={secret}",
                                 "-E", "UTF8", "--locale=C", "--no-instructions"]), 60)
        settings = {**POSTGRES, "port": self.port, "listen_addresses": "127.0.0.1", "unix_socket_directories": data}
        flags = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with open(root / "postgres.log", "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(as_user("postgres", [programs / "postgres", "-D", data, *flags]), cwd="/",
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_for_port(self.port, 60, self.process)
        self.version = run([programs / "postgres", "--version"], 10).split(" ", 2)[2].strip()

    def url(self, name="postgres"):
        """How a client reaches it."""
        return f"postgres://bench:{PASSWORD}@127.0.0.1:{self.port}/{name}"

    def sql(self, text, database="postgres"):
        """Runs a statement; answers what psql prints."""
        return run([self.programs / "psql", self.url(database), "-qAtc", text], 120).strip()

    def database(self, name):
        """A new database of this name."""
        self.sql(f'drop database if exists "{name}" with (force)')
        self.sql(f'create database "{name}"')
        return self.url(name)

    def settle(self):
        """Leaves nothing of the last measurement for the next one to pay."""
        self.sql("checkpoint")

    def stop(self):
        """Ends it, whoever is still connected."""
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait(60)


def give_new(path, user):
    """A new directory of a server's user."""
    path.mkdir(mode=0o700)
    return give(path, user)


@contextmanager
def redis(root, appendfsync):
    """The URL of a Redis that writes its log so."""
    port, data = free_port(), Path(tempfile.mkdtemp(prefix="redis-", dir=root))
    flags = ["--port", port, "--bind", "127.0.0.1", "--dir", data, "--save", "", "--appendonly", "yes", "--appendfsync",
             appendfsync, "--maxmemory-policy", "noeviction"]
    with open(root / f"redis-{appendfsync}.log", "w", encoding="utf-8") as log:
        process = subprocess.Popen([program("redis-server"), *map(str, flags)], stdout=log, stderr=log)
    try:
        wait_for_port(port, 30, process)
        yield f"redis://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


@contextmanager
def rabbitmq(root):
    """The URL of a RabbitMQ node with a name, ports and a directory of its own."""
    port, distribution, epmd = free_port(), free_port(), free_port()
    home = give(Path(tempfile.mkdtemp(prefix="rabbitmq-", dir=root)), "rabbitmq")
    server = "/usr/lib/rabbitmq/bin/rabbitmq-server"
    environment = {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": str(home), "LANG": "C.UTF-8",
        "RABBITMQ_NODENAME": f"bench{port}@localhost", "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODE_PORT": str(port), "RABBITMQ_DIST_PORT": str(distribution), "ERL_EPMD_PORT": str(epmd),
        "ERL_EPMD_ADDRESS": "127.0.0.1", "RABBITMQ_MNESIA_BASE": str(home / "data"), "RABBITMQ_LOG_BASE": str(home / "log"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(home / "plugins"), "RABBITMQ_CONFIG_FILE": str(home / "none"),
        "RABBITMQ_PID_FILE": str(home / "pid"),
    }
    with open(root / "rabbitmq.log", "w", encoding="utf-8") as log:
        process = subprocess.Popen(as_user("rabbitmq", [server]), env=environment, cwd="/", stdin=subprocess.DEVNULL,
                                   stdout=log, stderr=log, start_new_session=True)
    try:
        wait_for_port(port, 120, process)
        yield f"amqp://guest:guest@127.0.0.1:{port}/"
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        subprocess.run(["epmd", "-port", str(epmd), "-kill"], capture_output=True, check=False)
