"""What is measured, the same for every peer in Python: a program is `python main.py ACT URL JOBS`.

A peer is a class with `one(payload)`, `many(payloads)`, `work(how, handle)` and `close()`, all of them coroutines; `work`
answers a coroutine function that stops the worker, and `how` is "tuned", "one" or "latency". The last line of stdout is the result.
"""

import asyncio
import json
import sys
import time

PRODUCERS, SINGLES, BATCH, RATE = 8, 64, 100, 50


def payload():
    """About 100 bytes of JSON."""
    return {"sent": time.time(), "pad": "x" * 64}


class Handled:
    """Counts jobs that a worker had."""

    def __init__(self, jobs):
        self.jobs, self.count, self.first, self.last = jobs, 0, 0.0, 0.0
        self.waits, self.all = [], asyncio.Event()

    def handle(self, job):
        """A worker has this job."""
        now = time.time()
        self.first = self.first or now
        self.count, self.last = self.count + 1, now
        self.waits.append(now - job["sent"])
        if self.count == self.jobs:
            self.all.set()

    def check(self):
        """Fails where it was not every job once."""
        if self.count != self.jobs:
            raise RuntimeError(f"{self.count} of {self.jobs} jobs were handled")


async def concurrently(clients, jobs, batch, act):
    """Does `act` on shares of the jobs, by so many clients at once."""
    left = jobs

    async def client():
        nonlocal left
        while left > 0:
            share = min(batch, left)
            left -= share
            await act(share)

    await asyncio.gather(*(client() for _ in range(clients)))


def batches(peer, jobs):
    """Enqueues all jobs in batches."""
    return concurrently(PRODUCERS, jobs, BATCH, lambda share: peer.many([payload() for _ in range(share)]))


async def enqueue_one(peer, jobs):
    """One job a call."""
    begun = time.time()
    await concurrently(SINGLES, jobs, 1, lambda _: peer.one(payload()))
    return {"seconds": time.time() - begun}


async def enqueue_batch(peer, jobs):
    """A hundred jobs a call."""
    begun = time.time()
    await batches(peer, jobs)
    return {"seconds": time.time() - begun}


async def drain(peer, jobs, how="tuned"):
    """From the first job that a worker has to the last one: how long a worker takes to start is not measured."""
    handled = Handled(jobs)
    stop = await peer.work(how, handled.handle)
    await handled.all.wait()
    await stop()
    handled.check()
    return {"seconds": handled.last - handled.first}


async def life(peer, jobs):
    """Producers and workers at once."""
    handled = Handled(jobs)
    stop = await peer.work("tuned", handled.handle)
    begun = time.time()
    await batches(peer, jobs)
    await handled.all.wait()
    await stop()
    handled.check()
    return {"seconds": handled.last - begun}


async def latency(peer, jobs):
    """A fixed rate, and an idle worker."""
    handled = Handled(jobs)
    stop = await peer.work("latency", handled.handle)
    begun, sending = time.time(), []
    for number in range(jobs):
        await asyncio.sleep(max(0.0, begun + number / RATE - time.time()))
        sending.append(asyncio.create_task(peer.one(payload())))
    await asyncio.gather(*sending)
    await handled.all.wait()
    await stop()
    handled.check()
    waits = sorted(handled.waits)
    at = lambda part: waits[min(len(waits) - 1, int(len(waits) * part))] * 1e3
    return {"p50_ms": at(0.5), "p99_ms": at(0.99)}


ACTS = {
    "enqueue-one": enqueue_one,
    "enqueue-batch": enqueue_batch,
    "drain": drain,
    "drain-one": lambda peer, jobs: drain(peer, jobs, "one"),
    "life": life,
    "latency": latency,
}


def main(setup, open_peer, run=asyncio.run):
    """The program."""
    act, url, *rest = sys.argv[1:]

    async def whole():
        if act == "setup":
            await setup(url)
            return
        peer = await open_peer(url)
        result = await ACTS[act](peer, int(rest[0]))
        await peer.close()
        print(json.dumps(result), flush=True)

    run(whole())
