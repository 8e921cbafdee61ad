"""The limit: bare SQL, as benches/peers has it."""

import json

from peers.driver.places import PEERS, program, run

CONNECTIONS = 8


def install(build):
    """Builds it; answers the program."""
    run([program("cargo"), "build", "--release", "--locked", "-p", "peer-bare", "--target-dir", build / "cargo"], 3_600, cwd=PEERS)
    return build / "cargo/release/peer-bare"


def act(stand, bare, name, url, jobs):
    """Jobs a second of one act, 100 a statement."""
    environment = {**stand.environment, "CONNECTIONS": str(CONNECTIONS)}
    said = run([bare, name, url, jobs], stand.said.timeout, env=environment)
    return jobs / json.loads(said.splitlines()[-1])["seconds"] if name != "setup" else None
