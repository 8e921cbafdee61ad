"""The limit: bare SQL, as benches/peers has it."""

import json

from peers.driver.peers import Jobs, Rust
from peers.driver.places import run

CONNECTIONS = 8


def install(build):
    """Builds it with the other peers in Rust; answers the program."""
    peer = Rust("bare", "bare SQL", Jobs(0, 0))
    peer.install(build)
    return peer.command(build)[0]


def act(stand, bare, name, url, jobs):
    """Jobs a second of one act, 100 a statement."""
    environment = {**stand.environment, "CONNECTIONS": str(CONNECTIONS)}
    said = run([bare, name, url, jobs], stand.said.timeout, env=environment)
    return jobs / json.loads(said.splitlines()[-1])["seconds"] if name != "setup" else None
