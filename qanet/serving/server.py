"""A reader behind HTTP.

    GET  /            a page to try it on
    POST /v1/answer   answers to questions over passages
    POST /v1/explain  what one answer comes from
    GET  /v1/model    what the reader is
    GET  /healthz     whether it is ready
    GET  /openapi.json

Every mistake of a client is answered in one shape, `{"error": {"code", "message"}}`.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from qanet import __version__
from qanet.errors import UserError
from qanet.reader import Reader
from qanet.serving.batching import Batcher
from qanet.serving.explanation import Explainer
from qanet.text.tokenizer import tokenize

log = logging.getLogger("qanet.serving")

# Seconds that a question waits for others to be read with.
WAIT = 0.005

# Told to whom the server has no time for.
RETRY = {"Retry-After": "1"}

PAGE_DIRECTORY = Path(__file__).parent / "page"
PAGE = {"/": "index.html", "/page.css": "page.css", "/page.js": "page.js"}

CODES = {
    400: "bad_request",
    404: "not_found",
    405: "method_not_allowed",
    413: "too_large",
    415: "unsupported_media_type",
    422: "invalid",
    429: "too_many_requests",
    503: "overloaded",
    500: "internal",
}


@dataclass(frozen=True)
class Limits:
    """What a client may ask.

    Attributes:
        body_bytes: bytes of a request.
        passages, questions: of a request.
        pairs: questions times passages of a request.
        characters: questions times characters of all passages, which is what a request
            costs.
        top_k: answers to a question.
        answer_tokens: tokens of an answer.
        pending: requests that are worked on or wait; more are refused with 429.
        seconds: time for an answer; a request that takes longer is given up with 503.
    """

    body_bytes: int = 2_000_000
    passages: int = 64
    questions: int = 64
    pairs: int = 256
    characters: int = 2_000_000
    top_k: int = 50
    answer_tokens: int = 100
    pending: int = 64
    seconds: int = 60


def _with_a_token(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("half a surrogate pair is no text") from None
    if not tokenize(text):
        raise ValueError("is blank; give some text")
    return text


Text = Annotated[str, AfterValidator(_with_a_token)]


class Question(BaseModel):
    """Questions, each of which is asked of all the passages."""

    model_config = ConfigDict(extra="forbid", strict=True)

    questions: list[Text] = Field(min_length=1, examples=[["Who opened the museum?"]])
    passages: list[Text] = Field(
        min_length=1, examples=[["Anna Kov opened the museum in 1984."]]
    )
    top_k: int = Field(1, ge=1, description="answers to each question")
    max_answer_tokens: int | None = Field(
        None, ge=1, description="by default the limit that the reader was trained with"
    )


class Asked(BaseModel):
    """A question on a passage."""

    model_config = ConfigDict(extra="forbid", strict=True)

    question: Text = Field(examples=["Who opened the museum?"])
    passage: Text = Field(examples=["Anna Kov opened the museum in 1984."])


class Explained(BaseModel):
    """What an answer comes from, word by word."""

    passage_tokens: list[list[int]] = Field(
        description="for each word of the passage the code points before and to its end"
    )
    question_tokens: list[list[int]] = Field(description="the same of the question")
    start: list[float] = Field(description="probability that the answer starts here")
    end: list[float] = Field(description="probability that the answer ends here")
    attention: list[list[float]] = Field(
        description="for each word of the passage its attention to the question's words"
    )


class FoundAnswer(BaseModel):
    """A piece of a passage, or that none of them answers."""

    text: str = Field(
        description="empty for no answer; then passage, start and end are 0"
    )
    passage: int = Field(description="which passage, from 0")
    start: int = Field(description="code points of the passage before it")
    end: int = Field(description="code points of the passage up to its end")
    score: float = Field(
        description="probability among all spans of all passages, and no answer"
    )


class Answers(BaseModel):
    """For each question its answers, best first."""

    answers: list[list[FoundAnswer]]


class ModelInformation(BaseModel):
    """What the reader is."""

    name: str
    version: str = Field(description="of this package")
    parameters: int
    words: int = Field(description="words that have a vector")
    max_answer_tokens: int
    no_answer: bool = Field(description="whether it can say that there is no answer")
    limits: dict[str, int]


class Health(BaseModel):
    """Whether the server is ready."""

    status: str


class ErrorDetail(BaseModel):
    """What is wrong."""

    code: str
    message: str


class ErrorBody(BaseModel):
    """The shape of every error."""

    error: ErrorDetail


def make_app(
    reader: Reader,
    explainer: Explainer,
    limits: Limits = Limits(),
    batch_size: int = 32,
) -> FastAPI:
    """The application.

    Args:
        reader: answers the questions.
        explainer: explains its answers.
        limits: what a client may ask.
        batch_size: the most questions that are read together.
    """

    def read(jobs):
        """Jobs with equal settings are read together."""
        results = [None] * len(jobs)
        for settings in {job[2:] for job in jobs}:
            mine = [i for i, job in enumerate(jobs) if job[2:] == settings]
            pairs = [jobs[i][:2] for i in mine]
            for i, answers in zip(
                mine, reader.answer_many(pairs, *settings), strict=True
            ):
                results[i] = answers
        return results

    def explain_all(jobs):
        return [explainer.explain(*job) for job in jobs]

    batcher = Batcher(read, batch_size, WAIT)
    explaining = Batcher(explain_all, 1, 0.0)

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        # The first question compiles; no client should wait for that.
        reader.answer("Is it ready?", "It is ready.")
        batcher.start()
        explaining.start()
        yield
        await batcher.stop()
        await explaining.stop()

    errors = {code: {"model": ErrorBody} for code in (400, 413, 415, 422, 429, 503)}
    app = FastAPI(
        title="qanet",
        version=__version__,
        description="Answers questions with a piece of a passage.",
        lifespan=lifespan,
        # These pages would load scripts from other sites.
        docs_url=None,
        redoc_url=None,
    )
    app.add_middleware(_Gate, limits=limits)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(Exception, _failed)

    @app.post("/v1/answer", responses=errors)
    async def answer(question: Question) -> Answers:
        """Answers questions over passages; each question is asked of all of them."""
        _check_limits(question, limits)
        passages = tuple(question.passages)
        settings = (question.top_k, question.max_answer_tokens)
        jobs = [(text, passages, *settings) for text in question.questions]
        found = await _in_time(batcher.submit(jobs), limits)
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

    @app.post("/v1/explain", responses=errors)
    async def explain(asked: Asked) -> Explained:
        """What the answer to one question on one short passage comes from."""
        try:
            job = explaining.submit([(asked.question, asked.passage)])
            (explanation,) = await _in_time(job, limits)
        except UserError as error:
            raise HTTPException(422, str(error)) from None
        return Explained(**vars(explanation))

    @app.get("/v1/model")
    async def model() -> ModelInformation:
        """What the reader is, and what it may be asked."""
        return ModelInformation(
            name=reader.config.model.name,
            version=__version__,
            parameters=reader.model.count_params(),
            words=len(reader.vocabulary.words),
            max_answer_tokens=reader.config.data.answer_limit,
            no_answer=reader.config.model.no_answer,
            limits=vars(limits),
        )

    @app.get("/healthz")
    async def health() -> Health:
        """Answers once the reader is loaded."""
        return Health(status="ok")

    for address, name in PAGE.items():
        app.add_api_route(address, _sender(name), include_in_schema=False)
    return app


def _sender(name: str) -> Callable[[], Awaitable[FileResponse]]:
    async def send() -> FileResponse:
        return FileResponse(PAGE_DIRECTORY / name)

    return send


async def _in_time(results: Awaitable[list], limits: Limits) -> list:
    """The results, unless they take too long; then what has not begun never does."""
    try:
        async with asyncio.timeout(limits.seconds):
            return await results
    except TimeoutError:
        message = f"no answer within {limits.seconds} seconds; try again later"
        raise HTTPException(503, message, RETRY) from None


def _check_limits(question: Question, limits: Limits) -> None:
    passages, questions = len(question.passages), len(question.questions)
    characters = sum(map(len, question.passages))
    for name, value, most in (
        ("passages", passages, limits.passages),
        ("questions", questions, limits.questions),
        ("questions times passages", passages * questions, limits.pairs),
        ("questions times characters", questions * characters, limits.characters),
        ("top_k", question.top_k, limits.top_k),
        ("max_answer_tokens", question.max_answer_tokens or 1, limits.answer_tokens),
    ):
        if value > most:
            raise HTTPException(422, f"{name}: {value} is more than {most}")


class _Gate:
    """Refuses what is too much before it is read: bytes, and requests at a time."""

    def __init__(self, app, limits: Limits):
        self.app = app
        self.limits = limits
        self.pending = 0

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http" or scope["method"] != "POST":
            await self.app(scope, receive, send)
            return
        if self.pending >= self.limits.pending:
            response = _error(429, "too many requests at a time; try again soon")
            response.headers.update(RETRY)
            await response(scope, receive, send)
            return
        self.pending += 1
        try:
            body = await self._body(scope, receive)
            if body is None:
                response = _error(
                    413, f"the body has more than {self.limits.body_bytes} bytes"
                )
                await response(scope, receive, send)
                return
            sent = False

            async def replay():
                nonlocal sent
                if sent:
                    return await receive()
                sent = True
                return {"type": "http.request", "body": body, "more_body": False}

            await self.app(scope, replay, send)
        finally:
            self.pending -= 1

    async def _body(self, scope, receive) -> bytes | None:
        """The whole body, or none where it is too large."""
        parts, size, more = [], 0, True
        while more:
            message = await receive()
            if message["type"] != "http.request":
                break
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self.limits.body_bytes:
                return None
            more = message.get("more_body", False)
        return b"".join(parts)


def _error(status: int, message: str) -> JSONResponse:
    code = CODES.get(status, "error")
    return JSONResponse({"error": {"code": code, "message": message}}, status)


async def _invalid(request: Request, error: RequestValidationError) -> JSONResponse:
    # Without this type the body is not even read as JSON, which keeps other sites'
    # pages in a browser from asking.
    if "json" not in request.headers.get("content-type", ""):
        return _error(415, "send the body with Content-Type: application/json")
    problem = error.errors()[0]
    place = ".".join(str(part) for part in problem["loc"] if part != "body")
    message = problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "json_invalid":
        return _error(400, "the body is no JSON")
    return _error(422, f"{place}: {message}" if place else message)


async def _refused(request: Request, error: HTTPException) -> JSONResponse:
    response = _error(error.status_code, str(error.detail))
    response.headers.update(error.headers or {})
    return response


async def _failed(request: Request, error: Exception) -> JSONResponse:
    log.exception("%s %s failed", request.method, request.url.path, exc_info=error)
    return _error(500, "the server failed; see its log")
