"""A private Redis server: started, and thrown away."""

import socket
import subprocess
from contextlib import contextmanager

from harness.cluster import free_port

# Debian's package redis-tools has the server without a service: one program that does what its name says.
PROGRAM = "/usr/bin/redis-check-rdb"


@contextmanager
def redis_server():
    """The URL of a server that keeps nothing."""
    port = free_port()
    arguments = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    with subprocess.Popen(arguments, executable=PROGRAM, stdout=subprocess.PIPE, text=True) as server:
        try:
            for line in server.stdout:
                if "Ready to accept connections" in line:
                    break
            else:
                raise RuntimeError("the Redis server ended before it was ready")
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
            yield f"redis://127.0.0.1:{port}"
        finally:
            server.kill()
