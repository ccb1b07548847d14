"""Tests of qanet.backend: what is held back, and what is not."""

import logging
import os
import sys

import pytest

from qanet import backend
from qanet.console import speaking
from qanet.errors import UserError

NO_GPU = b"E0000 00:00:1 7 cuda_platform.cc:52] failed call to cuInit: UNKNOWN (303)\n"
# What TensorFlow 2.21 writes while it is imported.
REMARKS = (
    b"WARNING: All log messages before absl::InitializeLog() is called are written to "
    b"STDERR\n",
    b"I0000 00:00:1795327994.521710   17600 port.cc:153] oneDNN is on.\n",
    NO_GPU,
)
NEWS = (
    b"W0000 00:00:1 7 gpu_device.cc:2431] Cannot dlopen some GPU libraries.\n",
    b"E0000 00:00:1 7 cuda_dnn.cc:10] Unable to register cuDNN factory\n",
    b"Illegal instruction\n",
)


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A directory in the place of those that tell of a driver; none is there."""
    monkeypatch.setattr(backend, "DRIVERS", (tmp_path / "driver",))
    return tmp_path


def import_something():
    for line in [*REMARKS, *NEWS]:
        os.write(2, line)


def test_remarks_are_held_back_and_nothing_else(machine, capfdbinary):
    with backend._remarks_held_back():
        import_something()
        assert capfdbinary.readouterr().err == b""
    assert capfdbinary.readouterr().err == b"".join(NEWS)
    os.write(2, b"later\n")
    assert capfdbinary.readouterr().err == b"later\n"


def test_a_driver_that_fails_is_news(machine, capfdbinary):
    (machine / "driver").touch()
    with backend._remarks_held_back():
        import_something()
    assert capfdbinary.readouterr().err == NO_GPU + b"".join(NEWS)


def test_all_is_shown_where_an_import_fails(machine, capfdbinary):
    def fail():
        import_something()
        raise ImportError("no such library")

    with pytest.raises(ImportError), backend._remarks_held_back():
        fail()
    assert capfdbinary.readouterr().err == b"".join([*REMARKS, *NEWS])


def test_nothing_is_held_back_where_everything_is_wanted(machine, capfdbinary):
    with speaking(logging.DEBUG), backend._remarks_held_back():
        import_something()
        assert capfdbinary.readouterr().err == b"".join([*REMARKS, *NEWS])


def test_standard_error_that_is_closed_is_left_alone(monkeypatch):
    with monkeypatch.context() as closed:
        closed.setattr(sys, "stderr", None)
        closed.setattr(os, "dup2", None)
        with backend._remarks_held_back():
            pass


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="has no /dev/full")
def test_what_is_held_back_may_have_no_place(machine):
    shown, full = os.dup(2), os.open("/dev/full", os.O_WRONLY)
    try:
        os.dup2(full, 2)
        with backend._remarks_held_back():
            import_something()
    finally:
        os.dup2(shown, 2)
        os.close(shown)
        os.close(full)


def test_all_is_shown_where_no_file_can_be_written(machine, monkeypatch, capfdbinary):
    def refuse():
        raise FileNotFoundError("No usable temporary directory found")

    monkeypatch.setattr(backend.tempfile, "TemporaryFile", refuse)
    with backend._remarks_held_back():
        import_something()
        assert capfdbinary.readouterr().err == b"".join([*REMARKS, *NEWS])


def test_one_thread_at_a_time_holds_standard_error_back(
    machine, monkeypatch, capfdbinary
):
    """The second would give it back to where the first had put it."""
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    alone = []

    def find_devices():
        alone.append(not backend._holding_back.acquire(blocking=False))
        os.write(2, REMARKS[0])

    monkeypatch.setattr(backend, "_find_devices", find_devices)
    backend.load_tensorflow()
    assert alone == [True]
    assert capfdbinary.readouterr().err == b""


def test_what_is_seeded_is_said_nothing_of(machine, monkeypatch, capfdbinary):
    """On JAX, Keras imports TensorFlow for it."""
    seeded = []

    def set_random_seed(seed):
        seeded.append(seed)
        os.write(2, REMARKS[0])

    monkeypatch.setattr("keras.utils.set_random_seed", set_random_seed)
    backend.set_seed(7)
    assert seeded == [7]
    assert capfdbinary.readouterr().err == b""


@pytest.mark.parametrize("name", ["torch", None])
def test_a_backend_that_is_lacking_is_a_users_mistake(monkeypatch, name):
    # So that `import keras` fails.
    monkeypatch.setitem(sys.modules, "keras", None)
    monkeypatch.delenv("KERAS_BACKEND", raising=False)
    if name:
        monkeypatch.setenv("KERAS_BACKEND", name)
    with pytest.raises(UserError) as caught:
        backend.load_keras()
    begin = f"KERAS_BACKEND={name}: " if name else ""
    assert str(caught.value).startswith(f"{begin}Keras cannot be imported (")
    assert "set KERAS_BACKEND to tensorflow or jax" in str(caught.value)
    assert "\n" not in str(caught.value)
