"""One reader at work: what clients ask of it, checked and joined into batches."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

from qanet import __version__
from qanet.decoding import Answer
from qanet.models.limits import ReadingLimits
from qanet.reader import Reader
from qanet.run import TrainedModel
from qanet.serving.batching import Batcher
from qanet.serving.explanation import explainer_of
from qanet.serving.limits import (
    Limits,
    check_explained,
    check_limits,
    in_time,
)
from qanet.serving.messages import Asked, Explained, ModelInformation, Question

# Seconds that a question waits for others to be read with.
WAIT = 0.005


class Loaded(NamedTuple):
    """What a directory holds.

    Attributes:
        reader: answers the questions.
        model: what the reader computes with, where that is at hand.
        workers: threads that may use the reader at a time.
        digest: tells its files from those of other readers.
    """

    reader: Reader
    model: TrainedModel | None = None
    workers: int = 1
    digest: str = ""


class Job(NamedTuple):
    """A question on its passages, to be read with others of equal settings.

    Attributes:
        pair: the question and its passages.
        settings: answers to give, and tokens of an answer at most.
        tokens: what it costs, see `check_limits`.
    """

    pair: tuple[str, list[str]]
    settings: tuple[int, int | None]
    tokens: int


class ServedReader:
    """Answers and explains from `start` to `stop`.

    Args:
        loaded: the reader.
        limits: what a client may ask; by default as much as the reader reads at once.
        batch_size: the most questions that are read together.
        count_batch: is told how many questions are read together.
    """

    def __init__(
        self,
        loaded: Loaded,
        limits: Limits | None,
        batch_size: int,
        count_batch: Callable[[int], None],
    ):
        self.count_batch = count_batch
        self.reader, self.model = loaded.reader, loaded.model
        self.digest = loaded.digest
        self.limits = limits or _limits_of(self.reader.limits)
        self.explainer = explainer_of(self.reader, self.model)
        # The first question compiles, on JAX for its own length alone; no client should
        # wait for that.
        ready = "Is it ready?", "It is ready."
        self.reader.answer(*ready)
        if self.explainer:
            self.explainer.explain(*ready)
        # A batch costs no more than a single request may.
        self._answering = Batcher(
            self._read,
            batch_size,
            WAIT,
            lambda job: job.tokens,
            self.limits.tokens,
            loaded.workers,
        )
        self._explaining = Batcher(self._explain_all, 1, 0.0)
        self._asked = 0
        self._nothing_asked = asyncio.Event()
        self._nothing_asked.set()

    def start(self) -> None:
        """Begins to work, within a running event loop."""
        self._answering.start()
        self._explaining.start()

    async def stop(self) -> None:
        """Finishes what was asked, and ends."""
        # What is still counted has not been submitted.
        await self._nothing_asked.wait()
        await self._answering.stop()
        await self._explaining.stop()
        # They refer to this reader: its memory would wait for the collector of cycles.
        del self._answering, self._explaining

    @property
    def waiting(self) -> int:
        """Questions that are not read yet."""
        return self._answering.waiting

    async def answer(self, question: Question) -> list[list[Answer]]:
        """For each question its answers, best first.

        Raises:
            HTTPException: more is asked than the limits allow, or it takes too long.
        """
        with self._being_asked():
            return await in_time(self._answer(question), self.limits)

    async def explain(self, asked: Asked) -> Explained | None:
        """What the answer comes from; `None` where the reader cannot tell.

        Raises:
            HTTPException: the texts are too long, or it takes too long.
        """
        if not self.explainer:
            return None
        with self._being_asked():
            (explanation,) = await in_time(self._explain(asked), self.limits)
        return explanation

    def information(self) -> ModelInformation:
        """What the reader is, and what it may be asked."""
        config = self.reader.config
        return ModelInformation(
            name=config.model.name,
            version=__version__,
            digest=self.digest,
            parameters=self.model.model.count_params() if self.model else None,
            words=len(self.reader.vocabulary),
            max_answer_tokens=config.data.answer_limit,
            no_answer=config.data.no_answer,
            threshold=self.reader.threshold if config.data.no_answer else None,
            limits=vars(self.limits),
        )

    @contextlib.contextmanager
    def _being_asked(self) -> Iterator[None]:
        """Within this context the reader does not stop."""
        self._asked += 1
        self._nothing_asked.clear()
        try:
            yield
        finally:
            self._asked -= 1
            if not self._asked:
                self._nothing_asked.set()

    async def _answer(self, question: Question) -> list[list[Answer]]:
        # In a thread: the word pieces of 2 MB take seconds to count.
        costs = await asyncio.to_thread(
            check_limits, question, self.limits, self.reader.vocabulary
        )
        settings = (question.top_k, question.max_answer_tokens)
        jobs = [
            Job((text, question.passages), settings, cost)
            for text, cost in zip(question.questions, costs, strict=True)
        ]
        return await self._answering.submit(jobs)

    async def _explain(self, asked: Asked) -> list[Explained]:
        await asyncio.to_thread(
            check_explained, asked, self.limits, self.reader.vocabulary
        )
        return await self._explaining.submit([(asked.question, asked.passage)])

    def _read(self, jobs: list[Job]) -> list[list[Answer]]:
        """Jobs with equal settings are read together."""
        results: list[list[Answer]] = [[]] * len(jobs)
        for settings in {job.settings for job in jobs}:
            mine = [i for i, job in enumerate(jobs) if job.settings == settings]
            pairs = [jobs[i].pair for i in mine]
            found = self.reader.answer_many(pairs, *settings)
            self.count_batch(len(mine))
            for i, answers in zip(mine, found, strict=True):
                results[i] = answers
        return results

    def _explain_all(self, jobs: list[tuple[str, str]]) -> list:
        return [self.explainer.explain(*job) for job in jobs]


def _limits_of(reading: ReadingLimits) -> Limits:
    """What a client may ask a reader: by default as much as it reads at once."""
    return Limits(
        question_tokens=reading.question,
        explained_tokens=reading.window,
        answer_tokens=reading.answer or Limits.answer_tokens,
    )
