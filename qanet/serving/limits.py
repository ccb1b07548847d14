"""What a client may ask, and how long the server works on it."""

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass

from starlette.exceptions import HTTPException

from qanet.serving.messages import Question
from qanet.serving.refusals import RETRY, refusal


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


def check_limits(question: Question, limits: Limits) -> None:
    """Refuses questions that ask for more than the limits with 422, naming which."""
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


async def in_time(results: Awaitable[list], limits: Limits) -> list:
    """The results, unless they take too long; then what has not begun never does."""
    try:
        async with asyncio.timeout(limits.seconds):
            return await results
    except TimeoutError:
        message = f"no answer within {limits.seconds} seconds; try again later"
        raise HTTPException(503, message, RETRY) from None


class Gate:
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
            message = "too many requests at a time; try again soon"
            response = refusal(429, message, RETRY)
            await response(scope, receive, send)
            return
        self.pending += 1
        try:
            body = await self._body(scope, receive)
            if body is None:
                message = f"the body has more than {self.limits.body_bytes} bytes"
                response = refusal(413, message)
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
