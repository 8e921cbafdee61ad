"""Proves that the broker starts, serves, drains and stops in the image's root file system: python3 image/prove.py DIRECTORY

It runs there in mount and user namespaces of its own: the root read-only, user 65532 and no other, no capability, none to be
had. What it prints is what the image holds, its size, and each thing that was seen. Needs util-linux, and as an ordinary user
a kernel that lets users have namespaces.
"""

import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

USER = "65532"
GRACE = 25

# Bind mounts inherit flags that may not be taken away, so those that restrict are all given.
SCRIPT = """set -e
mount --bind "$ROOT" "$ROOT"
mount -o remount,bind,ro,nosuid,nodev "$ROOT"
mount --rbind /proc "$ROOT/proc"
mount --rbind "$DATA" "$ROOT/var/lib/leasehold"
exec setpriv --no-new-privs unshare --user --map-user=USER --map-group=USER --root="$ROOT" --wd=/ /usr/local/bin/leasehold "$@"
""".replace("USER", USER)


class Image:
    """The root, and processes in it."""

    def __init__(self, root, data):
        self.root, self.data = Path(root).resolve(), Path(data)
        self.ports = [free_port() for _ in range(2)]

    def start(self, *arguments, **options):
        """The image's program with these arguments. It replaces what set it up, so the process is its own."""
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "ROOT": str(self.root), "DATA": str(self.data),
                       "LEASEHOLD_ADDRESS": f"http://127.0.0.1:{self.ports[0]}"}
        if arguments[0] == "serve":
            environment = {**environment, "LEASEHOLD_DATA_DIR": "/var/lib/leasehold"}
            environment.pop("LEASEHOLD_ADDRESS")
        return subprocess.Popen(["unshare", "--user", "--map-root-user", "--mount", "--propagation", "private", "sh", "-c",
                                 SCRIPT, "sh", *arguments], env=environment, stdin=subprocess.DEVNULL, **options)

    def run(self, *arguments):
        """What it prints; it must succeed."""
        process = self.start(*arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        said, _ = process.communicate(timeout=60)
        assert process.returncode == 0, f"{arguments} ended with {process.returncode}: {said}"
        return said

    def ready(self):
        """What readiness says."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.ports[1]}/readyz", timeout=2) as answer:
                return answer.status == 200
        except (urllib.error.HTTPError, OSError):
            return False


def free_port():
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(condition, what, process, within=60):
    """Polls until it is true."""
    deadline = time.monotonic() + within
    while not condition():
        assert process.poll() is None, f"the broker ended with {process.returncode} before {what}"
        assert time.monotonic() < deadline, f"no {what} within {within} s"
        time.sleep(0.05)


def show_content(root):
    """Its files and their sizes."""
    total = 0
    for path in sorted(path for path in root.rglob("*") if path.is_file()):
        size = path.stat().st_size
        total += size
        print(f"{size:>12,}  {path.stat().st_mode & 0o7777:04o}  /{path.relative_to(root)}")
    print(f"{total:>12,}  bytes in all")
    for name in ("bin/sh", "usr/bin/sh", "bin/bash", "usr/bin/env"):
        assert not (root / name).exists(), f"a shell: {name}"
    odd = [path for path in root.rglob("*") if path.lstat().st_mode & 0o6000]
    assert not odd, f"set-user or set-group: {odd}"


def look_at(process):
    """What the kernel says of the running broker."""
    status = dict(line.split(":\t", 1) for line in Path(f"/proc/{process.pid}/status").read_text().splitlines())
    assert status["Name"] == "leasehold", status["Name"]
    held = {name: status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")}
    assert set(held.values()) == {"0" * 16}, held
    assert status["NoNewPrivs"] == "1"
    inside = Path(f"/proc/{process.pid}/uid_map").read_text().split()
    assert (inside[0], inside[2]) == (USER, "1"), inside
    roots = [line.split() for line in Path(f"/proc/{process.pid}/mountinfo").read_text().splitlines()]
    [root] = [fields for fields in roots if fields[4] == "/"]
    assert root[5].startswith("ro"), root
    print(f"runs as {USER}, without capabilities, cannot gain any, its root is mounted {root[5]}")


def prove(image, log):
    """From the start to the end."""
    grpc, http = image.ports
    broker = image.start("serve", "--listen", f"127.0.0.1:{grpc}", "--http-listen", f"127.0.0.1:{http}", stdout=log, stderr=log)
    worker = None
    try:
        wait_for(image.ready, "readiness", broker)
        print("starts, and is ready")
        look_at(broker)
        print(f"answers: {image.run('ping').strip()}")
        image.run("enqueue", "image", "a job")
        assert "a job" in image.run("lease", "image", "--count", "1", "--ack"), "no job came"
        print("stores a job, leases it, and takes its ack")
        worker = image.start("lease", "image", "--follow", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(lambda: "image" in image.run("consumers"), "the worker's stream", broker)
        begun = time.monotonic()
        broker.send_signal(signal.SIGTERM)
        code = broker.wait(GRACE)
        assert code == 0, f"it ended with {code}"
        print(f"drains on SIGTERM with a stream open, and ends with 0 after {time.monotonic() - begun:.1f} s")
    finally:
        for process in (worker, broker):
            if process and process.poll() is None:
                process.kill()
                process.wait()


def main():
    """The whole proof."""
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_dir():
        print(__doc__.split("\n\n", maxsplit=1)[0], file=sys.stderr)
        return 64
    root = Path(sys.argv[1])
    show_content(root)
    work = Path(tempfile.mkdtemp(prefix="leasehold-image."))
    try:
        (work / "data").mkdir()
        with open(work / "log", "wb") as log:
            prove(Image(root, work / "data"), log)
        said = re.sub(r"\x1b\[[0-9;]*m", "", (work / "log").read_text())
        assert "drained" in said and "cut short" not in said, said
        return 0
    except (AssertionError, subprocess.TimeoutExpired) as failed:
        print(f"NOT PROVEN: {failed}\n{(work / 'log').read_text()[-4000:]}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(work)


if __name__ == "__main__":
    sys.exit(main())
