"""The command line: parses, calls, prints.

Three doors lead here: `train.py`, `evaluate.py` and `python -m qanet`. Heavy imports
happen inside the commands, so that `--help` and mistakes answer at once.
"""

import argparse
import os
import sys
from collections.abc import Callable, Sequence

from qanet.commands import answer, augment, export, features, serve, translate
from qanet.commands import evaluate as evaluate_command
from qanet.commands import train as train_command
from qanet.errors import UserError


def train(arguments: Sequence[str] | None = None) -> None:
    """`python train.py`."""
    _run(train_command.run, train_command.make_parser().parse_args(arguments))


def evaluate(arguments: Sequence[str] | None = None) -> None:
    """`python evaluate.py`."""
    _run(evaluate_command.run, evaluate_command.make_parser().parse_args(arguments))


def main(arguments: Sequence[str] | None = None) -> None:
    """`python -m qanet`."""
    parser = argparse.ArgumentParser(
        prog="python -m qanet",
        description="Uses a trained reader, and prepares data to train one.",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in (answer, serve, export, features, augment, translate):
        command.add_parser(commands)
    options = parser.parse_args(arguments)
    _run(options.command, options)


def _run(command: Callable[[argparse.Namespace], None], options) -> None:
    """Runs a command; a user's mistake ends it with one line and exit code 2."""
    # TensorFlow reports on the machine at every start; only its errors matter here.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    try:
        command(options)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        sys.exit(130)
