"""The readers behind one server, by name, which are loaded anew when told to."""

import asyncio
import contextlib
import gc
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from functools import partial

from starlette.exceptions import HTTPException

from qanet.errors import UserError
from qanet.serving.limits import Limits
from qanet.serving.metrics import Metrics
from qanet.serving.refusals import log
from qanet.serving.served import Loaded, ServedReader


class Readers:
    """Readers by name, of which the first answers who names none.

    Args:
        loaders: at least one; for each name what loads the reader.
        limits: what a client may ask; by default as much as each reader reads at once.
        batch_size: the most questions that a reader reads together.

    Attributes:
        metrics: what is counted of them and of who asks them.
    """

    def __init__(
        self,
        loaders: Mapping[str, Callable[[], Loaded]],
        limits: Limits | None = None,
        batch_size: int = 32,
    ):
        self.loaders = loaders
        self.limits = limits
        self.batch_size = batch_size
        self.metrics = Metrics()
        self._served: dict[str, ServedReader] = {}
        self._stale = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def load(self) -> None:
        """Loads them all, before they are at work.

        Raises:
            UserError: one of them cannot be loaded.
        """
        for name in self.loaders:
            self._served[name] = self._open(name)
            self.metrics.watch_queue(name, lambda name=name: self._served[name].waiting)

    @contextlib.asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        """Within this context they answer, and are loaded anew when told to."""
        self._loop = asyncio.get_running_loop()
        for name in self._served:
            self._served[name].start()
        reloading = asyncio.create_task(self._reload_when_told())
        yield
        self._loop = None
        reloading.cancel()
        for name in self._served:
            await self._served[name].stop()

    def reload_soon(self) -> None:
        """Has them loaded anew; may be called by any thread and at any time.

        They go on to answer meanwhile. One that cannot be loaded stays as it was.
        """
        if self._loop:
            self._loop.call_soon_threadsafe(self._stale.set)
        else:
            self._stale.set()

    def __iter__(self) -> Iterator[str]:
        """Their names."""
        return iter(self._served)

    def find(self, name: str | None) -> ServedReader:
        """The reader of a name, without one the first.

        Raises:
            HTTPException: there is none of that name.
        """
        if name is None:
            name = next(iter(self._served))
        if name not in self._served:
            message = "model: there is none of this name; GET /v1/models lists them"
            raise HTTPException(422, message)
        return self._served[name]

    async def _reload_when_told(self) -> None:
        while await self._stale.wait():
            self._stale.clear()
            for name in self.loaders:
                await self._reload(name)

    async def _reload(self, name: str) -> None:
        try:
            new = await asyncio.to_thread(self._open, name)
        except Exception as error:
            traceback = None if isinstance(error, UserError) else error
            log.error(
                "%s: not loaded anew: %s; the reader of before goes on",
                name,
                error,
                exc_info=traceback,
            )
            self.metrics.count_reload(name, loaded=False)
            return
        new.start()
        # Whoever has found the old one has also asked it, and is answered by it.
        old, self._served[name] = self._served[name], new
        await old.stop()
        # The model of a run directory is held by itself, and may be large.
        is_run = old.model is not None
        del old
        if is_run:
            gc.collect()
        self.metrics.count_reload(name, loaded=True)
        log.info("%s: loaded anew", name)

    def _open(self, name: str) -> ServedReader:
        count_batch = partial(self.metrics.count_batch, name)
        return ServedReader(
            self.loaders[name](), self.limits, self.batch_size, count_batch
        )
