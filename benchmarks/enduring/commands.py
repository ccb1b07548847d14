"""Commands of qanet in this process, judged by how they end."""

import contextlib
import io
import os
import shutil
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from unittest import mock

from qanet import cli
from qanet.errors import UserError


class Begun(BaseException):
    """A command has begun what takes long, so nothing was found wrong before it."""


def _begin(*arguments, **options):
    raise Begun


# What trains, downloads, or listens, by where commands find it.
LONG = (
    *("qanet.commands.options.load_keras", "qanet.commands.train.load_keras"),
    *("qanet.commands.pretrain.load_keras", "qanet.commands.translate.load_keras"),
    *("qanet.commands.export.load_keras", "qanet.translation.translator.load_keras"),
    *("qanet.datasets.sources._download", "qanet.datasets.sources._load_tfds"),
    "qanet.serving.connections.make_server",
)


@contextlib.contextmanager
def nothing_long() -> Iterator[None]:
    """Within this context commands end where what takes long would begin."""
    with contextlib.ExitStack() as stack:
        for place in LONG:
            stack.enter_context(mock.patch(place, _begin))
        has_none = mock.patch("qanet.datasets.sources._has_tfds", return_value=False)
        stack.enter_context(has_none)
        yield


def ended(arguments: Sequence[str], given: bytes = b"") -> tuple[int | None, str]:
    """Runs a command.

    Args:
        arguments: what stands after `qanet`.
        given: what is on its standard input.

    Returns:
        Its exit code, `None` where it has begun what takes long, and what it has
        written to standard error.

    Raises:
        Exception: where a user would see a traceback.
    """
    errors = io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace")
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.redirect_stderr(errors))
        output = io.TextIOWrapper(io.BytesIO(), "utf-8")
        stack.enter_context(contextlib.redirect_stdout(output))
        source = io.TextIOWrapper(io.BytesIO(given), "utf-8")
        stack.enter_context(mock.patch.object(sys, "stdin", source))
        # A user would see it.
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("error", RuntimeWarning)
        code = 0
        try:
            cli.main(arguments)
        except SystemExit as end:
            code = end.code
        except Begun:
            code = None
        output.flush()
    errors.flush()
    return code, errors.buffer.getvalue().decode()


def complaint(arguments: Sequence[str], given: bytes = b"", fine: bool = False) -> str:
    """Runs a command and says what is wrong with its end, if anything is.

    Args:
        arguments: what stands after `qanet`.
        given: what is on its standard input.
        fine: whether there is nothing to refuse.
    """
    code, written = ended(arguments, given)
    lines = written.splitlines()
    shown = f"of {' '.join(arguments)[:300]!r}"
    if code not in (None, 0, 2):
        return f"exit code {code} {shown}"
    if "Traceback" in written and "--verbose" not in arguments:
        return f"a traceback {shown}"
    if code != 2:
        return ""
    if fine:
        return f"refused {shown}: {lines[-1][:300]}"
    errors = [line for line in lines if line.startswith("error: ")]
    if len(errors) != 1 or errors != lines[-1:] or errors == ["error: "]:
        return f"not one line of error {shown}: {written[-300:]!r}"
    return ""


def refusal(error: UserError) -> str:
    """What is wrong with the message of a refusal, if anything is."""
    if len(str(error).splitlines()) == 1:
        return ""
    return f"not one line of error: {str(error)[:300]!r}"


@contextlib.contextmanager
def new_directory(base: Path, scratch: Path, *names: str) -> Iterator[Path]:
    """Within this context one works in a directory with copies of some files.

    Args:
        base: where they are.
        scratch: where the directory is to be, for as long.
        names: of the files and directories.
    """
    directory, before = scratch / "work", Path.cwd()
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    for name in names:
        if (base / name).is_dir():
            shutil.copytree(base / name, directory / name)
        else:
            shutil.copyfile(base / name, directory / name)
    os.chdir(directory)
    try:
        yield directory
    finally:
        os.chdir(before)
