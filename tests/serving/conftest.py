"""Fixtures of the tests of serving, which are of TensorFlow's graphs."""

import socket
import threading

import keras
import pytest


def pytest_ignore_collect():
    """Leaves them out under another backend."""
    return True if keras.backend.backend() != "tensorflow" else None


@pytest.fixture(scope="module")
def address(trained_reader):
    """A server on loopback."""
    import uvicorn

    from qanet.serving.explanation import Explainer
    from qanet.serving.server import make_app

    server = uvicorn.Server(
        uvicorn.Config(
            make_app(trained_reader, Explainer(trained_reader)), log_level="error"
        )
    )
    with socket.create_server(("127.0.0.1", 0)) as bound:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
        thread.start()
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"
        server.should_exit = True
        thread.join()
