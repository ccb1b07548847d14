"""What stands before the application: bodies, and how many requests there are."""

import asyncio
from collections.abc import Iterator

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from qanet.serving.limits import Limits
from qanet.serving.refusals import RETRY, refusal

# Bytes of an answer that are handed over at a time, which is what asyncio lets wait.
PART = 2**16


class Gate:
    """Reads bodies, and refuses what is too slow, too large, or too much at a time.

    A request counts as pending once its body is there, and until its client has taken
    all but the end of the answer or has gone: neither who sends slowly nor who gives up
    keeps anybody else out, and of no more answers than these there is more in memory
    than an end.
    """

    def __init__(self, app: ASGIApp, limits: Limits):
        self.app = app
        self.limits = limits
        self.pending = 0
        # Bytes of bodies that are still coming.
        self.coming = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if refused := _refused_head(Headers(scope=scope)):
            await refused(scope, receive, send)
            return
        if scope["method"] != "POST":
            await self.app(scope, receive, send)
            return
        try:
            body = await self._body(Request(scope, receive))
        except ClientDisconnect:
            return
        except HTTPException as error:
            response = refusal(error.status_code, error.detail, error.headers)
            await response(scope, receive, send)
            return
        self.pending += 1
        try:
            await self._answer(body, scope, receive, send)
        finally:
            self.pending -= 1

    async def _answer(
        self, body: bytes, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Has the application answer; cancels it if the client goes away before."""
        sent = False

        async def replay() -> Message:
            nonlocal sent
            if sent:
                return await receive()
            sent = True
            return {"type": "http.request", "body": body, "more_body": False}

        async def send_unwatched(message: Message) -> None:
            # Clients count as gone after an answer too, which is not to be cut off.
            watching.cancel()
            for part in _in_parts(message):
                await send(part)

        working = asyncio.create_task(self.app(scope, replay, send_unwatched))
        watching = asyncio.create_task(_cancel_when_gone(working, receive))
        try:
            await working
        except asyncio.CancelledError:
            # The client's going ends here, unlike the server's being stopped.
            if asyncio.current_task().cancelling():
                raise
        finally:
            watching.cancel()

    async def _body(self, request: Request) -> bytes:
        """The whole body of a request that may go on.

        Raises:
            HTTPException: it may not.
            ClientDisconnect: the client went away.
        """
        limits = self.limits
        body = bytearray()
        try:
            async with asyncio.timeout(limits.body_seconds):
                async for part in request.stream():
                    body += part
                    self.coming += len(part)
                    if len(body) > limits.body_bytes:
                        message = f"the body has more than {limits.body_bytes} bytes"
                        raise HTTPException(413, message)
                    if self.coming > limits.pending * limits.body_bytes:
                        message = "too many bodies at a time; try again soon"
                        headers = RETRY | {"Connection": "close"}
                        raise HTTPException(429, message, headers)
        except TimeoutError:
            message = f"the body took more than {limits.body_seconds} seconds"
            raise HTTPException(408, message, {"Connection": "close"}) from None
        finally:
            self.coming -= len(body)
        if self.pending >= limits.pending:
            message = "too many requests at a time; try again soon"
            raise HTTPException(429, message, RETRY)
        return bytes(body)


def _refused_head(headers: Headers) -> Response | None:
    """The refusal of a request for its head; `None` where that is well."""
    if "content-length" in headers and "transfer-encoding" in headers:
        # RFC 9112, section 6.3: what stands behind it may be smuggled in.
        message = "send Content-Length or Transfer-Encoding, not both"
        return refusal(400, message, {"Connection": "close"})
    if headers.get("content-encoding", "identity").lower() != "identity":
        return refusal(415, "send the body without a Content-Encoding")
    return None


def _in_parts(message: Message) -> Iterator[Message]:
    """A message in parts, each of which is sent once those before are nearly gone."""
    body = message.get("body", b"")
    last = max(len(body) - 1, 0) // PART * PART
    for begin in range(0, last, PART):
        yield message | {"body": body[begin : begin + PART], "more_body": True}
    yield message | {"body": body[last:]} if last else message


async def _cancel_when_gone(task: asyncio.Task, receive: Receive) -> None:
    """Cancels a task once the client has closed its connection."""
    while (await receive())["type"] != "http.disconnect":
        pass
    task.cancel()
