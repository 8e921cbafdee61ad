"""The command line."""

import argparse
import shlex
import signal
import sys
import tempfile
import time
from pathlib import Path

from peers.driver.__main__ import note
from peers.driver.places import ROOT, program, run
from peers.driver.servers import Postgres, postgres_programs

from .parts import ALL
from .report import line, write, write_json
from .stand import Stand

PLACES = ("--broker", "--build", "--output", "--json", "--postgres")


def options():
    """Reads the command line."""
    parser = argparse.ArgumentParser(prog="benches/flat/run", description="Measures that Leasehold is flat where others fall.")
    parser.add_argument("--rounds", type=int, default=3, help="rounds, of which the medians count")
    parser.add_argument("--only", help=f"parts, with commas between them: {', '.join(ALL)}")
    parser.add_argument("--without", help="parts to be left out")
    parser.add_argument("--scale", type=float, default=1.0, help="so many times the usual jobs of a round")
    parser.add_argument("--snapshot-jobs", type=int, default=1_000_000, help="jobs that go through under the snapshot")
    parser.add_argument("--backlog", type=int, default=10_000_000, help="ready jobs of the larger backlog")
    parser.add_argument("--streams", type=int, default=10_000, help="idle streams")
    parser.add_argument("--minutes", type=float, default=5, help="for so long memory is looked at")
    parser.add_argument("--timeout", type=float, default=180, help="seconds that one usual measurement may take")
    parser.add_argument("--broker", type=Path, help="the program `leasehold`, where it is built already")
    parser.add_argument("--postgres", type=Path, help="directory of PostgreSQL's server programs")
    parser.add_argument("--build", type=Path, default=ROOT / "target/peers", help="where peers are installed")
    parser.add_argument("--output", type=Path, default=ROOT / "docs/benchmarks.md", help="the document")
    parser.add_argument("--json", type=Path, default=ROOT / "target/flat.json", help="each round's figures")
    said = parser.parse_args()
    for name in [*(said.only or "").split(","), *(said.without or "").split(",")]:
        if name and name not in ALL:
            parser.error(f"there is no part {name}: {', '.join(ALL)}")
    return said


def build(said):
    """The program that is measured."""
    if said.broker:
        return said.broker.resolve()
    note("building")
    run([program("cargo"), "build", "--release", "--locked"], 3_600, cwd=ROOT)
    return ROOT / "target/release/leasehold"


def main():
    """Measures part after part, and writes after each."""
    said = options()
    wanted = said.only.split(",") if said.only else list(ALL)
    wanted = [name for name in ALL if name in wanted and name not in (said.without or "").split(",")]
    leasehold = build(said)
    said.json.parent.mkdir(parents=True, exist_ok=True)
    # whoever ends it wants servers to be ended
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))
    goals, failures, begun = [], {}, time.monotonic()
    with tempfile.TemporaryDirectory(prefix="leasehold-flat.") as directory:
        root = Path(directory)
        root.chmod(0o755)
        postgres = Postgres(postgres_programs(said.postgres), root)
        try:
            stand = Stand(postgres, root, leasehold, said.build.resolve(), said, note)
            about = {"command": command(), "rounds": said.rounds, "postgres": postgres.version,
                     "version": run([leasehold, "version"], 10).split()[-1]}
            for name in wanted:
                one(name, stand, goals, failures)
                write(said.output, goals, failures, about)
                write_json(said.json, goals, failures, about)
        except KeyboardInterrupt:
            note("stopped")
        finally:
            postgres.stop()
    note(f"{said.output} and {said.json} are written, after {time.monotonic() - begun:.0f} s")
    for goal in goals:
        print("  ".join(line(goal)))
    return 1 if failures or not goals else 0


def one(name, stand, goals, failures):
    """Measures a part; whatever went wrong in it, the others are measured."""
    note(name)
    begun = time.monotonic()
    try:
        found = ALL[name].measure(stand)
    except Exception as failed:  # pylint: disable=broad-exception-caught
        failures[name] = str(failed) or repr(failed)
        note(f"  {failures[name]}")
        return
    finally:
        stand.postgres.sql("alter system reset all")
    goals.extend(found)
    for goal in found:
        note("  " + "  ".join(line(goal)[1:]))
    note(f"  {name} took {time.monotonic() - begun:.0f} s")


def command():
    """The command that this was, without places of this machine."""
    words, skip = [], False
    for word in sys.argv[1:]:
        place = word.split("=")[0] in PLACES
        if not skip and not place:
            words.append(word)
        skip = place and "=" not in word
    return " ".join(["benches/flat/run", *map(shlex.quote, words)])


if __name__ == "__main__":
    sys.exit(main())
