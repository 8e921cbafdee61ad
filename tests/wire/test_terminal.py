"""The commands on a terminal, a pseudo-terminal in truth: colours, progress and questions are there, and only there."""

import os
import pty
import select
import subprocess
import time

import pytest


class Terminal:
    """Runs one command on a terminal of its own."""

    def __init__(self, program, broker, arguments, environment=None, stdin=None):
        self.leader, follower = pty.openpty()
        environment = {"LEASEHOLD_ADDRESS": f"http://127.0.0.1:{broker.port}", "TERM": "xterm", **(environment or {})}
        self.process = subprocess.Popen([program, *arguments], stdin=stdin or follower, stdout=follower, stderr=follower,
                                        env=environment, start_new_session=True)
        os.close(follower)
        self.seen = b""

    def read(self, until=None, within=20):
        """What is shown, up to this text or to the end."""
        deadline = time.monotonic() + within
        while until is None or until not in self.seen:
            left = deadline - time.monotonic()
            assert left > 0, self.seen
            if not select.select([self.leader], [], [], left)[0]:
                continue
            try:
                piece = os.read(self.leader, 65536)
            except OSError:  # the other end is closed
                piece = b""
            if not piece:
                assert until is None, self.seen
                break
            self.seen += piece
        return self.seen

    def type(self, text):
        os.write(self.leader, text)

    def end(self):
        """All that was shown, and the exit code."""
        seen = self.read()
        os.close(self.leader)
        return seen, self.process.wait(10)


@pytest.fixture
def broker(brokers):
    return brokers()


def quietly(program, broker, *arguments, stdin=b""):
    environment = {"LEASEHOLD_ADDRESS": f"http://127.0.0.1:{broker.port}"}
    return subprocess.run([program, *arguments], input=stdin, env=environment, capture_output=True, timeout=30, check=True)


def test_headings_are_bold_on_a_terminal_alone(program, broker):
    quietly(program, broker, "enqueue", "work", "x")
    seen, code = Terminal(program, broker, ["queue", "list"]).end()
    assert code == 0 and b"\x1b[1mQUEUE" in seen
    assert b"\x1b" not in quietly(program, broker, "queue", "list").stdout


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_nobody_gets_colours_who_does_not_want_them(program, broker, environment):
    quietly(program, broker, "enqueue", "work", "x")
    seen, code = Terminal(program, broker, ["queue", "list"], environment).end()
    assert code == 0 and b"work" in seen and b"\x1b" not in seen


def test_progress_is_shown_on_a_terminal_and_is_gone_at_the_end(program, broker, tmp_path):
    lines = tmp_path / "lines"
    lines.write_bytes(b"".join(b"line %d\n" % n for n in range(20000)))
    with lines.open("rb") as stdin:
        seen, code = Terminal(program, broker, ["enqueue", "work", "-q"], stdin=stdin).end()
    assert code == 0, seen
    assert b" jobs" in seen and b"\x1b[2K" in seen, seen
    assert seen.rstrip().endswith(b"enqueued 20000 jobs"), seen[-200:]
    said = quietly(program, broker, "enqueue", "work", "-q", stdin=b"x\n" * 1000).stderr
    assert said == b"enqueued 1000 jobs\n"


@pytest.mark.parametrize(("answer", "code", "left"), [(b"n\n", 1, 3), (b"\n", 1, 3), (b"y\n", 0, 0)])
def test_a_purge_asks_and_goes_by_the_answer(program, broker, answer, code, left):
    quietly(program, broker, "enqueue", "work", "-q", stdin=b"1\n2\n3\n")
    terminal = Terminal(program, broker, ["queue", "purge", "work", "--state", "ready"])
    terminal.read(until=b"Remove 3 jobs of queue work? [y/N] ")
    terminal.type(answer)
    assert terminal.end()[1] == code
    printed = quietly(program, broker, "lease", "work", "--ack").stdout
    assert len(printed.splitlines()) == left


def test_what_producers_wrote_never_steers_the_terminal(program, broker):
    hostile = b"\x1b]0;owned\x07\x1b[2J\r\xc2\x9b31m\xe2\x80\xae\n"
    quietly(program, broker, "enqueue", "work", "-q", "--file", "-", "--ordering-key", "k", stdin=hostile)
    token = quietly(program, broker, "lease", "work").stdout.split()[0].decode()
    quietly(program, broker, "nack", token, "--as", "reject", "--error", hostile.decode())
    for arguments in (["dead", "list", "work", "--payload"], ["dead", "list", "work", "--payload", "--json"],
                      ["job", "show", "1", "--payload"], ["job", "explain", "1"]):
        seen, code = Terminal(program, broker, arguments, {"NO_COLOR": "1"}).end()
        assert code == 0, seen
        text = seen.decode().replace("\r\n", "\n")
        assert not [c for c in text if (ord(c) < 32 and c != "\n") or 127 <= ord(c) < 160 or c == "\u202e"], seen
