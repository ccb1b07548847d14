"""The readers behind one server, by name."""

import contextlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from functools import partial

from starlette.exceptions import HTTPException

from qanet.serving.limits import Limits
from qanet.serving.metrics import Metrics
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
        """Within this context they answer."""
        for served in self._served.values():
            served.start()
        yield
        for served in self._served.values():
            await served.stop()

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

    def _open(self, name: str) -> ServedReader:
        count_batch = partial(self.metrics.count_batch, name)
        return ServedReader(
            self.loaders[name](), self.limits, self.batch_size, count_batch
        )
