"""A reader behind HTTP.

    GET  /            a page to try it on
    POST /v1/answer   answers to questions over passages
    POST /v1/explain  what one answer comes from
    GET  /v1/model    what the reader is
    GET  /healthz     whether it is ready
    GET  /openapi.json

Every mistake of a client is answered in one shape, `{"error": {"code", "message"}}`.
"""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

from fastapi import FastAPI, Request
from fastapi.responses import FileResponse
from starlette.exceptions import HTTPException

from qanet import __version__
from qanet.models.registry import MODELS
from qanet.reader import Reader
from qanet.run import TrainedModel
from qanet.serving.batching import Batcher
from qanet.serving.limits import (
    Gate,
    Limits,
    check_explained,
    check_limits,
    in_time,
    tokens_to_read,
)
from qanet.serving.messages import (
    Answers,
    Asked,
    ErrorBody,
    Explained,
    FoundAnswer,
    Health,
    ModelInformation,
    Question,
)
from qanet.serving.refusals import refuse_in_one_shape

# Seconds that a question waits for others to be read with.
WAIT = 0.005

PAGE_DIRECTORY = Path(__file__).parent / "page"
PAGE = {"/": "index.html", "/page.css": "page.css", "/page.js": "page.js"}


class Job(NamedTuple):
    """A question on its passages, to be read with others of equal settings.

    Attributes:
        pair: the question and its passages.
        settings: answers to give, and tokens of an answer at most.
        tokens: what it costs, see `tokens_to_read`.
    """

    pair: tuple[str, list[str]]
    settings: tuple[int, int | None]
    tokens: int


def make_app(
    reader: Reader,
    model: TrainedModel | None = None,
    limits: Limits | None = None,
    batch_size: int = 32,
) -> FastAPI:
    """The application.

    Args:
        reader: answers the questions.
        model: what the reader computes with, where that is at hand: if it offers its
            attention, answers are explained.
        limits: what a client may ask; by default as much as the reader reads at once.
        batch_size: the most questions that are read together.
    """

    limits = limits or Limits(
        question_tokens=reader.limits.question, explained_tokens=reader.limits.window
    )

    def read(jobs):
        """Jobs with equal settings are read together."""
        results = [None] * len(jobs)
        for settings in {job.settings for job in jobs}:
            mine = [i for i, job in enumerate(jobs) if job.settings == settings]
            pairs = [jobs[i].pair for i in mine]
            for i, answers in zip(
                mine, reader.answer_many(pairs, *settings), strict=True
            ):
                results[i] = answers
        return results

    explainer = None
    if model and MODELS[model.config.model.name].attention:
        # Here, so that a reader of other logits needs no Keras.
        from qanet.serving.explanation import Explainer

        explainer = Explainer.of(model)

    def explain_all(jobs):
        return [explainer.explain(*job) for job in jobs]

    # A batch costs no more than a single request may.
    batcher = Batcher(read, batch_size, WAIT, lambda job: job.tokens, limits.tokens)
    explaining = Batcher(explain_all, 1, 0.0)

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        # The first question compiles; no client should wait for that.
        ready = "Is it ready?", "It is ready."
        reader.answer(*ready)
        if explainer:
            explainer.explain(*ready)
        batcher.start()
        explaining.start()
        yield
        await batcher.stop()
        await explaining.stop()

    codes = (400, 408, 413, 415, 422, 429, 503)
    errors = {code: {"model": ErrorBody} for code in codes}
    app = FastAPI(
        title="qanet",
        version=__version__,
        description="Answers questions with a piece of a passage.",
        lifespan=lifespan,
        # These pages would load scripts from other sites.
        docs_url=None,
        redoc_url=None,
    )
    app.add_middleware(Gate, limits=limits)
    refuse_in_one_shape(app)

    @app.post("/v1/answer", responses=errors)
    async def answer(question: Question) -> Answers:
        """Answers questions over passages; each question is asked of all of them."""
        tokens = tokens_to_read(question)
        check_limits(question, sum(tokens), limits, reader.vocabulary)
        settings = (question.top_k, question.max_answer_tokens)
        jobs = [
            Job((text, question.passages), settings, cost)
            for text, cost in zip(question.questions, tokens, strict=True)
        ]
        found = await in_time(batcher.submit(jobs), limits)
        return Answers(
            answers=[
                [
                    FoundAnswer(
                        text=a.text,
                        passage=a.passage,
                        start=a.start,
                        end=a.end,
                        score=a.score,
                    )
                    for a in answers
                ]
                for answers in found
            ]
        )

    @app.post("/v1/explain", responses=errors | {404: {"model": ErrorBody}})
    async def explain(asked: Asked) -> Explained:
        """What the answer to one question on one short passage comes from."""
        if not explainer:
            raise HTTPException(404, "this reader does not tell why it answers so")
        check_explained(asked, limits, reader.vocabulary)
        job = explaining.submit([(asked.question, asked.passage)])
        (explanation,) = await in_time(job, limits)
        return Explained(**vars(explanation))

    @app.head("/v1/model", include_in_schema=False)
    @app.get("/v1/model")
    async def information() -> ModelInformation:
        """What the reader is, and what it may be asked."""
        return ModelInformation(
            name=reader.config.model.name,
            version=__version__,
            parameters=model.model.count_params() if model else None,
            words=len(reader.vocabulary),
            max_answer_tokens=reader.config.data.answer_limit,
            no_answer=reader.config.data.no_answer,
            limits=vars(limits),
        )

    @app.head("/healthz", include_in_schema=False)
    @app.get("/healthz")
    async def health() -> Health:
        """Answers once the reader is loaded."""
        return Health(status="ok")

    for address, name in PAGE.items():
        # Unlike FastAPI's routes, Starlette's answer HEAD too.
        app.add_route(address, _sender(name), include_in_schema=False)
    return app


def _sender(name: str) -> Callable[[Request], Awaitable[FileResponse]]:
    async def send(request: Request) -> FileResponse:
        return FileResponse(PAGE_DIRECTORY / name)

    return send
