"""What stands before the application: bodies, and how many requests there are."""

import asyncio
from collections.abc import Iterator

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
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
        # Bodies that are still coming: the time that each has left, the oldest first,
        # and its bytes so far.
        self.coming: dict[asyncio.Timeout, int] = {}
        self.coming_bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if "content-length" in headers and "transfer-encoding" in headers:
            # RFC 9112, section 6.3: what stands behind it may be smuggled in.
            message = "send Content-Length or Transfer-Encoding, not both"
            refused = refusal(400, message, {"Connection": "close"})
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

        A body that is refused is read to its end too, and thrown away: where the
        connection is closed on bytes that were not read, the client may lose the
        refusal.

        Raises:
            HTTPException: it may not.
            ClientDisconnect: the client went away.
        """
        limits = self.limits
        body, size = bytearray(), 0
        time_left = asyncio.timeout(limits.body_seconds)
        self.coming[time_left] = 0
        try:
            async with time_left:
                async for part in request.stream():
                    size += len(part)
                    if size <= limits.body_bytes:
                        body += part
                        self._count(time_left, len(part))
                    else:
                        body.clear()
                        self._forget(time_left)
        except TimeoutError:
            message = (
                f"the body took more than {limits.body_seconds} seconds, or the room "
                "that those of others need"
            )
            raise HTTPException(408, message, {"Connection": "close"}) from None
        finally:
            self._forget(time_left)
        if size > limits.body_bytes:
            message = f"the body has more than {limits.body_bytes} bytes"
            raise HTTPException(413, message)
        if request.headers.get("content-encoding", "identity").lower() != "identity":
            raise HTTPException(415, "send the body without a Content-Encoding")
        if self.pending >= limits.pending:
            message = "too many requests at a time; try again soon"
            raise HTTPException(429, message, RETRY)
        return bytes(body)

    def _count(self, time_left: asyncio.Timeout, size: int) -> None:
        """Counts bytes of a body; the oldest bodies have no time left for too many."""
        if time_left not in self.coming:
            return
        self.coming[time_left] += size
        self.coming_bytes += size
        while self.coming_bytes > self.limits.pending * self.limits.body_bytes:
            oldest = next(iter(self.coming))
            self._forget(oldest)
            if not oldest.expired():
                oldest.reschedule(0.0)

    def _forget(self, time_left: asyncio.Timeout) -> None:
        self.coming_bytes -= self.coming.pop(time_left, 0)


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
