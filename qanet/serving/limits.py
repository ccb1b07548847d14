"""What a client may ask, and how long the server works on it."""

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass

from starlette.exceptions import HTTPException

from qanet.models.limits import ReadingLimits
from qanet.serving.messages import Asked, Question
from qanet.serving.refusals import RETRY
from qanet.text.encoders import TextEncoder


@dataclass(frozen=True)
class Limits:
    """What a client may ask.

    Attributes:
        body_bytes: bytes of a request.
        passages, questions: of a request.
        pairs: questions times passages of a request.
        question_tokens: the reader's tokens of a question.
        tokens: the reader's tokens of a request, as `check_limits` counts them; of
            English these are a million characters, a long novel. Windows overlap and
            each has the question, so some are read twice and more.
        explained_tokens: the reader's tokens of a passage of which an answer is
            explained.
        top_k: answers to a question.
        answer_tokens: tokens of an answer.
        answer_characters: of all answers, were each the longest passage; tokens alone
            bound no text, for one may be long. Ten answers on a passage of a million
            characters are just allowed.
        body_seconds: time for a body to arrive; a slower one is refused with 408.
        pending: requests that are worked on or wait; more are refused with 429. Of
            bodies that are still coming, and together have more than as many times
            `body_bytes`, the oldest are refused with 408.
        seconds: time for an answer; a request that takes longer is given up with 503.
    """

    body_bytes: int = 2_000_000
    passages: int = 64
    questions: int = 64
    pairs: int = 256
    question_tokens: int = ReadingLimits.question
    tokens: int = 200_000
    explained_tokens: int = ReadingLimits.window
    top_k: int = 50
    answer_tokens: int = 100
    answer_characters: int = 10_000_000
    body_seconds: int = 10
    pending: int = 64
    seconds: int = 60


def check_limits(question: Question, limits: Limits, encoder: TextEncoder) -> list[int]:
    """Refuses what asks for more than the limits with 422, naming the field.

    Args:
        question: the questions.
        limits: the limits.
        encoder: the reader's, whose own tokens are counted: a word may have a hundred
            pieces.

    Returns:
        What each question costs: its tokens and the passage's, for each passage.
    """
    passages, questions = len(question.passages), len(question.questions)
    pairs = "questions times passages"
    _refuse_more("passages", passages, limits.passages)
    _refuse_more("questions", questions, limits.questions)
    _refuse_more(pairs, passages * questions, limits.pairs)
    _refuse_more("top_k", question.top_k, limits.top_k)
    answer_tokens = question.max_answer_tokens or 1
    _refuse_more("max_answer_tokens", answer_tokens, limits.answer_tokens)
    longest = max(map(len, question.passages))
    _refuse_more(
        "questions times top_k times characters of the longest passage",
        questions * question.top_k * longest,
        limits.answer_characters,
    )
    lengths = [
        _count_question(f"questions.{number}", text, limits, encoder)
        for number, text in enumerate(question.questions)
    ]
    of_passages = 0
    for text in question.passages:
        of_passages += encoder.count(text, limits.tokens - of_passages)
    costs = [of_passages + passages * length for length in lengths]
    if sum(costs) > limits.tokens:
        raise _too_many_tokens(pairs, limits.tokens, encoder)
    return costs


def check_explained(asked: Asked, limits: Limits, encoder: TextEncoder) -> None:
    """Refuses a question or a passage that is too long to be explained with 422."""
    _count_question("question", asked.question, limits, encoder)
    _count("passage", asked.passage, limits.explained_tokens, encoder)


def _count_question(field: str, text: str, limits: Limits, encoder: TextEncoder) -> int:
    count = _count(field, text, limits.question_tokens, encoder)
    # It has a word, but perhaps no piece.
    if not count:
        raise HTTPException(422, f"{field}: is blank; give some text")
    return count


def _count(field: str, text: str, most: int, encoder: TextEncoder) -> int:
    """The tokens of a text that may have so many."""
    count = encoder.count(text, most)
    if count > most:
        raise _too_many_tokens(field, most, encoder)
    return count


def _too_many_tokens(field: str, most: int, encoder: TextEncoder) -> HTTPException:
    # They were not counted to the end.
    return HTTPException(422, f"{field}: more than {most} {encoder.unit}")


def _refuse_more(field: str, value: int, most: int) -> None:
    if value > most:
        raise HTTPException(422, f"{field}: {value} is more than {most}")


async def in_time(results: Awaitable[list], limits: Limits) -> list:
    """The results; what has not begun when the time is over never does.

    Raises:
        HTTPException: they take too long; status 503.
    """
    try:
        async with asyncio.timeout(limits.seconds):
            return await results
    except TimeoutError:
        message = (
            f"no answer within {limits.seconds} seconds; try again later, or with "
            "shorter passages"
        )
        raise HTTPException(503, message, RETRY) from None
