"""How a request is refused: one shape, `{"error": {"code", "message"}}`, for all."""

import logging
from email.message import Message

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

log = logging.getLogger("qanet.serving")

# Told to whom the server has no time for.
RETRY = {"Retry-After": "1"}

CODES = {
    400: "bad_request",
    404: "not_found",
    405: "method_not_allowed",
    408: "timeout",
    413: "too_large",
    415: "unsupported_media_type",
    422: "invalid",
    429: "too_many_requests",
    503: "overloaded",
    500: "internal",
}


def code_of(status: int) -> str:
    """What an HTTP status is called in a refusal."""
    return CODES.get(status, "error")


def refusal(
    status: int, message: str, headers: dict[str, str] | None = None
) -> JSONResponse:
    """The answer to a request that is refused.

    Args:
        status: the HTTP status.
        message: what is wrong, for the client.
        headers: more headers of the answer.
    """
    error = {"code": code_of(status), "message": message}
    return JSONResponse({"error": error}, status, headers)


def refuse_in_one_shape(app: FastAPI) -> None:
    """Answers all mistakes and failures within an application by a refusal."""
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(Exception, _failed)


async def _invalid(request: Request, error: RequestValidationError) -> JSONResponse:
    # Without this type the body is not even read as JSON, which keeps other sites'
    # pages in a browser from asking.
    if not _is_json(request.headers.get("content-type", "")):
        return refusal(415, "send the body with Content-Type: application/json")
    problem = error.errors()[0]
    _, *place = problem["loc"]
    if problem["type"] == "json_invalid" or not place:
        return _no_object()
    place = ".".join(str(part) for part in place)
    message = problem["msg"].removeprefix("Value error, ")
    return refusal(422, f"{place}: {message}")


async def _refused(request: Request, error: HTTPException) -> JSONResponse:
    # FastAPI's own, of a body that is no text or that Python cannot read.
    if error.status_code == 400:
        return _no_object()
    return refusal(error.status_code, str(error.detail), error.headers)


def _is_json(content_type: str) -> bool:
    """Whether FastAPI reads a body of this type as JSON."""
    message = Message()
    message["content-type"] = content_type
    subtype = message.get_content_subtype()
    return message.get_content_maintype() == "application" and (
        subtype == "json" or subtype.endswith("+json")
    )


def _no_object() -> JSONResponse:
    return refusal(400, "the body is no JSON object")


async def _failed(request: Request, error: Exception) -> JSONResponse:
    log.exception("%s %s failed", request.method, request.url.path, exc_info=error)
    return refusal(500, "the server failed; see its log")
