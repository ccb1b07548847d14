"""Tests of qanet.console: what is shown, where, and what is not."""

import io
import logging
import os
import sys

import pytest

from qanet import console
from qanet.console import log, progress_bar, say, speaking
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
    monkeypatch.setattr(console, "DRIVERS", (tmp_path / "driver",))
    return tmp_path


def import_something():
    for line in [*REMARKS, *NEWS]:
        os.write(2, line)


@pytest.mark.parametrize(
    ("level", "shown"),
    [
        (logging.WARNING, "warning: c\nerror: d\n"),
        (logging.INFO, "b\nwarning: c\nerror: d\n"),
        (logging.DEBUG, "debug\nb\nwarning: c\nerror: d\n"),
    ],
)
def test_what_is_logged_is_shown_from_a_level_on(capsys, level, shown):
    with speaking(level):
        log.debug("debug")
        log.info("%s", "b")
        log.getChild("serving").warning("c")
        log.error("d")
    log.info("e")
    assert capsys.readouterr() == ("", shown)
    assert (log.level, log.handlers, log.propagate) == (logging.NOTSET, [], True)


def test_quiet_hides_progress_bars(capsys):
    for level in (logging.WARNING, logging.INFO):
        with speaking(level), progress_bar(total=3, desc="reading") as bar:
            bar.update()
        shown = capsys.readouterr().err
        assert ("reading" in shown) == (level == logging.INFO)
    with progress_bar(total=3, disable=True):
        pass
    assert capsys.readouterr().err == ""


def test_remarks_are_held_back_and_nothing_else(machine, capfdbinary):
    with console._remarks_held_back():
        import_something()
        assert capfdbinary.readouterr().err == b""
    assert capfdbinary.readouterr().err == b"".join(NEWS)
    os.write(2, b"later\n")
    assert capfdbinary.readouterr().err == b"later\n"


def test_a_driver_that_fails_is_news(machine, capfdbinary):
    (machine / "driver").touch()
    with console._remarks_held_back():
        import_something()
    assert capfdbinary.readouterr().err == NO_GPU + b"".join(NEWS)


def test_all_is_shown_where_an_import_fails(machine, capfdbinary):
    def fail():
        import_something()
        raise ImportError("no such library")

    with pytest.raises(ImportError), console._remarks_held_back():
        fail()
    assert capfdbinary.readouterr().err == b"".join([*REMARKS, *NEWS])


def test_nothing_is_held_back_where_everything_is_wanted(machine, capfdbinary):
    with speaking(logging.DEBUG), console._remarks_held_back():
        import_something()
        assert capfdbinary.readouterr().err == b"".join([*REMARKS, *NEWS])


def test_standard_error_that_is_closed_is_left_alone(monkeypatch):
    with monkeypatch.context() as closed:
        closed.setattr(sys, "stderr", None)
        closed.setattr(os, "dup2", None)
        with console._remarks_held_back():
            pass


def test_all_is_shown_where_no_file_can_be_written(machine, monkeypatch, capfdbinary):
    def refuse():
        raise FileNotFoundError("No usable temporary directory found")

    monkeypatch.setattr(console.tempfile, "TemporaryFile", refuse)
    with console._remarks_held_back():
        import_something()
        assert capfdbinary.readouterr().err == b"".join([*REMARKS, *NEWS])


def test_one_thread_at_a_time_holds_standard_error_back(
    machine, monkeypatch, capfdbinary
):
    """The second would give it back to where the first had put it."""
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    alone = []

    def find_devices():
        alone.append(not console._holding_back.acquire(blocking=False))
        os.write(2, REMARKS[0])

    monkeypatch.setattr(console, "_find_devices", find_devices)
    console.load_tensorflow()
    assert alone == [True]
    assert capfdbinary.readouterr().err == b""


@pytest.mark.parametrize("backend", ["torch", None])
def test_a_backend_that_is_lacking_is_a_users_mistake(monkeypatch, backend):
    # So that `import keras` fails.
    monkeypatch.setitem(sys.modules, "keras", None)
    monkeypatch.delenv("KERAS_BACKEND", raising=False)
    if backend:
        monkeypatch.setenv("KERAS_BACKEND", backend)
    with pytest.raises(UserError) as caught:
        console.load_keras()
    begin = f"KERAS_BACKEND={backend}: " if backend else ""
    assert str(caught.value).startswith(f"{begin}Keras cannot be imported (")
    assert "set KERAS_BACKEND to tensorflow or jax" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.fixture(params=["closed", "full", "nobody reads"])
def no_standard_error(request, monkeypatch):
    """Standard error that cannot be written to."""
    if request.param == "closed":
        monkeypatch.setattr(sys, "stderr", None)
        yield
        return
    if request.param == "full":
        writing = os.open("/dev/full", os.O_WRONLY)
    else:
        reading, writing = os.pipe()
        os.close(reading)
    with os.fdopen(writing, "w", buffering=1) as output:
        monkeypatch.setattr(sys, "stderr", output)
        yield
        # What could not be written does not come up again.
        output.flush()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="has no /dev/full")
def test_work_goes_on_without_standard_error(no_standard_error):
    with progress_bar(total=3, mininterval=0) as bar:
        for _ in range(3):
            bar.update()
    assert bar.disable or bar.n == 3
    console.complain("error: x")


def test_say_where_nobody_reads(monkeypatch):
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as output:
        monkeypatch.setattr(sys, "stdout", output)
        with pytest.raises(console.OutputGone):
            say("x", flush=True)
        # What could not be written does not come up again.
        output.flush()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="has no /dev/full")
@pytest.mark.parametrize("length", [1, 100_000])
def test_say_where_nothing_can_be_written(monkeypatch, length):
    with open("/dev/full", "w") as output:
        monkeypatch.setattr(sys, "stdout", output)
        with pytest.raises(UserError, match=r"standard output: .* No space left"):
            say("x" * length, flush=True)
        console.flush_output()


def test_standard_output_that_is_closed_is_left_alone(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    say("x")
    console.flush_output()


def test_say_what_the_encoding_has_no_character_for(monkeypatch):
    output = io.TextIOWrapper(io.BytesIO(), "ascii")
    monkeypatch.setattr(sys, "stdout", output)
    with pytest.raises(UserError, match=r"'\\xe9' in its encoding, ascii; set PYTH"):
        say("é")
