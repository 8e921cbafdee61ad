"""Producers and workers that write down all they do. Threads of one process; several processes may share a run.

A producer stores its jobs in batches with idempotency keys and repeats what failed or is unknown, but for a share that it
leaves as it is. A worker leases from one broker after the other, acks most jobs, nacks some, and holds a few past the end
of their lease. Both go on until they are done, whatever happens to the brokers.

As a program: python -m faults.load --history DIR --ports 1,2 --queue q --workers 5 --producers 1 --jobs 1000 --name p1
Workers end when the file DIR/stop exists and nothing came for two seconds.
"""

import argparse
import queue
import random
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import grpc

from faults.history import Recorder, digest, now
from harness.calls import Failed, seconds, status_name
from harness.stubs import pb, rpc

OPTIONS = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0), ("grpc.max_receive_message_length", 16 << 20),
           ("grpc.initial_reconnect_backoff_ms", 50), ("grpc.min_reconnect_backoff_ms", 50),
           ("grpc.max_reconnect_backoff_ms", 500), ("grpc.keepalive_time_ms", 10_000), ("grpc.keepalive_timeout_ms", 5_000)]


@dataclass
class Plan:
    """What one process does."""

    history: str
    ports: list
    queue: str = "faults"
    name: str = "load"
    workers: int = 4
    producers: int = 2
    jobs: int = 2000
    batch: int = 20
    in_flight: int = 50
    lease: float = 2.0
    nacked: float = 0.03
    held: float = 0.01
    left_alone: float = 0.2
    pause: float = 0.0
    elsewhere: float = 0.0
    deadline: float = 5.0
    seed: int = 1


class Load:
    """The threads of one process."""

    def __init__(self, plan):
        self.plan, self.stopped = plan, Path(plan.history) / "stop"
        self.producers = [threading.Thread(target=Producer(plan, n).run, daemon=True) for n in range(plan.producers)]
        self.workers = [threading.Thread(target=Worker(plan, n).run, daemon=True) for n in range(plan.workers)]

    def start(self):
        """Sets them going."""
        for thread in self.workers + self.producers:
            thread.start()
        return self

    def produced(self, within):
        """Waits for the producers."""
        _join(self.producers, within, "producers")

    def stop(self, within=60):
        """Lets the workers end once nothing comes."""
        self.stopped.touch()
        _join(self.workers, within, "workers")


class Processes:
    """The same plan by processes: one for the producers, one for each worker."""

    def __init__(self, plan):
        self.plan, self.stopped = plan, Path(plan.history) / "stop"
        self.producers, self.workers = [], []

    def start(self):
        """Sets them going."""
        self.producers = [self._spawn(self.plan.name, workers=0)]
        self.workers = [self._spawn(f"{self.plan.name}{n}", workers=1, producers=0) for n in range(self.plan.workers)]
        return self

    def produced(self, within):
        """Waits for the producers."""
        assert [process.wait(within) for process in self.producers] == [0]

    def stop(self, within=60):
        """Lets the workers end once nothing comes."""
        self.stopped.touch()
        assert [process.wait(within) for process in self.workers] == [0] * len(self.workers)

    def kill(self):
        """Ends what is left of them."""
        for process in self.producers + self.workers:
            if process.poll() is None:
                process.kill()
                process.wait()

    def _spawn(self, name, **changed):
        fields = {**vars(self.plan), "name": name, **changed}
        fields["ports"] = ",".join(map(str, fields["ports"]))
        flags = [part for key, value in fields.items() for part in (f"--{key.replace('_', '-')}", str(value))]
        return subprocess.Popen([sys.executable, "-m", "faults.load", *flags], cwd=Path(__file__).resolve().parents[1])


def _join(threads, within, who):
    deadline = time.monotonic() + within
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    left = sum(thread.is_alive() for thread in threads)
    assert not left, f"{left} {who} are not done after {within} s"


class Client:
    """Calls of one thread, by turns through all brokers, each written down before and after."""

    def __init__(self, plan, process):
        self.plan, self.recorder = plan, Recorder(plan.history, process)
        self.dice = random.Random(f"{plan.seed}-{process}")
        self.metadata = (("leasehold-caller", process.rsplit("-", 1)[0]),)
        self.channels = [grpc.insecure_channel(f"127.0.0.1:{port}", options=OPTIONS) for port in plan.ports]
        self.stubs = [rpc.QueueServiceStub(channel) for channel in self.channels]
        self.at = self.dice.randrange(len(self.stubs))

    def stub(self):
        return self.stubs[self.at % len(self.stubs)]

    def next_broker(self):
        """Turns to another broker, after a moment."""
        self.at += 1
        time.sleep(self.dice.uniform(0.02, 0.2))

    def call(self, name, op, request, results, through=None):
        """One try, through the broker whose turn it is or another one. The answer, or the failure."""
        stub = self.stub() if through is None else self.stubs[through % len(self.stubs)]
        try:
            answer = getattr(stub, name)(request, timeout=self.plan.deadline, metadata=self.metadata)
        except grpc.RpcError as error:
            failed = Failed(error)
            outcome = "fail" if failed.outcome == "not-applied" else "info"
            self.recorder.complete(op, outcome, failed.code, failed.outcome is not None,
                                   why=failed.message[:200])
            self.next_broker()
            return outcome
        self.recorder.complete(op, "ok", results=results(answer))
        return answer

    def close(self):
        for channel in self.channels:
            channel.close()


class Producer(Client):
    """Stores its share of the jobs."""

    def __init__(self, plan, number):
        super().__init__(plan, f"{plan.name}_producer-{number}")
        self.first = number * plan.jobs // plan.producers
        self.end = (number + 1) * plan.jobs // plan.producers

    def run(self):
        at = self.first
        while at < self.end:
            size = min(self.dice.randint(1, self.plan.batch), self.end - at)
            self.store([f"{self.plan.name}.{number}" for number in range(at, at + size)])
            at += size
            if self.plan.pause:
                time.sleep(self.plan.pause)
        self.close()

    def store(self, uids):
        payloads = [f"{uid}|{'x' * self.dice.randrange(200)}".encode() for uid in uids]
        jobs = [pb.NewJob(queue=self.plan.queue, payload=payload, idempotency_key=uid, max_attempts=1000)
                for uid, payload in zip(uids, payloads)]
        items = [{"uid": uid, "sha": digest(payload), "queue": self.plan.queue, "key": uid}
                 for uid, payload in zip(uids, payloads)]
        while True:
            op = self.recorder.invoke("enqueue", jobs=items)
            answer = self.call("Enqueue", op, pb.EnqueueRequest(jobs=jobs),
                               lambda got: [{"job": one.job_id, "duplicate": one.duplicate} for one in got.jobs])
            if not isinstance(answer, str):
                return
            if self.dice.random() < self.plan.left_alone:
                return


class Worker(Client):
    """Leases and settles."""

    def __init__(self, plan, number):
        super().__init__(plan, f"{plan.name}_worker-{number}")
        self.stop, self.last = Path(plan.history) / "stop", time.monotonic()
        self.frames, self.held, self.lease, self.home = queue.Queue(), [], None, 0
        self.due = {}  # expiry of what this worker holds past its end

    def run(self):
        self.open()
        while not (self.stop.exists() and time.monotonic() - self.last > 2.0 and not self.held):
            try:
                lease, frame = self.frames.get(timeout=0.1)
            except queue.Empty:
                frame, lease = None, self.lease
            if frame == "end":
                if lease is self.lease:
                    self.next_broker()
                    self.open()
            elif frame is not None:
                self.take(frame)
            self.settle_held()
        self.lease.cancel()
        self.close()

    def open(self):
        request = pb.LeaseRequest(queues=[self.plan.queue], consumer=self.recorder.process, max_in_flight=self.plan.in_flight,
                                  lease_duration=seconds(self.plan.lease))
        self.home = self.at
        self.lease = self.stub().Lease(request, metadata=self.metadata)
        threading.Thread(target=self.read, args=(self.lease,), daemon=True).start()

    def read(self, lease):
        try:
            for frame in lease:
                self.frames.put((lease, frame))
        except grpc.RpcError:
            pass  # however it ended, another one is opened
        self.frames.put((lease, "end"))

    def take(self, frame):
        if frame.WhichOneof("frame") == "drain":
            self.frames.put((self.lease, "end"))
        leased = list(frame.jobs.jobs)
        if not leased:
            return
        self.last = time.monotonic()
        to_ack, to_nack = [], []
        for one in leased:
            expires = one.lease_expires_at.ToMicroseconds()
            self.recorder.write("grant", t=now(), job=one.job_id, token=one.lease_token, number=one.lease_number,
                                attempt=one.attempt, granted=expires - round(self.plan.lease * 1e6), expires=expires,
                                due=one.available_at.ToMicroseconds(), uid=one.payload.split(b"|")[0].decode(),
                                sha=digest(one.payload), key=one.idempotency_key,
                                port=self.plan.ports[self.home % len(self.stubs)])
            fate = self.dice.random()
            if fate < self.plan.held:
                self.held.append((time.monotonic() + self.plan.lease + 1.5, one.lease_token))
            elif fate < self.plan.held + self.plan.nacked:
                to_nack.append(one.lease_token)
            else:
                to_ack.append(one.lease_token)
        if to_ack and self.plan.elsewhere and self.dice.random() < self.plan.elsewhere:
            # The brokers are chosen so that neither gave the lease.
            self.settle("Extend", to_ack, self.home + 1)
            self.settle("Ack", to_ack, self.home + 2)
        else:
            self.settle("Ack", to_ack)
        self.settle("Nack", to_nack)

    def settle_held(self):
        ripe = [token for due, token in self.held if due <= time.monotonic()]
        self.held = [entry for entry in self.held if entry[1] not in ripe]
        self.settle("Ack", ripe)

    def settle(self, name, tokens, through=None):
        """Until every token has its answer; a repeated one is another operation, through the broker whose turn it is."""
        while tokens:
            port = self.plan.ports[(self.at if through is None else through) % len(self.stubs)]
            op = self.recorder.invoke(name.lower(), tokens=tokens, port=port)
            answer = self.call(name, op, self.request(name, tokens), lambda got: [
                {"status": status_name(one.status), "dead": getattr(one, "dead", False),
                 **({"expires": one.lease_expires_at.ToMicroseconds()} if name == "Extend" else {})}
                for one in got.results], through)
            through = None
            if not isinstance(answer, str):
                tokens = [token for token, one in zip(tokens, answer.results) if one.status == pb.SETTLE_STATUS_BUSY]

    def request(self, name, tokens):
        """What settles these tokens so."""
        if name == "Ack":
            return pb.AckRequest(lease_tokens=tokens)
        if name == "Extend":
            return pb.ExtendRequest(lease_tokens=tokens, lease_duration=seconds(self.plan.lease))
        return pb.NackRequest(items=[pb.NackItem(lease_token=token, delay=seconds(0.2)) for token in tokens])


def main():
    """One process of a run."""
    parser = argparse.ArgumentParser()
    plan = Plan(history="", ports=[])
    for name, value in vars(plan).items():
        kind = (lambda text: [int(port) for port in text.split(",")]) if name == "ports" else type(value)
        parser.add_argument(f"--{name.replace('_', '-')}", type=kind, default=value)
    load = Load(Plan(**vars(parser.parse_args()))).start()
    for thread in load.producers + load.workers:
        thread.join()
    return 0


if __name__ == "__main__":
    sys.exit(main())
