"""What the server counts, for Prometheus.

No label is what a client chooses: paths are those of the application, models those that
the server was started with.
"""

import time
from collections.abc import Callable, Collection

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from qanet.serving.refusals import code_of

# Upper ends of the histograms: seconds of an answer, and questions of a batch.
BELOW_ONE = (0.002, 0.004, 0.008, 0.015, 0.03, 0.06, 0.12, 0.25, 0.5)
SECONDS = (*BELOW_ONE, 1, 2, 4, 8, 15, 30, 60)
QUESTIONS = (1, 2, 4, 8, 16, 32, 64)

OTHER = "other"


class Metrics:
    """The metrics of one application, with those of its process."""

    def __init__(self):
        self._registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self._requests = Counter(
            "qanet_requests", "Requests.", ["path"], registry=registry
        )
        self._refusals = Counter(
            "qanet_refusals",
            "Requests that were answered by an error.",
            ["path", "code"],
            registry=registry,
        )
        self._seconds = Histogram(
            "qanet_answer_seconds",
            "Seconds until the answer to a request that was not refused.",
            ["path"],
            buckets=SECONDS,
            registry=registry,
        )
        self._reloads = Counter(
            "qanet_reloads",
            "Times that a reader was to be loaded anew.",
            ["model", "result"],
            registry=registry,
        )
        self._waiting = Gauge(
            "qanet_waiting_questions",
            "Questions that no thread has begun to read.",
            ["model"],
            registry=registry,
        )
        self._batches = Histogram(
            "qanet_batch_questions",
            "Questions that were read together.",
            ["model"],
            buckets=QUESTIONS,
            registry=registry,
        )

    def text(self) -> bytes:
        """All of them, in Prometheus' text format."""
        return generate_latest(self._registry)

    def watch_queue(self, model: str, waiting: Callable[[], int]) -> None:
        """Asks for the length of a reader's queue whenever it is to be told."""
        self._waiting.labels(model).set_function(waiting)

    def count_batch(self, model: str, questions: int) -> None:
        """A batch is read."""
        self._batches.labels(model).observe(questions)

    def count_reload(self, model: str, loaded: bool) -> None:
        """A reader was loaded anew, or could not be."""
        self._reloads.labels(model, "loaded" if loaded else "failed").inc()

    def count_request(self, path: str) -> None:
        """A request has come."""
        self._requests.labels(path).inc()

    def count_answer(self, path: str, status: int, seconds: float) -> None:
        """A request is answered."""
        if status >= 400:
            self._refusals.labels(path, code_of(status)).inc()
        else:
            self._seconds.labels(path).observe(seconds)


class Counting:
    """Counts what goes through to an application.

    Args:
        app: the application.
        metrics: where it is counted.
        paths: what paths are told apart; all others are one.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, paths: Collection[str]):
        self.app = app
        self.metrics = metrics
        self.paths = paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        path = scope["path"] if scope["path"] in self.paths else OTHER
        begin = time.perf_counter()

        def count(status: int) -> None:
            self.metrics.count_answer(path, status, time.perf_counter() - begin)

        async def send_counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                count(message["status"])
            await send(message)

        self.metrics.count_request(path)
        try:
            await self.app(scope, receive, send_counted)
        except Exception:
            # Answered outside.
            count(500)
            raise
