"""How the package talks to whoever started it.

Results go to standard output, everything else to standard error: remarks and warnings
through the logger `qanet` of Python's `logging`, and progress bars. `--quiet` hides the
remarks and the bars, `--verbose` adds what the libraries below report.
"""

import contextlib
import logging
import os
import re
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO, BinaryIO, TextIO

from tqdm import tqdm

from qanet.errors import UserError, first_line

log = logging.getLogger("qanet")

# What TensorFlow 2.21 says while it is imported, whatever TF_CPP_MIN_LOG_LEVEL is:
# remarks of its C++ libraries, and that these begin.
REMARKS = re.compile(rb"I\d{4} |WARNING: All log messages before absl::InitializeLog")
# An error where there is a driver, and no news where there is none.
NO_GPU = re.compile(rb"E\d{4} .*failed call to cuInit")
# One of them is there where a driver of NVIDIA's is, the second on WSL.
DRIVERS = (Path("/proc/driver/nvidia"), Path("/dev/dxg"))

# Characters that a terminal obeys.
CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f]")

# Stands for an empty answer where people read it.
NO_ANSWER = "(no answer)"

# Standard error is one for all threads.
_holding_back = threading.Lock()


class _Lines(logging.Formatter):
    """Remarks as they are; before others stands what they are."""

    def format(self, record: logging.LogRecord) -> str:
        line = super().format(record)
        if record.levelno >= logging.WARNING:
            return f"{record.levelname.lower()}: {line}"
        return line


@contextlib.contextmanager
def speaking(level: int) -> Iterator[None]:
    """Within this context what is logged is printed, from a level of `logging` on."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Lines())
    before = log.level, log.propagate
    log.addHandler(handler)
    log.setLevel(level)
    log.propagate = False
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(before[0])
        log.propagate = before[1]


def is_verbose() -> bool:
    """Whether everything is to be shown."""
    return log.isEnabledFor(logging.DEBUG)


class OutputGone(Exception):
    """Whoever read standard output has stopped, as `head` does."""


def say(text: str = "", flush: bool = False) -> None:
    """Prints a line of results.

    Raises:
        OutputGone: nobody reads it.
        UserError: it cannot be written.
    """
    with _writing():
        print(text, flush=flush)


def flush_output() -> None:
    """Writes what `say` has left to be written; raises as `say` does."""
    if sys.stdout is not None:
        with _writing():
            sys.stdout.flush()


@contextlib.contextmanager
def _writing() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        _let_go_nowhere(sys.stdout)
        if isinstance(error, BrokenPipeError):
            raise OutputGone from None
        raise UserError(
            f"standard output: cannot be written: {error.strerror}"
        ) from None
    except UnicodeEncodeError as error:
        character = error.object[error.start]
        raise UserError(
            f"standard output: has no {character!a} in its encoding, {error.encoding}; "
            "set PYTHONIOENCODING=utf-8, or give files other names"
        ) from None


def _let_go_nowhere(stream: TextIO) -> None:
    """Python flushes once more when it ends, and would complain."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def standard_input() -> BinaryIO:
    """Standard input as bytes; raises `UserError` where it is closed."""
    if sys.stdin is None:
        raise UserError("-: standard input is closed; pipe a text in or give a file")
    return sys.stdin.buffer


def printable(text: str) -> str:
    """A text on one line, without the characters that a terminal obeys."""
    return " ".join(CONTROLS.sub(" ", text).split())


def is_quiet() -> bool:
    """Whether remarks and progress are not to be shown."""
    return log.level > logging.INFO


class StandardError:
    """Standard error, without which work goes on: a full disk, or nobody who reads."""

    def write(self, text: str) -> None:
        """Writes, or lets all that follows go nowhere."""
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except OSError:
            _let_go_nowhere(sys.stderr)

    def __getattr__(self, name: str):
        return getattr(sys.stderr, name)


def complain(line: str) -> None:
    """Prints to standard error, where it is open; `print` would take the other."""
    if sys.stderr is not None:
        print(line, file=StandardError())


def progress_bar(*, disable: bool = False, **options) -> tqdm:
    """A progress bar with tqdm's options, hidden where remarks are."""
    disable = disable or is_quiet() or sys.stderr is None
    return tqdm(disable=disable, file=StandardError(), **options)


def load_keras() -> None:
    """Imports Keras and what it computes with, silently.

    Raises:
        UserError: one of them is not installed or does not work.
    """
    with _holding_back:
        if sys.modules.get("keras"):
            return
        try:
            with _remarks_held_back():
                import keras

                if keras.backend.backend() == "tensorflow":
                    _find_devices()
        except (ImportError, ValueError) as error:
            name = os.environ.get("KERAS_BACKEND")
            raise UserError(
                f"{f'KERAS_BACKEND={name}: ' if name else ''}Keras cannot be imported "
                f"({first_line(error)}); install its backend, or set KERAS_BACKEND "
                "to tensorflow or jax"
            ) from error


def load_tensorflow() -> None:
    """Imports TensorFlow silently, for who needs it without Keras.

    Raises:
        ImportError: it is not installed.
    """
    with _holding_back:
        if not sys.modules.get("tensorflow"):
            with _remarks_held_back():
                _find_devices()


def _find_devices() -> None:
    """Lets TensorFlow look for GPUs now: it talks about them too."""
    import tensorflow as tf

    tf.config.list_physical_devices()


@contextlib.contextmanager
def _remarks_held_back() -> Iterator[None]:
    """Within this context standard error waits; then it is shown without remarks.

    The file itself waits, since C++ does not write through Python. All of it is shown
    where the context is left by an error; nothing waits where everything is wanted.
    """
    waiting = _waiting_file()
    if waiting is None:
        yield
        return
    sys.stderr.flush()
    shown = os.dup(2)
    with waiting as held:
        os.dup2(held.fileno(), 2)
        try:
            yield
        finally:
            failed = isinstance(sys.exception(), Exception)
            sys.stderr.flush()
            os.dup2(shown, 2)
            os.close(shown)
            held.seek(0)
            for line in held:
                if failed or not _is_remark(line):
                    os.write(2, line)


def _waiting_file() -> IO[bytes] | None:
    """Where standard error waits; `None` where all of it is shown at once."""
    if is_verbose() or sys.stderr is None:
        return None
    try:
        return tempfile.TemporaryFile()
    except OSError:
        # There is no place that can be written.
        return None


def _is_remark(line: bytes) -> bool:
    """Whether a line is of those that TensorFlow begins with on any machine."""
    if NO_GPU.match(line):
        return not any(driver.exists() for driver in DRIVERS)
    return REMARKS.match(line) is not None
