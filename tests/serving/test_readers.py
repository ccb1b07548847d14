"""Tests of qanet.serving.readers: they are loaded anew while clients ask."""

import logging
import threading
import time
import weakref

import pytest
from fastapi.testclient import TestClient
from made_apps import Ready

from qanet.decoding import Answer
from qanet.errors import UserError
from qanet.serving.readers import Readers
from qanet.serving.served import Loaded
from qanet.serving.server import make_app
from qanet.text.vocabulary import RESERVED, Vocabulary

ASKED = {"questions": ["Who?"], "passages": ["Anna Kov in Rome."]}


class Version(Ready):
    """A reader that answers with its number."""

    def __init__(self, number):
        self.number = number

    def answer_many(self, pairs, *settings):
        return [[Answer(str(self.number), 0, 1, 1.0)] for _ in pairs]


class Shelf:
    """Loads ever higher versions, or raises what it is given."""

    def __init__(self, kind=Version):
        self.kind = kind
        self.loaded = []
        self.error = None

    def __call__(self):
        if self.error:
            raise self.error
        self.loaded.append(self.kind(1 + len(self.loaded)))
        return Loaded(self.loaded[-1])


def readers_of(**shelves):
    readers = Readers(shelves)
    readers.load()
    return readers


def ask(client, **named):
    response = client.post("/v1/answer", json=ASKED | named)
    assert response.status_code == 200
    return int(response.json()["answers"][0][0]["text"])


def wait_for(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_all_of_them_are_loaded_anew():
    readers = readers_of(a=Shelf(), b=Shelf())
    with TestClient(make_app(readers)) as client:
        for version in (1, 2, 3):
            wait_for(lambda version=version: ask(client, model="b") == version)
            assert ask(client, model="a") == version
            readers.reload_soon()


def test_no_request_is_lost_meanwhile():
    shelf = Shelf()
    readers = readers_of(only=shelf)
    with TestClient(make_app(readers)) as client:
        found = [[] for _ in range(8)]

        def keep_asking(mine):
            while len(shelf.loaded) < 20 or mine[-1] < 20:
                mine.append(ask(client))

        threads = [threading.Thread(target=keep_asking, args=(m,)) for m in found]
        for thread in threads:
            thread.start()
        for version in range(2, 21):
            readers.reload_soon()
            wait_for(lambda version=version: len(shelf.loaded) == version)
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
    for mine in found:
        # Never again one of before, and up to the last.
        assert mine == sorted(mine)
        assert mine[-1] == 20


def test_what_was_asked_of_the_old_one_is_answered_by_it():
    at_work, go_on = threading.Event(), threading.Event()

    class SlowAtFirst(Version):
        def answer_many(self, *asked):
            if self.number == 1:
                at_work.set()
                go_on.wait()
            return super().answer_many(*asked)

    shelf = Shelf(SlowAtFirst)
    readers = readers_of(only=shelf)
    with TestClient(make_app(readers)) as client:
        old = []
        # The second waits for the first.
        threads = [
            threading.Thread(target=lambda: old.append(ask(client))) for _ in range(2)
        ]
        threads[0].start()
        at_work.wait()
        threads[1].start()
        wait_for(lambda: readers.find(None).waiting == 1)
        readers.reload_soon()
        # The new one answers while the old one still works.
        wait_for(lambda: readers.find(None).reader is not shelf.loaded[0])
        assert ask(client) == 2
        assert not old
        go_on.set()
        for thread in threads:
            thread.join(60)
    assert old == [1, 1]


def test_what_the_old_one_still_counts_is_answered_by_it():
    counting, go_on = threading.Event(), threading.Event()

    class SlowCounter(Vocabulary):
        def count(self, *counted):
            counting.set()
            go_on.wait()
            return super().count(*counted)

    shelf = Shelf()
    readers = readers_of(only=shelf)
    shelf.loaded[0].vocabulary = SlowCounter([*RESERVED], [*RESERVED], 1)
    with TestClient(make_app(readers)) as client:
        old = []
        thread = threading.Thread(target=lambda: old.append(ask(client)))
        thread.start()
        counting.wait()
        readers.reload_soon()
        wait_for(lambda: readers.find(None).reader is not shelf.loaded[0])
        # By now the old one is told to stop.
        assert ask(client) == 2
        go_on.set()
        thread.join(60)
        assert old == [1]


def test_the_old_one_answers_while_the_new_one_is_loaded():
    loading, go_on = threading.Event(), threading.Event()
    shelf = Shelf()

    def slowly():
        if shelf.loaded:
            loading.set()
            go_on.wait()
        return shelf()

    readers = readers_of(only=slowly)
    with TestClient(make_app(readers)) as client:
        readers.reload_soon()
        loading.wait()
        assert ask(client) == 1
        assert client.get("/healthz").status_code == 200
        go_on.set()
        wait_for(lambda: ask(client) == 2)


@pytest.mark.parametrize("error", [UserError("runs/a: damaged"), KeyError("inside")])
def test_one_that_cannot_be_loaded_stays_as_it_was(error, caplog):
    bad, good = Shelf(), Shelf()
    readers = readers_of(bad=bad, good=good)
    with TestClient(make_app(readers)) as client:
        bad.error = error
        readers.reload_soon()
        wait_for(lambda: ask(client, model="good") == 2)
        assert ask(client, model="bad") == 1
        counted = client.get("/metrics").text
        for labels in ('model="bad",result="failed"', 'model="good",result="loaded"'):
            assert f"qanet_reloads_total{{{labels}}} 1.0" in counted
        (entry,) = [e for e in caplog.records if e.levelno == logging.ERROR]
        assert entry.getMessage() == (
            f"bad: not loaded anew: {error}; the reader of before goes on"
        )
        # One clear line of a mistake, the place of a failure.
        assert bool(entry.exc_info) == isinstance(error, KeyError)
        bad.error = None
        readers.reload_soon()
        wait_for(lambda: ask(client, model="bad") == 2)


def test_what_is_told_before_they_are_at_work_is_done_then():
    shelf = Shelf()
    readers = readers_of(only=shelf)
    readers.reload_soon()
    with TestClient(make_app(readers)) as client:
        wait_for(lambda: ask(client) == 2)
    readers.reload_soon()
    assert len(shelf.loaded) == 2


def test_one_that_cannot_be_loaded_at_first_is_a_mistake():
    shelf = Shelf()
    shelf.error = UserError("runs/a: damaged")
    with pytest.raises(UserError, match="damaged"):
        readers_of(only=shelf)


def test_of_the_old_one_nothing_stays():
    shelf = Shelf()
    readers = readers_of(only=shelf)
    with TestClient(make_app(readers)) as client:
        ask(client)
        old = weakref.ref(shelf.loaded[0])
        readers.reload_soon()
        wait_for(lambda: ask(client) == 2)
        shelf.loaded.clear()
        wait_for(lambda: old() is None)
