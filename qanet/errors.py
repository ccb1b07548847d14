"""The exception that stands for a mistake the user can mend, and what raises it."""

import contextlib
import os
import shlex
from collections.abc import Iterator
from pathlib import Path


class UserError(Exception):
    """A mistake in what the user gave: a file, a key or a value.

    The message is one line that names it and says what to do. The command
    line prints it without a traceback and exits with code 2.
    """


def is_out_of_memory(error: Exception) -> bool:
    """Whether this, of Python, TensorFlow or JAX, says that memory did not suffice."""
    if isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error):
        return True
    return type(error).__name__ == "ResourceExhaustedError"


def first_line(error: Exception) -> str:
    """The first line of an error's message; its class where it says nothing."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def already_there(output: Path) -> UserError:
    """What is said of an output that is not to be written over."""
    return UserError(f"--output {output}: is there already; remove it or give another")


def refuse_existing(output: Path) -> None:
    """Refuses to write where something is already."""
    if output.exists():
        raise already_there(output)


@contextlib.contextmanager
def needing(what: str, package: str) -> Iterator[None]:
    """Within this context a library that cannot be imported is a user's mistake.

    Args:
        what: says what needs which library, for the message.
        package: what brings it, as pip is told.

    Raises:
        UserError: in the place of `ImportError`.
    """
    try:
        yield
    except ModuleNotFoundError:
        raise UserError(f"{what}: pip install {shlex.quote(package)}") from None
    except ImportError as error:
        raise UserError(
            f"{what}, which is installed and cannot be imported ({first_line(error)}); "
            "mend its installation"
        ) from error


@contextlib.contextmanager
def reading(name: str | os.PathLike[str]) -> Iterator[None]:
    """Within this context a file that cannot be read is a user's mistake.

    Args:
        name: the file's, for the message.

    Raises:
        UserError: in the place of `OSError`, and of `UnicodeDecodeError` where it is
            read as text.
    """
    try:
        yield
    except UnicodeDecodeError as error:
        raise UserError(
            f"{name}: is not UTF-8 (byte {error.start}); save it as UTF-8"
        ) from None
    except OSError as error:
        raise UserError(f"{name}: cannot be read: {error.strerror or error}") from None


@contextlib.contextmanager
def writing(name: str | os.PathLike[str]) -> Iterator[None]:
    """Within this context a file or directory that cannot be written is a mistake.

    Args:
        name: the file's, for the message.

    Raises:
        UserError: in the place of `OSError`.
    """
    try:
        yield
    except OSError as error:
        raise UserError(
            f"{name}: cannot be written: {error.strerror or error}"
        ) from error
