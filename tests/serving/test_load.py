"""Tests of the server under load: no request is lost, and none leaves anything."""

import contextlib
import gc
import http.client
import json
import threading
import tracemalloc
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from urllib.request import Request

from made_apps import Ready, app_of_many

from qanet.serving.readers import Readers
from qanet.serving.served import Loaded
from qanet.serving.server import make_app

CLIENTS, REQUESTS = 32, 10


def ask_all(place, passage):
    """What all clients are answered, each over a connection of its own."""

    def ask(client):
        connection = http.client.HTTPConnection(*place, timeout=60)
        with contextlib.closing(connection):
            for number in range(REQUESTS):
                question = f"Who is {client} {number}?"
                body = {"questions": [question], "passages": [question + passage]}
                headers = {"Content-Type": "application/json"}
                connection.request("POST", "/v1/answer", json.dumps(body), headers)
                response = connection.getresponse()
                told = json.load(response)
                yield response.status, question, told["answers"][0][0]["text"]

    with ThreadPoolExecutor(CLIENTS) as clients:
        return [*clients.map(lambda client: [*ask(client)], range(CLIENTS))]


def app():
    return app_of_many({"only": Loaded(Ready(), workers=2)})


def test_every_request_of_many_clients_is_answered_by_what_it_asked(serving):
    with serving(app()) as (place, _):
        found = ask_all(place, "")
    assert [len(mine) for mine in found] == [REQUESTS] * CLIENTS
    for mine in found:
        for status, question, answer in mine:
            assert status == 200
            # This reader says what it was asked.
            assert answer == question


def test_as_many_threads_read_as_a_reader_allows(serving):
    meeting = threading.Barrier(2, timeout=60)

    class Meeting(Ready):
        def answer_many(self, *asked):
            # Nobody gets past it alone.
            meeting.wait()
            return super().answer_many(*asked)

    def ask(place, question):
        address = f"http://{place[0]}:{place[1]}/v1/answer"
        body = json.dumps({"questions": [question], "passages": ["a"]}).encode()
        headers = {"Content-Type": "application/json"}
        with urllib.request.urlopen(Request(address, body, headers)) as response:
            return response.status

    readers = Readers({"only": lambda: Loaded(Meeting(), workers=2)}, batch_size=1)
    readers.load()
    with serving(make_app(readers)) as (place, _), ThreadPoolExecutor(2) as clients:
        assert [*clients.map(partial(ask, place), "ab")] == [200, 200]


def test_requests_leave_nothing_behind(serving):
    passage = " word" * 2000
    with serving(app()) as (place, _):
        # What is kept for good is made at first.
        ask_all(place, passage)
        gc.collect()
        tracemalloc.start()
        try:
            ask_all(place, passage)
            gc.collect()
            left, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    # Of each request less than a tenth of its text.
    assert left < CLIENTS * REQUESTS * len(passage) / 10
