"""Tests of benchmarks/enduring/asked.py: a server that fails is noticed."""

import socket
import threading
from random import Random

import pytest
from enduring import asked
from made_apps import Ready

from qanet.config import load_preset
from qanet.reader import Reader


class Whole(Ready):
    """A reader that tells its configuration too."""

    config = load_preset("qanet-tiny")


class Broken(Whole):
    """A reader that fails at everything that is asked of it."""

    def answer_many(self, pairs, top_k, max_answer_tokens):
        raise RuntimeError("of the code")


@pytest.fixture
def tried(monkeypatch, tmp_path):
    """Asks a reader and tells what is said of it."""

    def try_some(reader, count):
        monkeypatch.setattr(Reader, "load", lambda *arguments: reader)
        with asked.requests(tmp_path, tmp_path) as attempt:
            return [attempt(Random(number)) for number in range(count)]

    return try_some


def test_requests_that_are_answered_or_refused(tried):
    assert not any(tried(Whole(), 100))


def test_a_reader_that_fails_is_noticed(tried):
    with pytest.raises(RuntimeError, match="of the code"):
        tried(Broken(), 100)


def test_failures_are_told_by_their_status(tried, monkeypatch):
    async def fail(*arguments):
        return 503, b"{}"

    monkeypatch.setattr(asked, "_ask", fail)
    (said,) = tried(Whole(), 1)
    assert said.startswith("status 503 of ")


def test_a_refusal_says_what_is_wrong(tried, monkeypatch):
    async def refuse(*arguments):
        return 422, b'{"error": {"code": "invalid", "message": ""}}'

    monkeypatch.setattr(asked, "_ask", refuse)
    assert any("nothing is said of" in said for said in tried(Whole(), 20))


@pytest.fixture
def answering():
    """Starts a server that answers each connection alike, and tells its address."""
    servers = []

    def start(answer):
        server = socket.create_server(("127.0.0.1", 0))
        servers.append(server)

        def serve():
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(65536)
                    connection.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        return server.getsockname()

    yield start
    for server in servers:
        server.shutdown(socket.SHUT_RDWR)
        server.close()


def test_the_statuses_of_all_answers(answering):
    answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
    address = answering(answer + b"\r\nHTTP/1.1 500 No\r\n\r\n")
    assert asked._statuses(address, b"x") == [200, 500]
    assert asked._ask_usual(address, 20) == 200
    assert asked._statuses(answering(b""), b"x") == []


def test_messages_are_right_and_wrong():
    made = [asked._message(Random(i)) for i in range(300)]
    assert made == [asked._message(Random(i)) for i in range(300)]
    assert any(one.startswith(b"POST /v1/answer HTTP/1.1\r\n") for one in made)
    assert any(b"transfer-encoding: chunked" in one for one in made)
    assert any(one.startswith(b"\x16\x03\x01") for one in made)
    assert any(b" HTTP/1.1" not in one for one in made)
