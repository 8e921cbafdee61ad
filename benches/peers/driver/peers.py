"""Who is measured: how each is installed, started and how many jobs it gets."""

import json
import shutil
from contextlib import contextmanager
from dataclasses import dataclass

from . import servers
from .places import PEERS, ROOT, Failed, program, run

# What is enqueued by the first act of a group is drained by its second.
GROUPS = (("enqueue-one", "drain-one"), ("enqueue-batch", "drain"), ("life",), ("latency",))
RATE = 50


@dataclass(frozen=True)
class Jobs:
    """Jobs of a round: one by one, and in batches."""

    one: int
    batch: int


class Peer:
    """A program of one of the directories here, on PostgreSQL."""

    def __init__(self, name, title, jobs, leaves_out=(), **environment):
        self.name, self.title, self.jobs, self.leaves_out, self.environment = name, title, jobs, leaves_out, environment

    directory = property(lambda self: self.name.split(":")[0])

    def install(self, build):
        """Installs it below `build`; answers its version."""
        raise NotImplementedError

    def command(self, build):
        """The program."""
        raise NotImplementedError

    @contextmanager
    def server(self, bench):
        """Where it is measured."""
        yield bench.postgres.database(self.name.replace(":", "_").replace("-", "_"))

    def begin(self, bench, url):
        """Makes its tables."""
        self._run(bench, "setup", url, 0)

    def measure(self, bench, act, url):
        """Seconds or percentiles of one act."""
        jobs = self.count(bench, act)
        result = json.loads(self._run(bench, act, url, jobs).splitlines()[-1])
        return {**result, "rate": jobs / result["seconds"]} if "seconds" in result else result

    def count(self, bench, act):
        """Jobs of an act."""
        if act == "latency":
            return RATE * bench.latency_seconds
        return max(100, int((self.jobs.one if act.endswith("one") else self.jobs.batch) * bench.scale))

    def _run(self, bench, act, url, jobs):
        environment = {**bench.environment, **self.environment}
        return run([*self.command(bench.build), act, url, jobs], bench.timeout, env=environment)


class Node(Peer):
    """A program in JavaScript."""

    def install(self, build):
        copy = build / self.directory
        copy.mkdir(parents=True, exist_ok=True)
        shutil.copytree(PEERS / "measure", build / "measure", dirs_exist_ok=True)
        for name in ("package.json", "package-lock.json", "main.mjs"):
            shutil.copy(PEERS / self.directory / name, copy / name)
        stamp = copy / "installed"
        lock = (PEERS / self.directory / "package-lock.json").read_text()
        if not stamp.exists() or stamp.read_text() != lock:
            run([program("npm"), "ci", "--no-audit", "--no-fund"], 600, cwd=copy)
            stamp.write_text(lock)
        pinned = json.loads((copy / "package.json").read_text())["dependencies"]
        return f"{pinned[self.directory]}, Node {pinned['node']}"

    def command(self, build):
        here = build / self.directory
        return [here / "node_modules/node/bin/node", here / "main.mjs"]


class Python(Peer):
    """A program in Python."""

    def install(self, build):
        wanted = PEERS / self.directory / "requirements.txt"
        here = build / self.directory
        stamp = here / "installed"
        if not stamp.exists() or stamp.read_text() != wanted.read_text():
            run([program("python3"), "-m", "venv", here], 120)
            run([here / "bin/pip", "install", "-q", "--disable-pip-version-check", "-r", wanted], 600)
            stamp.write_text(wanted.read_text())
        python = run([here / "bin/python", "-c", "import platform; print(platform.python_version())"], 30).strip()
        first = next(line for line in wanted.read_text().splitlines() if line.startswith(self.directory))
        return f"{first.split('==')[1]}, Python {python}"

    def command(self, build):
        return [build / self.directory / "bin/python", PEERS / self.directory / "main.py"]


class Go(Peer):
    """A program in Go."""

    module = ""

    def install(self, build):
        run([program("go", "/usr/local/go/bin"), "build", "-o", build / "go" / self.directory, f"./{self.directory}"], 900,
            cwd=PEERS)
        line = next(line for line in (PEERS / "go.mod").read_text().splitlines() if self.module + " " in line)
        return line.split()[-1]

    def command(self, build):
        return [build / "go" / self.directory]


class River(Go):
    """River."""

    module = "github.com/riverqueue/river"


class RabbitMq(Go):
    """Not on PostgreSQL: RabbitMQ on a node of its own."""

    module = "github.com/rabbitmq/amqp091-go"

    def install(self, build):
        client = super().install(build)
        listed = run(["dpkg-query", "-W", "-f", "${Version}", "rabbitmq-server"], 30).strip()
        return f"{listed}, amqp091-go {client}"

    def server(self, bench):
        return servers.rabbitmq(bench.root)


class BullMq(Node):
    """Not on PostgreSQL: BullMQ on a Redis of its own."""

    def install(self, build):
        server = run([program("redis-server"), "--version"], 10).split("v=")[1].split(" ")[0]
        return f"{super().install(build)}, Redis {server}"

    def server(self, bench):
        return servers.redis(bench.root, self.name.split(":")[1])


class Rust(Peer):
    """A program in Rust."""

    def install(self, build):
        run([program("cargo"), "build", "--release", "--locked", "--target-dir", build / "cargo"], 3_600, cwd=PEERS)
        manifest = (PEERS / self.directory / "Cargo.toml").read_text()
        pins = [line.split('"')[1].lstrip("=") for line in manifest.splitlines() if line.startswith(self.crate)]
        return f"{self.crate} {pins[0]}" if pins else "no version"

    crate = property(lambda self: {"apalis": "apalis-postgres", "pgmq": "pgmq", "bare": "sqlx"}[self.directory])

    def command(self, build):
        return [build / "cargo/release" / f"peer-{self.directory}"]


class Leasehold(Peer):
    """Ours: `leasehold bench` against a broker on the same PostgreSQL."""

    def install(self, build):
        if not self.environment.get("broker"):
            run([program("cargo"), "build", "--release", "--locked"], 3_600, cwd=ROOT)
        return run([*self.command(build), "version"], 10).split()[-1]

    def command(self, build):
        return [self.environment.get("broker") or ROOT / "target/release/leasehold"]

    def begin(self, bench, url):
        """Each act has a broker and a schema of its own."""

    def measure(self, bench, act, url):
        kind, *flags = {
            "enqueue-one": ("enqueue", "--batch", 1),
            "enqueue-batch": ("enqueue", "--batch", 100),
            "drain-one": ("drain", "--batch", 1, "--streams", 64, "--credit", 8),
            "drain": ("drain", "--batch", 100),
            "life": ("all", "--batch", 100),
            "latency": ("latency", "--streams", 8, "--rate", RATE, "--for", f"{bench.latency_seconds}s"),
        }[act]
        if act != "latency":
            flags += ["--jobs", self.count(bench, act)]
        said = run([*self.command(bench.build), "bench", kind, *flags, "--rounds", 1, "--json", "--database-url", url],
                   bench.timeout, env=bench.environment)
        figures = json.loads(said)["median"]
        latency = figures["latency_seconds"]
        if act == "latency":
            return {"p50_ms": latency["p50"] * 1e3, "p99_ms": latency["p99"] * 1e3}
        costs = {name: figures[f"{name}_cpu_seconds_per_job"] for name in ("client", "broker", "database")}
        return {"rate": figures["jobs_per_second"], "wal": figures["wal_bytes_per_job"],
                **{name: cost and cost * 1e6 for name, cost in costs.items()}}


def everyone(broker, connections):
    """All of them, ours first; jobs are such that a round takes about a second or two where it can."""
    return [
        Leasehold("leasehold", "**Leasehold**", Jobs(20_000, 100_000), **({"broker": str(broker)} if broker else {})),
        Rust("bare", "bare SQL, 100 a statement", Jobs(8_000, 100_000), ("latency",), CONNECTIONS=str(connections)),
        Rust("bare:1000", "bare SQL, 1,000 a statement", Jobs(2_000, 100_000),
             ("latency", "enqueue-one", "drain-one"), CONNECTIONS=str(connections), BATCH="1000"),
        Rust("pgmq", "pgmq, as bare SQL", Jobs(8_000, 60_000)),
        Node("graphile-worker", "graphile-worker", Jobs(3_000, 40_000)),
        River("river", "River", Jobs(3_000, 30_000)),
        Node("pg-boss", "pg-boss", Jobs(2_000, 30_000)),
        Python("pgqueuer", "pgqueuer", Jobs(3_000, 20_000)),
        Rust("apalis", "apalis-postgres", Jobs(3_000, 30_000)),
        Python("procrastinate", "procrastinate", Jobs(1_500, 2_500)),
        BullMq("bullmq:always", "BullMQ, Redis AOF always", Jobs(8_000, 20_000)),
        BullMq("bullmq:everysec", "BullMQ, Redis AOF every second", Jobs(8_000, 20_000)),
        RabbitMq("rabbitmq", "RabbitMQ, durable, confirms, acks", Jobs(8_000, 40_000)),
    ]


__all__ = ["GROUPS", "Failed", "Jobs", "everyone"]
