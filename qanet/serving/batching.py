"""Joins what concurrent clients ask into batches for one reader."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

Work = Callable[[Sequence[Any]], Sequence[Any]]


class Batcher:
    """Collects items until a batch is full or the first has waited long enough.

    One thread computes, so that clients never compete for the processor: while it
    works, the next batch fills up. An item waits for others only after a batch of
    several: a lone client would wait in vain.

    Args:
        work: computes the results of a batch of items, in their order.
        batch_size: the most items of a batch.
        wait: seconds that an item waits for others.
    """

    def __init__(self, work: Work, batch_size: int, wait: float):
        self.work = work
        self.batch_size = batch_size
        self.wait = wait
        self._queue: asyncio.Queue = asyncio.Queue()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="reader")
        self._task: asyncio.Task | None = None

    def start(self) -> None:
        """Begins to work, within a running event loop."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Finishes what was submitted, and ends."""
        await self._queue.put(None)
        await self._task
        self._thread.shutdown()

    async def submit(self, items: Sequence[Any]) -> list[Any]:
        """The results of some items, which may be computed in several batches."""
        loop = asyncio.get_running_loop()
        futures = [loop.create_future() for _ in items]
        for entry in zip(items, futures, strict=True):
            self._queue.put_nowait(entry)
        return await asyncio.gather(*futures)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        running, wait = True, 0.0
        while running:
            batch = [await self._queue.get()]
            deadline = loop.time() + wait
            while batch[-1] is not None and len(batch) < self.batch_size:
                try:
                    async with asyncio.timeout_at(deadline):
                        batch.append(await self._queue.get())
                except TimeoutError:
                    break
            if batch[-1] is None:
                running = False
                batch.pop()
            wait = self.wait if len(batch) > 1 else 0.0
            # A client that went away has cancelled its future.
            batch = [entry for entry in batch if not entry[1].cancelled()]
            if batch:
                await self._compute(batch)

    async def _compute(self, batch: list[tuple[Any, asyncio.Future]]) -> None:
        loop = asyncio.get_running_loop()
        items = [item for item, _ in batch]
        try:
            results = await loop.run_in_executor(self._thread, self.work, items)
        except Exception as error:
            # Whoever waits is told; the batcher goes on.
            results = [error] * len(batch)
        for (_, future), result in zip(batch, results, strict=True):
            if future.cancelled():
                continue
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)
