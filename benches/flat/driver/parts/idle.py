"""10,000 idle Lease streams."""

import json
import re

from peers.driver.places import ROOT, Failed, program, run

from ..goals import Goal

PART = "idle streams"


def measure(stand):
    """By the measurement of its own, whose clients are in another process."""
    built = run([program("cargo"), "build", "--locked", "--bench", "idle_streams", "--message-format", "json"], 3_600, cwd=ROOT)
    made = [json.loads(line) for line in built.splitlines() if '"idle_streams"' in line]
    binary = next((line["executable"] for line in made if line.get("executable")), None)
    if binary is None:
        raise Failed("cargo does not say where it built idle_streams")
    streams = stand.said.streams
    said = run([binary, "--bench", "--streams", streams, "--broker", stand.program, "--bindir", stand.postgres.programs],
               stand.said.timeout * 2, env=stand.environment)

    def figure(row):
        found = re.search(rf"^\W*{re.escape(row)}\W+([0-9.]+)", said, re.MULTILINE)
        if not found:
            raise Failed(f"idle_streams does not say: {row}")
        return float(found.group(1))

    bare, full = figure("broker's memory without streams"), figure("with them")
    pick_up = f"pick-up p50 {figure('pick-up, p50'):.1f} ms, p99 {figure('pick-up, p99'):.1f} ms"
    return [
        Goal(PART, f"memory for each of {streams:,}", unit=" KiB", at_most=20, values=[figure("per stream")],
             detail=f"{bare:.0f} → {full:.0f} MB"),
        Goal(PART, "statements a second, all together", at_most=5,
             values=[figure("statements per second, all of the broker's")],
             detail=f"{figure('database connections'):.0f} database connections"),
        Goal(PART, "processor time of the broker", unit=" % of a core", at_most=2, values=[figure("broker's processor time")],
             detail=pick_up),
    ]
