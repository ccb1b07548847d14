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
from collections.abc import Iterator
from typing import BinaryIO, TextIO

from tqdm import tqdm

from qanet.errors import UserError

log = logging.getLogger("qanet")

# Characters that a terminal obeys.
CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f]")

# Stands for an empty answer where people read it.
NO_ANSWER = "(no answer)"


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


def say(text: str, flush: bool = False) -> None:
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
    # tqdm asks for the width by itself where it knows the file.
    return tqdm(disable=disable, file=StandardError(), dynamic_ncols=True, **options)
