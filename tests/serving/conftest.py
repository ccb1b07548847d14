"""Fixtures of the tests of serving; what is served is a TensorFlow graph."""

import contextlib
import logging
import socket
import threading

import keras
import pytest


def pytest_ignore_collect():
    """Leaves them out under another backend."""
    return True if keras.backend.backend() != "tensorflow" else None


@pytest.fixture(scope="session")
def serving():
    """Serves an application on loopback: its host and port, and how to stop it."""
    from qanet.serving.connections import make_server

    @contextlib.contextmanager
    def serve(app):
        server = make_server(app, logging.WARNING)
        # Whatever is to end by itself must not be ended by that.
        server.config.timeout_graceful_shutdown = None
        # What the server logs reaches `caplog`, too.
        logging.getLogger("uvicorn").propagate = True

        def stop():
            server.should_exit = True
            thread.join(60)
            return not thread.is_alive()

        with socket.create_server(("127.0.0.1", 0)) as bound:
            thread = threading.Thread(
                target=server.run, kwargs={"sockets": [bound]}, daemon=True
            )
            thread.start()
            yield bound.getsockname(), stop
            assert stop()

    return serve


@pytest.fixture(scope="module")
def address(trained_model, trained_reader, serving):
    """A server of a reader."""
    from made_apps import app_of

    with serving(app_of(trained_reader, trained_model)) as (place, _):
        yield f"http://127.0.0.1:{place[1]}"
