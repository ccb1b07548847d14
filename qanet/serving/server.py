"""Readers behind HTTP.

    GET  /            a page to try them on
    POST /v1/answer   answers to questions over passages
    POST /v1/explain  what one answer comes from
    GET  /v1/models   what the readers are
    GET  /v1/model    what the first of them is
    GET  /healthz     whether they are ready
    GET  /metrics     what is counted, for Prometheus
    GET  /openapi.json

Every mistake of a client is answered in one shape, `{"error": {"code", "message"}}`.
"""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import asdict
from pathlib import Path

from fastapi import FastAPI, Request
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.exceptions import HTTPException
from starlette.responses import Response

from qanet import __version__
from qanet.serving.gate import Gate
from qanet.serving.limits import Limits
from qanet.serving.messages import (
    Answers,
    Asked,
    ErrorBody,
    Explained,
    FoundAnswer,
    Health,
    ListedModel,
    ModelInformation,
    Models,
    Question,
)
from qanet.serving.metrics import Counting
from qanet.serving.readers import Readers
from qanet.serving.refusals import refuse_in_one_shape

PAGE_DIRECTORY = Path(__file__).parent / "page"
PAGE = {"/": "index.html", "/page.css": "page.css", "/page.js": "page.js"}
PAGE_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
# A browser would run an old script after an upgrade, or guess a file's type.
PAGE_HEADERS = {"Cache-Control": "no-cache", "X-Content-Type-Options": "nosniff"}


READING = ["GET", "HEAD"]


def make_app(readers: Readers) -> FastAPI:
    """The application.

    Args:
        readers: answer the questions; they are loaded.
    """

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with readers.at_work():
            yield

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
        # It would send the client to the host that its request names.
        redirect_slashes=False,
    )
    app.add_middleware(Gate, limits=readers.limits or Limits())
    refuse_in_one_shape(app)

    # Where HEAD is answered too, the route for both stands before that of the schema.
    @app.post("/v1/answer", responses=errors)
    async def answer(question: Question) -> Answers:
        """Answers questions over passages; each question is asked of all of them."""
        found = await readers.find(question.model).answer(question)
        return Answers(
            answers=[[FoundAnswer(**asdict(a)) for a in answers] for answers in found]
        )

    @app.post("/v1/explain", responses=errors | {404: {"model": ErrorBody}})
    async def explain(asked: Asked) -> Explained:
        """What the answer to one question on one short passage comes from."""
        explained = await readers.find(asked.model).explain(asked)
        if explained is None:
            raise HTTPException(404, "this reader does not tell why it answers so")
        return explained

    @app.get("/v1/models")
    @app.api_route("/v1/models", methods=READING, include_in_schema=False)
    async def models() -> Models:
        """What the readers are; the first answers who names none."""
        return Models(
            models=[
                ListedModel(model=name, **dict(readers.find(name).information()))
                for name in readers
            ]
        )

    @app.get("/v1/model")
    @app.api_route("/v1/model", methods=READING, include_in_schema=False)
    async def information() -> ModelInformation:
        """What the first reader is, and what it may be asked."""
        return readers.find(None).information()

    @app.get("/healthz")
    @app.api_route("/healthz", methods=READING, include_in_schema=False)
    async def health() -> Health:
        """Answers once the readers are loaded."""
        return Health(status="ok")

    @app.api_route("/metrics", methods=READING, include_in_schema=False)
    async def metrics() -> Response:
        return Response(readers.metrics.text(), media_type=CONTENT_TYPE_LATEST)

    for address, name in PAGE.items():
        # Unlike FastAPI's routes, Starlette's answer HEAD too.
        app.add_route(address, _sender(name), include_in_schema=False)
    paths = {route.path for route in app.routes}
    # Around the gate, whose refusals count too.
    app.add_middleware(Counting, metrics=readers.metrics, paths=paths)
    return app


def _sender(name: str) -> Callable[[Request], Awaitable[Response]]:
    content = (PAGE_DIRECTORY / name).read_bytes()
    kind = PAGE_TYPES[Path(name).suffix]

    async def send(request: Request) -> Response:
        return Response(content, headers=PAGE_HEADERS, media_type=kind)

    return send
