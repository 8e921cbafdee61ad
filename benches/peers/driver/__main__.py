"""The command line."""

import argparse
import os
import shlex
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from .peers import GROUPS, everyone
from .places import ROOT, Failed
from .report import write
from .servers import Postgres, postgres_programs


@dataclass
class Bench:
    """What all measurements share."""

    postgres: Postgres
    root: Path
    build: Path
    scale: float
    latency_seconds: int
    timeout: float
    # nothing that is set for the one who measures is for those who are measured
    environment: dict = field(default_factory=lambda: {name: value for name, value in os.environ.items()
                                                       if not name.startswith(("LEASEHOLD_", "PG"))})


@dataclass
class Row:
    """What came out for one of them."""

    peer: object
    version: str = ""
    # each act's results, one for each round
    results: dict = field(default_factory=dict)
    # why an act, or all of it, did not work
    failures: dict = field(default_factory=dict)


def options():
    """Reads the command line."""
    parser = argparse.ArgumentParser(prog="benches/peers/run", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="rounds, of which the medians count")
    parser.add_argument("--only", help="names, with commas between them")
    parser.add_argument("--scale", type=float, default=1.0, help="so many times the usual jobs")
    parser.add_argument("--latency-seconds", type=int, default=6, help="length of a round of latency")
    parser.add_argument("--connections", type=int, default=8, help="connections of bare SQL: as many as the broker has lanes")
    parser.add_argument("--timeout", type=float, default=90, help="seconds that one act may take")
    parser.add_argument("--minutes", type=float, default=60, help="after so many minutes no further round is begun")
    parser.add_argument("--broker", type=Path, help="the program `leasehold`, where it is built already")
    parser.add_argument("--postgres", type=Path, help="directory of PostgreSQL's server programs")
    parser.add_argument("--build", type=Path, default=ROOT / "target/peers", help="where peers are installed")
    parser.add_argument("--output", type=Path, default=ROOT / "docs/benchmarks.md", help="the document")
    parser.add_argument("--install-only", action="store_true", help="installs, and measures nothing")
    return parser.parse_args()


def note(text):
    """Says what is done."""
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def install(rows, build):
    """Installs all; who cannot be installed is not measured."""
    for row in rows:
        note(f"installing {row.peer.name}")
        try:
            row.version = row.peer.install(build)
        except (Failed, OSError, StopIteration, KeyError) as failed:
            row.failures["all"] = f"not installed: {failed}"
            note(f"  {failed}")


def measure(row, bench):
    """One round of one of them. Acts of a group need each other; where one fails, the next group begins from nothing."""
    groups = [group for group in GROUPS if not row.failures.keys() & set(group)]
    while groups:
        with row.peer.server(bench) as url:
            row.peer.begin(bench, url)
            while groups and measure_group(row, bench, url, groups.pop(0)):
                pass


def measure_group(row, bench, url, group):
    """Says whether all its acts worked."""
    for act in group:
        if act in row.peer.leaves_out:
            continue
        try:
            result = row.peer.measure(bench, act, url)
        except (Failed, ValueError, KeyError, IndexError) as failed:
            row.failures[act] = str(failed)
            note(f"  {act}: {failed}")
            return False
        row.results.setdefault(act, []).append(result)
        note("  " + act + ": " + ", ".join(f"{name} {value:,.2f}" for name, value in result.items() if value is not None))
    return True


def main():
    """Installs, measures and writes."""
    said = options()
    rows = [Row(peer) for peer in everyone(said.broker and said.broker.resolve(), said.connections)]
    if said.only:
        rows = [row for row in rows if row.peer.name in said.only.split(",")]
    build = said.build.resolve()
    build.mkdir(parents=True, exist_ok=True)
    install(rows, build)
    if said.install_only:
        return 1 if any(row.failures for row in rows) else 0
    begun, done = time.monotonic(), 0
    with tempfile.TemporaryDirectory(prefix="leasehold-peers.") as directory:
        root = Path(directory)
        root.chmod(0o755)
        bench = Bench(Postgres(postgres_programs(said.postgres), root), root, build, said.scale, said.latency_seconds,
                      said.timeout)
        try:
            for number in range(said.rounds):
                if done and (time.monotonic() - begun) * (done + 1) / done > said.minutes * 60:
                    note(f"no time for round {number + 1}")
                    break
                for row in rows:
                    if "all" in row.failures:
                        continue
                    note(f"round {number + 1}: {row.peer.name}")
                    try:
                        bench.postgres.settle()
                        measure(row, bench)
                    except Exception as failed:  # pylint: disable=broad-exception-caught
                        # whatever it was, the others are measured
                        row.failures["all"] = str(failed) or repr(failed)
                        note(f"  {failed}")
                done += 1
                write(said.output, rows, bench, done, command())
        except KeyboardInterrupt:
            note("stopped")
        finally:
            bench.postgres.stop()
    note(f"{said.output} is written, after {time.monotonic() - begun:.0f} s")
    return 0


def command():
    """The command that this was, without places of this machine."""
    words, skip = [], False
    for word in sys.argv[1:]:
        place = word.split("=")[0] in ("--broker", "--build", "--output", "--postgres")
        if not skip and not place:
            words.append(word)
        skip = place and "=" not in word
    return " ".join(["benches/peers/run", *map(shlex.quote, words)])


if __name__ == "__main__":
    sys.exit(main())
