"""procrastinate: see README.md."""

import asyncio
import contextlib
import logging
import sys
from pathlib import Path

import procrastinate

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "measure"))
from measure import main  # noqa: E402

logging.disable(logging.WARNING)
HOWS = {
    "tuned": {"concurrency": 64, "delete_jobs": "always"},
    "one": {"concurrency": 64},
    "latency": {"concurrency": 64},
}


def make_app(url, size):
    """An app with a pool of so many connections."""
    return procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=url, min_size=4, max_size=size))


async def setup(url):
    """Makes the schema."""
    async with make_app(url, 4).open_async() as app:
        await app.schema_manager.apply_schema_async()


class Peer:
    """Producers and workers share the pool."""

    def __init__(self, app):
        self.app, self.handle = app, None

        @app.task(name="bench", queue="bench")
        async def bench(**job):
            self.handle(job)

        self.task = bench

    async def one(self, job):
        """One job."""
        await self.task.defer_async(**job)

    async def many(self, jobs):
        """Many jobs."""
        await self.task.batch_defer_async(*jobs)

    async def work(self, how, handle):
        """A worker."""
        self.handle = handle
        worker = asyncio.create_task(
            self.app.run_worker_async(wait=True, install_signal_handlers=False, queues=["bench"], **HOWS[how]))

        async def stop():
            worker.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await worker

        return stop

    async def close(self):
        """All is over."""
        await self.app.close_async()


async def open_peer(url):
    """Connects."""
    app = make_app(url, 64)
    await app.open_async()
    return Peer(app)


main(setup, open_peer)
