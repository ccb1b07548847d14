"""The command line: parses, calls, prints.

The entry points are `qanet`, which is `python -m qanet`, and in the checkout
`train.py` and `evaluate.py`, which are `qanet train` and `qanet evaluate`.

Heavy imports happen inside the commands, after all that can be refused without them, so
that `--help` and mistakes answer at once.
"""

import argparse
import contextlib
import logging
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path

from qanet.commands import (
    answer,
    augment,
    cloze,
    export,
    filter,
    pack,
    pretrain,
    serve,
    settings,
    teach,
    translate,
)
from qanet.commands import evaluate as evaluate_command
from qanet.commands import train as train_command
from qanet.commands.options import Parser
from qanet.console import OutputGone, complain, flush_output, is_verbose, speaking
from qanet.errors import UserError, is_out_of_memory

# What a shell says of a program whose reader has gone: 128 and the number of SIGPIPE.
READER_GONE = 141
# Of one that Ctrl-C or SIGTERM has stopped.
INTERRUPTED, TERMINATED = 130, 143


def train(arguments: Sequence[str] | None = None) -> None:
    """`python train.py`."""
    _run_script("train", arguments)


def evaluate(arguments: Sequence[str] | None = None) -> None:
    """`python evaluate.py`."""
    _run_script("evaluate", arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """`qanet`, or `python -m qanet`."""
    _run(arguments)


def make_parser(script: str | None = None) -> argparse.ArgumentParser:
    """The options of `qanet` and of all its commands.

    Args:
        script: what `train` and `evaluate` are called by, where not by their names.
    """
    parser = Parser(
        prog="qanet" if Path(sys.argv[0]).name == "qanet" else "python -m qanet",
        description="Trains a reader, uses it, and prepares data for it.",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="name")
    for command in (train_command, evaluate_command):
        command.add_parser(commands, script)
    for command in (
        answer,
        serve,
        export,
        pack,
        augment,
        filter,
        cloze,
        teach,
        translate,
        pretrain,
        settings,
    ):
        command.add_parser(commands)
    return parser


def _run_script(name: str, arguments: Sequence[str] | None) -> None:
    """Runs `NAME.py`, which is the command NAME."""
    arguments = sys.argv[1:] if arguments is None else arguments
    _run([name, *arguments], f"{name}.py")


class Terminated(KeyboardInterrupt):
    """SIGTERM has come. Whatever knows how to stop at Ctrl-C stops as well."""


@contextlib.contextmanager
def _stoppable() -> Iterator[list[KeyboardInterrupt]]:
    """Within this context SIGTERM raises `Terminated`, so that all is cleaned up.

    Unless somebody else has decided what it does, or what Ctrl-C does. Gives what both
    have raised: the import of a compiled library may swallow it, or take it for a
    failure of its own.
    """
    came = []

    def raising(kind: type[KeyboardInterrupt]):
        def stop(*_):
            came.append(kind())
            raise came[-1]

        return stop

    usual = {}
    if threading.current_thread() is threading.main_thread():
        usual = {
            signal.SIGINT: (signal.default_int_handler, KeyboardInterrupt),
            signal.SIGTERM: (signal.SIG_DFL, Terminated),
        }
    taken = [n for n, (handler, _) in usual.items() if signal.getsignal(n) == handler]
    for number in taken:
        signal.signal(number, raising(usual[number][1]))
    try:
        yield came
    finally:
        for number in taken:
            signal.signal(number, usual[number][0])


def _run(arguments: Sequence[str] | None, script: str | None = None) -> None:
    """Parses, and runs the command; a signal ends it with one line."""
    try:
        with _stoppable() as came:
            _run_command(make_parser(script).parse_args(arguments), came)
            if came:
                raise came[0]
    except KeyboardInterrupt as stop:
        complain("stopped")
        sys.exit(TERMINATED if isinstance(stop, Terminated) else INTERRUPTED)


def _run_command(options: argparse.Namespace, came: list[KeyboardInterrupt]) -> None:
    """Runs the command; a user's mistake ends it with one line and exit code 2.

    Args:
        options: the command's.
        came: where it was told to stop, which may look like a mistake.
    """
    level = getattr(options, "level", logging.INFO)
    _set_up_tensorflow(level)
    with speaking(level):
        try:
            options.command(options)
            flush_output()
        except OutputGone:
            sys.exit(READER_GONE)
        except (UserError, OSError) as error:
            if came:
                raise came[0] from None
            if is_verbose():
                complain(traceback.format_exc())
            complain(f"error: {_line(error)}")
            sys.exit(2)
        except Exception as error:
            if came:
                raise came[0] from None
            if not is_out_of_memory(error):
                raise
            if is_verbose():
                complain(traceback.format_exc())
            complain(
                "error: out of memory; give the process more, or less to do at once"
            )
            sys.exit(2)


def _set_up_tensorflow(level: int) -> None:
    """Sets what TensorFlow reads from the environment, once, when it is imported."""
    # Remarks on the machine and warnings of TensorFlow's own inside.
    least = "0" if level == logging.DEBUG else "2"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", least)
    # Where XLA compiles parts of a step, they otherwise run uncompiled at first, which
    # rounds otherwise: a resumed training would differ from one never stopped.
    flag = "--tf_xla_enable_lazy_compilation"
    flags = os.environ.get("TF_XLA_FLAGS", "")
    if flag not in flags:
        os.environ["TF_XLA_FLAGS"] = f"{flags} {flag}=false"


def _line(error: UserError | OSError) -> str:
    """What is told of a mistake, on one line also where a file's name has several.

    Raises:
        OSError: it is of no file, and the working directory is there.
    """
    if isinstance(error, UserError):
        return " ".join(str(error).splitlines())
    # Such as of a name that is too long, or of a directory that may not be seen.
    if error.filename is None:
        try:
            os.getcwd()
        except FileNotFoundError:
            return "the working directory was removed; change to another"
        raise error
    name = " ".join(str(error.filename).splitlines())
    return f"{name}: cannot be used: {error.strerror}; give another place"
