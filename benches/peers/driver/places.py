"""Where things are."""

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

PEERS = Path(__file__).resolve().parent.parent
ROOT = PEERS.parent.parent


class Failed(Exception):
    """Something of one peer did not work; the text says what."""


def run(command, timeout, **options):
    """Runs a command to its end; answers its stdout."""
    command, options = [str(part) for part in command], {"cwd": "/", **options}
    name = Path(command[0]).name
    try:
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              **options) as process:
            out, err = end(process, timeout)
    except OSError as error:
        raise Failed(f"{command[0]}: {error.strerror}") from error
    if out is None:
        raise Failed(f"{name} took longer than {timeout} s")
    if process.returncode != 0:
        said = (err.strip() or out.strip() or f"exit code {process.returncode}").splitlines()
        raise Failed(f"{name}: {said[-1][:200]}")
    return out


def end(process, timeout):
    """What a process said until its end; nothing where that took too long. It is asked to end before it is made to."""
    try:
        return process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.terminate()
    try:
        process.communicate(timeout=30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
    return None, None


def free_port():
    """A loopback port that nobody uses just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for_port(port, timeout, process):
    """Waits until somebody listens."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise Failed(f"{Path(process.args[0]).name} ended with {process.returncode}")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise Failed(f"{Path(process.args[0]).name} does not listen")


def as_user(user, command):
    """`command` under a user that may run a server, which root may not."""
    if os.geteuid() == 0:
        return ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", "--", *map(str, command)]
    return [str(part) for part in command]


def give(path, user):
    """Lets a server's user have a directory."""
    if os.geteuid() == 0:
        shutil.chown(path, user, user)
    return path


def program(name, *more):
    """Where a program is."""
    found = shutil.which(name, path=os.pathsep.join([*more, os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/bin"]))
    if not found:
        raise Failed(f"{name} is not installed")
    return found
