"""pgqueuer: see README.md."""

import asyncio
import json
import logging
import sys
from datetime import timedelta
from pathlib import Path

import asyncpg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.queries import Queries

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "measure"))
from measure import main  # noqa: E402

logging.disable(logging.WARNING)
HOWS = {
    "tuned": {"batch_size": 500},
    "one": {"batch_size": 1, "max_concurrent_tasks": 64},
    "latency": {"batch_size": 10},
}


async def setup(url):
    """Makes the schema."""
    async with asyncpg.create_pool(url, min_size=1, max_size=2) as pool:
        await Queries.from_asyncpg_pool(pool).install()


class Peer:
    """Producers share one pool, the worker has another."""

    def __init__(self, url, pool):
        self.url, self.pool, self.queries = url, pool, Queries.from_asyncpg_pool(pool)

    async def one(self, job):
        """One job."""
        await self.queries.enqueue("bench", json.dumps(job).encode())

    async def many(self, jobs):
        """Many jobs."""
        payloads = [json.dumps(job).encode() for job in jobs]
        await self.queries.enqueue(["bench"] * len(jobs), payloads, [0] * len(jobs))

    async def work(self, how, handle):
        """A worker."""
        pool = await asyncpg.create_pool(self.url, min_size=2, max_size=10)
        worker = PgQueuer.from_asyncpg_pool(pool)

        @worker.entrypoint("bench")
        async def bench(job):
            handle(json.loads(job.payload))

        running = asyncio.create_task(worker.run(dequeue_timeout=timedelta(seconds=1), **HOWS[how]))

        async def stop():
            worker.shutdown.set()
            await running
            await pool.close()

        return stop

    async def close(self):
        """All is over."""
        await self.pool.close()


async def open_peer(url):
    """Connects."""
    return Peer(url, await asyncpg.create_pool(url, min_size=4, max_size=64))


main(setup, open_peer, uvloop.run)
