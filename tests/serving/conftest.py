"""Fixtures of the tests of serving, which are of TensorFlow's graphs."""

import contextlib
import logging
import socket
import threading

import keras
import numpy as np
import pytest


def pytest_ignore_collect():
    """Leaves them out under another backend."""
    return True if keras.backend.backend() != "tensorflow" else None


@pytest.fixture(scope="module")
def doubting_reader(trained_reader):
    """A reader that knows no answer, which is in question, and sees matches."""
    from qanet.layers.text_match import TextMatch
    from qanet.reader import Reader
    from qanet.run import assign_variables, build_run_model, saved_variables

    config = trained_reader.config
    settings = config.model.model_copy(
        update={"no_answer": True, "question_match": True}
    )
    config = config.model_copy(update={"model": settings})
    model = build_run_model(config, trained_reader.vocabulary)
    weights = {
        path: keras.ops.convert_to_numpy(variable)
        for path, variable in saved_variables(trained_reader.model).items()
    }
    weights["no_answer/logit"] = np.array([0.5], "float32")
    match = np.random.default_rng(7).normal(size=(TextMatch.FEATURES, settings.width))
    weights["match_projection/kernel"] = 0.1 * match.astype("float32")
    assign_variables(saved_variables(model), weights)
    return Reader(model, trained_reader.vocabulary, config, threshold=0.25)


@pytest.fixture(scope="session")
def serving():
    """Serves an application on loopback: its host and port, and how to stop it."""
    from qanet.serving.connections import make_server

    @contextlib.contextmanager
    def serve(app):
        server = make_server(app, logging.WARNING)
        # Whatever is to end by itself must not be ended by that.
        server.config.timeout_graceful_shutdown = None

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
def address(trained_reader, serving):
    """A server of a reader."""
    from qanet.serving.explanation import Explainer
    from qanet.serving.server import make_app

    with serving(make_app(trained_reader, Explainer(trained_reader))) as (place, _):
        yield f"http://127.0.0.1:{place[1]}"
