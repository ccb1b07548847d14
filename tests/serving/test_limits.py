"""Tests of qanet.serving.limits and of the hard bounds of messages."""

import asyncio

import pytest
from pydantic import ValidationError
from starlette.exceptions import HTTPException

from qanet.serving import messages
from qanet.serving.limits import (
    PART,
    Gate,
    Limits,
    _in_parts,
    check_explained,
    check_limits,
)
from qanet.serving.messages import Asked, Question
from qanet.text.pieces import SPECIAL, WordPieces


def test_a_question_costs_the_readers_own_tokens():
    pieces = WordPieces([*SPECIAL, "a", "##a"])
    question = Question(questions=["a", "aa"], passages=["a" * 99, "a a"])
    # Of words there would be 5 for each.
    assert check_limits(question, Limits(), pieces) == [103, 105]
    with pytest.raises(HTTPException, match="passages: more than 207 word pieces"):
        check_limits(question, Limits(tokens=207), pieces)
    asked = Asked(question="aa", passage="a" * 99)
    check_explained(asked, Limits(question_tokens=2, explained_tokens=99), pieces)
    with pytest.raises(HTTPException, match="passage: more than 98 word pieces"):
        check_explained(asked, Limits(explained_tokens=98), pieces)
    # A word may have no piece.
    nothing = {"question": "\ue000", "passage": "a"}
    with pytest.raises(HTTPException, match="question: is blank"):
        check_explained(Asked(**nothing), Limits(), pieces)
    question = Question(questions=["a", "\ue000"], passages=["a"])
    with pytest.raises(HTTPException, match=r"questions\.1: is blank"):
        check_limits(question, Limits(), pieces)


def test_what_is_far_too_long_is_not_counted_to_its_end(monkeypatch):
    pieces, looked_at = WordPieces([*SPECIAL, "a"]), []

    def noted(text):
        looked_at.append(len(text))
        return encode(text)

    encode = pieces._encode
    monkeypatch.setattr(pieces, "_encode", noted)
    question = Question(questions=["a"], passages=["a " * 500_000] * 2)
    with pytest.raises(HTTPException, match="more than 9000 word pieces"):
        check_limits(question, Limits(tokens=9000), pieces)
    assert sum(looked_at) < 30_000


def test_what_is_too_much_is_not_looked_at_text_by_text(monkeypatch):
    question = Question(questions=["a"] * 100, passages=["a"])
    with pytest.raises(HTTPException, match="questions: 100 is more than 64"):
        check_limits(question, Limits(), encoder=None)
    looked_at = []
    monkeypatch.setattr(
        messages, "count_tokens", lambda text: looked_at.append(text) or 1
    )
    with pytest.raises(ValidationError, match="at most 1000 items"):
        Question(questions=["a"] * 20_000, passages=["a"])
    assert len(looked_at) < 1100
    # One mistake of each list is kept, not one of each text.
    with pytest.raises(ValidationError) as error:
        Question(questions=[1] * 999, passages=[1] * 999)
    assert error.value.error_count() == 2


@pytest.mark.parametrize("message", [Question, Asked])
def test_of_unknown_fields_the_first_is_told(message):
    known = {"question": "a", "passage": "a", "questions": ["a"], "passages": ["a"]}
    fields = {name: known[name] for name in known if name in message.model_fields}
    message.model_validate(fields)
    unknown = {f"unknown{number}": 0 for number in range(1000)}
    with pytest.raises(ValidationError) as caught:
        message.model_validate(fields | unknown)
    (error,) = caught.value.errors()
    assert (error["loc"], error["type"]) == (("unknown0",), "extra_forbidden")
    for other in (None, [], "a", 1):
        with pytest.raises(ValidationError) as caught:
            message.model_validate(other)
        assert caught.value.errors()[0]["loc"] == ()


def test_a_server_that_is_stopped_stops_what_is_behind_the_gate():
    ended = []

    async def main():
        at_work, messages = asyncio.Event(), asyncio.Queue()

        async def working(*asked):
            at_work.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(asked)

        messages.put_nowait({"type": "http.request", "body": b"", "more_body": False})
        gate = Gate(working, Limits())
        scope = {"type": "http", "method": "POST"}
        task = asyncio.create_task(gate(scope, messages.get, send=None))
        await at_work.wait()
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled(), gate.pending

    assert asyncio.run(main()) == (True, 0)
    assert len(ended) == 1


def test_a_question_may_cost_just_the_limit():
    pieces = WordPieces([*SPECIAL, "a", "##a"])
    question = Question(questions=["a", "aa"], passages=["a" * 99, "a a"])
    assert sum(check_limits(question, Limits(tokens=208), pieces)) == 208


def through_gate(limits, *parts, disconnects=False):
    """What an application gets of a body, and what is sent to the client."""
    got, sent = [], []

    async def app(scope, receive, send):
        got.append((await receive())["body"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        # By now the client may be gone.
        for _ in range(9):
            await asyncio.sleep(0)
        await send({"type": "http.response.body", "body": b"answer"})

    async def main():
        messages = asyncio.Queue()
        for i, part in enumerate(parts):
            more = i + 1 < len(parts)
            messages.put_nowait(
                {"type": "http.request", "body": part, "more_body": more}
            )

        async def send(message):
            sent.append(message)
            if disconnects and message["type"] == "http.response.start":
                messages.put_nowait({"type": "http.disconnect"})

        scope = {"type": "http", "method": "POST", "headers": []}
        gate = Gate(app, limits)
        await gate(scope, messages.get, send)
        return gate.pending

    assert asyncio.run(main()) == 0
    return got, sent


def test_a_body_may_have_just_as_many_bytes_as_there_may_be():
    got, sent = through_gate(Limits(body_bytes=4), b"ab", b"cd")
    assert got == [b"abcd"]
    assert sent[0]["status"] == 200
    got, sent = through_gate(Limits(body_bytes=3), b"ab", b"cd")
    assert got == []
    assert sent[0]["status"] == 413


def test_an_answer_that_has_begun_is_not_cut_off():
    _, sent = through_gate(Limits(), b"a", disconnects=True)
    assert [message.get("body") for message in sent] == [None, b"answer"]


@pytest.mark.parametrize("size", [0, 1, PART - 1, PART, PART + 1, 3 * PART])
def test_an_answer_is_sent_in_parts(size):
    body = bytes(range(256)) * (size // 256) + bytes(size % 256)
    parts = list(_in_parts({"type": "http.response.body", "body": body}))
    assert b"".join(part["body"] for part in parts) == body
    assert all(len(part["body"]) <= PART for part in parts)
    more = [part.get("more_body", False) for part in parts]
    assert more == [True] * (len(parts) - 1) + [False]


def test_other_messages_are_sent_as_they_are():
    message = {"type": "http.response.start", "status": 200, "headers": []}
    assert list(_in_parts(message)) == [message]
    streamed = {"type": "http.response.body", "body": b"a", "more_body": True}
    assert list(_in_parts(streamed)) == [streamed]


def test_a_body_that_does_not_come_ends_its_connection():
    sent = []

    async def main():
        async def send(message):
            sent.append(message)

        async def never():
            await asyncio.Event().wait()

        scope = {"type": "http", "method": "POST", "headers": []}
        await Gate(None, Limits(body_seconds=0.01))(scope, never, send)

    asyncio.run(main())
    assert sent[0]["status"] == 408
    assert (b"connection", b"close") in sent[0]["headers"]


@pytest.mark.parametrize("field", ["top_k", "max_answer_tokens"])
def test_none_at_all_cannot_be_asked_for(field):
    with pytest.raises(ValidationError, match="greater than or equal to 1"):
        Question(questions=["a"], passages=["a"], **{field: 0})
