"""Tests of qanet.serving.connections, over sockets."""

import asyncio
import contextlib
import http.client
import json
import logging
import socket
import sys
import threading
from dataclasses import replace
from unittest.mock import Mock

import pytest
from made_apps import Ready, app_of
from starlette.responses import JSONResponse
from uvicorn.server import ServerState

from qanet.serving.batching import Batcher
from qanet.serving.connections import Connection, make_server
from qanet.serving.gate import Gate
from qanet.serving.limits import Limits

ASKED = json.dumps({"questions": ["Who?"], "passages": ["Anna Kov in Rome."]})
HEAD = (
    "POST /v1/answer HTTP/1.1\r\nHost: localhost\r\n"
    f"Content-Type: application/json\r\nContent-Length: {len(ASKED)}\r\n\r\n"
)


def app_with(**limits):
    return app_of(Ready(), limits=replace(Limits(), **limits))


@pytest.fixture
def connect():
    """Connects and sends something."""
    with contextlib.ExitStack() as stack:

        def open_connection(place, sent):
            opened = stack.enter_context(socket.create_connection(place, timeout=60))
            opened.sendall(sent.encode())
            return opened

        yield open_connection


def status(place):
    """What somebody is answered who asks as one should."""
    client = http.client.HTTPConnection(*place, timeout=60)
    with contextlib.closing(client):
        headers = {"Content-Type": "application/json"}
        client.request("POST", "/v1/answer", ASKED, headers)
        return client.getresponse().status


def received(connection):
    """All that comes until the server closes the connection."""
    parts = []
    with contextlib.suppress(ConnectionResetError):
        while part := connection.recv(2**20):
            parts.append(part)
    return b"".join(parts)


def test_who_sends_slowly_keeps_nobody_out(serving, connect):
    with serving(app_with(pending=2, body_seconds=3600)) as (place, _):
        slow = [connect(place, HEAD + ASKED[0]) for _ in range(5)]
        assert status(place) == 200
        # And is answered in the end.
        slow[0].sendall(ASKED[1:].encode())
        assert slow[0].recv(2**20).startswith(b"HTTP/1.1 200")


def test_a_body_that_does_not_come_is_refused(serving, connect):
    with serving(app_with(body_seconds=0.05)) as (place, _):
        head, _, body = received(connect(place, HEAD + ASKED[0])).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 408")
    error = json.loads(body)["error"]
    assert error["code"] == "timeout"
    assert "0.05 seconds" in error["message"]


@pytest.mark.parametrize(
    ("most", "line", "code"),
    [
        (1000, "", "too_large"),
        (20_000_000, "Content-Encoding: gzip\r\n", "unsupported_media_type"),
    ],
)
def test_a_body_that_is_refused_is_read_to_its_end(serving, connect, most, line, code):
    """Else a client that asks to close the connection may lose the refusal."""
    size = 20_000_000
    head = (
        "POST /v1/answer HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        f"Content-Type: application/json\r\n{line}Content-Length: {size}\r\n\r\n"
    )
    with serving(app_with(body_bytes=most)) as (place, _):
        answer = received(connect(place, head + "a" * size))
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == code


def test_who_goes_away_in_the_middle_of_a_body_is_no_failure(serving, connect, caplog):
    with serving(app_with()) as (place, stop):
        connect(place, HEAD + ASKED[0]).close()
        assert status(place) == 200
        assert stop()
    assert not [entry for entry in caplog.records if entry.levelno >= logging.ERROR]


def test_who_goes_away_leaves_his_place_and_is_not_read_for(
    serving, connect, monkeypatch
):
    submitted, gone = threading.Semaphore(0), threading.Event()
    at_work, go_on = threading.Event(), threading.Event()
    read, submit = [], Batcher.submit

    async def submit_noted(batcher, items):
        submitted.release()
        try:
            return await submit(batcher, items)
        except asyncio.CancelledError:
            gone.set()
            raise

    class Slow(Ready):
        def answer_many(self, pairs, *asked):
            read.append([question for question, _ in pairs])
            at_work.set()
            go_on.wait(60)
            return super().answer_many(pairs, *asked)

    def ask(place, question):
        connection = connect(place, HEAD + ASKED.replace("Who?", question))
        assert submitted.acquire(timeout=60)
        return connection

    monkeypatch.setattr(Batcher, "submit", submit_noted)
    app = app_of(Slow(), limits=replace(Limits(), pending=2))
    with serving(app) as (place, _), contextlib.ExitStack() as stack:
        stack.callback(go_on.set)
        first = ask(place, "One?")
        assert at_work.wait(60)
        ask(place, "Two?").close()
        assert gone.wait(10)
        other = ask(place, "Six?")
        go_on.set()
        for connection in (first, other):
            assert connection.recv(2**20).startswith(b"HTTP/1.1 200")
    assert read == [["One?"], ["Six?"]]


def test_who_goes_away_while_he_is_read_for_leaves_his_place(serving, connect, caplog):
    at_work, ended = threading.Event(), threading.Event()

    async def working(scope, receive, send):
        if scope["type"] != "http":
            return
        message = await receive()
        assert message["body"].decode() == ASKED
        if at_work.is_set():
            await JSONResponse({})(scope, receive, send)
            return
        at_work.set()
        try:
            await asyncio.sleep(20)
        finally:
            ended.set()

    with serving(Gate(working, replace(Limits(), pending=1))) as (place, _):
        connection = connect(place, HEAD + ASKED)
        assert at_work.wait(60)
        connection.close()
        assert ended.wait(10)
        assert status(place) == 200
    assert not [entry for entry in caplog.records if entry.levelno >= logging.ERROR]


def test_what_is_being_answered_is_finished(serving, connect):
    finished = threading.Event()

    async def streaming(scope, receive, send):
        if scope["type"] != "http":
            return
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for more in (True, True, False):
            part = {"type": "http.response.body", "body": b"part", "more_body": more}
            await send(part)
            await asyncio.sleep(0.01)
        finished.set()

    with serving(Gate(streaming, Limits())) as (place, _):
        connection = connect(place, HEAD + ASKED)
        assert finished.wait(10)
        connection.shutdown(socket.SHUT_WR)
        assert received(connection).count(b"part") == 3


def test_slow_bodies_and_heads_do_not_hold_up_a_stop(serving, connect, caplog):
    with serving(app_with(body_seconds=3600)) as (place, stop):
        slow = [connect(place, sent) for sent in (HEAD + ASKED[0], HEAD[:9], "")]
        assert status(place) == 200
        assert stop()
    for connection in slow:
        assert received(connection) == b""
    assert not [entry for entry in caplog.records if entry.levelno >= logging.ERROR]


@pytest.mark.parametrize("sent", ["", HEAD[:30]])
def test_a_head_that_does_not_come_is_not_waited_for(
    serving, connect, monkeypatch, sent
):
    monkeypatch.setattr(Connection, "SECONDS", 0.05)
    with serving(app_with()) as (place, _):
        assert received(connect(place, sent)) == b""


def test_the_head_of_another_request_is_not_waited_for(serving, connect, monkeypatch):
    monkeypatch.setattr(Connection, "SECONDS", 1.0)
    with serving(app_with()) as (place, _):
        connection = connect(place, HEAD + ASKED)
        assert connection.recv(2**20).startswith(b"HTTP/1.1 200")
        # With its first byte uvicorn's own patience would begin to be without end.
        connection.sendall(b"P")
        assert b"HTTP" not in received(connection)


def test_work_may_take_longer_than_a_head(serving, monkeypatch):
    expired = threading.Event()

    class Noting(Connection):
        SECONDS = 1.0

        def _close_unless_after(self, *last):
            super()._close_unless_after(*last)
            expired.set()

    class Slow(Ready):
        def answer_many(self, *asked):
            expired.wait()
            return super().answer_many(*asked)

    monkeypatch.setattr("qanet.serving.connections.Connection", Noting)
    with serving(app_of(Slow())) as (place, _):
        assert status(place) == 200


def answering(size):
    """An application that answers at once, with so many bytes."""

    async def app(scope, receive, send):
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": bytes(size)})

    return app


def test_an_answer_that_nobody_takes_is_dropped(serving, connect, monkeypatch):
    lost = threading.Event()

    class Noting(Connection):
        SECONDS = 0.05

        def connection_lost(self, error):
            super().connection_lost(error)
            lost.set()

    LARGE = 100_000_000
    monkeypatch.setattr("qanet.serving.connections.Connection", Noting)
    with serving(answering(LARGE)) as (place, _):
        connection = connect(place, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert lost.wait(60)
        assert 0 < len(received(connection)) < LARGE


def test_an_answer_that_nobody_takes_keeps_nobody_out(serving, connect, monkeypatch):
    """Not even where the next request is there already."""
    lost = threading.Event()

    class Noting(Connection):
        SECONDS = 0.05

        def connection_lost(self, error):
            super().connection_lost(error)
            # The next one has time to arrive.
            Noting.SECONDS = 10
            lost.set()

    monkeypatch.setattr("qanet.serving.connections.Connection", Noting)
    with serving(Gate(answering(50_000_000), replace(Limits(), pending=1))) as (
        place,
        _,
    ):
        connect(place, 2 * (HEAD + ASKED))
        assert lost.wait(60)
        assert status(place) == 200


def test_who_has_not_taken_an_answer_is_pending(serving, connect):
    with serving(Gate(answering(50_000_000), replace(Limits(), pending=1))) as (
        place,
        _,
    ):
        waiting = connect(place, HEAD + ASKED)
        assert waiting.recv(1)
        assert status(place) == 429
        waiting.close()


def test_an_answer_is_not_taken_for_ever(serving, connect, monkeypatch):
    """However steadily: it is in memory until then, and keeps others out."""
    lost = threading.Event()

    class Noting(Connection):
        WHOLE_SECONDS = 0.2

        def connection_lost(self, error):
            super().connection_lost(error)
            lost.set()

    monkeypatch.setattr("qanet.serving.connections.Connection", Noting)
    with serving(Gate(answering(50_000_000), replace(Limits(), pending=1))) as (
        place,
        _,
    ):
        slow = connect(place, HEAD + ASKED)
        while not lost.wait(0.01):
            assert slow.recv(1000)
        assert status(place) == 200


def test_a_client_that_offers_http_2_is_answered(serving, connect, caplog):
    with serving(answering(1)) as (place, _):
        offer = "Connection: Upgrade, close\r\nUpgrade: h2c\r\n"
        head = f"GET / HTTP/1.1\r\nHost: localhost\r\n{offer}\r\n"
        assert received(connect(place, head)).startswith(b"HTTP/1.1 200")
    assert not [record for record in caplog.records if record.levelname == "WARNING"]


def test_lines_on_requests_are_no_results(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    make_server(None, logging.INFO)
    (handler,) = logging.getLogger("uvicorn.access").handlers
    assert handler.stream is sys.stderr


def test_who_takes_an_answer_slowly_gets_all_of_it(serving, connect, monkeypatch):
    looked = threading.Semaphore(0)

    class Noting(Connection):
        """Looks until the client, which is woken by a look, has taken a part."""

        SECONDS = 0.05

        def _drop_unless_taken(self, size):
            if self.transport.get_write_buffer_size() < size:
                looked.release()
                super()._drop_unless_taken(size)
            else:
                self.loop.call_later(0.01, self._drop_unless_taken, size)

        def _close_unless_after(self, last, size):
            if self.transport.get_write_buffer_size() < size:
                super()._close_unless_after(last, size)
            else:
                self.loop.call_later(0.01, self._close_unless_after, last, size)

    # A part is more than the system keeps on the way.
    PART, LARGE = 10_000_000, 80_000_000
    asked = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    monkeypatch.setattr("qanet.serving.connections.Connection", Noting)
    with serving(answering(LARGE)) as (place, _):
        connection = connect(place, asked)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**16)
        with connection.makefile("rb") as answer:
            for _ in range(5):
                assert len(answer.read(PART)) == PART
                assert looked.acquire(timeout=10)
            assert len(answer.read()) > LARGE - 5 * PART


def test_what_follows_an_answer_may_be_no_body(serving, connect, caplog):
    head = "GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    with serving(app_with()) as (place, _):
        connection = connect(place, f"{head}5\r\nhello\r\n")
        assert connection.recv(2**20).startswith(b"HTTP/1.1 200")
        connection.sendall(b"is no chunk\r\n")
        assert b"HTTP/1.1" not in received(connection)
        assert status(place) == 200
    assert not [record for record in caplog.records if record.exc_info]


# Of the second the body would not be waited for.
@pytest.mark.parametrize("asked", ["POST /v1/answer", "PATCH /metrics"])
def test_a_body_that_is_none_gets_one_answer(serving, connect, caplog, asked):
    head = f"{asked} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked"
    with serving(app_with()) as (place, _):
        answered = received(connect(place, f"{head}\r\n\r\nis no chunk\r\n"))
        assert status(place) == 200
    assert answered.startswith(b"HTTP/1.1 400")
    assert answered.count(b"HTTP/1.1") == 1
    assert not [record for record in caplog.records if record.exc_info]


def test_what_nobody_takes_of_a_connection_that_is_closing_is_dropped(monkeypatch):
    """Also where the body of another request came to nothing."""
    monkeypatch.setattr(Connection, "SECONDS", 0.01)

    async def application(scope, receive, send):
        await receive()

    async def run():
        config = make_server(application, logging.WARNING).config
        config.load()
        connection = Connection(config, ServerState(), {})
        dropped = asyncio.Event()
        # It has something to send that is not taken.
        transport = Mock(**{"get_write_buffer_size.return_value": 7})
        transport.abort.side_effect = dropped.set
        transport.get_extra_info.return_value = None
        connection.connection_made(transport)
        head = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        connection.data_received(head)
        connection.data_received(b"is no chunk\r\n")
        assert transport.close.called
        await asyncio.wait_for(dropped.wait(), 60)
        connection.connection_lost(None)

    asyncio.run(run())


def test_an_answer_that_was_taken_is_not_waited_for_any_more(
    serving, connect, monkeypatch
):
    """Or the next request of its connection would be dropped while it is worked on."""
    cancelled = []

    class Noting(Connection):
        def resume_writing(self):
            super().resume_writing()
            cancelled.append(self._taking.cancelled())

    large = 50_000_000
    asked = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    monkeypatch.setattr("qanet.serving.connections.Connection", Noting)
    with (
        serving(answering(large)) as (place, _),
        connect(place, asked).makefile("rb") as answer,
    ):
        assert len(answer.read()) > large
    assert cancelled
    assert all(cancelled)


def test_a_server_that_is_told_to_stop_gives_its_requests_their_time():
    server = make_server(None, logging.WARNING)
    assert server.config.timeout_graceful_shutdown >= Limits().seconds
