"""The commands behind a bad network: what they say is true, and no job is lost or doubled that need not be."""

import json
import os
import signal
import subprocess
import threading
import time

import pytest
from faults.proxy import Proxy


@pytest.fixture
def broker(brokers):
    return brokers()


@pytest.fixture
def proxy(broker):
    made = Proxy(("127.0.0.1", broker.port))
    yield made
    made.close()


class Shell:
    """Runs commands that find the broker at a port."""

    def __init__(self, program, port):
        self.program, self.environment = program, {"LEASEHOLD_ADDRESS": f"http://127.0.0.1:{port}", "PATH": os.environ["PATH"]}

    def start(self, *arguments, **pipes):
        return subprocess.Popen([self.program, *arguments], env=self.environment, stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **pipes)

    def run(self, *arguments, stdin=""):
        child = self.start(*arguments)
        stdout, stderr = child.communicate(stdin, timeout=60)
        return child.returncode, stdout, stderr

    def jobs(self, queue):
        code, stdout, stderr = self.run("lease", queue, "--ack", "--json")
        assert code == 0, stderr
        return [json.loads(line) for line in stdout.splitlines()]


def test_an_enqueue_whose_answer_got_lost_says_that_it_may_have_happened(program, broker, proxy):
    direct = Shell(program, broker.port)
    proxy.order(drop_down=True)
    code, stdout, stderr = Shell(program, proxy.port).run("enqueue", "work", "x", "--timeout", "1s")
    assert code == 76, stderr
    assert "it may have happened" in stderr and not stdout
    assert [job["payload"] for job in direct.jobs("work")] == ["x"], "and it had"


def test_with_keys_an_enqueue_whose_answer_got_lost_is_repeated_and_stores_one_job_a_line(program, broker, proxy):
    direct = Shell(program, broker.port)
    proxy.order(drop_down=True)
    child = Shell(program, proxy.port).start("enqueue", "work", "--generate-keys", "--timeout", "1s")
    child.stdin.write("1\n2\n3\n")
    child.stdin.close()
    while len(json.loads(direct.run("queue", "list", "work", "--json")[1] or "{}")) == 0:
        assert child.poll() is None, child.stderr.read()
    # the jobs are there and the client does not know: its next tries get through
    proxy.reset()
    proxy.heal()
    assert child.wait(60) == 0, child.stderr.read()
    assert "enqueued 3 jobs" in child.stderr.read()
    assert [job["payload"] for job in direct.jobs("work")] == ["1", "2", "3"]


def test_a_worker_on_a_link_that_breaks_again_and_again_runs_every_job_and_acks_it_once(program, broker, proxy, work):
    direct = Shell(program, broker.port)
    jobs = 200
    assert direct.run("enqueue", "work", "-q", stdin="".join(f"{n}\n" for n in range(jobs)))[0] == 0
    worker = Shell(program, proxy.port).start(
        "lease", "work", "--follow", "--parallel", "4", "--lease", "2s", "--timeout", "1s", "--json",
        "--exec", f"read n; echo $n >> {work}/done; sleep 0.02")
    said = []
    reader = threading.Thread(target=lambda: said.append(worker.stderr.read()))
    reader.start()
    faults = [proxy.reset, proxy.finish, lambda: proxy.order(drop_down=True), lambda: proxy.order(drop_up=True)]
    deadline, number = time.monotonic() + 90, 0

    def counts():
        queue = json.loads(direct.run("queue", "show", "work", "--json")[1])["counts"]
        return sum(queue[state] for state in ("ready", "scheduled", "leased", "dead"))

    while counts():
        assert worker.poll() is None and time.monotonic() < deadline, said
        faults[number % len(faults)]()
        number += 1
        before = counts()
        # the link is bad until a second call has failed or the worker came on
        if number % 4 in (3, 0):
            proxy.reset()
        proxy.heal()
        waited = time.monotonic() + 5
        while counts() == before and time.monotonic() < waited:
            pass
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(30) == 0
    reader.join(10)
    ended = json.loads(worker.stdout.read())
    done = (work / "done").read_text().split()
    assert set(done) == {str(n) for n in range(jobs)}, "nothing is lost"
    assert ended["acked"] >= jobs - ended["lost"] - ended["unanswered"] > 0 and ended["dead"] == 0, ended
    assert number >= 4, "every fault was made"
