"""Joins what concurrent clients ask into batches for one reader."""

import asyncio
import math
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

Work = Callable[[Sequence[Any]], Sequence[Any]]


class Batcher:
    """Collects items until a batch is full or the first has waited long enough.

    As many threads compute as there are workers, each a batch of its own, so that
    clients never compete for the processor: while all of them work, the next batch
    fills up. Each takes its share of what waits. An item waits for others only after a
    batch of several: a lone client would wait in vain. Where a batch fails, its items
    are computed one by one, so that only the item that fails has the failure.

    Args:
        work: computes the results of a batch of items, in their order.
        batch_size: the most items of a batch.
        wait: seconds that an item waits for others.
        weigh: the weight of an item.
        capacity: the most that the items of a batch weigh; a heavier one is computed
            alone.
        workers: threads that call `work`.
    """

    def __init__(
        self,
        work: Work,
        batch_size: int,
        wait: float,
        weigh: Callable[[Any], int] = lambda item: 0,
        capacity: int = 0,
        workers: int = 1,
    ):
        self.work = work
        self.batch_size = batch_size
        self.wait = wait
        self.weigh = weigh
        self.capacity = capacity
        self.workers = workers
        self._waiting: deque[tuple[Any, asyncio.Future]] = deque()
        self._news = asyncio.Event()
        self._stopping = False
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="reader")
        self._tasks: list[asyncio.Task] = []

    def start(self) -> None:
        """Begins to work, within a running event loop."""
        self._tasks = [asyncio.create_task(self._run()) for _ in range(self.workers)]

    async def stop(self) -> None:
        """Finishes what was submitted, and ends."""
        self._stopping = True
        self._news.set()
        await asyncio.gather(*self._tasks)
        self._threads.shutdown()

    @property
    def waiting(self) -> int:
        """Items that are in no batch yet."""
        return len(self._waiting)

    async def submit(self, items: Sequence[Any]) -> list[Any]:
        """The results of some items, which may be computed in several batches."""
        loop = asyncio.get_running_loop()
        futures = [loop.create_future() for _ in items]
        self._waiting.extend(zip(items, futures, strict=True))
        self._news.set()
        try:
            return await asyncio.gather(*futures)
        finally:
            # Where one has failed or the client has gone, nobody waits for the others.
            for future in futures:
                future.cancel()
            if any(future.cancelled() for future in futures):
                self._forget_cancelled()

    def _forget_cancelled(self) -> None:
        # They would keep their texts for as long as a slow batch takes.
        self._waiting = deque(
            (item, future) for item, future in self._waiting if not future.cancelled()
        )

    async def _run(self) -> None:
        wait = 0.0
        while await self._something_waits():
            several = await self._compute_next(wait)
            wait = self.wait if several else 0.0

    async def _compute_next(self, wait: float) -> bool:
        """Whether there were several items.

        A method of its own, so that no local variable keeps them in memory.
        """
        deadline = asyncio.get_running_loop().time() + wait
        batch = await self._next_batch(deadline)
        await self._compute(batch)
        return len(batch) > 1

    async def _something_waits(self, deadline: float | None = None) -> bool:
        """Whether there is an item, at the latest by the deadline or the end."""
        # Another worker may have taken what the news was of.
        while not self._waiting and not self._stopping:
            self._news.clear()
            try:
                async with asyncio.timeout_at(deadline):
                    await self._news.wait()
            except TimeoutError:
                break
        return bool(self._waiting)

    async def _next_batch(self, deadline: float) -> list[tuple[Any, asyncio.Future]]:
        batch, weight = [], 0
        while len(batch) < self.batch_size and await self._something_waits(deadline):
            # One worker with all items would leave nothing to the others.
            share = math.ceil((len(batch) + len(self._waiting)) / self.workers)
            weight += self.weigh(self._waiting[0][0])
            if batch and (weight > self.capacity or len(batch) >= share):
                break
            batch.append(self._waiting.popleft())
        return batch

    async def _compute(self, batch: list[tuple[Any, asyncio.Future]]) -> None:
        loop = asyncio.get_running_loop()
        # A client that went away has cancelled its future.
        batch = [entry for entry in batch if not entry[1].cancelled()]
        if not batch:
            return
        items = [item for item, _ in batch]
        try:
            results = await loop.run_in_executor(self._threads, self.work, items)
        except Exception as error:
            if len(batch) > 1:
                for entry in batch:
                    await self._compute([entry])
                return
            # Whoever waits is told; the batcher goes on.
            results = [error]
        for (_, future), result in zip(batch, results, strict=True):
            if future.cancelled():
                continue
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)
