"""The command line: parses, calls, prints.

Three doors lead here: `train.py`, `evaluate.py` and `python -m qanet`. Heavy imports
happen inside the commands, after all that can be refused without them, so that `--help`
and mistakes answer at once.
"""

import argparse
import logging
import os
import sys
import traceback
from collections.abc import Callable, Sequence

from qanet.commands import answer, augment, export, features, serve, translate
from qanet.commands import evaluate as evaluate_command
from qanet.commands import train as train_command
from qanet.commands.options import Parser
from qanet.console import OutputGone, flush_output, is_verbose, speaking
from qanet.errors import UserError

# What a shell says of a program whose reader has gone: 128 and the number of SIGPIPE.
READER_GONE = 141


def train(arguments: Sequence[str] | None = None) -> None:
    """`python train.py`."""
    _run(train_command.run, train_command.make_parser().parse_args(arguments))


def evaluate(arguments: Sequence[str] | None = None) -> None:
    """`python evaluate.py`."""
    _run(evaluate_command.run, evaluate_command.make_parser().parse_args(arguments))


def main(arguments: Sequence[str] | None = None) -> None:
    """`python -m qanet`."""
    options = make_parser().parse_args(arguments)
    _run(options.command, options)


def make_parser() -> argparse.ArgumentParser:
    """The options of `python -m qanet` and of all its commands."""
    parser = Parser(
        prog="python -m qanet",
        description="Uses a trained reader, and prepares data to train one.",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in (answer, serve, export, features, augment, translate):
        command.add_parser(commands)
    return parser


def _run(command: Callable[[argparse.Namespace], None], options) -> None:
    """Runs a command; a user's mistake ends it with one line and exit code 2."""
    level = getattr(options, "level", logging.INFO)
    # Remarks on the machine and warnings of TensorFlow's own inside.
    least = "0" if level == logging.DEBUG else "2"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", least)
    with speaking(level):
        try:
            command(options)
            flush_output()
        except OutputGone:
            sys.exit(READER_GONE)
        except UserError as error:
            if is_verbose():
                traceback.print_exc()
            print(f"error: {error}", file=sys.stderr)
            sys.exit(2)
        except KeyboardInterrupt:
            print("stopped", file=sys.stderr)
            sys.exit(130)
