"""Tests of qanet.console: what is shown, where, and what is not."""

import io
import logging
import os
import sys

import pytest

from qanet import console
from qanet.console import log, progress_bar, say, speaking
from qanet.errors import UserError


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


no_full = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")


@pytest.fixture(params=["closed", pytest.param("full", marks=no_full), "nobody reads"])
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


def test_work_goes_on_without_standard_error(no_standard_error):
    with progress_bar(total=3, mininterval=0) as bar:
        for _ in range(3):
            bar.update()
    assert bar.disable or bar.n == 3
    console.complain("error: x")


def test_a_bar_is_as_wide_as_the_terminal(monkeypatch):
    termios = pytest.importorskip("termios")
    ours, theirs = os.openpty()
    termios.tcsetwinsize(theirs, (30, 57))
    with os.fdopen(theirs, "w") as terminal, os.fdopen(ours, "rb"):
        monkeypatch.setattr(sys, "stderr", terminal)
        with progress_bar(total=3) as bar:
            assert bar.ncols in (56, 57)


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
