"""Tests of qanet.serving.gate."""

import asyncio

import pytest

from qanet.serving.gate import PART, Gate, _in_parts
from qanet.serving.limits import Limits


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
        scope = {"type": "http", "method": "POST", "headers": []}
        task = asyncio.create_task(gate(scope, messages.get, send=None))
        await at_work.wait()
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled(), gate.pending

    assert asyncio.run(main()) == (True, 0)
    assert len(ended) == 1


def through_gate(limits, *parts, disconnects=False, headers=()):
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

        scope = {"type": "http", "method": "POST", "headers": headers}
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
    # A part that would fit does not bring back one that did not.
    got, sent = through_gate(Limits(body_bytes=3), b"ab", b"cd", b"e")
    assert got == []
    assert sent[0]["status"] == 413


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([(b"content-length", b"1"), (b"transfer-encoding", b"chunked")], 400),
        ([(b"content-encoding", b"gzip")], 415),
        ([(b"content-encoding", b"identity")], 200),
    ],
)
def test_a_head_that_is_refused(headers, status):
    got, sent = through_gate(Limits(), b"a", headers=headers)
    assert sent[0]["status"] == status
    assert got == ([b"a"] if status == 200 else [])
    # What follows on the connection may be no request of this client.
    closes = (b"connection", b"close") in sent[0]["headers"]
    assert closes == (status == 400)


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


def test_the_oldest_of_too_many_bodies_makes_room():
    """Who sends slowly keeps nobody out, however much has come already."""
    got, sent = [], []

    async def app(scope, receive, send):
        got.append((await receive())["body"])

    async def main():
        gate = Gate(app, Limits(pending=2, body_bytes=10))
        scope = {"type": "http", "method": "POST", "headers": []}
        queues = [asyncio.Queue() for _ in range(4)]

        async def send(message):
            sent.append(message)

        def come(number, body, more):
            queues[number].put_nowait(
                {"type": "http.request", "body": body, "more_body": more}
            )

        tasks = []
        for number in range(3):
            tasks.append(asyncio.create_task(gate(scope, queues[number].get, send)))
            come(number, b"12345678", more=True)
            while len(gate.coming) + len(sent) // 2 <= number:
                await asyncio.sleep(0)
            while gate.coming_bytes != 8 * len(gate.coming):
                await asyncio.sleep(0)
        await tasks[0]
        # The others go on, and a new one fits beside them.
        come(3, b"1234", more=False)
        await gate(scope, queues[3].get, send)
        for number in (1, 2):
            come(number, b"90", more=False)
            await tasks[number]
        return gate.coming, gate.coming_bytes

    assert asyncio.run(main()) == ({}, 0)
    assert got == [b"1234", b"1234567890", b"1234567890"]
    start, _ = sent
    assert start["status"] == 408
    assert (b"connection", b"close") in start["headers"]
