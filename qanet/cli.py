"""The command line: parses, calls, prints.

The doors that lead here are `qanet`, which is `python -m qanet`, and in the checkout
`train.py` and `evaluate.py`, which are `qanet train` and `qanet evaluate`.

Heavy imports happen inside the commands, after all that can be refused without them, so
that `--help` and mistakes answer at once.
"""

import argparse
import logging
import os
import sys
import traceback
from collections.abc import Sequence
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
from qanet.console import OutputGone, flush_output, is_verbose, speaking
from qanet.errors import UserError

# What a shell says of a program whose reader has gone: 128 and the number of SIGPIPE.
READER_GONE = 141


def train(arguments: Sequence[str] | None = None) -> None:
    """`python train.py`."""
    _run_script("train", arguments)


def evaluate(arguments: Sequence[str] | None = None) -> None:
    """`python evaluate.py`."""
    _run_script("evaluate", arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """`qanet`, or `python -m qanet`."""
    _run(make_parser().parse_args(arguments))


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
    _run(make_parser(f"{name}.py").parse_args([name, *arguments]))


def _run(options: argparse.Namespace) -> None:
    """Runs the command; a user's mistake ends it with one line and exit code 2."""
    level = getattr(options, "level", logging.INFO)
    # Remarks on the machine and warnings of TensorFlow's own inside.
    least = "0" if level == logging.DEBUG else "2"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", least)
    with speaking(level):
        try:
            options.command(options)
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
